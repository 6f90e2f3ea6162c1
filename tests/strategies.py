"""Random programs, data, plans and placements for hypothesis.

Contract: every draw is legal, nothing is filtered.  `graphs` keeps a bound on every value, and lets functions
that jump read exact values only, so that two right evaluations agree: exactly in outputs named ``Y…``, whose
values are small integers (or infinite), and to rounding in those named ``R…`` (`assert_same`).
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from hypothesis import strategies as st

from einsummable import dtypes
from einsummable.builder import GraphBuilder
from einsummable.dtypes import BF16, BOOL, C64, C128, F16, F32, F64, I32, I64, ScalarType, kind
from einsummable.errors import DtypeError
from einsummable.functions import FUNCTIONS, aggregate_dtype
from einsummable.nodes import Input, Position, Select
from einsummable.planner.partition import Partition
from einsummable.planner.plan import Layout, Placement, Plan, out_parts
from einsummable.scalar import ScalarBuilder

MAX_SPACE = 1500  # elements of an iteration space
COMMON = [F32, F64, C128, I64, BOOL]
RARE = [F16, BF16, C64, I32]
#: Integers up to this are exact in the dtype (far from overflow, for i32 and i64).
LIMIT = {
    F16: 2**11,
    BF16: 2**8,
    F32: 2**24,
    C64: 2**24,
    F64: 2**50,
    C128: 2**50,
    I32: 2**30,
    I64: 2**50,
    BOOL: 1,
}
ROUNDED_LIMIT = 1000.0  # keeps the absolute error of rounded values small

SMOOTH = ["add", "sub", "mul", "minimum", "maximum", "neg", "abs", "square", "relu", "conj", "real", "imag"]
JUMPING = ["lt", "le", "gt", "ge", "eq", "ne", "where", "sign", "floor", "isnan"]
CASTS = ["f32", "f64", "c64", "c128", "bool", "f16", "bf16", "i32", "i64"]
ROUNDING = ["exp", "tanh", "sigmoid", "silu", "sin", "gelu", "sqrt", "div"]


@dataclass(frozen=True)
class Value:
    """What is known of a value: its type, a bound of its magnitude, whether it is an exact integer."""

    type: ScalarType
    bound: float
    exact: bool = True
    finite: bool = True

    @property
    def fits(self):
        if self.exact:
            return self.bound <= LIMIT[self.type.dtype]
        return self.bound <= ROUNDED_LIMIT and self.type.dtype in (F32, F64, C64, C128)


def apply(fn, args):
    """Return the `Value` of a function of `args`, None where it has no meaning or could not be compared."""
    try:
        operands, type_ = FUNCTIONS[fn].rule(fn, [a.type for a in args])
    except DtypeError:
        return None
    is_complex = kind(operands[0].dtype) == "c"
    exact, finite = all(a.exact for a in args), all(a.finite for a in args)
    bounds = [a.bound for a in args]
    if not finite and (kind(type_.dtype) not in "fb" or kind(operands[-1].dtype) != "f"):
        return None  # an infinity cast to an integer, or inside a complex product
    if fn in ("mul", "square"):
        bound = bounds[0] * bounds[-1] * (2 if is_complex else 1)
    elif fn in ("add", "sub"):
        bound = sum(bounds)
    elif fn in JUMPING:
        if not exact or (fn == "sign" and is_complex):
            return None
        bound = max(bounds[1:]) if fn == "where" else bounds[0] if fn == "floor" else 1
    elif fn in CASTS:
        if not exact and kind(type_.dtype) in "bi":
            return None
        bound = 1 if type_.dtype == BOOL else bounds[0]
    elif fn in ROUNDING:
        if is_complex or not finite or bounds[0] > 4 or fn in ("div", "sqrt"):
            return None
        exact, bound = False, np.exp(bounds[0]) if fn == "exp" else bounds[0] + 1
    else:
        exact, bound = exact and not (fn == "abs" and is_complex), max(bounds) * (2 if is_complex else 1)
    value = Value(type_, bound, exact, finite)
    wide = [Value(t, max(bounds, default=0), exact, finite) for t in operands[-1:]]
    return value if value.fits and all(w.fits for w in wide) else None


def aggregated(aggregate, value, count):
    """Return the `Value` of an aggregate over `count` values, None where it is not comparable."""
    try:
        dtype = aggregate_dtype(aggregate, value.type.dtype)
    except DtypeError:
        return None
    bound, finite, is_complex = value.bound, value.finite, kind(dtype) == "c"
    match aggregate:
        case "sum":
            bound = bound * count
        case "prod":
            if not value.exact or bound > 8 or count > 24:
                return None
            bound = (bound * (2 if is_complex else 1)) ** count
        case "max" | "min":
            if not count and kind(dtype) == "i":
                return None
            finite = finite and count > 0
        case _:
            if not value.exact:
                return None
            bound = 1
    found = Value(ScalarType(dtype), bound, value.exact, finite)
    return found if found.fits else None


class Growing:
    """A program that grows by random nodes; `values[i]` is what is known of node i."""

    def __init__(self, draw):
        self.draw = draw
        self.builder = GraphBuilder()
        self.extents = {}
        self.values = {}
        self.params = {}
        sizes = [2, 3, 4, 5, 7, 1] if self.chance(92) else [2, 3, 4, 1, 0]
        self.extents = {label: self.choose(sizes) for label in "abcdef"}
        scalars = {"lr": dtypes.WEAK_FLOAT, "n": dtypes.WEAK_INT, "h": ScalarType(F32), "q": ScalarType(I32)}
        for name, type_ in scalars.items():
            if self.chance(30):
                self.params[name] = type_
                self.builder.param(name, type_)

    def choose(self, options):
        return self.draw(st.sampled_from(list(options)))

    def chance(self, percent):
        return self.draw(st.integers(0, 99)) >= 100 - percent  # shrinks towards False

    def add(self, i, value):
        self.values.setdefault(i, value)

    def label_for(self, extent):
        """Return a label of that extent, a new one where there is none."""
        known = [label for label, n in self.extents.items() if n == extent]
        if known:
            return self.choose(known)
        label = f"g{len(self.extents)}"
        self.extents[label] = extent
        return label

    def input(self, name):
        labels = self.draw(st.lists(st.sampled_from("abcdef"), max_size=3))
        dtype = self.choose(COMMON if not self.chance(15) else RARE)
        i = self.builder.input(name, [self.extents[label] for label in labels], dtype)
        self.add(i, Value(ScalarType(dtype), 1 if dtype == BOOL else 3))

    def einsummable(self):
        labelled, space = [], {}
        for _ in range(self.choose([1, 2, 2, 2, 3, 0])):
            i = self.choose(self.values)
            labels = [self.label_for(n) for n in self.builder[i].shape]
            if prod(self.extents[label] for label in {*space, *labels}) <= MAX_SPACE:
                space.update(dict.fromkeys(labels))
                labelled.append((i, labels))
        extra = self.choose("abcdef")
        if (not space or self.chance(15)) and prod(self.extents[x] for x in {*space, extra}) <= MAX_SPACE:
            space[extra] = None  # broadcast, or aggregated without being read
        join, value = self.join([self.values[i] for i, _ in labelled], list(space))
        out, aggregate = list(self.draw(st.permutations(list(space)))), None
        if self.chance(60) and out:
            kept = out[: self.draw(st.integers(0, len(out) - 1))]
            count = prod(self.extents[x] for x in space if x not in kept)
            options = {a: aggregated(a, value, count) for a in ("sum", "prod", "max", "min", "any", "all")}
            options = [a for a, v in options.items() if v is not None]
            if options:
                aggregate = "sum" if "sum" in options and self.chance(40) else self.choose(options)
                out, value = kept, aggregated(aggregate, value, count)
        extents = {label: self.extents[label] for label in space}
        self.add(self.builder.einsummable(out, labelled, join, aggregate, extents=extents), value)

    def join(self, args, labels):
        """Return a scalar expression that reads all of `args` where it can, and what is known of it."""
        b = ScalarBuilder()
        pool = [(b.arg(k), value) for k, value in enumerate(args)]
        leaves = self.leaves(b, labels)
        if not pool or self.chance(35):
            pool += leaves
        for _ in range(self.choose([0, 0, 1, 2, 4])):
            fn = self.choose(SMOOTH if self.chance(50) else JUMPING if self.chance(65) else CASTS + ROUNDING)
            if fn == "where" and self.chance(30):
                pool.append((b.const(-float("inf")), Value(dtypes.WEAK_FLOAT, 0, finite=False)))
            picked = [self.choose(range(len(pool))) for _ in range(FUNCTIONS[fn].arity)]
            value = apply(fn, [pool[k][1] for k in picked])
            if value is not None:
                pool.append((b.call(fn, *(pool[k][0] for k in picked)), value))
        result, value = pool[-1]
        for i, other in pool[: len(args)]:  # mostly, so that no input is idle
            fn = "mul" if self.chance(60) else "add"
            both = apply(fn, [value, other])
            if i != result and both is not None:
                result, value = b.call(fn, result, i), both
        return b.build(result), value

    def leaves(self, b, labels):
        found = [(b.const(c), Value(dtypes.of_value(c), 2)) for c in (2, 1.0, -1)]
        found += [(b.label(x), Value(dtypes.WEAK_INT, max(self.extents[x], 1))) for x in labels]
        found += [(b.param(name), Value(type_, 3)) for name, type_ in self.params.items()]
        return self.draw(st.lists(st.sampled_from(found), min_size=1, max_size=3))

    def reshape(self):
        """Split every dimension into atoms and group these anew, empty groups included."""
        i = self.choose(self.values)
        atoms, groups_in = [], []
        for n in self.builder[i].shape:
            if n == 1 and self.chance(50):
                groups_in.append(0)
                continue
            factors = [d for d in range(1, n + 1) if n % d == 0]
            split = self.choose(factors) if factors and self.chance(60) else 1
            atoms += [split, n // split] if split > 1 else [n]
            groups_in.append(2 if split > 1 else 1)
        groups_out, left = [], len(atoms)
        while left or (len(groups_out) < 3 and self.chance(10)):
            groups_out.append(self.draw(st.integers(0, min(left, 3))))
            left -= groups_out[-1]
            if len(groups_out) > 4:
                groups_out.append(left)
                break
        space = tuple((f"t{k}", n) for k, n in enumerate(atoms))
        self.add(self.builder.reshape(i, space, groups_in, groups_out), self.values[i])

    def select(self):
        i = self.choose(self.values)
        positions, space = [], []
        for d, n in enumerate(self.builder[i].shape):
            if n and self.chance(25):
                positions.append(Position(start=self.draw(st.integers(0, n - 1))))
            elif n and self.chance(25):
                name = f"i{len(self.params)}"
                self.params[name] = dtypes.WEAK_INT
                self.builder.param(name, dtypes.WEAK_INT)
                positions.append(Position(param=name))
            else:
                start, step = self.draw(st.integers(0, max(n - 1, 0))), self.choose([1, 1, 2, 3, -1, -2])
                room = -(-(n - start) // step) if step > 0 else -(-(start + 1) // -step)
                positions.append(Position(label=f"s{d}", start=start, step=step))
                space.append((f"s{d}", self.draw(st.integers(min(n, 1), max(0, room if n else 0)))))
        self.add(self.builder.select(i, positions, tuple(space)), self.values[i])

    def concat(self):
        """Put a tensor after itself, after another of its shape and dtype, or after part of either."""
        i = self.choose([i for i in self.values if self.builder[i].shape] or [None])
        if i is None:
            return self.einsummable()
        node, axis = self.builder[i], self.draw(st.integers(0, len(self.builder[i].shape) - 1))

        def rest(shape):
            return (*shape[:axis], *shape[axis + 1 :])

        fitting = [
            j
            for j in self.values
            if len(self.builder[j].shape) == len(node.shape)
            and rest(self.builder[j].shape) == rest(node.shape)
            and self.builder[j].dtype == node.dtype
        ]
        parts = [self.choose(fitting) for _ in range(self.choose([1, 1, 2, 3]))] + [i]
        if sum(prod(self.builder[j].shape) for j in parts) > MAX_SPACE:
            return self.einsummable()
        known = [self.values[j] for j in parts]
        value = Value(
            known[0].type,
            max(v.bound for v in known),
            all(v.exact for v in known),
            all(v.finite for v in known),
        )
        labels = [f"c{d}" for d in range(len(node.shape))]
        return self.add(self.builder.concat(parts, labels, axis), value)

    def gather(self):
        """Look up some dimensions of a tensor through integers: an input of its own, in range."""
        i = self.choose([i for i in self.values if self.builder[i].shape] or [None])
        if i is None:
            return self.einsummable()
        labels, shape = [self.label_for(n) for n in self.builder[i].shape], self.builder[i].shape
        gathered = self.draw(st.sets(st.integers(0, len(labels) - 1), min_size=1, max_size=2))
        indices, space = {}, {label for d, label in enumerate(labels) if d not in gathered}
        for d in sorted(gathered):
            labels[d] = f"r{d}"
            own = self.draw(st.lists(st.sampled_from("abcdef"), max_size=2))
            if not shape[d]:
                own = [label for label in own if not self.extents[label]] or [self.label_for(0)]
            if prod(self.extents[label] for label in {*space, *own}) > MAX_SPACE:
                own = []
            space |= set(own)
            tok = self.builder.input(
                f"I{len(self.values)}r{shape[d]}", [self.extents[x] for x in own], self.choose([I64, I32])
            )
            self.add(tok, Value(ScalarType(self.builder[tok].dtype), max(shape[d] - 1, 0)))
            indices[labels[d]] = (tok, own)
        if prod(self.extents[label] for label in space) > MAX_SPACE:
            return self.einsummable()
        out = self.draw(st.permutations(sorted(space)))
        return self.add(self.builder.gather(out, (i, labels), indices), self.values[i])

    def finish(self):
        """Name as outputs what nothing reads, and sometimes more; return the graph."""
        read = {j for i in self.values for j in self.builder[i].inputs}
        for i, value in self.values.items():
            idle = i not in read and not isinstance(self.builder[i], Input)
            if idle or self.chance(10) or i == max(self.values):
                self.builder.output(f"{'Y' if value.exact else 'R'}{i}", i)
        return self.builder.build()


@st.composite
def graphs(draw, max_nodes=6):
    """Draw an EinGraph of up to `max_nodes` nodes besides 1 to 3 inputs."""
    growing = Growing(draw)
    for k in range(draw(st.integers(1, 3))):
        growing.input(f"X{k}")
    kinds = [growing.einsummable] * 6 + [growing.reshape, growing.select, growing.concat, growing.gather]
    for _ in range(draw(st.integers(1, max_nodes))):
        growing.choose(kinds)()
    return growing.finish()


# ---------------------------------------------------------------------------------------- data


def random_array(rng, shape, dtype):
    """Return small integers (two of them where `dtype` is complex, truth values where it is bool)."""
    if dtype == BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    values = rng.integers(-3, 4, shape)
    if kind(dtype) == "c":
        values = np.clip(values, -2, 2) + 1j * rng.integers(-2, 3, shape)
    return np.asarray(values).astype(dtype)


def data_for(graph, seed=0):
    """Return arrays for the inputs of `graph` and values for its parameters."""
    rng = np.random.default_rng(seed)
    arrays = {name: random_array(rng, node.shape, node.dtype) for name, node in graph.inputs.items()}
    for name, array in arrays.items():
        if name.startswith("I"):  # indices of so many rows
            array[...] = rng.integers(0, max(int(name.partition("r")[2]), 1), array.shape)
    room = {}
    for node in graph.nodes:
        if isinstance(node, Select):
            for p, n in zip(node.positions, node.source_shape, strict=True):
                if p.param is not None:
                    room[p.param] = min(n, room.get(p.param, n))
    params = {}
    for p in graph.params:
        value = int(rng.integers(-room.get(p.name, 3), room.get(p.name, 4)))
        params[p.name] = np.asarray(value).astype(p.type.dtype)[()]
    return arrays, params


def assert_same(actual, expected):
    """Compare results by name: exactly, nan equal to nan; to rounding where the name begins with R."""
    assert set(actual) == set(expected)
    for name, want in expected.items():
        got = actual[name]
        assert got.dtype == want.dtype, name
        if name.startswith("R"):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-3, err_msg=name)
        else:
            np.testing.assert_array_equal(got, want, err_msg=name)


# -------------------------------------------------------------------------- plans and placements


@st.composite
def partitions(draw, space, cuttable, p):
    """Draw a partition of `space` into at most `p` blocks."""
    parts, left = {}, p
    for label in draw(st.permutations(list(cuttable))):
        extent = dict(space)[label]
        parts[label] = draw(st.integers(1, max(1, min(extent, left))))
        left //= parts[label]
    return Partition(tuple(label for label, _ in space), tuple(parts.get(label, 1) for label, _ in space))


@st.composite
def plans(draw, graph, p):
    """Draw a legal plan: any partition of any node into at most `p` calls."""
    found = tuple(draw(partitions(node.space, node.cuttable, p)) for node in graph.nodes)
    plan = Plan(graph, found, p, "random")
    plan.check()
    return plan


def _sites(draw, n, sites):
    return tuple(draw(st.lists(st.integers(0, sites - 1), min_size=n, max_size=n)))


@st.composite
def placements(draw, plan, sites):
    """Draw any site for every call and every block."""
    pairs = list(zip(plan.graph.nodes, plan.partitions, strict=True))
    scatter = tuple(draw(_scatters(node, partition)) for node, partition in pairs)
    held = [finer or out_parts(*pair) for finer, pair in zip(scatter, pairs, strict=True)]
    placement = Placement(
        sites,
        tuple(_sites(draw, partition.blocks, sites) for _, partition in pairs),
        tuple(_sites(draw, prod(parts), sites) for parts in held),
        draw(st.sampled_from([scatter, ()])) if not any(scatter) else scatter,
    )
    placement.check(plan)
    return placement


@st.composite
def _scatters(draw, node, partition):
    """Draw finer parts of the output of a node whose aggregated labels are cut, sometimes."""
    parts = out_parts(node, partition)
    if prod(parts) == partition.blocks or not parts or not draw(st.booleans()):
        return ()
    return tuple(
        k * draw(st.integers(1, max(1, min(n // k, 3)))) for k, n in zip(parts, node.shape, strict=True)
    )


@st.composite
def layouts(draw, graph, sites, p=6):
    """Draw layouts of some of the inputs: the tensors that already live on sites."""
    found = {}
    for name, node in graph.inputs.items():
        if draw(st.booleans()):
            parts = draw(partitions(node.space, node.cuttable, p)).parts
            found[name] = Layout(parts, _sites(draw, prod(parts), sites))
    return found
