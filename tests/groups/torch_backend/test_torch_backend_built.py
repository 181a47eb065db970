"""What is said where the backend `troupe` cannot be: no compiler, no headers, a library that others may write to, a group over two hosts.

Method: the builder with folders and variables of the test's own; no cluster.
"""
from __future__ import annotations

import stat
import sysconfig
from pathlib import Path

import pytest
import torch

from troupe._process.torch_backend import build
from troupe._process.torch_backend.meeting import meet


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "troupe" / "torch_backend"


def test_without_a_compiler_it_is_said_what_to_install(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(cache / "no-such-compiler"))
    with pytest.raises(RuntimeError, match=r"cannot be built for torch .* there is no C\+\+ compiler(?s:.*)install g\+\+(?s:.*)gloo"):
        build.ensure()


def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = cache.parent / "compiler"
    compiler.parent.mkdir(parents=True)
    compiler.write_text("#!/bin/sh\necho 'error: no such flag' >&2\nexit 3\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(RuntimeError, match="failed with code 3: error: no such flag"):
        build.ensure()
    assert [each.suffix for each in cache.iterdir()] == [".lock"]


def test_without_pythons_headers_it_is_said_what_to_install(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(cache / name))
    monkeypatch.setenv("CXX", "/bin/true")
    with pytest.raises(RuntimeError, match="Python's headers are not in"):
        build.ensure()


def test_another_torch_has_another_library(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = build._key()
    monkeypatch.setattr(torch, "__version__", "2.99.0")
    assert build._key() != mine and build._key().startswith("torch2.99.0-")


def test_a_library_that_others_may_write_to_is_not_loaded(cache: Path) -> None:
    cache.mkdir(parents=True)
    path = cache / f"{build._MODULE}-{build._key()}.so"
    path.write_bytes(b"")
    path.chmod(stat.S_IRWXU | stat.S_IWOTH)
    with pytest.raises(RuntimeError, match="is not this user's alone"):
        build.ensure()


class _Said(dict):  # a store that knows everything
    def set(self, key: str, value: str) -> None:
        self[key] = value.encode()


def test_a_group_over_two_nodes_is_refused_and_gloo_named() -> None:
    store = _Said({f"troupe/card/{rank}": f"troupe-group 1\nhost-{rank // 2}\ndoor".encode().hex().encode() for rank in range(4)})
    with pytest.raises(RuntimeError, match=r'on 2: ranks 0, 1; ranks 2, 3\n.*init_process_group\("gloo"\)'):
        meet(store, 0, 4, bytes.fromhex(store["troupe/card/0"].decode()), b"secret")
