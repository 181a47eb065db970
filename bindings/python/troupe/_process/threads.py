"""How many threads numpy's, torch's and other libraries' pools have in a process: as in one that loaded them itself.

A library reads its variable when it is loaded. What a zygote has loaded, with one thread each, is told its number in the
forked process instead, by the library's own function: that of the variables of its environment which the library would have
read, else of OMP_NUM_THREADS, which every process has (its CPUs: `worker/core/environment.h`).
"""
from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

OMP = "OMP_NUM_THREADS"
MKL = "MKL_NUM_THREADS"
_OPENBLAS_PREFIXES = ("", "scipy_")
_OPENBLAS_SUFFIXES = ("", "64_", "_64", "_64_", "_")


class Library(NamedTuple):
    """A kind of library that has a pool of threads: how its files are called, what sets its number, what it reads."""

    files: tuple[str, ...]
    setters: tuple[str, ...]
    variables: tuple[str, ...]


LIBRARIES = (
    Library(("libgomp", "libiomp", "libomp"), ("omp_set_num_threads",), (OMP,)),
    Library(("libopenblas", "libscipy_openblas", "libblas", "libcblas"),
            tuple(f"{prefix}openblas_set_num_threads{suffix}" for prefix in _OPENBLAS_PREFIXES for suffix in _OPENBLAS_SUFFIXES),
            ("OPENBLAS_NUM_THREADS", "OPENBLAS_DEFAULT_NUM_THREADS", "GOTO_NUM_THREADS", OMP)),
    Library(("libmkl_rt",), ("MKL_Set_Num_Threads",), (MKL, OMP)),
    Library(("libblis",), ("bli_thread_set_num_threads",), ("BLIS_NUM_THREADS", OMP)),
)
VARIABLES = frozenset(name for library in LIBRARIES for name in library.variables)
"""No process needs to load a library anew for these."""
_found: list[tuple[tuple[str, ...], Any]] = []  # of the libraries that are loaded: what they read, what sets them


def find() -> None:
    """Looks which of them this process has loaded, for its children; in a zygote, after its imports."""
    _found.clear()
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        paths = {line.rstrip("\n").split(None, 5)[-1] for line in maps if ".so" in line and "/" in line}
    for path in sorted(paths):
        name = os.path.basename(path)
        for library in LIBRARIES:
            if name.startswith(library.files):
                _found.extend((library.variables, setter) for setter in _setters(path, library)[:1])


def _setters(path: str, library: Library) -> list[Any]:
    try:
        loaded = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return []  # it is no longer there
    setters = [getattr(loaded, name) for name in library.setters if hasattr(loaded, name)]
    for setter in setters:
        setter.argtypes, setter.restype = (ctypes.c_int,), None
    return setters


def follow(environment: Mapping[str, str], threads: int) -> None:
    """Tells what is loaded here how many threads it has: as `environment` says, else `threads`."""
    for variables, setter in _found:
        setter(said(environment, variables) or threads or 1)
    torch = sys.modules.get("torch")
    if torch is not None:
        # A torch that has MKL asks it how many it may have, which is how MKL_NUM_THREADS goes first.
        variables = (MKL, OMP) if torch.backends.mkl.is_available() else (OMP,)
        torch.set_num_threads(said(environment, variables) or threads or 1)


def said(environment: Mapping[str, str], variables: tuple[str, ...]) -> int:
    """The number that the first of these variables says which says one; 0: none does. A list is its first level's."""
    for name in variables:
        first = environment.get(name, "").partition(",")[0].strip()
        if first.isdigit() and int(first) > 0:
            return int(first)
    return 0
