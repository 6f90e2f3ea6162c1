"""The compiler behind compiled loops: LLVM through llvmlite, and a cache of machine code on disk.

Contract: `function` turns the text of an LLVM module into a callable that lets go of the interpreter while it
runs.  The object code is kept in the user's cache directory under a name that holds the text, the processor
and LLVM's version, so a kernel is compiled once on a machine, and loading it again takes a millisecond.  A
cache that cannot be written or read changes the time only.  Without llvmlite `available` is false, and
kernels fall back to numpy.

llvmlite alone, because numba imports 0.7 s long, takes seconds for a kernel where this takes hundredths, and
vectorises neither exp nor a minimum that propagates nan; both measured.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

#: What the machine code of all kernels is called inside its module.
ENTRY = "kernel"

_numbers = count()
_lock = threading.Lock()  # LLVM's global state is not safe to use from several threads


def available() -> bool:
    """Return whether loops can be compiled on this machine."""
    return not os.environ.get("EINSUMMABLE_NO_COMPILER") and _llvm() is not None


@cache
def _llvm() -> Any:
    """Return the binding of LLVM, None where it is not installed; it is large, so not before it is needed."""
    try:
        import llvmlite.binding
    except ImportError:
        return None
    return llvmlite.binding


@dataclass(frozen=True, slots=True)
class Processor:
    """What code is made for: name and features as LLVM writes them, and the bytes of a vector register."""

    triple: str
    name: str
    features: str
    vector_bytes: int


@cache
def processor() -> Processor:
    """Return this machine's processor."""
    flags = _llvm().get_host_cpu_features()
    size = 64 if flags.get("avx512f") else 32 if flags.get("avx2") else 16
    return Processor(_llvm().get_process_triple(), _llvm().get_host_cpu_name(), flags.flatten(), size)


@cache
def _target() -> Any:
    _llvm().initialize_native_target()
    _llvm().initialize_native_asmprinter()
    cpu = processor()
    target = _llvm().Target.from_triple(cpu.triple)
    return target.create_target_machine(cpu=cpu.name, features=cpu.features, opt=2, jit=True)


@cache
def _linker() -> Any:
    _target()
    return _llvm().create_lljit_compiler()


class Function:
    """Machine code, called with the address of a table of 64-bit numbers; lets go of the interpreter."""

    def __init__(self, code: bytes) -> None:
        library = _llvm().JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(ENTRY)
        self._library = library.link(
            _linker(), f"einsummable {next(_numbers)}"
        )  # the code lives as long as this does
        self.call: Callable[[Any], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._library[ENTRY])


def function(text: str) -> Function:
    """Return the function called `ENTRY` of the LLVM module `text`, compiled at most once on this machine."""
    with _lock:
        return _loaded(text)


@cache
def _loaded(text: str) -> Function:
    _target()
    cpu, version = processor(), ".".join(map(str, _llvm().llvm_version_info))
    key = hashlib.sha256(repr((version, cpu, text)).encode()).hexdigest()
    path = _folder() / f"{key}.o"
    code = _read(path)
    if code is None:
        code = _compile(text)
        _write(path, code)
    return Function(code)


def _compile(text: str) -> bytes:
    module = _llvm().parse_assembly(text)
    module.verify()
    tuning = _llvm().create_pipeline_tuning_options(speed_level=2)
    builder = _llvm().create_pass_builder(_target(), tuning)
    builder.getModulePassManager().run(module, builder)
    return _target().emit_object(module)


# ------------------------------------------------------------------------------------- the cache


def _folder() -> Path:
    chosen = os.environ.get("EINSUMMABLE_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "einsummable" / "kernels"


def _read(path: Path) -> bytes | None:
    """Return the code kept at `path`: only if it is ours and nobody else may write it, for we run it."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            mine = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
            data = file.read()
    except OSError:
        return None
    digest, code = data[:32], data[32:]
    return code if mine and hashlib.sha256(code).digest() == digest else None


def _write(path: Path, code: bytes) -> None:
    """Keep `code` at `path`, whole or not at all; several processes may do so at once."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        Path(file.name).replace(path)
    except OSError:
        return  # a home that cannot be written costs a compilation in each process, nothing else
