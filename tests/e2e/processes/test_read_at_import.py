"""Each variable of the worker's table of those that libraries read when they are loaded: a process
goes by the value it was given.

Method: for each row of the table (worker/core/read_at_import.cc, read as text, so that a row
without a test is missed) one variable of it, and what a process shows of it. Libraries that every
zygote loads are looked at themselves; of the others a module of their name, made here, reads the
variable when it is loaded, as they do. A few launches set all variables at once: one without them,
then three with the same ones, of which the first is executed and the last forked from a zygote that
has loaded the libraries with them, and for named modules two zygotes with values of their own.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Home, eventually

from troupe.launch import distributed

TABLE = Path(__file__).parents[3] / "worker/core/read_at_import.cc"


@dataclass(frozen=True)
class Row:
    """A row's test: a variable with a value, the function that shows it (below), and the expected
    result with the value."""

    variable: str
    value: str
    shown_by: str
    seen: Callable[[object], bool]


def is_(expected: object) -> Callable[[object], bool]:
    return lambda value: value == expected


LOADED = {
    ("the loader", "LD_*"): Row("LD_PRELOAD", "libanl.so.1", "preloaded", is_(True)),
    ("the C library", "GLIBC_TUNABLES"): Row(
        "GLIBC_TUNABLES", "glibc.malloc.perturb=165", "fresh_memory", is_(165 ^ 255)
    ),
    ("the C library", "MALLOC_*"): Row("MALLOC_MMAP_MAX_", "0", "mapped_by_malloc", is_(0)),
    ("python", "PYTHON*"): Row("PYTHONOPTIMIZE", "2", "optimize", is_(2)),
    ("openmp", "OMP_*"): Row("OMP_SCHEDULE", "guided,7", "schedule", is_([3, 7])),
    ("libgomp", "GOMP_*"): Row(
        "GOMP_CPU_AFFINITY", str(min(os.sched_getaffinity(0))), "places", is_(1)
    ),
    ("openblas", "OPENBLAS_*"): Row(
        "OPENBLAS_CORETYPE", "Nehalem", "openblas_core", is_("Nehalem")
    ),
    ("mkl", "MKL_*"): Row("MKL_VERBOSE", "1", "mkl_speaks", is_(True)),
    ("onednn", "ONEDNN_*"): Row("ONEDNN_VERBOSE", "1", "onednn_speaks", is_(True)),
    ("onednn", "DNNL_*"): Row("DNNL_MAX_CPU_ISA", "SSE41", "onednn_isa", is_("Intel SSE4.1")),
    ("numpy", "NPY_*"): Row(
        "NPY_DISABLE_CPU_FEATURES", "X86_V4", "numpy_features", lambda value: "X86_V4" not in value
    ),
    ("numpy", "NUMPY_*"): Row("NUMPY_MADVISE_HUGEPAGE", "0", "numpy_hugepages", is_(False)),
    ("torch", "TORCH_*"): Row("TORCH_LOGS", "recompiles", "torch_logs", is_(True)),
    ("torch", "PYTORCH_*"): Row("PYTORCH_JIT", "0", "torch_jit", is_(False)),
    ("torch", "ATEN_*"): Row("ATEN_CPU_CAPABILITY", "default", "aten_capability", is_("DEFAULT")),
    ("torch._dynamo", "TORCHDYNAMO_*"): Row(
        "TORCHDYNAMO_SUPPRESS_ERRORS", "1", "dynamo_suppresses", is_(True)
    ),
    ("torch._inductor", "TORCHINDUCTOR_*"): Row(
        "TORCHINDUCTOR_MAX_AUTOTUNE", "1", "inductor_autotunes", is_(True)
    ),
    ("triton", "TRITON_*"): Row(
        "TRITON_INTERPRET", "1", "triton_function", is_("InterpretedFunction")
    ),
    ("sympy", "SYMPY_*"): Row("SYMPY_USE_CACHE", "no", "sympy_caches", is_(False)),
    ("mpmath", "MPMATH_*"): Row("MPMATH_STRICT", "1", "mpmath_strict", is_(True)),
}
"""Rows of what the processes of this installation load."""

ELSEWHERE = {("libiomp", "KMP_*")}
"""Rows that count always and whose library is not part of this installation: looked at with the
named ones."""


def table() -> dict[tuple[str, str], bool]:
    """(library, pattern) -> whether every zygote loads it."""
    rows = re.findall(r'Row\{"([^"]+)", "([^"]+)", (true|false)\}', TABLE.read_text())
    return {(library, pattern): always == "true" for library, pattern, always in rows}


NAMED = sorted(ELSEWHERE | {row for row, always in table().items() if not always})


def variable_of(pattern: str) -> str:
    return pattern.replace("*", "TEST_MODE")


def library(part: str) -> ctypes.CDLL:
    """Return a library that this process has loaded."""
    return ctypes.CDLL(
        re.search(rf"\S*/[^/\s]*{part}[^/\s]*\.so\S*", Path("/proc/self/maps").read_text())[0]
    )


def said(what: Callable[[], object]) -> str:
    """Return the output of a library on stdout meanwhile."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            what()
            ctypes.CDLL(None).fflush(None)
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        return file.read().decode()


