"""Tensors that stay in the actor whose method returned them, on one host: who gets what, the guard,
limits of what may be asked.

Method: actors of a real cluster and this process as their driver; what an actor keeps is asked of
itself. Ends: test_tensor_ends.py; between hosts: test_tensors_away.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from conftest import eventually

import troupe
from troupe import exceptions

torch = pytest.importorskip("torch")
from makers import LIMIT_S, Batch, Later, Maker, let_go

LARGE = 1_000_000


@pytest.mark.parametrize("size", [10, LARGE], ids=["small", "large"])
def test_an_actor_gets_its_own_tensor_and_others_a_copy(two: Any, size: int) -> None:
    one, other = two
    ref = one.make.remote(size)
    assert troupe.get(one.is_own.remote(ref), timeout=LIMIT_S)
    assert troupe.get(other.total.remote(ref), timeout=LIMIT_S) == size
    assert troupe.get(other.write.remote(ref), timeout=LIMIT_S) == 2 * size
    got = troupe.get(ref, timeout=LIMIT_S)
    assert got.shape == (size,) and float(got.sum()) == size
    got.add_(1)
    assert (
        troupe.get(other.total.remote(ref), timeout=LIMIT_S) == size
    )  # each copy is its receiver's own
    plain = one.plain.remote(size)
    assert not troupe.get(one.is_own.remote(plain), timeout=LIMIT_S)


def test_only_the_ref_travels(two: Any) -> None:
    one, other = two
    ref = one.make.remote(LARGE)
    troupe.wait([ref], timeout=LIMIT_S)
    assert (
        troupe.get(one.figures.remote(), timeout=LIMIT_S)["pool_made"] == 0
    )  # nothing was written to shared memory
    assert troupe.get(one.kept.remote(), timeout=LIMIT_S) == (1, 4 * LARGE)
    assert troupe.get(other.total.remote(ref), timeout=LIMIT_S) == LARGE


def test_tensors_anywhere_in_a_value(two: Any) -> None:
    one, other = two
    for batch in (
        troupe.get(one.tree.remote(LARGE), timeout=LIMIT_S),
        troupe.get(other.give.remote(one.tree.remote(LARGE)), timeout=LIMIT_S),
    ):
        assert type(batch) is Batch and batch.name == "a" and batch.more["text"] == "x"
        assert batch.data is batch.more["same"] and float(batch.data[-1]) == LARGE - 1
        parameter, number = batch.more["list"]
        assert type(parameter) is torch.nn.Parameter and parameter.requires_grad and number == 3
        assert batch.more["part"].tolist() == [1.0, 2.0, 3.0]
        assert batch.more["part"].untyped_storage().nbytes() == 12  # not all that it is a part of


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_what_is_no_dense_tensor_goes_with_the_value(two: Any) -> None:
    one, _ = two
    tagged = torch.ones(2)
    tagged.tag = "it"
    values = {
        "none": None,
        "text": "é",
        "refs": [troupe.put(1)],
        "sparse": torch.eye(3).to_sparse(),
        "meta": torch.empty(5, device="meta"),
        "tagged": tagged,
        "function": lambda x: x + 1,
    }
    ref = one.give.remote(values)
    got = troupe.get(ref, timeout=LIMIT_S)
    assert (
        got["none"] is None
        and got["text"] == "é"
        and troupe.get(got["refs"][0]) == 1
        and got["function"](1) == 2
    )
    assert (
        torch.equal(got["sparse"].to_dense(), torch.eye(3))
        and got["meta"].shape == (5,)
        and got["tagged"].tag == "it"
    )
    assert troupe.get(one.kept.remote(), timeout=LIMIT_S) == (0, 0)
    assert troupe.get(one.give.remote(5), timeout=LIMIT_S) == 5


def test_several_results_streams_and_threads(two: Any) -> None:
    one, other = two
    first, second = one.two.remote()
    assert troupe.get(other.total.remote(first), timeout=LIMIT_S) == 2
    assert troupe.get(second, timeout=LIMIT_S)["it"].tolist() == [0, 0, 0]
    assert [troupe.get(other.total.remote(ref), timeout=LIMIT_S) for ref in one.each.remote(3)] == [
        0.0,
        3.0,
        6.0,
    ]
    with pytest.raises(ValueError, match="num_returns=3"):
        troupe.get(one.two.options(num_returns=3).remote(), timeout=LIMIT_S)
    threads = troupe.remote(max_concurrency=2)(Maker).remote()
    assert troupe.get(threads.is_own.remote(threads.make.remote(5)), timeout=LIMIT_S)
    assert troupe.get(other.total.remote(threads.make.remote(5)), timeout=LIMIT_S) == 5


def test_coroutines(two: Any) -> None:
    later = troupe.remote(Later).remote()
    assert troupe.get(two[0].total.remote(later.make.remote(LARGE)), timeout=LIMIT_S) == LARGE
    assert troupe.get(later.total.remote(two[0].make.remote(LARGE)), timeout=LIMIT_S) == LARGE
    assert troupe.get(later.total.remote(later.make.remote(4)), timeout=LIMIT_S) == 4
    assert [troupe.get(ref, timeout=LIMIT_S).tolist() for ref in later.each.remote(2)] == [
        [0, 0, 0],
        [1, 1, 1],
    ]


def test_options_of_a_call(two: Any) -> None:
    one, _ = two
    ref = one.plain.options(tensor_transport="auto").remote(5)
    assert troupe.get(one.is_own.remote(ref), timeout=LIMIT_S)
    ref = one.make.options(tensor_transport="object_store").remote(5)
    assert not troupe.get(one.is_own.remote(ref), timeout=LIMIT_S)
    for alias in ("gloo", "GLOO", "cuda_ipc"):
        assert troupe.get(
            one.is_own.remote(one.plain.options(tensor_transport=alias).remote(5)), timeout=LIMIT_S
        )
    for wrong in ("nccl", "nixl", "carrier pigeon", 3):
        with pytest.raises(ValueError, match="'auto' leaves tensors in their actor"):
            one.plain.options(tensor_transport=wrong)
    with pytest.raises(ValueError, match="a task's process .* keeps no tensors"):
        troupe.remote(tensor_transport="auto")(len)
    with pytest.raises(ValueError, match="not in an actor"):
        troupe.put(torch.ones(2), _tensor_transport="auto")


def test_a_busy_actor_gives_its_tensors(two: Any, tmp_path: Path) -> None:
    one, other = two
    ref = one.make.remote(LARGE)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    busy = one.wait_for.remote(str(pipe))
    with open(pipe, "w") as end:  # the call is in the method
        assert troupe.get(other.total.remote(ref), timeout=LIMIT_S) == LARGE
        assert float(troupe.get(ref, timeout=LIMIT_S).sum()) == LARGE
        end.write("go")
    assert troupe.get(busy, timeout=LIMIT_S)


def test_a_change_in_place_is_an_error_where_it_is_taken(two: Any) -> None:
    one, other = two
    ref = one.make.remote(10)
    troupe.get(one.change.remote(), timeout=LIMIT_S)
    text = (
        r"float32 of shape \(10,\) on cpu\) that make\(\) of actor Maker\(.*\) on .* was changed in place there since: "
        r"its version was 0 then and is 1 now\n  return tensor.clone\(\)"
    )
    with pytest.raises(exceptions.TensorChangedError, match=text):
        troupe.get(ref, timeout=LIMIT_S)
    with pytest.raises(exceptions.TensorChangedError, match=text):
        troupe.get(other.total.remote(ref), timeout=LIMIT_S)
    assert troupe.get(one.total.remote(ref), timeout=LIMIT_S) == 20  # the copy is its own
    unseen = one.make.remote(10)
    troupe.get(one.change_unseen.remote(), timeout=LIMIT_S)  # by `.data` and numpy, as documented
    assert troupe.get(unseen, timeout=LIMIT_S)[:2].tolist() == [7.0, 8.0]


def test_a_tensor_is_kept_until_the_last_ref_is_gone(two: Any) -> None:
    one, other = two
    ref = one.make_and_forget.remote(LARGE)
    assert troupe.get(other.total.remote(ref), timeout=LIMIT_S) == LARGE
    assert troupe.get(one.alive.remote(), timeout=LIMIT_S) == 1
    troupe.get(other.keep.remote([ref]), timeout=LIMIT_S)  # a ref, in another process
    del ref
    held = troupe.get(other.give.remote([]), timeout=LIMIT_S)
    assert held == [] and troupe.get(one.alive.remote(), timeout=LIMIT_S) == 1
    troupe.kill(other)
    eventually(
        lambda: troupe.get(one.alive.remote(), timeout=LIMIT_S) == 0, what="the end of the tensor"
    )
    let_go(one)
    many = [one.make_and_forget.remote(10) for _ in range(300)]
    troupe.wait(many, num_returns=300, timeout=LIMIT_S)
    assert troupe.get(one.kept.remote(), timeout=LIMIT_S)[0] == 300
    del many
    let_go(one)
    assert troupe.get(one.alive.remote(), timeout=LIMIT_S) == 0


def test_put_in_an_actor_and_the_wait_for_its_end(two: Any) -> None:
    one, other = two
    held = troupe.get(one.put.remote(LARGE), timeout=LIMIT_S)
    assert troupe.get(other.total.remote(held[0]), timeout=LIMIT_S) == LARGE
    assert troupe.get(one.is_own.remote(held[0]), timeout=LIMIT_S)
    with pytest.raises(TimeoutError, match="somebody still has a ref of the tensor"):
        troupe.get(one.freed.remote(0.01), timeout=LIMIT_S)
    freed = one.freed.remote(LIMIT_S)
    del held
    troupe.get(freed, timeout=LIMIT_S)
    let_go(one)
