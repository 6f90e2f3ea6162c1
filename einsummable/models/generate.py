"""``einsummable generate``: a model goes on with a text.

Contract: the text, the prompt included, is all that goes to standard output, as soon as its characters are
whole; whatever is wrong with files or options is an `EinsummableError` before the first of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from einsummable.errors import EinsummableError, ShapeError
from einsummable.models import checkpoint, tokenizer
from einsummable.models.checkpoint import Checkpoint
from einsummable.models.decoder import Decoder
from einsummable.models.sampling import Sampler
from einsummable.models.tokenizer import Tokenizer
from einsummable.runtime.cluster import Cluster


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("model", type=Path, help="llama2.c's .bin, or a folder with safetensors")
    parser.add_argument("--tokenizer", type=Path, help="llama2.c's file, or tokenizer.json (the folder's)")
    parser.add_argument("--steps", type=int, default=200, help="how many tokens to write (default 200)")
    parser.add_argument("--prompt", default="", help="the text to go on with")
    parser.add_argument("--temperature", type=float, default=0.0, help="0, the default: the likeliest token")
    parser.add_argument(
        "--top-p", type=float, default=1.0, help="draw from the likeliest of this probability"
    )
    parser.add_argument("--seed", type=int, help="of the random numbers")
    parser.add_argument("--dtype", choices=("f32", "bf16", "f16"), help="of the weights (the file's)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--sites", type=int, help="threads of this process (default: the processors)")
    where.add_argument("--engines", type=int, help="engines of a cluster, started for this")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Write the text; return the exit status."""
    model = checkpoint.load(args.model, args.dtype)
    words = _tokenizer(args)
    _check_sizes(words, model)
    sampler = Sampler(args.temperature, args.top_p, args.seed)
    if args.steps < 1:
        raise EinsummableError(f"--steps is a whole number from 1, not {args.steps}")
    prompt = words.encode(args.prompt)
    if len(prompt) > model.config.seq:
        raise ShapeError(f"the prompt has {len(prompt)} tokens, the model has {model.config.seq} positions")
    # Keys and values of positions that no token will have need no place.
    config = replace(model.config, seq=min(model.config.seq, len(prompt) + args.steps))
    with nullcontext() if args.engines is None else Cluster(n=args.engines) as cluster:
        decoder = Decoder(config, model.weights, sites=args.sites, cluster=cluster)
        tokens = (token for (token,) in decoder.generate([prompt], args.steps, sampler, words.ends))
        for piece in pieces(words, prompt, tokens):
            sys.stdout.write(piece)
            sys.stdout.flush()
    return 0


def pieces(words: Tokenizer, prompt: list[int], tokens: Iterator[int]) -> Iterator[str]:
    """Yield the text of `prompt` and `tokens` as its characters become whole."""
    read, shown = list(prompt), ""
    if len(read) > 1:
        shown = words.decode(read)
        yield shown
    for token in tokens:
        read.append(token)
        text = words.decode(read)
        if not text.endswith("\N{REPLACEMENT CHARACTER}"):
            yield text[len(shown) :]
            shown = text
    yield words.decode(read)[len(shown) :]


def _tokenizer(args: argparse.Namespace) -> Tokenizer:
    path = args.tokenizer
    if path is None:
        path = args.model / "tokenizer.json"
        if not path.exists():
            raise EinsummableError("no tokenizer is given", notes=("--tokenizer FILE",))
    return tokenizer.load(path)


def _check_sizes(words: Tokenizer, model: Checkpoint) -> None:
    vocab = model.config.vocab
    if words.size > vocab:
        raise ShapeError(f"the tokenizer has {words.size} tokens, the model {vocab}")
