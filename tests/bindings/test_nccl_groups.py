"""NCCL groups are aborted together.

Method: torch's own module, with backends that note what is asked of them; real ones: tests/gpu.
"""

from __future__ import annotations

import types
from typing import Any

import pytest

pytest.importorskip("torch")

from troupe._process import nccl_groups  # noqa: E402

LIMIT_S = 60.0


class Backend:
    """Stands for ProcessGroupNCCL."""

    def __init__(self, name: str, said: list[str], *, used: bool = True) -> None:
        self.name, self.said, self.used = name, said, used

    def _group_start(self) -> None:
        self.said.append("start")

    def _group_end(self) -> None:
        self.said.append("end")

    def abort(self) -> None:
        self.said.append(self.name)
        if not self.used:
            raise RuntimeError("no communicator yet")


class Group:
    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def _get_backend(self, device: Any) -> Any:
        assert device.type == "cuda"
        if self.backend is None:
            raise RuntimeError("no backend for cuda")
        return self.backend


def module_of(*groups: Any) -> types.SimpleNamespace:
    return types.SimpleNamespace(
        ProcessGroupNCCL=Backend, _world=types.SimpleNamespace(pg_map=dict.fromkeys(groups))
    )


def test_all_communicators_are_aborted_in_one_group_the_latest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    world = Backend("world", said)
    monkeypatch.setitem(
        nccl_groups.sys.modules,
        nccl_groups._MODULE,
        module_of(
            Group(world),
            Group(None),
            Group(world),
            object(),
            Group(Backend("unused", said, used=False)),
            Group(Backend("third", said)),
        ),
    )
    thread = nccl_groups.abort_all()
    assert thread is not None
    thread.join(LIMIT_S)
    assert said == ["start", "third", "unused", "world", "end"]


def test_a_process_without_such_groups_aborts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (types.SimpleNamespace(), module_of(Group(None), Group(object()))):
        monkeypatch.setitem(nccl_groups.sys.modules, nccl_groups._MODULE, module)
        assert nccl_groups.abort_all() is None
    monkeypatch.delitem(nccl_groups.sys.modules, nccl_groups._MODULE)
    assert nccl_groups.abort_all() is None
