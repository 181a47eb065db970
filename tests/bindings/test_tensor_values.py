"""Values whose tensors stay elsewhere: what is taken out of them, the table of what is kept, and
tensors of a GPU as they are opened.

Method: the modules by themselves; of CUDA, which no machine here has, torch's own signature is what
is held.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import pytest

from troupe import exceptions
from troupe._actors import tensors
from troupe._actors.tensors import fetch, kept, server, value
from troupe._base.context import ActorContext

torch = pytest.importorskip("torch")

PLACE = kept.Place("0" * 32, 1, "Maker", "node-a", "here", "/tmp/p1", 4711)


@pytest.fixture
def actor(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = {
        "actor": "0" * 32,
        "name": "",
        "class_name": "Maker",
        "node": "1" * 32,
        "node_name": "node-a",
        "gpu_ids": [],
        "incarnation": 1,
        "socket_path": "/tmp/p1",
    }
    monkeypatch.setattr(ActorContext, "current", ActorContext(begin, None))


def split(given: Any) -> tuple[list[Any], Any]:
    """The tensors that are taken out of a value, and the value with others in their places."""
    found: list[Any] = []
    buffers: list[Any] = []
    rest = value._without_tensors(given, found, buffers)
    return found, value.loaded(rest, buffers, [each + 1 for each in found])


def test_each_tensor_is_taken_out_once_and_put_back_in_its_places() -> None:
    one, two = torch.zeros(3), torch.zeros(2, 2)
    found, made = split({"a": one, "b": [two, (one,)], "c": "text"})
    assert [each is right for each, right in zip(found, (one, two), strict=True)] == [True, True]
    assert (
        made["a"] is made["b"][1][0]
        and made["a"].tolist() == [1, 1, 1]
        and made["b"][0].sum() == 4
        and made["c"] == "text"
    )


def test_what_is_pickled_by_value_has_its_tensors_taken_out_too() -> None:
    one = torch.zeros(2)
    found, made = split([lambda: one, one])
    assert len(found) == 1 and made[0]() is made[1]


def test_which_tensors_stay() -> None:
    class Own(torch.Tensor):
        pass

    tagged = torch.ones(1)
    tagged.tag = 1
    stay = [
        torch.ones(1),
        torch.nn.Parameter(torch.ones(1)),
        torch.ones(2, 3).t(),
        torch.ones(0),
        torch.ones(1, dtype=torch.complex64),
    ]
    go = [
        torch.eye(2).to_sparse(),
        torch.empty(1, device="meta"),
        torch.ones(1).as_subclass(Own),
        tagged,
        torch.quantize_per_tensor(torch.ones(1), 0.1, 0, torch.qint8),
        "Tensor",
        torch.Size([1]),
    ]
    assert [kept.stays(each) for each in stay] == [True] * len(stay) and not any(
        map(kept.stays, go)
    )


def test_changes_are_counted_and_limits_kept(actor: None) -> None:
    table = kept.TensorTable(100)
    tensor = torch.zeros(10)
    key = table.keep("make", [tensor, tensor])
    assert table.figures() == (1, 80) and kept.changed(table.find(key)) is None
    with pytest.raises(
        exceptions.TooLargeError,
        match=r"make\(\) returned tensors of 40 bytes .* keeps 1 values with 80 bytes already",
    ):
        table.keep("make", [torch.zeros(10)])
    tensor[0] = 1
    spec, before, now = kept.changed(table.find(key))
    assert kept.text_of(spec) == "float32 of shape (10,) on cpu" and now == before + 1
    giver = server.Giver(table)
    assert list(giver.take(key, True, [])) == [None, (server.CHANGED, spec, before, now)]
    assert list(giver.take("another", True, [])) == [None, (server.GONE,)]
    table.let_go(key)
    assert table.figures() == (0, 0) and giver.check(key) == (server.GONE,)


def test_a_change_while_it_is_copied_is_seen(actor: None) -> None:
    table = kept.TensorTable(100)
    tensor = torch.zeros(3)
    taking = server.Giver(table).take(table.keep("make", [tensor]), True, [])
    [(how, given)] = next(taking)
    tensor.add_(1)
    assert how == server.HOST and given.shape == (3,) and next(taking)[0] == server.CHANGED


def test_a_place_travels_and_what_a_later_version_adds_is_left_out() -> None:
    assert kept.Place.of((*PLACE.fields(), "more")) == PLACE and not PLACE.is_here()
    assert str(PLACE) == "actor Maker(00000000) on node-a, pid 4711"


def test_a_value_that_is_passed_on_takes_nothing() -> None:
    assert not tensors.are_left()
    with tensors.left_where_they_are():
        assert tensors.are_left()
        with tensors.left_where_they_are():
            pass
        assert tensors.are_left()
    assert not tensors.are_left()


def test_a_gpus_tensor_is_opened_by_the_number_that_its_uuid_has_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torch.multiprocessing import reductions

    asked: dict[str, Any] = {}

    @functools.wraps(reductions.rebuild_cuda_tensor)
    def rebuild(**fields: Any) -> Any:
        asked.update(fields)
        return torch.ones(2)

    monkeypatch.setattr(reductions, "rebuild_cuda_tensor", rebuild)
    monkeypatch.setattr(fetch, "_gpus", lambda: ["GPU-a", "GPU-b"])
    monkeypatch.setattr(torch.cuda, "device", lambda number: contextlib.nullcontext())
    arguments = (
        torch.Tensor,
        torch.Size([2]),
        (1,),
        0,
        torch.UntypedStorage,
        torch.float32,
        0,
        b"handle",
        8,
        0,
        False,
        b"counter",
        0,
        b"event",
        True,
    )
    opened = fetch._opened("GPU-b", arguments)
    assert (
        opened.tolist() == [1, 1]
        and asked["storage_device"] == 1
        and asked["storage_handle"] == b"handle"
    )
