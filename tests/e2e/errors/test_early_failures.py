"""get() of several refs raises with the first that is known to have failed, wherever that stands in
the list.

Method: what stands before it in the list waits for a gate that is opened only when the error was
raised; without the rule the get() would end at its deadline, with another error. Real processes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Home

import troupe
from troupe import exceptions

WITHIN_S = 60.0


def waits_for(path: str) -> str:
    pause = threading.Event()
    while not Path(path).exists():
        pause.wait(0.01)
    return path


def fails(path: str = "") -> None:
    if path:
        waits_for(path)
    raise KeyError("early")


class Member:
    def waits_for(self, path: str) -> str:
        return waits_for(path)

    def fails(self, path: str = "") -> None:
        fails(path)

    def gets(self, refs: list) -> Any:
        try:
            return troupe.get(refs, timeout=WITHIN_S)
        except KeyError as error:
            return f"raised {error.args[0]}"


def started(kind: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return functions that start a member waiting for a path, and a failing one."""
    if kind == "tasks":
        return troupe.remote(num_cpus=1)(waits_for).remote, troupe.remote(num_cpus=1)(fails).remote
    first, second = (troupe.remote(num_cpus=0)(Member).remote() for _ in range(2))
    return first.waits_for.remote, second.fails.remote


@pytest.mark.parametrize("kind", ["tasks", "calls"])
@pytest.mark.parametrize("when", ["before", "during"])
def test_one_that_fails_is_raised_before_those_in_front_of_it_are_there(
    idle: Home, tmp_path: Path, kind: str, when: str
) -> None:
    wait, fail = started(kind)
    gate, trigger = tmp_path / "gate", tmp_path / "trigger"
    refs = [wait(str(gate)), troupe.put(1), fail(str(trigger)), wait(str(gate))]
    if when == "before":
        trigger.touch()
        troupe.wait([refs[2]], timeout=WITHIN_S)
    else:
        threading.Timer(0.3, trigger.touch).start()
    with pytest.raises(KeyError, match="early"):
        troupe.get(refs, timeout=WITHIN_S)
    assert not refs[0].done()
    gate.touch()
    assert troupe.get([refs[0], refs[1], refs[3]], timeout=WITHIN_S) == [str(gate), 1, str(gate)]


def test_of_several_that_failed_the_first_of_the_list_is_raised(idle: Home, tmp_path: Path) -> None:
    @troupe.remote(num_cpus=0)
    def fails_as(name: str) -> None:
        raise KeyError(name)

    wait, _ = started("calls")
    refs = [wait(str(tmp_path / "gate")), *(fails_as.remote(name) for name in "abc")]
    assert len(troupe.wait(refs[1:], num_returns=3, timeout=WITHIN_S)[0]) == 3
    with pytest.raises(KeyError, match="'a'"):
        troupe.get(refs, timeout=WITHIN_S)
    (tmp_path / "gate").touch()
    troupe.get(refs[0], timeout=WITHIN_S)


def test_an_actor_that_ends_is_such_a_failure(idle: Home, tmp_path: Path) -> None:
    wait, _ = started("calls")
    other = troupe.remote(num_cpus=0)(Member).remote()
    refs = [wait(str(tmp_path / "gate")), other.waits_for.remote(str(tmp_path / "never"))]
    threading.Timer(0.2, lambda: troupe.kill(other)).start()
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(refs, timeout=WITHIN_S)
    (tmp_path / "gate").touch()
    troupe.get(refs[0], timeout=WITHIN_S)


def test_refs_that_another_process_made(idle: Home, tmp_path: Path) -> None:
    wait, fail = started("tasks")
    gate, trigger = tmp_path / "gate", tmp_path / "trigger"
    refs = [wait(str(gate)), fail(str(trigger))]
    getter = troupe.remote(num_cpus=0)(Member).remote()
    got = getter.gets.remote(refs)
    trigger.touch()
    assert troupe.get(got, timeout=2 * WITHIN_S) == "raised early"
    gate.touch()
    troupe.get(refs[0], timeout=WITHIN_S)


def test_two_threads_get_the_same_refs(idle: Home, tmp_path: Path) -> None:
    wait, fail = started("calls")
    gate, trigger = tmp_path / "gate", tmp_path / "trigger"
    refs = [wait(str(gate)), fail(str(trigger))]
    raised: list[str] = []

    def get() -> None:
        try:
            troupe.get(refs, timeout=WITHIN_S)
        except Exception as error:
            raised.append(str(error.args[0]))

    threads = [threading.Thread(target=get) for _ in range(4)]
    for thread in threads:
        thread.start()
    trigger.touch()
    for thread in threads:
        thread.join(2 * WITHIN_S)
    assert raised == ["early"] * 4
    gate.touch()
    troupe.get(refs[0], timeout=WITHIN_S)


def test_a_deadline_still_names_what_was_waited_for(idle: Home, tmp_path: Path) -> None:
    wait, _ = started("calls")
    refs = [troupe.put(0), wait(str(tmp_path / "gate")), troupe.put(2)]
    with pytest.raises(exceptions.GetTimeoutError, match=r"waits_for.*\(number 2 of 3\)"):
        troupe.get(refs, timeout=0.2)
    (tmp_path / "gate").touch()
    assert troupe.get(refs, timeout=WITHIN_S)[::2] == [0, 2]


def test_gather_raises_the_first_too(idle: Home, tmp_path: Path) -> None:
    wait, fail = started("calls")
    refs = [wait(str(tmp_path / "gate")), fail()]

    async def gathered() -> None:
        await asyncio.wait_for(asyncio.gather(*refs), WITHIN_S)

    with pytest.raises(KeyError, match="early"):
        asyncio.run(gathered())
    (tmp_path / "gate").touch()
    troupe.get(refs[0], timeout=WITHIN_S)


def test_long_lists_and_many_refs_of_one_call(idle: Home, tmp_path: Path) -> None:
    wait, fail = started("calls")
    gate, trigger = tmp_path / "gate", tmp_path / "trigger"
    first, last = wait(str(gate)), fail(str(trigger))
    threading.Timer(0.2, trigger.touch).start()
    with pytest.raises(KeyError, match="early"):
        troupe.get([first] * 3000 + [last] * 3000, timeout=WITHIN_S)
    gate.touch()
    assert troupe.get([first] * 3000, timeout=WITHIN_S) == [str(gate)] * 3000
