"""A loop nest as LLVM text.

Contract: `text` answers a module whose function, called `machine.ENTRY`, takes a table as `Nest.table` lays
it out and writes the result of one einsummable on one block.  Importing this module loads the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from llvmlite import ir

from einsummable.dtypes import BOOL, F32, F64
from einsummable.functions import AGGREGATES
from einsummable.kernels.lanes import Lanes, element, memory
from einsummable.kernels.machine import ENTRY
from einsummable.kernels.nest import Nest
from einsummable.kernels.tiling import Labels
from einsummable.scalar import Arg, Call, Const, Label, Param


def text(nest: Nest) -> str:
    """Return the LLVM module of `nest`."""
    return _Emitter(nest).module_text()


_Value: TypeAlias = "ir.Value"
_Grid: TypeAlias = "list[list[ir.Value]]"  # by row and vector; one where it does not depend on them


@dataclass(frozen=True, slots=True)
class _Here:
    """What is known at some depth of the nest."""

    index: dict[str, _Value]
    addresses: dict[object, list[_Value]]  # of arrays and the result, by row
    done: dict[int, _Grid]
    height: int = 1
    masks: tuple[_Value, ...] | None = None


class _Emitter:
    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.module = ir.Module(ENTRY)
        self.i64, self.pointer = ir.IntType(64), ir.PointerType()
        kind = ir.FunctionType(ir.VoidType(), [self.pointer])
        self.function = ir.Function(self.module, kind, ENTRY)
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.lanes = Lanes(self.b, nest.width)
        self.at = {place: self._entry(n) for n, place in enumerate(nest.table)}
        self.depends = self._dependencies()
        self.fused = self._is_fused()
        self.rooms: dict[tuple[int, int], _Value] = {}

    def module_text(self) -> str:
        addresses: dict[object, list[_Value]] = {
            k: [self.at["array", k]] for k in range(len(self.nest.arrays))
        }
        self._enter(0, _Here({}, addresses | {"result": [self.at["result",]]}, {}))
        self.b.ret_void()
        return str(self.module)

    def _entry(self, n: int) -> _Value:
        where = self.b.gep(self.function.args[0], [self._int(n)], source_etype=self.i64)
        return self.b.load(where, typ=self.i64)

    def _int(self, n: int) -> ir.Constant:
        return ir.Constant(self.i64, n)

    def _dependencies(self) -> list[frozenset[str]]:
        found: list[frozenset[str]] = []
        for op in self.nest.join.ops:
            match op:
                case Arg(k):
                    found.append(frozenset(self.nest.arrays[k][0]))
                case Label(name):
                    found.append(frozenset((name,)))
                case Call(_, operands):
                    found.append(frozenset[str]().union(*(found[a] for a in operands)))
                case _:
                    found.append(frozenset())
        return found

    def _is_fused(self) -> bool:
        """Return whether the join ends in a product that is summed: then both are one instruction."""
        last, typed = self.nest.join.ops[-1], self.nest.typed[-1]
        product = isinstance(last, Call) and last.fn in ("mul", "square", "pow")
        real = typed.type.dtype == self.nest.dtype and self.nest.dtype in (F32, F64)
        return product and real and self.nest.aggregate == "sum" and typed.operands[0] == self.nest.dtype

    # ------------------------------------------------------------------------------------ loops

    @contextmanager
    def _loop(self, start: _Value, stop: _Value, step: int) -> Iterator[_Value]:
        """Emit what is emitted inside for ``start, start + step, … < stop``."""
        b = self.b
        with b.goto_entry_block():
            counter = b.alloca(self.i64)
        head, body, end = (b.append_basic_block(n) for n in ("head", "body", "end"))
        b.store(start, counter)
        b.branch(head)
        b.position_at_end(head)
        i = b.load(counter, typ=self.i64)
        b.cbranch(b.icmp_signed("<", i, stop), body, end)
        b.position_at_end(body)
        yield i
        b.store(b.add(i, self._int(step)), counter)
        b.branch(head)
        b.position_at_end(end)

    def _enter(self, depth: int, here: _Here) -> None:
        """Emit all from loop `depth` on."""
        nest = self.nest
        here = self._compute(here)
        if depth == len(nest.out) and nest.aggregate is not None:
            self._accumulate(depth, here)
        elif depth == len(nest.labels):
            self._store(here, self._operand(here, len(nest.join.ops) - 1))
        else:
            self._steps(depth, here, self._enter)

    def _steps(self, depth: int, here: _Here, inside: Callable[[int, _Here], None]) -> None:
        label, zero = self.nest.labels[depth], self._int(0)
        extent = self.at["extent", label]
        step = 1
        if label == self.nest.vector:
            step = self.nest.width * self.nest.count
        elif label == self.nest.rows:
            step = self.nest.height
        if step == 1:
            with self._loop(zero, extent, 1) as i:
                inside(depth + 1, self._bind(here, label, i))
            return
        whole = self.b.sub(extent, self.b.srem(extent, self._int(step)))
        with self._loop(zero, whole, step) as i:
            inside(depth + 1, self._bind(here, label, i, step if label == self.nest.rows else 1))
        if label == self.nest.rows:
            with self._loop(whole, extent, 1) as i:
                inside(depth + 1, self._bind(here, label, i))
        else:
            with self.b.if_then(self.b.icmp_signed("<", whole, extent)):
                masked = replace(here, masks=self._masks(self.b.sub(extent, whole)))
                inside(depth + 1, self._bind(masked, label, whole))

    def _masks(self, left: _Value) -> tuple[_Value, ...]:
        width = self.nest.width
        lanes = ir.Constant(ir.VectorType(self.i64, width), list(range(width)))
        return tuple(
            self.b.icmp_signed("<", lanes, self.lanes.spread(self.b.sub(left, self._int(n * width))))
            for n in range(self.nest.count)
        )

    def _bind(self, here: _Here, label: str, i: _Value, height: int = 1) -> _Here:
        """Return what is known inside a loop over `label`, at step `i`."""
        addresses = dict(here.addresses)
        tensors: list[tuple[object, Labels, np.dtype]] = [
            (k, labels, dtype) for k, (labels, dtype) in enumerate(self.nest.arrays)
        ]
        for key, labels, dtype in (*tensors, ("result", self.nest.out, self.nest.dtype)):
            if label not in labels:
                continue
            beside = key == "result" and label == self.nest.vector
            stride = self._int(dtype.itemsize) if beside else self.at["stride", key, label]
            base = [self.b.add(a, self.b.mul(i, stride)) for a in addresses[key]]
            for m in range(1, height):
                base.append(self.b.add(base[0], self.b.mul(self._int(m), stride)))
            addresses[key] = base
        taller = height if label == self.nest.rows else here.height
        return replace(here, index=here.index | {label: i}, addresses=addresses, height=taller)

    # ------------------------------------------------------------------------------- operations

    def _compute(self, here: _Here) -> _Here:
        """Emit every operation whose labels are all bound by now."""
        done = dict(here.done)
        here = replace(here, done=done)
        last = len(self.nest.join.ops) - 1
        for i, op in enumerate(self.nest.join.ops):
            if i in done or not self.depends[i] <= here.index.keys() or (i == last and self.fused):
                continue
            rows = here.height if self.nest.rows in self.depends[i] else 1
            vectors = self.nest.count if self.nest.vector in self.depends[i] else 1
            done[i] = [[self._operation(here, i, op, m, n) for n in range(vectors)] for m in range(rows)]
        return here

    def _operation(self, here: _Here, i: int, op: object, m: int, n: int) -> _Value:
        typed = self.nest.typed[i]
        dtype = typed.type.dtype
        match op:
            case Arg(k):
                return self._load(here, k, m, n)
            case Label(name):
                return self._label(here, name, m, n)
            case Const():
                return self.lanes.constant(op.value, dtype)
            case Param(name):
                where = self.b.inttoptr(self.at["param", name], self.pointer)
                found = self.b.load(where, typ=memory(dtype), align=1)
                return self.b.trunc(found, element(dtype)) if dtype == BOOL else found
            case Call(fn, operands):
                values = []
                for a, wanted in zip(operands, typed.operands, strict=True):
                    source = self.nest.typed[a].type.dtype
                    values.append(self.lanes.cast(self._pick(here.done[a], m, n), source, wanted))
                return self.lanes.call(fn, values, typed.operands[-1], dtype)
        raise NotImplementedError(op)

    def _pick(self, grid: _Grid, m: int, n: int) -> _Value:
        row = grid[m if len(grid) > 1 else 0]
        return row[n if len(row) > 1 else 0]

    def _label(self, here: _Here, name: str, m: int, n: int) -> _Value:
        value = self.b.add(here.index[name], self.at["first", name])
        if name == self.nest.rows:
            value = self.b.add(value, self._int(m))
        if name != self.nest.vector:
            return value
        width = self.nest.width
        lanes = ir.Constant(ir.VectorType(self.i64, width), [n * width + k for k in range(width)])
        return self.b.add(self.lanes.spread(value), lanes)

    def _load(self, here: _Here, k: int, m: int, n: int) -> _Value:
        labels, dtype = self.nest.arrays[k]
        address = here.addresses[k][m if len(here.addresses[k]) > 1 else 0]
        if self.nest.vector not in labels:
            found = self.b.load(self.b.inttoptr(address, self.pointer), typ=memory(dtype), align=1)
        else:
            found = self._load_vector(address, n, dtype, here.masks)
        if dtype == BOOL:
            return self.b.icmp_unsigned("!=", found, ir.Constant(found.type, _zeros(found.type)))
        return found

    def _vector_at(self, address: _Value, n: int, dtype: np.dtype) -> tuple[_Value, ir.VectorType]:
        offset = self._int(n * self.nest.width * dtype.itemsize)
        where = self.b.inttoptr(self.b.add(address, offset), self.pointer)
        return where, ir.VectorType(memory(dtype), self.nest.width)

    def _load_vector(
        self, address: _Value, n: int, dtype: np.dtype, masks: Sequence[_Value] | None
    ) -> _Value:
        where, type_ = self._vector_at(address, n, dtype)
        if masks is None:
            return self.b.load(where, typ=type_, align=dtype.itemsize)
        signature = ir.FunctionType(type_, [self.pointer, masks[n].type, type_])
        load = _declared(self.module, f"llvm.masked.load.{_suffix(type_)}.p0", signature)
        return self.b.call(load, [where, masks[n], ir.Constant(type_, _zeros(type_))])

    def _store(self, here: _Here, grid: _Grid) -> None:
        """Store the result of every row and vector."""
        dtype = self.nest.dtype
        for m, address in enumerate(here.addresses["result"]):
            for n in range(self.nest.count if self.nest.vector in self.nest.out else 1):
                value = self._pick(grid, m, n)
                if self.nest.vector not in self.nest.out:
                    value = self.b.zext(value, memory(dtype)) if dtype == BOOL else value
                    self.b.store(value, self.b.inttoptr(address, self.pointer), align=dtype.itemsize)
                    continue
                where, type_ = self._vector_at(address, n, dtype)
                value = self.lanes.spread(value)
                value = self.b.zext(value, type_) if dtype == BOOL else value
                if here.masks is None:
                    self.b.store(value, where, align=dtype.itemsize)
                    continue
                signature = ir.FunctionType(ir.VoidType(), [type_, self.pointer, here.masks[n].type])
                store = _declared(self.module, f"llvm.masked.store.{_suffix(type_)}.p0", signature)
                self.b.call(store, [value, where, here.masks[n]])

    def _operand(self, here: _Here, i: int) -> _Grid:
        """Return the values of operation `i` in the dtype of the result."""
        source = self.nest.typed[i].type.dtype
        return [[self.lanes.cast(x, source, self.nest.dtype) for x in row] for row in here.done[i]]

    # ------------------------------------------------------------------------------ aggregation

    def _accumulate(self, depth: int, here: _Here) -> None:
        nest, vectors = self.nest, self.nest.count
        neutral = AGGREGATES[nest.aggregate].identity(nest.dtype)
        identity = self.lanes.spread(self.lanes.constant(neutral, nest.dtype))
        for m in range(here.height):
            for n in range(vectors):
                if (m, n) not in self.rooms:
                    with self.b.goto_entry_block():
                        self.rooms[m, n] = self.b.alloca(identity.type)
                self.b.store(identity, self.rooms[m, n])
        self._inner(depth, here, identity)
        totals = [
            [self.b.load(self.rooms[m, n], typ=identity.type) for n in range(vectors)]
            for m in range(here.height)
        ]
        if nest.vector in nest.inner:
            totals = [[self._across(row)] for row in totals]
        self._finish(here, totals)

    def _inner(self, depth: int, here: _Here, identity: _Value) -> None:
        if depth < len(self.nest.labels):
            self._steps(depth, here, lambda d, h: self._inner(d, self._compute(h), identity))
            return
        for m in range(here.height):
            for n in range(self.nest.count):
                best = self.b.load(self.rooms[m, n], typ=identity.type)
                total = self._add(here, m, n, best)
                if here.masks is not None and self.nest.vector in self.nest.inner:
                    total = self.b.select(here.masks[n], total, best)
                self.b.store(total, self.rooms[m, n])

    def _add(self, here: _Here, m: int, n: int, total: _Value) -> _Value:
        last, dtype = len(self.nest.join.ops) - 1, self.nest.dtype
        if not self.fused:
            x = self.lanes.cast(self._pick(here.done[last], m, n), self.nest.typed[last].type.dtype, dtype)
            return self._combine(*self.lanes.alike([x, total]))
        op, typed = self.nest.join.ops[last], self.nest.typed[last]
        operands = op.args if op.fn == "mul" else (op.args[0],) * 2
        factors = []
        for a in operands:
            source = self.nest.typed[a].type.dtype
            factors.append(self.lanes.cast(self._pick(here.done[a], m, n), source, typed.operands[0]))
        return self.lanes.intrinsic("fmuladd", *self.lanes.alike([*factors, total]))

    def _combine(self, x: _Value, total: _Value) -> _Value:
        dtype = self.nest.dtype
        match self.nest.aggregate:
            case "sum":
                return self.lanes.arithmetic("add", x, total, dtype)
            case "prod":
                return self.lanes.arithmetic("mul", x, total, dtype)
            case "max" | "any":
                return self.lanes.extreme(">", x, total, dtype, ordered=self.nest.ordered)
            case _:
                return self.lanes.extreme("<", x, total, dtype, ordered=self.nest.ordered)

    def _across(self, vectors: list[_Value]) -> _Value:
        """Return all lanes of `vectors` combined."""
        while len(vectors) > 1:
            half = len(vectors) // 2
            rest = vectors[2 * half :]
            vectors = [self._combine(vectors[i], vectors[half + i]) for i in range(half)] + rest
        (total,) = vectors
        width = self.nest.width
        while width > 1:
            width //= 2
            low, high = (
                ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(first, first + width)))
                for first in (0, width)
            )
            empty = ir.Constant(total.type, ir.Undefined)
            total = self._combine(
                self.b.shuffle_vector(total, empty, low), self.b.shuffle_vector(total, empty, high)
            )
        return self.b.extract_element(total, ir.Constant(ir.IntType(32), 0))

    def _finish(self, here: _Here, totals: _Grid) -> None:
        """Store `totals`, combined with what an earlier part of the terms left there."""
        resume = self.b.icmp_signed("!=", self.at["resume",], self._int(0))
        with self.b.if_else(resume) as (then, otherwise):
            with then:
                self._store(here, self._with_earlier(here, totals))
            with otherwise:
                self._store(here, totals)

    def _with_earlier(self, here: _Here, totals: _Grid) -> _Grid:
        dtype, merged = self.nest.dtype, []
        for m, address in enumerate(here.addresses["result"]):
            row = []
            for n, x in enumerate(totals[m if len(totals) > 1 else 0]):
                if self.nest.vector in self.nest.out:
                    earlier = self._load_vector(address, n, dtype, here.masks)
                    if dtype == BOOL:
                        earlier = self.b.trunc(earlier, ir.VectorType(element(dtype), self.nest.width))
                else:
                    where = self.b.inttoptr(address, self.pointer)
                    earlier = self.b.load(where, typ=memory(dtype), align=dtype.itemsize)
                    earlier = self.b.trunc(earlier, element(dtype)) if dtype == BOOL else earlier
                row.append(self._combine(*self.lanes.alike([x, earlier])))
            merged.append(row)
        return merged


def _declared(module: ir.Module, name: str, signature: ir.FunctionType) -> ir.Function:
    return module.globals.get(name) or ir.Function(module, signature, name)


def _suffix(type_: ir.VectorType) -> str:
    one = type_.element
    name = (
        f"i{one.width}" if isinstance(one, ir.IntType) else "f32" if isinstance(one, ir.FloatType) else "f64"
    )
    return f"v{type_.count}{name}"


def _zeros(type_: ir.Type) -> object:
    return [0] * type_.count if isinstance(type_, ir.VectorType) else 0
