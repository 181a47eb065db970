"""Errors where the backend `troupe` cannot be built: no compiler, no headers, a library that others
may write to, an interface without an address; and the address on which a group on several nodes
listens.

Method: the builder with folders and variables of the test's own; no cluster.
"""

from __future__ import annotations

import os
import stat
import sysconfig
from pathlib import Path

import pytest
import torch

from troupe._base.bridge import native
from troupe._process.torch_backend import build
from troupe._process.torch_backend.meeting import listen, meet


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "troupe" / "torch_backend"


def test_without_a_compiler_it_is_said_what_to_install(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", str(cache / "no-such-compiler"))
    with pytest.raises(
        RuntimeError,
        match=r"cannot be built for torch .* there is no C\+\+ compiler(?s:.*)install g\+\+(?s:.*)gloo",
    ):
        build.ensure()


def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = cache.parent / "compiler"
    compiler.parent.mkdir(parents=True)
    compiler.write_text("#!/bin/sh\necho 'error: no such flag' >&2\nexit 3\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(RuntimeError, match="failed with code 3: error: no such flag"):
        build.ensure()
    assert [each.suffix for each in cache.iterdir()] == [".lock"]


def test_without_pythons_headers_it_is_said_what_to_install(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(cache / name))
    monkeypatch.setenv("CXX", "/bin/true")
    with pytest.raises(RuntimeError, match="Python's headers are not in"):
        build.ensure()


def test_another_torch_has_another_library(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = build._key()
    monkeypatch.setattr(torch, "__version__", "2.99.0")
    assert build._key() != mine and build._key().startswith("torch2.99.0-")


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o027, 0o077], ids=oct)
def test_a_library_that_others_may_write_to_is_built_again_and_what_is_built_is_the_users_alone(
    cache: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    """With umask 002, usual where each user has a group of its own, the compiler's file was refused
    for ever."""
    cache.mkdir(parents=True, mode=0o700)
    path = cache / f"{build._MODULE}-{build._key()}.so"
    path.write_bytes(b"theirs")
    path.chmod(stat.S_IRWXU | stat.S_IWOTH)
    compiler = cache.parent / "compiler"
    compiler.write_text('#!/bin/sh\nfor last; do :; done\necho built >"$last"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    before = os.umask(mask)
    try:
        assert build.ensure() == path
    finally:
        os.umask(before)
    assert path.read_text() == "built\n" and stat.S_IMODE(path.stat().st_mode) == 0o700


class _Said(dict):  # a store that knows everything
    def set(self, key: str, value: str) -> None:
        self[key] = value.encode()


class _Door:
    """Rank 0's on host-0; it listens nowhere until it is told to."""

    def __init__(self) -> None:
        self.card, self.listens = b"troupe-group 2\nhost-0\ndoor\nnode\n", []

    def listen(self, interface: str, towards: str) -> None:
        self.listens.append((interface, towards))
        self.card += b"10.0.0.1:4711"


def _store(hosts: list[str]) -> _Said:
    cards = {rank: f"troupe-group 2\n{host}\ndoor\nnode\n" for rank, host in enumerate(hosts)}
    said = {f"troupe/card/{rank}": card for rank, card in cards.items()} | {
        f"troupe/address/{rank}": card + "10.0.0.1:1" for rank, card in cards.items()
    }
    return _Said({key: card.encode().hex().encode() for key, card in said.items()})


def test_a_group_on_one_node_listens_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    door = _Door()
    secret, cards = meet(_store(["host-0"] * 2), 0, 2, door, b"secret")
    assert secret == b"secret", "which is in no store"
    assert door.listens == [] and all(card.endswith(b"\n") for card in cards)


def test_a_group_over_two_nodes_listens_at_the_launchs_interface(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth1,eth0")
    monkeypatch.setenv("MASTER_ADDR", "10.0.0.9")
    door = _Door()
    _, cards = meet(_store(["host-0", "host-0", "host-1"]), 0, 3, door, b"secret")
    assert door.listens == [("eth1", "10.0.0.9")]
    assert [card.rpartition(b"\n")[2] for card in cards] == [
        b"10.0.0.1:4711",
        b"10.0.0.1:1",
        b"10.0.0.1:1",
    ]


def test_an_interface_without_an_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "none7")
    with pytest.raises(
        RuntimeError,
        match=r"the interface none7 has no address on .* \(GLOO_SOCKET_IFNAME names it\)",
    ):
        listen(native.GroupDoor())
