"""Cancelling the call of an actor's method cancels what the method has started: calls of actors and
tasks, and what these started.

Method: actors of every kind call an actor whose calls take as long as nobody cancels them, or tasks
that hang.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, eventually

import troupe
from troupe import exceptions

WAIT_S = 30


def mark(path: str, words: str) -> None:
    """Adds a line to a file."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(words + "\n")


def marks_of(path: Path) -> list[str]:
    return sorted(path.read_text().splitlines()) if path.exists() else []


@troupe.remote(num_cpus=0)
class Patient:
    def __init__(self, marks: str) -> None:
        self.marks = marks

    async def wait(self, name: str) -> None:
        mark(self.marks, f"begun {name}")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            mark(self.marks, f"cancelled {name}")
            raise

    async def ask(self) -> str:
        return "here"


@troupe.remote
def hang(marks: str, name: str) -> None:
    try:
        mark(marks, f"begun {name}")  # in here: who has seen it may cancel before the next line
        threading.Event().wait()
    except KeyboardInterrupt:
        mark(marks, f"cancelled {name}")
        raise


class Plain:
    def calls(self, patient: Any, name: str) -> Any:
        return troupe.get(patient.wait.remote(name))

    def tasks(self, marks: str, name: str) -> Any:
        refs = [hang.options(num_cpus=1).remote(marks, name) for _ in range(2)]
        return troupe.wait(refs, num_returns=2, timeout=None)

    def through(self, other: Any, patient: Any, name: str) -> Any:
        return troupe.get([other.calls.remote(patient, name)])

    def waits_otherwise(self, patient: Any, name: str) -> bool:
        self.ref = patient.wait.remote(name)
        while not troupe.get_runtime_context().is_canceled():
            threading.Event().wait(0.01)
        return True


class Coroutines:
    async def calls(self, patient: Any, name: str) -> Any:
        return await patient.wait.remote(name)

    async def tasks(self, marks: str, name: str) -> Any:
        refs = [hang.options(num_cpus=1).remote(marks, name) for _ in range(2)]
        return await asyncio.gather(*refs)

    async def through(self, other: Any, patient: Any, name: str) -> Any:
        await asyncio.sleep(0)
        return await other.calls.remote(patient, name)


class Grouped(Coroutines):
    @troupe.method(concurrency_group="io")
    async def calls(self, patient: Any, name: str) -> Any:
        return await Coroutines.calls(self, patient, name)

    @troupe.method(concurrency_group="io")
    async def tasks(self, marks: str, name: str) -> Any:
        return await Coroutines.tasks(self, marks, name)

    @troupe.method(concurrency_group="io")
    async def through(self, other: Any, patient: Any, name: str) -> Any:
        return await Coroutines.through(self, other, patient, name)


KINDS = {
    "plain": troupe.remote(num_cpus=0)(Plain),
    "threads": troupe.remote(num_cpus=0, max_concurrency=2)(Plain),
    "coroutines": troupe.remote(num_cpus=0)(Coroutines),
    "a group": troupe.remote(num_cpus=0, concurrency_groups={"io": 2})(Grouped),
}


@pytest.fixture(params=list(KINDS))
def caller(request: pytest.FixtureRequest, idle: Home) -> Any:
    return KINDS[request.param].remote()


def cancelled(ref: Any, **options: Any) -> None:
    troupe.cancel(ref, **options)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(ref, timeout=WAIT_S)


@pytest.mark.parametrize("retries", [0, -1])
def test_calls_that_a_method_made_go_with_it(caller: Any, tmp_path: Path, retries: int) -> None:
    marks = tmp_path / "marks"
    patient = Patient.remote(str(marks))
    ref = caller.calls.options(max_task_retries=retries).remote(patient, "own")
    eventually(lambda: marks_of(marks) == ["begun own"], timeout=WAIT_S, what="the call")
    cancelled(ref)
    eventually(
        lambda: marks_of(marks) == ["begun own", "cancelled own"],
        timeout=WAIT_S,
        what="the end of the call",
    )
    assert troupe.get(patient.ask.remote(), timeout=WAIT_S) == "here"


def test_tasks_that_a_method_started_go_with_it(caller: Any, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    ref = caller.tasks.remote(str(marks), "own")
    eventually(lambda: marks_of(marks) == ["begun own"] * 2, timeout=WAIT_S, what="the tasks")
    troupe.cancel(ref)
    eventually(
        lambda: marks_of(marks) == ["begun own"] * 2 + ["cancelled own"] * 2,
        timeout=WAIT_S,
        what="the end of the tasks",
    )
    try:
        troupe.get(ref, timeout=WAIT_S)  # wait() of a plain method just returns
    except exceptions.TaskCancelledError:
        pass


def test_calls_that_those_made_go_too(caller: Any, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    patient, between = Patient.remote(str(marks)), KINDS["plain"].remote()
    ref = caller.through.remote(between, patient, "own")
    eventually(lambda: marks_of(marks) == ["begun own"], timeout=WAIT_S, what="the calls")
    cancelled(ref)
    eventually(
        lambda: marks_of(marks) == ["begun own", "cancelled own"],
        timeout=WAIT_S,
        what="the end of the calls",
    )


def test_they_stay_if_that_is_asked_for(idle: Home, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    patient, caller = Patient.remote(str(marks)), KINDS["coroutines"].remote()
    ref = caller.calls.remote(patient, "own")
    eventually(lambda: marks_of(marks) == ["begun own"], timeout=WAIT_S, what="the call")
    cancelled(ref, recursive=False)
    assert troupe.get(patient.ask.remote(), timeout=WAIT_S) == "here" and marks_of(marks) == [
        "begun own"
    ]


@pytest.mark.parametrize("kind", ["threads", "coroutines"])
def test_those_of_other_calls_stay(idle: Home, tmp_path: Path, kind: str) -> None:
    marks = tmp_path / "marks"
    patient, caller = Patient.remote(str(marks)), KINDS[kind].remote()
    refs = [caller.calls.remote(patient, name) for name in ("first", "second")]
    eventually(
        lambda: marks_of(marks) == ["begun first", "begun second"], timeout=WAIT_S, what="the calls"
    )
    cancelled(refs[0])
    eventually(
        lambda: "cancelled first" in marks_of(marks), timeout=WAIT_S, what="the end of the call"
    )
    assert troupe.get(
        patient.ask.remote(), timeout=WAIT_S
    ) == "here" and "cancelled second" not in marks_of(marks)
    cancelled(refs[1])


def test_a_method_that_asks_hears_of_it_and_its_calls_are_cancelled(
    idle: Home, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    patient, caller = Patient.remote(str(marks)), KINDS["plain"].remote()
    ref = caller.waits_otherwise.remote(patient, "own")
    eventually(lambda: marks_of(marks) == ["begun own"], timeout=WAIT_S, what="the call")
    troupe.cancel(ref)
    assert troupe.get(ref, timeout=WAIT_S) is True
    eventually(
        lambda: marks_of(marks) == ["begun own", "cancelled own"],
        timeout=WAIT_S,
        what="the end of the call",
    )
