"""The library of the backend, for exactly the torch of this process: found where it was built
before, else built with the compiler at hand.

It is built once a machine and version (half a minute of one core) and kept in the user's cache
folder, under a name made of all that it depends on: torch's version and place, Python's ABI, the
sources. Another torch gets another library, never this one. Ranks that come at once wait for the
first, which builds it. `python -m troupe._process.torch_backend.build` does it ahead, for an image.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import platform
import shutil
import stat
import subprocess
import sys
import sysconfig
import threading
from typing import Any

from troupe._cluster import folders

_MODULE = "_troupe_torch"
_SOURCES = ("backend.cc", "group_api.h", "tensors.h", "work.h")
_FLAGS = (
    "-O2",
    "-std=c++20",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    f"-DTROUPE_TORCH_MODULE={_MODULE}",
)
_COMPILERS = ("c++", "g++", "clang++")
BUILD_S_MAX = 1800
_lock = threading.Lock()
_loaded: Any = None


def load() -> Any:
    """The library, as a module.

    Blocks while it is built. Raises RuntimeError with what is missing, or with the compiler's
    words.
    """
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _import(ensure())
        return _loaded


def loaded() -> Any:
    """The library, as a module, where this process has loaded it; None. Does not block."""
    return _loaded


def ensure() -> pathlib.Path:
    """The library's file, built if it is not there."""
    folder = folders.private(
        _folder(), remedy="XDG_CACHE_HOME names another folder for what is built"
    )
    path = folder / f"{_MODULE}-{_key()}.so"
    if not _is_ours(path):
        with open(path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # others that come meanwhile wait here
            if not _is_ours(path):
                _build(path)
    return path


def _folder() -> pathlib.Path:
    """Return the folder of built libraries, in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base, "troupe", "torch_backend")


def _key() -> str:
    """Return a name for all that the library depends on: torch's version for people, the rest
    hashed."""
    import torch

    here = pathlib.Path(__file__).parent
    parts = [
        torch.__version__,
        torch.__file__,
        str(torch.compiled_with_cxx11_abi()),
        sysconfig.get_config_var("SOABI") or sys.version,
        platform.machine(),
        *_FLAGS,
    ]
    digest = hashlib.sha256("\0".join(parts).encode())
    for name in _SOURCES:
        digest.update((here / name).read_bytes())
    return f"torch{torch.__version__}-{digest.hexdigest()[:16]}"


def _compiler() -> str:
    asked = os.environ.get("CXX")
    found = (
        shutil.which(asked) if asked else next(filter(None, map(shutil.which, _COMPILERS)), None)
    )
    if found is None:
        raise RuntimeError(
            _cannot(
                f"there is no C++ compiler ({asked or ', '.join(_COMPILERS)})",
                "install g++ (Debian: apt-get install g++)",
            )
        )
    return found


def _build(path: pathlib.Path) -> None:
    import torch

    here, root = pathlib.Path(__file__).parent, pathlib.Path(torch.__file__).parent
    python = sysconfig.get_path("include")
    compiler = _compiler()
    if not pathlib.Path(python, "Python.h").exists():
        raise RuntimeError(
            _cannot(
                f"Python's headers are not in {python}",
                "install them (Debian: apt-get install python3-dev)",
            )
        )
    command = [
        compiler,
        *_FLAGS,
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        f"-I{here}",
    ]
    for folder in (root / "include", root / "include/torch/csrc/api/include", python):
        command += ["-isystem", str(folder)]
    command += [
        str(here / "backend.cc"),
        f"-L{root / 'lib'}",
        "-ltorch_cpu",
        "-ltorch_python",
        "-lc10",
        "-o",
    ]
    with folders.replacement(path) as made:
        try:
            done = subprocess.run(
                [*command, str(made)],
                capture_output=True,
                text=True,
                timeout=BUILD_S_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(
                _cannot(
                    f"{compiler} was not done after {BUILD_S_MAX} s, counted from its start",
                    "try again on a machine that is less busy",
                )
            ) from None
        if done.returncode != 0:
            raise RuntimeError(
                _cannot(
                    f"{compiler} failed with code {done.returncode}: {done.stderr.strip()[-2000:]}",
                    "set CXX to a compiler that knows C++20; it was: "
                    f"{' '.join([*command, str(made)])}",
                )
            )
        made.chmod(0o700)  # the compiler took it from the umask


def _cannot(why: str, remedy: str) -> str:
    import torch

    return (
        f"the backend troupe cannot be built for torch {torch.__version__} on {platform.node()}: "
        f"{why}\n"
        f'  {remedy}, or use init_process_group("gloo")'
    )


def _is_ours(path: pathlib.Path) -> bool:
    """Return whether the library is there and nobody else can have written to it.

    Any other file of that name is replaced, never loaded.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return (
        stat.S_ISREG(found.st_mode)
        and found.st_uid == os.geteuid()
        and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _import(path: pathlib.Path) -> Any:
    loader = importlib.machinery.ExtensionFileLoader(_MODULE, str(path))
    spec = importlib.util.spec_from_file_location(_MODULE, str(path), loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


if __name__ == "__main__":
    print(ensure())
