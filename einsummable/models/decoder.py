"""A model that writes: weights, keys and values stay where they are computed with.

Contract: a `Decoder` holds the programs of `decoding` for one model and one place to run, and the state of
one batch of texts.  `start` reads the texts so far, `step` one more token of each; both answer with the
scores of the tokens that may come next.  On a cluster weights are sent once, and keys and values stay there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from einsummable import dtypes, pipeline
from einsummable.compiled import Compiled
from einsummable.errors import ShapeError
from einsummable.models import decoding
from einsummable.models.llama import Config
from einsummable.models.sampling import Sampler
from einsummable.planner.hardware import Hardware
from einsummable.runtime.cluster import Cluster


class Decoder:
    """A model, somewhere.

    Parameters
    ----------
    config
        Its sizes: `batch` texts are written at a time, of `seq` tokens at most.
    weights
        Arrays by the names of `decoding.shapes`; where they are of another dtype than ``config.dtype``, they
        are cast.  Engines read from the file what is mapped from one (see `memmap`), each its blocks.
    sites, cluster, hardware
        Where to run, as for `compile`: with a `hardware` plans take the least time there, so that a small
        model may well be left on one site; without, they share the work and move the fewest bytes.

    Attributes
    ----------
    net
        The program of one step.
    """

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, np.ndarray],
        *,
        sites: int | None = None,
        cluster: Cluster | None = None,
        hardware: Hardware | None = None,
    ) -> None:
        self.config, self._cluster, self._sites, self._hardware = config, cluster, sites, hardware
        self._weights: dict[str, Any] = {}
        self.net = self._compile(1)
        dtype, names = dtypes.parse(config.dtype), decoding.shapes(config)
        if cluster is not None:
            self._weights = {name: self._put(name, weights[name], dtype) for name in names}
        else:
            self._weights = {name: np.ascontiguousarray(weights[name], dtype) for name in names}
        self._texts: dict[int, Compiled] = {}
        self._past: dict[str, Any] = {}
        self._at = np.zeros(config.batch, np.int32)

    def _compile(self, tokens: int, **options: Any) -> Compiled:
        text = decoding.text(self.config, tokens, **options)
        where = {"sites": self._sites, "cluster": self._cluster, "hardware": self._hardware}
        return pipeline.compile(text, self._weights, **where)

    def _put(self, name: str, array: Any, dtype: np.dtype = dtypes.F32) -> Any:
        layout = self.net.layout(name)
        return self._cluster.put(array, parts=layout.parts, sites=layout.sites, dtype=dtype)

    @property
    def length(self) -> np.ndarray:
        """How many tokens of each text were read."""
        return self._at.copy()

    def start(self, texts: Sequence[Sequence[int]], *, every: bool = False) -> np.ndarray:
        """Read the first tokens of every text.

        Parameters
        ----------
        texts
            Tokens; texts may have different lengths.
        every
            Whether to return the scores after every token.

        Returns
        -------
        ndarray
            float32, (texts, vocabulary), or (texts, tokens of the longest, vocabulary) for `every`: what is
            there after the end of a shorter text is no score.

        Raises
        ------
        ShapeError
            There are too few or too many texts, one has no token or more than the model has positions, or a
            token is none of the model's.
        """
        self._check(texts)
        longest = max(map(len, texts))
        tok = np.zeros((len(texts), longest), np.int32)
        for row, text in zip(tok, texts, strict=True):
            row[: len(text)] = text
        self._check_tokens(tok)
        self._at = np.zeros(len(texts), np.int32)
        if longest == 1:
            self._past = {f"past{name}": self._empty(name) for name in decoding.caches(self.config)}
            scores = self.step(tok[:, 0])
            return scores[:, None] if every else scores
        at = np.broadcast_to(np.arange(longest, dtype=np.int32), tok.shape)
        ends = np.array([len(text) - 1 for text in texts], np.int32)
        net = self._texts_of(longest, every)
        given = {"tok": tok, "at": at} | ({} if every else {"end": ends})
        scores = self._run(net, given)
        self._at = ends + 1
        return scores

    def step(self, tokens: Sequence[int] | np.ndarray) -> np.ndarray:
        """Read one more token of each text and return the scores, float32 (texts, vocabulary).

        Raises
        ------
        ShapeError
            A text is as long as the model has positions, or a token is none of the model's.
        """
        if self._at.max() >= self.config.seq:
            raise ShapeError(f"a text has {self.config.seq} tokens: the model has no more positions")
        tok = np.asarray(tokens, np.int32)
        self._check_tokens(tok)
        scores = self._run(self.net, {"tok": tok, "at": self._at} | self._past, donate=tuple(self._past))
        self._at = self._at + 1
        return scores

    def _run(self, net: Compiled, given: Mapping[str, Any], donate: Sequence[str] = ()) -> np.ndarray:
        kept = tuple(decoding.caches(self.config))
        keep = kept if self._cluster is not None else False
        results = net.run(self._weights | dict(given), keep=keep, donate=tuple(donate))
        self._past = {f"past{name}": self._in_place(f"past{name}", results[name]) for name in kept}
        return results["scores"]

    def _in_place(self, name: str, value: Any) -> Any:
        """Return a kept tensor where the step reads it: engines pass on what the start left elsewhere."""
        if self._cluster is None or value.layout == self.net.layout(name):
            return value
        return self._put(name, value)

    def _empty(self, name: str) -> Any:
        zeros = np.zeros(decoding.caches(self.config)[name], np.float32)
        return zeros if self._cluster is None else self._put(f"past{name}", zeros)

    def _texts_of(self, longest: int, every: bool) -> Compiled:
        key = (longest, every)
        if key not in self._texts:
            self._texts[key] = self._compile(longest, every=every)
        return self._texts[key]

    def _check(self, texts: Sequence[Sequence[int]]) -> None:
        if len(texts) != self.config.batch:
            raise ShapeError(f"{len(texts)} texts are given to a decoder of {self.config.batch}")
        for text in texts:
            if not 0 < len(text) <= self.config.seq:
                raise ShapeError(
                    f"a text of {len(text)} tokens does not fit: there are from 1 to {self.config.seq}"
                )

    def _check_tokens(self, tokens: np.ndarray) -> None:
        wrong = tokens[(tokens < 0) | (tokens >= self.config.vocab)]
        if wrong.size:
            raise ShapeError(f"the token {wrong.flat[0]} is none: there are 0 to {self.config.vocab - 1}")

    def generate(
        self,
        texts: Sequence[Sequence[int]],
        steps: int,
        sampler: Sampler | None = None,
        ends: frozenset[int] = frozenset(),
    ) -> Iterator[list[int]]:
        """Yield the next token of every text, until `steps` tokens were yielded or all texts are over.

        Parameters
        ----------
        texts
            The first tokens of each.
        sampler
            What chooses; by default the most likely token.
        ends
            Tokens that end a text.  After its end a text's tokens mean nothing.
        """
        sampler = sampler or Sampler()
        over = np.zeros(len(texts), bool)
        scores = self.start(texts)
        for n in range(1, steps + 1):
            tokens = sampler(scores)
            over |= np.isin(tokens, list(ends))
            if over.all():
                return
            yield tokens.tolist()
            if n == steps or self._at.max() >= self.config.seq:
                return
            scores = self.step(tokens)
