"""Cancelling tasks: those that wait, those that run, by force; what a task is called and where it
runs."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
from conftest import Home, eventually

import troupe
from troupe import exceptions
from troupe._tasks import host

WAIT_S = 30


@troupe.remote
def hang(marks: str) -> None:
    """Says that it runs, then that it was interrupted."""
    try:
        mark(
            marks, f"begun {os.getpid()}"
        )  # in here: who has seen it may cancel before the next line
        threading.Event().wait()
    except KeyboardInterrupt:
        mark(marks, "interrupted")
        raise


@troupe.remote
def stubborn(marks: str) -> str:
    """Answers although it is interrupted."""
    try:
        mark(
            marks, f"begun {os.getpid()}"
        )  # in here: who has seen it may cancel before the next line
        threading.Event().wait()
    except KeyboardInterrupt:
        return "answered"
    return "never"


@troupe.remote
def cleans_up(marks: str, go_on: str) -> str:
    """Hears of its cancellation, and takes its time; answers how often it heard."""
    heard = 0
    while not os.path.exists(go_on):
        try:
            if not heard:
                mark(marks, f"begun {os.getpid()}")
            threading.Event().wait(0.01 if heard else None)
        except KeyboardInterrupt:
            heard += 1
            mark(marks, f"heard {heard}")
    mark(marks, f"in all {heard}")
    return "answered"


@troupe.remote
def pid() -> int:
    """The process it runs in."""
    return os.getpid()


def mark(path: str, words: str) -> None:
    """Adds a line to a file."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(words + "\n")


def begun(path: Path, count: int = 1) -> list[int]:
    """Waits for so many tasks to run; their processes."""

    def pids() -> list[int]:
        text = path.read_text() if path.exists() else ""
        return [int(line.split()[1]) for line in text.splitlines() if line.startswith("begun")]

    eventually(lambda: len(pids()) == count, timeout=WAIT_S, what=f"{count} tasks that run")
    return pids()


