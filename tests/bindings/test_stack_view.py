"""The screen of `troupe stack`, from made-up stacks: pure."""

from __future__ import annotations

from troupe._tracing import stacks as _stacks
from troupe.cli import _stack_view

TORCH = "torch/distributed/distributed_c10d.py"


def frame(name: str, file: str = "train.py", line: int = 1) -> dict:
    return {"name": name, "file": file, "line": line}


def process(rank: int, *frames: dict, error: str = "") -> dict:
    if error:
        return {"rank": rank, "pid": 100 + rank, "node": "a", "error": error}
    return {
        "rank": rank,
        "pid": 100 + rank,
        "node": "a",
        "threads": [{"name": "", "tid": 1, "main": True, "active": False, "frames": list(frames)}],
    }


def test_what_a_stack_waits_in() -> None:
    assert (
        _stack_view.waits_in([frame("all_reduce", TORCH), frame("step")])
        == "all_reduce (a collective)"
    )
    assert "for the other ranks" in _stack_view.waits_in([frame("init_process_group", TORCH)])
    assert (
        _stack_view.waits_in(
            [frame("wait", "x.so", 0), frame("c10d::ProcessGroupGloo::run", "x.so", 0)]
        )
        == "a collective (torch.distributed)"
    )
    assert _stack_view.waits_in([frame("all_reduce", "mine.py")]) == "", (
        "a function of the user's is none of torch's"
    )


def test_equal_stacks_stand_once_and_who_is_elsewhere_comes_first() -> None:
    there = [process(rank, frame("barrier", TORCH), frame("step")) for rank in (0, 1, 2, 5)]
    text = list(_stack_view.lines([*there, process(3, frame("load"))], all_threads=False))
    assert text[0] == "4 of 5 ranks wait in a collective; not there: rank 3"
    heads = [line for line in text if line.startswith("rank")]
    assert heads[0].startswith("rank 3 · pid 103 on a") and heads[1].startswith("ranks 0-2, 5 · ")
    assert heads[1].endswith("waits in barrier (a collective)")


def test_one_that_cannot_be_read_says_why() -> None:
    text = list(_stack_view.lines([process(0, error="no rights")], all_threads=False))
    assert text == ["rank 0 · pid 100 on a: cannot be read: no rights"]


def test_processes_of_which_less_was_read_than_asked_for_say_so_once() -> None:
    note = {"note": "Python's frames only: UNW_EINVAL"}
    text = list(
        _stack_view.lines(
            [{**process(rank, frame("f")), **note} for rank in (0, 1)], all_threads=False
        )
    )
    assert text[0] == "ranks 0-1 · pid 100 on a, pid 101 on a: Python's frames only: UNW_EINVAL"
    assert text[-1] == "    f (train.py:1)"


def test_names_of_templates_are_short() -> None:
    assert (
        _stacks._short("std::vector<int, std::allocator<int> >::push_back(int&&)")
        == "std::vector::push_back"
    )
    assert _stacks._short("<module>") == "<module>"
    assert _stacks._short("c10d::(anonymous namespace)::f") == "c10d::anonymous::f"


def test_ranks_in_runs() -> None:
    assert _stack_view.ranks_text([5, 0, 1, 2]) == "0-2, 5"
