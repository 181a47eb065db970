"""How many threads numpy's, torch's and other libraries' pools have in a process: as in one that
loaded them itself.

A library reads its variable when it is loaded. What a zygote has loaded, with one thread each, is
told its number in the forked process instead, by the library's own function: that of the variables
of its environment which the library would have read, else of OMP_NUM_THREADS, which every process
has (its CPUs: `worker/core/environment.h`). A number above the machine's cores becomes what the
library makes of it when it is loaded: MKL and OpenBLAS then take the cores, OpenMP and BLIS the
number.
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
    """A kind of library that has a pool of threads: how its files are called, what sets its number,
    what it reads."""

    files: tuple[str, ...]
    setters: tuple[str, ...]
    variables: tuple[str, ...]
    cores_at_most: bool = False  # true if the number comes from a variable


_OPENMP = Library(("libgomp", "libiomp", "libomp"), ("omp_set_num_threads",), (OMP,))
_MKL_ALONE = Library(("libmkl_rt",), ("MKL_Set_Num_Threads",), (MKL, OMP))
LIBRARIES = (
    _OPENMP,
    Library(
        ("libopenblas", "libscipy_openblas", "libblas", "libcblas"),
        tuple(
            f"{prefix}openblas_set_num_threads{suffix}"
            for prefix in _OPENBLAS_PREFIXES
            for suffix in _OPENBLAS_SUFFIXES
        ),
        ("OPENBLAS_NUM_THREADS", "OPENBLAS_DEFAULT_NUM_THREADS", "GOTO_NUM_THREADS", OMP),
        cores_at_most=True,
    ),
    _MKL_ALONE,
    Library(("libblis",), ("bli_thread_set_num_threads",), ("BLIS_NUM_THREADS", OMP)),
)
VARIABLES = frozenset(name for library in LIBRARIES for name in library.variables)
"""No process needs to load a library anew for these."""
_found: list[
    tuple[Library, Any]
] = []  # the libraries loaded here, and the call that sets the threads of each
_NO = ("0", "false", "no", "off")  # values of MKL_DYNAMIC that mean no
_WITH_MKL = ("libmkl_rt", "libtorch_cpu")  # wheels of torch have MKL inside


class Mkl(NamedTuple):
    """Functions of the MKL that torch uses."""

    set_dynamic: Any
    get_max_threads: Any


_mkl: list[Mkl] = []


def find() -> None:
    """Looks which of them this process has loaded, for its children; in a zygote, after its
    imports."""
    _found.clear()
    _mkl.clear()
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        paths = {
            line.rstrip("\n").split(None, 5)[-1] for line in maps if ".so" in line and "/" in line
        }
    for path in sorted(paths):
        name = os.path.basename(path)
        for library in LIBRARIES:
            if name.startswith(library.files):
                _found.extend((library, setter) for setter in _setters(path, library)[:1])
        if name.startswith(_WITH_MKL) and not _mkl:
            _mkl.extend(_mkl_of(path))


def _setters(path: str, library: Library) -> list[Any]:
    try:
        loaded = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return []  # no longer exists
    setters = [getattr(loaded, name) for name in library.setters if hasattr(loaded, name)]
    for setter in setters:
        setter.argtypes, setter.restype = (ctypes.c_int,), None
    return setters


def _mkl_of(path: str) -> list[Mkl]:
    try:
        loaded = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        found = Mkl(loaded.MKL_Set_Dynamic, loaded.MKL_Get_Max_Threads)
    except (
        OSError,
        AttributeError,
    ):  # a torch without MKL, or with one that shows none of its functions
        return []
    found.set_dynamic.argtypes, found.set_dynamic.restype = (ctypes.c_int,), None
    found.get_max_threads.argtypes, found.get_max_threads.restype = (), ctypes.c_int
    return [found]


def follow(environment: Mapping[str, str], threads: int) -> None:
    """Tells what is loaded here how many threads it has: as `environment` says, else `threads`."""
    cores = len(os.sched_getaffinity(0))
    dynamic = bool(_mkl) and environment.get("MKL_DYNAMIC", "").strip().lower() not in _NO
    mkls = said(environment, (MKL, OMP)) or threads or 1
    if dynamic:
        mkls = min(mkls, _allowed_by_mkl(mkls))
    for library, setter in _found:
        number = said(environment, library.variables) or threads or 1
        setter(
            mkls
            if library is _MKL_ALONE
            else min(number, cores)
            if library.cores_at_most
            else number
        )
    torch = sys.modules.get("torch")
    if (
        torch is not None
    ):  # an OpenMP that has MKL asks it for its limit, which is how MKL_NUM_THREADS goes first
        torch.set_num_threads(
            mkls if torch.backends.mkl.is_available() else said(environment, (OMP,)) or threads or 1
        )
    if dynamic:
        _mkl[0].set_dynamic(
            1
        )  # torch.set_num_threads does not allow it, but a torch whose number nobody set does


def _allowed_by_mkl(number: int) -> int:
    """Return how many threads MKL takes where OpenMP has `number`: its cores at most.

    Leaves OpenMP with that number.
    """
    for library, setter in _found:
        if library is _OPENMP:
            setter(number)
    return int(_mkl[0].get_max_threads()) or number


def said(environment: Mapping[str, str], variables: tuple[str, ...]) -> int:
    """The number that the first of these variables says which says one; 0: none does.

    A list is its first level's.
    """
    for name in variables:
        first = environment.get(name, "").partition(",")[0].strip()
        if first.isdigit() and int(first) > 0:
            return int(first)
    return 0