def test_a_task_that_runs_is_interrupted_and_its_process_used_again(
    idle: Home, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    ref = hang.remote(str(marks))
    (where,) = begun(marks)
    troupe.cancel(ref)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(ref, timeout=WAIT_S)
    assert "interrupted" in marks.read_text()
    assert troupe.get(pid.remote(), timeout=WAIT_S) == where
    troupe.cancel(ref)  # once more: nothing


@troupe.remote
def parent(marks: str, children: int) -> list:
    """Starts some that hang, and waits for them."""
    mark(marks, f"begun {os.getpid()}")
    return troupe.get([hang.remote(marks) for _ in range(children)])


@troupe.remote
def grandparent(marks: str) -> None:
    troupe.get(parent.remote(marks, 2))


@pytest.mark.parametrize("form", ["one level", "two levels"])
def test_what_a_cancelled_task_started_goes_with_it(idle: Home, tmp_path: Path, form: str) -> None:
    marks = tmp_path / "marks"
    ref = parent.remote(str(marks), 3) if form == "one level" else grandparent.remote(str(marks))
    begun(marks, 4 if form == "one level" else 3)
    troupe.cancel(ref)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(ref, timeout=WAIT_S)
    hanging = 3 if form == "one level" else 2
    eventually(
        lambda: marks.read_text().count("interrupted") == hanging,
        timeout=WAIT_S,
        what="the end of what it started",
    )


@troupe.remote(num_cpus=0)
class Patient:
    """An actor whose calls take as long as nobody cancels them; one at a time runs."""

    def __init__(self, marks: str) -> None:
        self.marks = marks

    async def wait(self, name: str) -> None:
        mark(self.marks, f"begun {os.getpid()}")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            mark(self.marks, f"cancelled {name}")
            raise

    async def ask(self, name: str) -> str:
        mark(self.marks, f"asked {name}")
        return name


@troupe.remote
def calls_actors(patient: object, name: str) -> list:
    """Start one call that runs, one that waits for the actor, one for an argument; all for ever."""
    running = patient.wait.remote(name)
    return troupe.get([running, patient.ask.remote(name), patient.ask.remote(running)])


@troupe.remote
def calls_through_a_child(patient: object) -> None:
    troupe.get(calls_actors.remote(patient, "child"))


@pytest.mark.parametrize(
    "task", [calls_actors, calls_through_a_child], ids=["one level", "two levels"]
)
def test_calls_of_actors_that_a_cancelled_task_made_go_with_it(
    idle: Home, tmp_path: Path, task: object
) -> None:
    marks = tmp_path / "marks"
    patient = Patient.options(max_concurrency=1).remote(str(marks))
    ref = task.remote(patient, *(["own"] if task is calls_actors else []))
    begun(marks)
    troupe.cancel(ref)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(ref, timeout=WAIT_S)
    eventually(lambda: "cancelled" in marks.read_text(), timeout=WAIT_S, what="the end of the call")
    assert troupe.get(patient.ask.remote("after"), timeout=WAIT_S) == "after"
    name = "own" if task is calls_actors else "child"
    assert marks.read_text().split("\n")[1:] == [f"cancelled {name}", "asked after", ""], (
        "what had not begun did not run"
    )
    troupe.kill(patient)


def test_calls_of_actors_stay_if_that_is_asked_for(idle: Home, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    patient = Patient.remote(str(marks))
    ref = calls_actors.remote(patient, "own")
    begun(marks)
    troupe.cancel(ref, recursive=False)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(ref, timeout=WAIT_S)
    assert troupe.get(patient.ask.remote("after"), timeout=WAIT_S) == "after"
    assert "cancelled" not in marks.read_text()
    troupe.kill(patient)


def test_what_it_started_stays_if_that_is_asked_for(idle: Home, tmp_path: Path) -> None:
    marks, go = tmp_path / "marks", tmp_path / "go"

    @troupe.remote
    def child(marks: str, go: str) -> None:
        mark(marks, f"begun {os.getpid()}")
        while not os.path.exists(go):
            threading.Event().wait(0.01)
        mark(marks, "went on")

    @troupe.remote
    def starts() -> None:
        try:
            ref = child.remote(str(marks), str(go))
            threading.Event().wait()
        except KeyboardInterrupt:
            mark(str(marks), "interrupted")
            troupe.get(ref)
            raise

    ref = starts.remote()
    begun(marks)
    troupe.cancel(ref, recursive=False)
    eventually(lambda: "interrupted" in marks.read_text(), timeout=WAIT_S, what="the interrupt")
    go.touch()
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(ref, timeout=WAIT_S)
    assert "went on" in marks.read_text()


def test_a_signal_that_goes_by_unnoticed_is_sent_again(
    idle: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal may come just before its process blocks. Method: the first ones are not sent."""
    sent: list[int] = []
    send = host.interrupt

    def loses_two(process: int) -> None:
        sent.append(process)
        if len(sent) > 2:
            send(process)

    monkeypatch.setattr(host, "interrupt", loses_two)
    ref = hang.remote(str(tmp_path / "marks"))
    (where,) = begun(tmp_path / "marks")
    troupe.cancel(ref)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(ref, timeout=WAIT_S)
    assert len(sent) >= 3 and set(sent) == {where}


def test_a_task_that_has_heard_of_it_is_left_alone_until_it_is_cancelled_again(
    idle: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks, go_on, sent = tmp_path / "marks", tmp_path / "go-on", []
    send = host.interrupt
    monkeypatch.setattr(host, "interrupt", lambda process: (sent.append(process), send(process)))
    ref = cleans_up.remote(str(marks), str(go_on))
    begun(marks)
    for times in (1, 2):
        troupe.cancel(ref)
        eventually(
            lambda: f"heard {times}\n" in marks.read_text(), timeout=WAIT_S, what="its interruption"
        )
        before = len(sent)
        eventually(
            lambda: len(sent) >= before + 3, timeout=WAIT_S, what="signals that tell it nothing new"
        )
    go_on.touch()
    assert troupe.get(ref, timeout=WAIT_S) == "answered"
    assert "in all 2\n" in marks.read_text()


def test_one_that_answers_all_the_same(idle: Home, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    ref = stubborn.remote(str(marks))
    begun(marks)
    troupe.cancel(ref)
    assert troupe.get(ref, timeout=WAIT_S) == "answered"


def test_a_task_that_waits_never_runs(idle: Home, tmp_path: Path) -> None:
    marks, late = tmp_path / "marks", tmp_path / "late"
    first = hang.options(num_cpus=8).remote(str(marks))
    begun(marks)
    second = hang.options(num_cpus=8).remote(str(late))
    troupe.cancel(second)
    with pytest.raises(exceptions.TaskCancelledError, match="before it began"):
        troupe.get(second, timeout=WAIT_S)
    troupe.cancel(first)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(first, timeout=WAIT_S)
    assert not late.exists()


def test_by_force_the_process_ends(idle: Home, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    ref, other = hang.remote(str(marks)), hang.remote(str(marks))
    begun(marks, 2)
    troupe.cancel(ref, force=True)
    with pytest.raises(exceptions.WorkerCrashedError, match="force=True"):
        troupe.get(ref, timeout=WAIT_S)
    assert troupe.wait([other], timeout=0.2) == ([], [other])
    troupe.cancel(other)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(other, timeout=WAIT_S)


def test_a_generator(idle: Home, tmp_path: Path) -> None:
    @troupe.remote
    def endless(marks: str):
        mark(marks, f"begun {os.getpid()}")
        yield 1
        threading.Event().wait()

    marks = tmp_path / "marks"
    items = endless.remote(str(marks))
    assert troupe.get(next(items), timeout=WAIT_S) == 1
    troupe.cancel(items)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(items.completed(), timeout=WAIT_S)


def test_what_a_task_knows_of_itself(idle: Home) -> None:
    @troupe.remote
    def known() -> tuple:
        context = troupe.get_runtime_context()
        return context.get_task_name(), context.get_task_id(), context.get_node_id()

    found = troupe.get([known.options(name="special").remote() for _ in range(3)], timeout=WAIT_S)
    assert {name for name, _, _ in found} == {"special"} and len(
        {task for _, task, _ in found}
    ) == 3
    assert found[0][2] == troupe.nodes()[0]["NodeID"]
    assert "known" in troupe.get(known.remote(), timeout=WAIT_S)[0]
    context = troupe.get_runtime_context()
    assert context.get_task_id() is None and context.get_task_name() is None