def of_the_process() -> dict[str, object]:
    """The loader, the C library, the interpreter."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_size_t],
        [ctypes.c_void_p],
    )

    class Heap(ctypes.Structure):
        """`struct mallinfo2`."""

        _fields_ = [
            (name, ctypes.c_size_t)
            for name in (
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
            ).split()
        ]

    libc.mallinfo2.restype = Heap
    block = libc.malloc(4001)
    fresh_memory = ctypes.string_at(block, 4001)[2000]
    libc.free(block)
    before = libc.mallinfo2().hblks
    block = libc.malloc(64 << 20)
    mapped = libc.mallinfo2().hblks - before
    libc.free(block)
    return {
        "preloaded": "libanl.so" in Path("/proc/self/maps").read_text(),
        "fresh_memory": fresh_memory,
        "mapped_by_malloc": mapped,
        "optimize": sys.flags.optimize,
    }


def of_numbers() -> dict[str, object]:
    """numpy, sympy and mpmath, OpenBLAS, OpenMP."""
    import mpmath.libmp.backend
    import numpy as np
    import sympy.core.cache

    openmp, openblas, umath = library("gomp"), library("openblas"), np._core._multiarray_umath
    openblas.scipy_openblas_get_corename64_.restype = ctypes.c_char_p
    kind, chunk = ctypes.c_int(), ctypes.c_int()
    openmp.omp_get_schedule(ctypes.byref(kind), ctypes.byref(chunk))
    return {
        "schedule": [kind.value & 0xFF, chunk.value],
        "places": openmp.omp_get_num_places(),
        "openblas_core": openblas.scipy_openblas_get_corename64_().decode(),
        "numpy_features": [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]],
        "numpy_hugepages": np._core.multiarray._get_madvise_hugepage(),
        "sympy_caches": sympy.core.cache.USE_CACHE == "yes",
        "mpmath_strict": mpmath.libmp.backend.STRICT,
    }


def of_torch() -> dict[str, object]:
    """torch, what it computes with, and triton."""
    import torch
    import torch._dynamo
    import torch._inductor.config

    try:
        from triton.language import cdiv
    except ImportError:  # raised by a torch for CPUs
        cdiv = None

    matrix = torch.ones(64, 64, dtype=torch.float64)
    by_onednn = said(lambda: torch.ones(8, 8).to_mkldnn().to_dense())
    isa = re.search(r"info,cpu,isa:([^\n]*)", by_onednn)
    return {
        "mkl_speaks": "MKL_VERBOSE" in said(lambda: matrix @ matrix),
        "onednn_speaks": "onednn_verbose" in by_onednn,
        "onednn_isa": isa[1] if isa else "",
        "torch_logs": torch._logging._internal.log_state.is_artifact_enabled("recompiles"),
        "torch_jit": torch.jit._state._enabled.enabled,
        "aten_capability": torch.backends.cpu.get_cpu_capability(),
        "dynamo_suppresses": torch._dynamo.config.suppress_errors,
        "inductor_autotunes": torch._inductor.config.max_autotune,
        "triton_function": cdiv and type(cdiv).__name__,
    }


def seen() -> dict[str, object]:
    """Return the results of each row of LOADED in this process, and the packages it had loaded
    before."""
    loaded = sorted({name.split(".")[0] for name in sys.modules})
    return {"loaded": loaded, **of_the_process(), **of_torch(), **of_numbers()}


@pytest.fixture(scope="module")
def shown(cluster: Home) -> dict[str, dict[str, object]]:
    """How a process was started -> what it shows."""

    def launch(variables: dict[str, str]) -> tuple[str, dict[str, object]]:
        handle = distributed(
            processes=1, remote=True, runtime_env={"env_vars": variables}, quiet=True
        )(seen).submit()
        (values,) = handle.result(timeout=120)
        return handle.status()["started_from"], values

    variables = {row.variable: row.value for row in LOADED.values()}
    found = {"without": launch({})[1]}
    started, found["executed"] = launch(variables)
    assert started.startswith("in fresh interpreters for ")
    launch(variables)
    eventually(
        lambda: (
            sum("troupe._process.zygote" in command for command in cluster.processes().values())
            == 2
        ),
        what="the second use starts one for these variables",
    )

    def forked() -> bool:
        started, found["forked"] = launch(variables)
        return started.startswith("forked from a zygote with ")

    eventually(forked, timeout=120, what="the zygote of these variables")
    return found


@pytest.fixture(scope="module")
def read(cluster: Home, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Value of all variables -> variable -> what a module of the library's name has read."""
    folder = tmp_path_factory.mktemp("libraries")
    modules = sorted({library for library, _ in NAMED})
    for module in modules:
        names = [variable_of(pattern) for library, pattern in NAMED if library == module]
        (folder / f"{module}.py").write_text(
            textwrap.dedent(f"""
            import os
            READ = {{name: os.environ.get(name, "") for name in {names!r}}}
            """)
        )

    def values() -> dict[str, str]:
        return {
            name: value for module in modules for name, value in sys.modules[module].READ.items()
        }

    def launch(value: str) -> dict[str, str]:
        environment = {"env_vars": {variable_of(pattern): value for _, pattern in NAMED}}
        launched = distributed(
            processes=1, remote=True, runtime_env=environment, preimport=modules, quiet=True
        )(values)
        return launched.distributed()[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(folder), *sys.path])
        return {value: launch(value) for value in ("fast", "slow")}


