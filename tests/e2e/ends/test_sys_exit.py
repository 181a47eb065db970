"""Methods and tasks that leave their process: as in Ray, code 0 is a wish, every other one a
crash."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe import exceptions

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Plain:
    """Leaves by the code it is given."""

    def leave(self, code: Any) -> None:
        sys.exit(code)

    def leave_once(self, flag: str) -> str:
        if not Path(flag).exists():
            Path(flag).touch()
            sys.exit(3)
        return "survived"

    def retire(self) -> None:
        troupe.exit_actor()

    def items(self, code: Any) -> Any:
        yield 1
        sys.exit(code)

    def ready(self) -> bool:
        return True


class Async(Plain):
    """An actor with the same ways to end, in coroutines."""

    async def leave(self, code: Any) -> None:
        sys.exit(code)


KINDS: dict[str, Callable[..., Any]] = {
    "plain": lambda **options: troupe.remote(num_cpus=0, **options)(Plain).remote(),
    "on threads": lambda **options: troupe.remote(num_cpus=0, max_concurrency=2, **options)(
        Plain
    ).remote(),
    "coroutines": lambda **options: troupe.remote(num_cpus=0, **options)(Async).remote(),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_another_code_than_zero_is_a_crash_with_that_code(idle: Home, kind: str) -> None:
    with pytest.raises(exceptions.ActorDiedError, match="ended: exit 3\\b") as caught:
        troupe.get(KINDS[kind]().leave.remote(3), timeout=TIMEOUT_S)
    assert "in leave" in str(caught.value) and "_base/calls.py" not in str(caught.value)


def test_a_text_is_said_and_is_code_1(idle: Home) -> None:
    with pytest.raises(exceptions.ActorDiedError, match="(?s)ended: exit 1\\b.*the disk is full"):
        troupe.get(KINDS["plain"]().leave.remote("the disk is full"), timeout=TIMEOUT_S)


@every_kind
@pytest.mark.parametrize("code", [0, None])
def test_zero_ends_the_actor_for_good(idle: Home, kind: str, code: Any) -> None:
    actor = KINDS[kind](max_restarts=-1, max_task_retries=-1)
    with pytest.raises(
        exceptions.ActorDiedError, match=r"ended itself by sys.exit\(\) in leave\(\)"
    ):
        troupe.get(actor.leave.remote(code), timeout=TIMEOUT_S)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(actor.ready.remote(), timeout=TIMEOUT_S)


@every_kind
def test_exit_actor_ends_an_actor_for_good_that_would_be_started_again(
    idle: Home, kind: str
) -> None:
    actor = KINDS[kind](max_restarts=-1, max_task_retries=-1)
    with pytest.raises(exceptions.ActorDiedError, match="exit_actor"):
        troupe.get(actor.retire.remote(), timeout=TIMEOUT_S)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(actor.ready.remote(), timeout=TIMEOUT_S)


@every_kind
def test_a_crash_is_started_again(idle: Home, kind: str) -> None:
    actor = KINDS[kind](max_restarts=1)
    with pytest.raises(exceptions.ActorUnavailableError):
        troupe.get(actor.leave.remote(1), timeout=TIMEOUT_S)
    assert eventually(lambda: _is_ready(actor), what="the actor's return")


def _is_ready(actor: Any) -> bool:
    try:
        return troupe.get(actor.ready.remote(), timeout=TIMEOUT_S)
    except exceptions.ActorUnavailableError:
        return False


@every_kind
def test_a_call_that_crashed_is_made_again(idle: Home, kind: str, tmp_path: Path) -> None:
    actor = KINDS[kind](max_restarts=1, max_task_retries=1)
    assert (
        troupe.get(actor.leave_once.remote(str(tmp_path / "flag")), timeout=TIMEOUT_S) == "survived"
    )


@every_kind
def test_in_the_middle_of_a_stream(idle: Home, kind: str) -> None:
    stream = KINDS[kind]().items.options(num_returns="streaming").remote(3)
    assert troupe.get(next(stream), timeout=TIMEOUT_S) == 1
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(next(stream), timeout=TIMEOUT_S)


@pytest.mark.parametrize("code", [0, 1])
def test_a_task_that_leaves_is_a_worker_that_crashed(idle: Home, code: int) -> None:
    @troupe.remote(max_retries=0)
    def leaves() -> None:
        sys.exit(code)

    with pytest.raises(exceptions.WorkerCrashedError):
        troupe.get(leaves.remote(), timeout=TIMEOUT_S)


def test_a_task_that_crashed_is_run_again(idle: Home, tmp_path: Path) -> None:
    flag = str(tmp_path / "flag")

    @troupe.remote(max_retries=1)
    def leaves_once() -> str:
        return Plain().leave_once(flag)

    assert troupe.get(leaves_once.remote(), timeout=TIMEOUT_S) == "survived"
