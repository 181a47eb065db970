"""Launches through real processes, forked by a warm zygote: results, errors by type, ends,
attempts."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest
from conftest import Home, eventually

from troupe import exceptions
from troupe.launch import distributed


def test_results_come_back_by_rank(idle: Home) -> None:
    @distributed(processes=4, remote=True)
    def square(base: int) -> tuple[int, int]:
        return int(os.environ["RANK"]), base**2 + int(os.environ["RANK"])

    assert square.distributed(3) == [(rank, 9 + rank) for rank in range(4)]
    assert callable(square) and square.__name__ == "square"


def test_the_environment_of_a_rank(idle: Home) -> None:
    @distributed(processes=2, remote=True, runtime_env={"env_vars": {"MINE": "yes"}})
    def environment() -> dict[str, str]:
        return dict(os.environ)

    first, second = environment.distributed()
    assert (first["RANK"], second["RANK"]) == ("0", "1")
    for each in (first, second):
        assert each["WORLD_SIZE"] == each["LOCAL_WORLD_SIZE"] == "2" and each["NODE_RANK"] == "0"
        assert each["MASTER_ADDR"] and int(each["MASTER_PORT"]) > 0
        assert each["MINE"] == "yes" and "TROUPE_TOKEN_FILE" not in each


def test_gloo_all_reduce(idle: Home) -> None:
    pytest.importorskip("torch")

    @distributed(processes=2, remote=True)
    def reduce() -> float:
        import torch
        import torch.distributed as dist

        dist.init_process_group()
        value = torch.ones(3) * (dist.get_rank() + 1)
        dist.all_reduce(value)
        dist.destroy_process_group()
        return float(value.sum())

    assert reduce.distributed() == [9.0, 9.0]


def test_output_appears_with_its_rank(idle: Home, capsys: pytest.CaptureFixture) -> None:
    @distributed(processes=2, remote=True)
    def speak() -> None:
        print("hello from", os.environ["RANK"])

    speak.distributed()
    out, errors = capsys.readouterr()
    assert sorted(out.splitlines()) == ["[0] hello from 0", "[1] hello from 1"]
    assert "2 ranks on 1 node · ready in" in errors and "succeeded" in errors
    speak.options(quiet=True).distributed()
    out, errors = capsys.readouterr()
    assert len(out.splitlines()) == 2 and errors == ""


class CustomError(Exception):
    """An exception with a field."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


def test_an_exception_keeps_its_type(idle: Home) -> None:
    @distributed(processes=3, remote=True)
    def fail() -> None:
        if os.environ["RANK"] == "1":
            raise KeyError("lr")

    with pytest.raises(KeyError) as caught:
        fail.distributed()
    error = caught.value
    assert isinstance(error, exceptions.LaunchError)
    assert error.rank == 1 and error.exit_code == 1 and error.epoch == 1 and error.signal is None
    assert "rank 1" in str(error) and "KeyError" in str(error) and "in fail" in str(error)


def test_a_rank_that_exits(idle: Home) -> None:
    @distributed(processes=2, remote=True)
    def leave(code: object) -> None:
        sys.exit(code)

    assert leave.distributed(0) == [None, None]
    with pytest.raises(exceptions.LaunchError) as caught:
        leave.distributed(3)
    assert caught.value.exit_code == 3