def test_every_row_of_the_table_has_a_test() -> None:
    rows = table()
    assert len(rows) > 30 and rows[("python", "PYTHON*")] is True
    assert {row for row, always in rows.items() if always} == set(LOADED) | ELSEWHERE
    for (_, pattern), row in LOADED.items():
        assert row.variable.startswith(pattern.rstrip("*"))


@pytest.mark.parametrize("row", LOADED, ids=lambda row: row[1])
def test_a_process_behaves_by_the_variable(
    shown: dict[str, dict[str, object]], row: tuple[str, str]
) -> None:
    test = LOADED[row]
    without = shown["without"][test.shown_by]
    if without is None:
        pytest.skip(f"{row[0]} is not installed")
    if test.seen(without):
        pytest.skip(f"this machine shows {without!r} without {test.variable} too")
    for how in ("executed", "forked"):
        assert test.seen(shown[how][test.shown_by]), (
            f"{test.variable}={test.value}, {how}: {json.dumps(shown[how])}"
        )


def test_what_every_process_has_loaded_counts_always(shown: dict[str, dict[str, object]]) -> None:
    """A library that torch, say, begins to load by itself makes the row of its variables one that
    counts without preimport."""
    loaded = shown["without"]["loaded"]
    assert "torch" in loaded
    assert not [
        library
        for (library, _), always in table().items()
        if not always and library.split(".")[0] in loaded
    ]


@pytest.mark.parametrize("row", NAMED, ids=lambda row: row[1])
def test_a_named_module_has_read_the_variable(
    read: dict[str, dict[str, str]], row: tuple[str, str]
) -> None:
    for value, found in read.items():
        assert found[variable_of(row[1])] == value
