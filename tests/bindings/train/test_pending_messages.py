"""Messages that have not ended: as torch's flight recorder writes of NCCL's, and those whose call
has not come back.

Method: entries in the form of the recorder's version 2.10, as torch 2.11 writes them; a message
whose call stays until the test lets it go.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pytest

from troupe import _native as native
from troupe._process.returned import message_counts, returned_peers, torch_records
from troupe._process.returned.message_counts import GroupMessages, Message
from troupe._process.returned.torch_records import Collective, PendingMessage

LIMIT_S = 60.0
HERE = threading.main_thread().ident or 0


def _entry(
    name: str,
    number: int,
    *,
    retired: bool,
    group: str = "0",
    messages: bool = True,
    thread: int = HERE,
) -> dict[str, Any]:
    return {
        "record_id": 0,
        "pg_id": 0,
        "process_group": [group, "default_pg"],
        "collective_seq_id": 0 if messages else number,
        "p2p_seq_id": number if messages else 0,
        "op_id": 1,
        "profiling_name": name,
        "is_p2p": messages,
        "retired": retired,
        "state": "scheduled",
        "input_sizes": [[3]],
        "input_dtypes": ["Float"],
        "output_sizes": [[3]],
        "output_dtypes": ["Float"],
        "thread_id": str(thread),
        "thread_name": "python",
        "time_created_ns": 1795828600038189780,
        "time_discovered_started_ns": 0,
        "time_discovered_completed_ns": 0,
        "timeout_ms": 600000,
    }


def _batch(number: int, names: list[str], *, retired: bool | None) -> list[dict[str, Any]]:
    """`retired` None: the batch is being begun still."""
    ops = [_entry(name, number, retired=False) for name in names]
    return ops if retired is None else [*ops, _entry("nccl:coalesced", number, retired=retired)]


def test_what_has_not_ended_is_read_from_the_records() -> None:
    found = torch_records.read(
        [
            _entry("nccl:all_reduce", 1, retired=True, messages=False),
            _entry("nccl:broadcast", 2, retired=False, messages=False),
            _entry("nccl:send 0->1", 1, retired=True),
            _entry("nccl:recv 0<-12", 2, retired=False),
            _entry("nccl:send 0->1", 3, retired=False, group="4"),
        ]
    )
    assert found.collectives == {("0", "nccl"): [Collective(2, "broadcast", HERE)]}
    assert found.messages == [
        PendingMessage("0", True, 0, 12, HERE),
        PendingMessage("4", False, 0, 1, HERE),
    ]


@pytest.mark.parametrize(
    ("retired", "pending"),
    [
        (
            True,
            [],
        ),  # the messages of a batch are never marked as ended, which the batch's own entry is
        (False, [PendingMessage("0", True, 0, 1, HERE), PendingMessage("0", False, 0, 2, HERE)]),
        (None, [PendingMessage("0", True, 0, 1, HERE), PendingMessage("0", False, 0, 2, HERE)]),
    ],
)
def test_a_batch_has_ended_where_its_last_entry_has(
    retired: bool | None, pending: list[PendingMessage]
) -> None:
    assert (
        torch_records.read(
            _batch(7, ["nccl:recv 0<-1", "nccl:send 0->2"], retired=retired)
        ).messages
        == pending
    )


def test_so_has_a_batch_of_collectives() -> None:
    first = [
        _entry("nccl:all_gather", 1, retired=False, messages=False),
        _entry("nccl:ALLGATHER_coalesced", 1, retired=True, messages=False),
    ]
    second = [
        _entry("nccl:all_gather", 2, retired=False, messages=False),
        _entry("nccl:ALLGATHER_coalesced", 2, retired=False, messages=False),
    ]
    assert torch_records.read(first + second).collectives == {
        ("0", "nccl"): [Collective(2, "all_gather", HERE)]
    }


def _numbers(
    pending: list[PendingMessage], begun: dict[tuple[str, bool, int, int | None], int]
) -> list[Message]:
    return returned_peers.pending_messages(pending, begun)


def test_the_oldest_message_that_has_not_ended_is_waited_for() -> None:
    one = PendingMessage("0", True, 0, 1, HERE)
    assert _numbers([one], {("0", True, 0, 1): 5}) == [Message("0", True, 0, 1, 5)]
    assert _numbers([one, one], {("0", True, 0, 1): 5, ("0", False, 0, 1): 9}) == [
        Message("0", True, 0, 1, 4)
    ]
    assert _numbers([one], {("0", False, 0, 1): 9}) == [], "it is not counted yet"


def test_what_a_background_thread_began_is_not_waited_for_and_not_taken_as_ended() -> None:
    release, begun = threading.Event(), threading.Event()
    background = threading.Thread(target=lambda: (begun.set(), release.wait(LIMIT_S)), daemon=True)
    background.start()
    assert begun.wait(LIMIT_S)
    theirs, mine = (
        PendingMessage("0", True, 0, 1, thread) for thread in (background.ident or 0, HERE)
    )
    assert _numbers([theirs], {("0", True, 0, 1): 2}) == []
    assert _numbers([theirs, mine], {("0", True, 0, 1): 2}) == [Message("0", True, 0, 1, 1)], (
        "only the first is known to need its sender"
    )
    release.set()
    background.join()


class _Work:
    """Stands for torch.distributed.Work."""


class _Group:
    """Stands for torch.distributed.ProcessGroup."""


class _Tensor:
    is_cpu = True


def _send(group: Any, tensors: Any, peer: int, tag: int) -> Any:
    entered, release = group.calls[peer]
    entered.set()
    assert release.wait(LIMIT_S)
    if tag:
        raise RuntimeError("no connection")
    return _Work()


def test_a_message_whose_call_has_not_come_back_is_known() -> None:
    group, messages = _Group(), GroupMessages("0", 0, has_devices=False)
    group.calls = {peer: (threading.Event(), threading.Event()) for peer in (1, 2, 3)}  # type: ignore[attr-defined]
    method = native.counted_message(
        _send,
        lambda each: (weakref.ref(each), messages, messages.sent, False),
        lambda *_: None,
        set(),
        2,
    )

    def send(peer: int, tag: int = 0) -> None:
        try:
            method(group, [_Tensor()], peer, tag)
        except RuntimeError:
            failed.append(peer)

    failed: list[int] = []
    threads = [threading.Thread(target=send, args=given) for given in ((1,), (2, 1), (3,))]
    for thread in threads:
        thread.start()
    for entered, _ in group.calls.values():  # type: ignore[attr-defined]
        assert entered.wait(LIMIT_S)
    assert [message_counts.message_in_call(thread.ident or 0) for thread in threads] == [
        Message("0", False, 0, peer, 1) for peer in (1, 2, 3)
    ]
    assert message_counts.message_in_call(HERE) is None and messages.sent == {}
    for peer, thread in (
        (2, threads[1]),
        (1, threads[0]),
        (3, threads[2]),
    ):  # in another order than they came
        group.calls[peer][1].set()  # type: ignore[attr-defined]
        thread.join(LIMIT_S)
        assert message_counts.message_in_call(thread.ident or 0) is None
    assert failed == [2] and messages.sent == {1: 1, 3: 1}, (
        "a call that failed has begun no message"
    )