def test_a_killed_rank_is_named(idle: Home) -> None:
    @distributed(processes=3, remote=True)
    def die() -> None:
        if os.environ["RANK"] == "2":
            print("last words", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()

    with pytest.raises(exceptions.LaunchError) as caught:
        die.distributed()
    error = caught.value
    assert error.rank == 2 and error.signal == signal.SIGKILL
    assert "SIGKILL" in str(error) and "last words" in error.log_tail


def test_cancel_ends_every_rank(idle: Home) -> None:
    @distributed(processes=2, remote=True)
    def wait() -> None:
        threading.Event().wait()

    handle = wait.submit()
    handle.wait_state(lambda info: info["state"] == "running", 30)
    assert not handle.done()
    handle.cancel()
    with pytest.raises(exceptions.LaunchCancelledError):
        handle.result(timeout=60)
    assert handle.done() and handle.status()["outcome"] == "cancelled"


def test_timeout_of_a_launch_and_of_a_wait(idle: Home) -> None:
    @distributed(processes=1, remote=True, timeout=0.5)
    def wait() -> None:
        threading.Event().wait()

    handle = wait.submit()
    with pytest.raises(TimeoutError):
        handle.result(timeout=0.05)
    with pytest.raises(exceptions.GetTimeoutError, match=r"timed out after 0.5 s"):
        handle.result(timeout=20)


def test_a_second_attempt_is_epoch_two(idle: Home, tmp_path) -> None:
    marker = tmp_path / "tried"

    @distributed(processes=2, remote=True, max_attempts=2)
    def flaky(path: str) -> str:
        if os.environ["RANK"] == "0" and not os.path.exists(path):
            open(path, "w").close()
            raise RuntimeError("first time")
        return os.environ["TROUPE_EPOCH"] + os.environ["TORCHELASTIC_RESTART_COUNT"]

    handle = flaky.submit(str(marker))
    assert handle.result(timeout=30) == ["21", "21"]
    assert handle.status()["epoch"] == 2


def test_large_payload_and_result(idle: Home) -> None:
    @distributed(processes=2, remote=True)
    def echo(data: bytes) -> bytes:
        return data * 3

    data = os.urandom(4 << 20)
    assert echo.submit(data).result(timeout=60) == [data * 3] * 2


def test_logs_afterwards(idle: Home) -> None:
    @distributed(processes=2, remote=True)
    def speak() -> None:
        print("one")
        print("two", file=sys.stderr)

    handle = speak.submit()
    handle.result(timeout=30)
    assert list(handle.logs(rank=1)) == ["one", "two"]
    assert sorted(handle.logs()) == ["[0] one", "[0] two", "[1] one", "[1] two"]
    shown = idle.run("logs", handle.id[:8], "--rank", "0").stdout
    assert shown.splitlines() == ["one", "two"]


def test_a_launch_inside_a_rank_is_refused(idle: Home) -> None:
    @distributed(processes=1, remote=True)
    def outer() -> str:
        from troupe.launch import distributed as again

        try:
            again(processes=1)(len).distributed([])
        except RuntimeError as error:
            return str(error)
        return "not refused"

    assert "launch inside a launch" in outer.distributed()[0]


def test_the_end_of_the_caller_cancels_its_launch(idle: Home) -> None:
    import troupe

    address = troupe.init(ignore_reinit_error=True).address
    code = f"""
import threading, troupe
from troupe.launch import distributed
troupe.init({address!r})
handle = distributed(processes=1, remote=True, name="orphan")(lambda: threading.Event().wait()).submit()
handle.wait_state(lambda info: info["state"] == "running", 30)
import os; os._exit(0)
"""
    done = idle.python(code)
    assert done.returncode == 0, done.stderr
    eventually(
        lambda: any(
            each["name"] == "orphan" and each["outcome"] == "cancelled"
            for each in troupe.state.list_launches()
        ),
        timeout=15,
        what="the cancellation",
    )


def test_a_following_launch_waits_for_resources(idle: Home) -> None:
    @distributed(processes=8, remote=True)
    def fill() -> int:
        return int(os.environ["RANK"])

    handles = [fill.submit() for _ in range(3)]
    for handle in handles:
        assert handle.result(timeout=60) == list(range(8))


def test_an_attribute_of_the_exception_survives(idle: Home) -> None:
    @distributed(processes=1, remote=True)
    def fail() -> None:
        raise CustomError(7)

    with pytest.raises(CustomError) as caught:
        fail.distributed()
    assert caught.value.code == 7
