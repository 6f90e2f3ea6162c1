"""Training: a loss, its gradients and the next weights are one program, and the weights stay where they are.

Contract: a `Trainer` makes one program of a loss's text and an optimiser's, planned as a whole, and runs it a
step at a time.  On a cluster a step sends the batch and two scalars and fetches the loss: weights and
optimiser state are made where the next step reads them.  A checkpoint is whole at every moment, and a run
that goes on from it has the losses of a run that was never stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from einsummable import dtypes, pipeline, tensorfile, views
from einsummable.arguments import as_array, read_namespace
from einsummable.codec import from_json, to_json
from einsummable.compiled import Compiled
from einsummable.display import Picture
from einsummable.errors import DtypeError, EinsummableError, ParseError, PlanError, UnknownNameError
from einsummable.language.parser import parse
from einsummable.optimizers import Optimizer, free_labels, named, state_dtype
from einsummable.planner.plan import Layout
from einsummable.runtime.cluster import Cluster
from einsummable.runtime.session import layout_of, split_evenly

#: How often a plan is made anew so that weights are left where they are read.
_TRIES = 4
_OURS = ("lr", "step")
_SCALARS = (bool, int, float, complex, np.generic)
_LOSSES = "training.losses"  # no weight can have this name


@dataclass(frozen=True, slots=True)
class _Spec:
    """What a program is compiled for in place of an array; `layout` says where it is on engines."""

    shape: tuple[int, ...]
    dtype: np.dtype
    layout: Layout | None = None


class Trainer:
    """Weights, and the program that makes them better a step at a time.

    Parameters
    ----------
    loss_text
        A program in the language whose result is the loss, a scalar.
    weights
        Arrays of real numbers by name, as the program calls them.
    frozen
        Arrays by name that the program reads in every step and that stay as they are: they are sent to the
        engines once, have no gradients and no optimiser state, and are in no checkpoint.
    optimizer
        ``"sgd"``, ``"momentum"``, ``"adamw"``, or what `einsummable.optimizers` makes.
    lr
        The learning rate.
    loss
        Which tensor is the loss, where the program has several results.
    sites, cluster, memory
        Where to run, and in how many bytes a site, as for `compile`.

    Attributes
    ----------
    lr
        Read in every step: to change it takes no new plan.
    losses
        The loss of every step so far, before its update.
    results
        What else the text has as ``output``, of the last step.
    frozen
        What is read and stays: arrays, or where it is on the engines.
    net
        The program of the last step, None before the first.

    Raises
    ------
    ParseError
        The text is no program.
    DtypeError
        A weight is no array of real numbers.
    UnknownNameError
        There is no such optimiser.

    Examples
    --------
    >>> x = np.arange(4.0)
    >>> line = Trainer("L = sum[i] (a * x[i] - y[i])**2", {"a": 0.0}, optimizer="sgd", lr=0.02, sites=2)
    >>> losses = line.fit({"x": x, "y": 3 * x} for _ in range(20))
    >>> losses[0], round(float(line.weights()["a"]), 3)
    (126.0, 3.0)
    """

    def __init__(
        self,
        loss_text: str,
        weights: Mapping[str, Any],
        *,
        frozen: Mapping[str, Any] | None = None,
        optimizer: str | Optimizer = "adamw",
        lr: float = 1e-3,
        loss: str | None = None,
        sites: int | None = None,
        cluster: Cluster | None = None,
        memory: float | str | None = None,
    ) -> None:
        parse(loss_text)
        self.text, self.loss, self.lr = loss_text, loss, lr
        self.optimizer = named(optimizer) if isinstance(optimizer, str) else optimizer
        self.losses: list[float] = []
        self.net: Compiled | None = None
        self.results: dict[str, np.ndarray] = {}
        self._sites, self._cluster, self._memory = sites, cluster, memory
        self._weights = tuple(weights)
        self._state = {name: _weight(name, value) for name, value in weights.items()}
        for weight in self._weights:
            array = self._state[weight]
            for kept in self.optimizer.state:
                self._state[f"{kept}_{weight}"] = np.zeros(array.shape, state_dtype(array.dtype))
        self.frozen = {name: as_array(name, value) for name, value in (frozen or {}).items()}
        if both := sorted(self._state.keys() & self.frozen.keys()):
            raise ParseError(f"{both[0]!r} cannot be both a weight and frozen")
        self._layouts: dict[str, Layout] | None = None  # where the state is, once that is decided
        self._programs: dict[tuple, Compiled] = {}

    @property
    def steps(self) -> int:
        """How many steps were made."""
        return len(self.losses)

    # ------------------------------------------------------------------------------------- steps

    def step(self, batch: Mapping[str, Any] | None = None, /, **arrays: Any) -> float:
        """Make one step and return the loss before it.

        Parameters
        ----------
        batch
            The inputs of the program that are no weights: arrays, and scalars.
        **arrays
            The same by keyword.

        Raises
        ------
        EinsummableError
            As `compile` and `Compiled.run` do.  Weights and state are then as before the step, unless an
            engine that had some is gone: `load` brings back the last checkpoint.
        """
        given = self._given({**read_namespace(batch), **arrays})
        self.net = self._program(given)
        self._place()
        read = {param.name for param in self.net.graph.params}
        scalars = {"lr": float(self.lr), "step": self.steps + 1}
        names = [f"next_{name}" for name in self._state]
        keep = names if self.net.cluster is not None else False
        scalars = {name: scalars[name] for name in _OURS if name in read}
        results = self.net.run(self._state | self.frozen | given | scalars, keep=keep)
        self._state = {name: results.pop(f"next_{name}") for name in self._state}
        if self.net.cluster is not None:
            self._layouts = {name: tensor.layout for name, tensor in self._state.items()}
        self.results = results
        self.losses.append(float(results.pop(self._loss)))
        return self.losses[-1]

    def fit(
        self,
        batches: Iterable[Mapping[str, Any]],
        *,
        each: Callable[[int, float], object] | None = None,
        save: str | os.PathLike[str] | None = None,
        every: int = 100,
    ) -> list[float]:
        """Make a step with each of `batches` and return the losses of these steps.

        Parameters
        ----------
        each
            Called after every step with its number, from 1, and its loss: to show progress or a curve.
        save
            Where to write a checkpoint after every `every` steps, and after the last.
        """
        if every < 1:
            raise PlanError(f"a checkpoint can be written every 1 step or more, not every {every}")
        first, saved = self.steps, self.steps
        for batch in batches:
            loss = self.step(batch)
            if save is not None and self.steps % every == 0:
                self.save(save)
                saved = self.steps
            if each is not None:
                each(self.steps, loss)
        if save is not None and saved < self.steps:
            self.save(save)
        return self.losses[first:]

    def weights(self) -> dict[str, np.ndarray]:
        """Return the weights as arrays of this process."""
        return {name: np.array(self._state[name]) for name in self._weights}

    # ------------------------------------------------------------------------------- checkpoints

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights, optimiser state, losses and the program to a ``safetensors`` file.

        An old file is replaced at once, when the new one is whole and on the disk.

        Raises
        ------
        OSError
            It cannot be written.
        DtypeError
            The format cannot hold a weight of its dtype.
        """
        told = {
            "text": self.text,
            "loss": self.loss,
            "lr": float(self.lr),
            "weights": self._weights,
            "frozen": tuple(self.frozen),
            "sites": None if self.net is None else self.net.sites,
            "layouts": {n: [at.parts, at.sites] for n, at in (self._layouts or {}).items()},
        }
        metadata = {"trainer": json.dumps(told), "optimizer": to_json(self.optimizer)}
        tensors = self._state | {_LOSSES: np.array(self.losses, np.float64)}
        tensorfile.write(Path(path), tensors, metadata)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        frozen: Mapping[str, Any] | None = None,
        sites: int | None = None,
        cluster: Cluster | None = None,
        memory: float | str | None = None,
    ) -> Self:
        """Return the trainer that `save` wrote; its next step is the one that would have come then.

        Parameters
        ----------
        frozen
            What it had as `frozen`: that is not in the file.
        sites, cluster, memory
            As for a new one.

        Raises
        ------
        EinsummableError
            The file is no checkpoint of a trainer.
        UnknownNameError
            Something that was frozen is missing.
        OSError
            It cannot be read.
        """
        file = tensorfile.read(Path(path))
        if not {"trainer", "optimizer"} <= file.metadata.keys():
            raise EinsummableError(f"{path} is no checkpoint of a trainer")
        told = json.loads(file.metadata["trainer"])
        if missing := sorted(set(told["frozen"]) - set(frozen or {})):
            raise UnknownNameError(f"{path} goes on only with what was frozen: {', '.join(missing)}")
        optimizer = from_json(Optimizer, file.metadata["optimizer"])
        weights = {name: file.tensors[name] for name in told["weights"]}
        trainer = cls(
            told["text"],
            weights,
            frozen=frozen,
            optimizer=optimizer,
            lr=told["lr"],
            loss=told["loss"],
            sites=sites,
            cluster=cluster,
            memory=memory,
        )
        trainer._state = {name: file.tensors[name] for name in trainer._state}
        trainer.losses = file.tensors[_LOSSES].tolist()
        if cluster is not None and told["sites"] == (sites or cluster.sites) and told["layouts"]:
            # The same plan adds in the same order.
            trainer._layouts = {
                n: Layout(tuple(parts), tuple(at)) for n, (parts, at) in told["layouts"].items()
            }
        return trainer

    # ----------------------------------------------------------------------------------- program

    def program(self, batch: Mapping[str, Any]) -> str:
        """Return the text of a step: the loss, its gradients, the next weights and state."""
        return self._text(self._given(batch))

    def _text(self, given: Mapping[str, Any]) -> str:
        self._find_loss(given)
        gradients = ", ".join(f"grad_{name}" for name in self._weights)
        lines = [self.text.rstrip(), f"{gradients} = grad {self._loss} wrt {', '.join(self._weights)}"]
        labels = free_labels(self.text)
        for name in self._weights:
            array = self._state[name]
            lines.append(self.optimizer.update(name, labels[: len(array.shape)], array.dtype))
        lines.append(f"output {', '.join([self._loss, *(f'next_{name}' for name in self._state)])}")
        return "\n".join(lines) + "\n"

    def _find_loss(self, given: Mapping[str, Any]) -> None:
        """Elaborate the text alone, so that what is wrong in it is shown as it was written."""
        graph = pipeline.compile(self.text, self._specs() | given, sites=1).graph
        results = [name for name, _ in graph.outputs]
        if self.loss is None and len(results) != 1:
            notes = ("say which is the loss: Trainer(…, loss=…)",)
            raise ParseError(f"the program has the results {', '.join(results) or 'none'}", notes=notes)
        self._loss = self.loss or results[0]

    def _given(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        for name in batch:
            if name in self._state or name in self.frozen or name in _OURS:
                raise ParseError(f"{name!r} is the trainer's, and cannot be given with a batch")
        return {n: v if isinstance(v, _SCALARS) else as_array(n, v) for n, v in batch.items()}

    def _specs(self, layouts: Mapping[str, Layout] | None = None) -> dict[str, Any]:
        known = {n: tensor.layout for n, tensor in self.frozen.items() if hasattr(tensor, "layout")}
        known |= layouts or {}
        both = self._state | self.frozen
        return {n: _Spec(tensor.shape, tensor.dtype, known.get(n)) for n, tensor in both.items()}

    def _program(self, given: Mapping[str, Any]) -> Compiled:
        """Return the program for batches like `given`, made the first time there is one."""
        key = tuple(sorted((name, *_kind(value)) for name, value in given.items()))
        if key not in self._programs:
            specs = {n: v if isinstance(v, _SCALARS) else _Spec(v.shape, v.dtype) for n, v in given.items()}
            self._programs[key] = self._compile(self._text(given), specs)
        return self._programs[key]

    def _compile(self, text: str, specs: Mapping[str, Any]) -> Compiled:
        scalars = {"lr": float(self.lr), "step": 1}

        def made(layouts: Mapping[str, Layout] | None) -> Compiled:
            inputs = self._specs(layouts) | dict(specs) | scalars
            return pipeline.compile(
                text, inputs, sites=self._sites, cluster=self._cluster, memory=self._memory
            )

        net = made(self._layouts)
        if net.cluster is None or self._layouts is not None:
            return net
        # The next weights shall be where the weights are read: it is planned again for where they end up.
        ends = self._ends(net)
        for _ in range(_TRIES):
            self._layouts, net = ends, made(ends)
            ends = self._ends(net)
            if ends == self._layouts:
                break
        return net

    def _ends(self, net: Compiled) -> dict[str, Layout]:
        """Return where a program leaves the state."""
        found = {}
        for out in net.tasks.outputs:
            sites = [net.tasks.tasks[task].site for task, _ in out.blocks]
            layout = layout_of(out.shape, [box for _, box in out.blocks], sites)
            found[out.name] = layout or split_evenly(out.shape, net.sites)
        return {name: found[f"next_{name}"] for name in self._state}

    def _place(self) -> None:
        """Send weights, state and what is frozen to the engines, before the first step there."""
        if self.net.cluster is None:
            return
        for there in (self._state, self.frozen):
            for name, value in there.items():
                if isinstance(value, np.ndarray) and name in self.net.graph.inputs:
                    at = self.net.layout(name)
                    there[name] = self._cluster.put(value, parts=at.parts, sites=at.sites)

    def curve(self) -> Picture:
        """Return the loss over the steps as a picture."""
        return Picture(views.curve_view(self.losses))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": views.html(views.curve_view(self.losses)), "text/plain": repr(self)}

    def __repr__(self) -> str:
        made = f"{self.steps} step{'' if self.steps == 1 else 's'}"
        loss = f", loss {self.losses[-1]:.6g}" if self.losses else ""
        weights = f"{len(self._weights)} weight{'' if len(self._weights) == 1 else 's'}"
        return f"<Trainer of {weights} by {self.optimizer.name}, {made}{loss}>"


def _weight(name: str, value: Any) -> np.ndarray:
    array = np.asarray(as_array(name, value))
    if dtypes.kind(array.dtype) != "f":
        raise DtypeError(f"the weight {name} is {dtypes.name(array.dtype)}, and weights are real numbers")
    return array


def _kind(value: Any) -> tuple[tuple[int, ...], str]:
    """Return what of an input a program depends on."""
    if isinstance(value, _SCALARS):
        return (), type(value).__name__
    return tuple(value.shape), dtypes.name(value.dtype)
