"""E3: a rank that is told to stop may say its last word: KeyboardInterrupt after Ctrl-C, SystemExit
after a SIGTERM, the program's own handler where it has one; and the launch is over when it has,
or when its time is over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Home, eventually, running
from gangs import Gang

from troupe import exceptions
from troupe._cluster import status_lines
from troupe.launch import distributed, ray_launch


def wait(folder: str) -> None:
    """Waits to be stopped, and writes down what that was."""
    import os
    import threading
    from pathlib import Path

    me = Path(folder, os.environ["RANK"])
    try:
        me.with_suffix(".runs").touch()
        threading.Event().wait()
    except BaseException as error:
        me.with_suffix(".caught").write_text(repr(error))
        raise
    finally:
        me.with_suffix(".checkpoint").write_text("x" * 1000)


def runs(folder: Path, ranks: int) -> None:
    eventually(lambda: len(list(folder.glob("*.runs"))) == ranks, what="the ranks' code")


def caught(folder: Path) -> list[str]:
    return sorted(file.read_text() for file in folder.glob("*.caught"))


def test_cancel_is_a_sigterm_that_code_may_handle(idle: Home, tmp_path: Path) -> None:
    handle = distributed(processes=2, remote=True)(wait).submit(str(tmp_path))
    runs(tmp_path, 2)
    handle.cancel("enough")
    assert handle.done(), "cancel() returns when the launch has ended"
    assert caught(tmp_path) == ["SystemExit(143)"] * 2
    assert len(list(tmp_path.glob("*.checkpoint"))) == 2
    with pytest.raises(exceptions.LaunchCancelledError, match="enough"):
        handle.result(0)
    assert [each["outcome"] for each in handle.status()["rank_infos"]] == ["cancelled"] * 2


def test_a_program_s_own_handler_is_the_one_that_runs(idle: Home, tmp_path: Path) -> None:
    @distributed(processes=1, remote=True)
    def train(folder: str) -> str:
        import threading

        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        Path(folder, "0.runs").touch()
        stop.wait()
        Path(folder, "saved").touch()
        return "saved"

    handle = train.submit(str(tmp_path))
    runs(tmp_path, 1)
    handle.cancel()
    assert (tmp_path / "saved").exists()
    with pytest.raises(exceptions.LaunchCancelledError):  # any outcome is fine
        handle.result(0)


def test_the_last_words_are_shown_however_early_the_interrupt_came(
    idle: Home, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    """Ctrl-C at the moment at which the launch is said to be ready, before its output is
    followed."""

    @distributed(processes=2, remote=True)
    def train() -> None:
        import threading

        try:
            threading.Event().wait()
        finally:
            print("last word", flush=True)

    def interrupt(text: str, *, quiet: bool = False) -> None:
        if "ready in" in text:
            raise KeyboardInterrupt

    monkeypatch.setattr(status_lines, "say", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train.distributed()
    assert sorted(line for line in capfd.readouterr().out.splitlines() if "last" in line) == [
        "[0] last word",
        "[1] last word",
    ]


def test_a_launch_that_was_never_ready_is_not_said_to_be(
    idle: Home, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    """The rank reads its arguments before it is ready; the argument is a FIFO that nobody opens."""
    os.mkfifo(tmp_path / "gate")
    gate = tmp_path / "gate"

    class Argument:
        def __reduce__(self) -> tuple:
            return open, (str(gate),)

    launch = distributed(processes=1, remote=True, timeout=3, stop_grace=2)(print)
    with pytest.raises(exceptions.GetTimeoutError):
        launch.distributed(Argument())
    said = capfd.readouterr().err
    assert "1 rank on 1 node · stopped before all were ready" in said and "ready in" not in said


def test_the_timeout_of_a_launch_gives_its_ranks_the_same_chance(
    idle: Home, tmp_path: Path
) -> None:
    launch = distributed(processes=1, remote=True, timeout=3, stop_grace=20)(wait)
    with pytest.raises(
        exceptions.GetTimeoutError, match=r"timed out after 3.0 s.* had 20.0 s more to stop"
    ):
        launch.submit(str(tmp_path)).result(60)
    assert caught(tmp_path) == ["SystemExit(143)"]


def test_a_launch_that_timed_out_says_where_its_ranks_were(idle: Home) -> None:
    @distributed(processes=3, remote=True, timeout=8, stop_grace=2)
    def train() -> None:
        import ctypes
        import threading

        if os.environ["RANK"] == "1":
            ctypes.PyDLL(None).pause()  # native code that keeps the interpreter's lock
        threading.Event().wait()

    with pytest.raises(exceptions.GetTimeoutError) as caught:
        train.submit().result(60)
    said = str(caught.value)
    others, one = said.partition("where its ranks were:\n")[2].split("rank 1:\n")
    assert others.startswith("ranks 0, 2:\n")
    assert (
        "threading.Event().wait()" in others and "in train" in others and "troupe/" not in others
    ), said
    assert one.startswith("  it did not say: native code holds Python's lock"), said


def test_a_driver_that_timed_out_says_where_the_ranks_were_that_it_waited_for(idle: Home) -> None:
    @ray_launch(processes=2, remote=True, timeout=3)
    def drive() -> None:
        from troupe.launch import current

        def stuck() -> None:
            import threading

            threading.Event().wait()

        current().ranks[1].run(stuck)

    with pytest.raises(exceptions.GetTimeoutError) as caught:
        drive.submit().result(60)
    said = str(caught.value)
    driver, served = said.partition("rank 0:\n")[2].split("rank 1:\n")
    assert "current().ranks[1].run(stuck)" in driver, said
    assert "in stuck" in served, said


def test_another_rank_s_failure_gives_the_rest_a_chance(idle: Home, tmp_path: Path) -> None:
    @distributed(processes=2, remote=True)
    def train(folder: str) -> None:
        if os.environ["RANK"] == "0":
            while not Path(folder, "1.runs").exists():
                os.sched_yield()
            raise KeyError("lr")
        wait(folder)

    with pytest.raises(KeyError):
        train.submit(str(tmp_path)).result(60)
    assert caught(tmp_path) == ["SystemExit(143)"]


def test_after_another_rank_s_failure_a_handler_has_the_whole_stop_grace(
    idle: Home, tmp_path: Path
) -> None:
    """Longer than the two seconds after which a rank is ended that sits in a call and has no
    handler."""

    @distributed(processes=3, remote=True, stop_grace=90)
    def train(folder: str) -> None:
        import ctypes
        import threading
        from pathlib import Path

        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set()) if os.environ["RANK"] == "1" else None
        Path(folder, f"{os.environ['RANK']}.runs").touch()
        if os.environ["RANK"] == "0":
            while len(list(Path(folder).glob("*.runs"))) < 3:
                os.sched_yield()
            raise KeyError("lr")
        if os.environ["RANK"] == "2":
            ctypes.CDLL(None).system(b"exec sleep 1000")  # without Python's lock
        stop.wait()
        threading.Event().wait(4.0)  # writes a checkpoint
        Path(folder, "saved").touch()

    handle = train.submit(str(tmp_path))
    with pytest.raises(KeyError):
        handle.result(60)  # far less than the 90 s that the rank in the call would have
    assert (tmp_path / "saved").exists()
    assert [(each["outcome"], each["exit_code"]) for each in handle.status()["rank_infos"]] == [
        ("failed", 1),
        ("cancelled", 1),
        ("cancelled", 137),
    ]


POLLS = """
def polls(folder, word):
    import os, threading
    from pathlib import Path
    me = Path(folder, os.environ["RANK"])
    me.with_suffix(".runs").touch()
    if word and os.environ["RANK"] == "1":
        while not Path(folder, "0.runs").exists():
            os.sched_yield()
        threading.Event().wait(0.5)
        exec(word)
    while True:
        try:
            open(Path(folder, "never"))
        except FileNotFoundError:
            threading.Event().wait(0.1)
"""
SYMPTOM = (
    "raise RuntimeError('[gloo/transport/tcp/pair.cc:534] Connection closed by peer "
    "[127.0.0.1]:1234')"
)


@pytest.mark.parametrize(
    "word",
    ["", "raise KeyError('lr')", SYMPTOM],
    ids=["cancelled", "another failed", "a symptom of another"],
)
def test_an_exception_that_the_program_had_caught_is_never_blamed(
    idle: Home, tmp_path: Path, word: str
) -> None:
    names: dict = {}
    exec(POLLS, names)
    handle = distributed(processes=2, remote=True)(names["polls"]).submit(str(tmp_path), word)
    runs(tmp_path, 2)
    if not word:
        handle.cancel("enough")
    with pytest.raises(exceptions.TroupeError) as caught:
        handle.result(60)
    assert not isinstance(caught.value, FileNotFoundError) and "FileNotFoundError" not in str(
        caught.value
    )
    assert [each["outcome"] for each in handle.status()["rank_infos"]] == [
        "cancelled",
        "failed" if word else "cancelled",
    ]


def test_the_driver_of_a_ray_launch_has_it_too_and_its_ranks_live_meanwhile(
    idle: Home, tmp_path: Path
) -> None:
    @ray_launch(processes=2, remote=True)
    def drive(folder: str) -> None:
        from troupe.launch import current

        try:
            wait(folder)
        finally:
            Path(folder, "served").write_text(str(current().ranks[1].run(lambda: 7)))

    handle = drive.submit(str(tmp_path))
    runs(tmp_path, 1)
    handle.cancel()
    assert caught(tmp_path) == ["SystemExit(143)"]
    assert (tmp_path / "served").exists()
    with pytest.raises(exceptions.LaunchCancelledError):
        handle.result(0)


def test_one_that_is_stuck_is_killed_when_its_time_is_over(idle: Home, tmp_path: Path) -> None:
    gang = Gang(tmp_path / "gang", 1)
    inside = tmp_path / "in"
    gang.tell(
        0,
        f"__import__('ctypes').PyDLL(None).system({f'echo > {inside}; exec sleep 1000'.encode()!r})",
    )
    eventually(inside.exists, what="the call")
    gang.handle.cancel(grace=0.5)
    gang.failure(exceptions.LaunchCancelledError)
    assert gang.exit_codes() == [137]


def test_another_attempt_begins_when_the_last_rank_of_the_former_has_ended(
    idle: Home, tmp_path: Path
) -> None:
    @distributed(processes=2, remote=True, max_attempts=2)
    def train(folder: str) -> str:
        saved = Path(folder, "saved")
        if os.environ["TROUPE_EPOCH"] == "2":
            return saved.read_text()
        if os.environ["RANK"] == "1":
            while not Path(folder, "0.runs").exists():
                os.sched_yield()
            os._exit(3)
        try:
            wait(folder)
        finally:
            saved.write_text("by epoch 1")

    assert train.submit(str(tmp_path)).result(60) == ["by epoch 1"] * 2


PROGRAM = """
import sys
from troupe.launch import distributed

@distributed(processes=2, stop_grace=120)
def train(folder, stubborn):
    import os, threading
    from pathlib import Path
    me = Path(folder, os.environ["RANK"])
    try:
        me.with_suffix(".runs").touch()
        threading.Event().wait()
    except BaseException as error:
        me.with_suffix(".caught").write_text(repr(error))
        if stubborn:
            threading.Event().wait()
        raise

train.distributed(sys.argv[1], sys.argv[2] == "stubborn")
"""


def start(home: Home, folder: Path, how: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), how],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=dict(os.environ, TROUPE_HOME=str(home.path)),
    )


def test_ctrl_c_is_a_keyboard_interrupt_in_every_rank(home: Home, tmp_path: Path) -> None:
    program = start(home, tmp_path, "willing")
    runs(tmp_path, 2)
    program.send_signal(signal.SIGINT)
    out, _ = program.communicate(timeout=120)
    assert caught(tmp_path) == ["KeyboardInterrupt()"] * 2
    assert "stopping, 120 s; Ctrl-C again ends it now" in out and "KeyboardInterrupt" in out
    assert program.returncode == -signal.SIGINT or program.returncode == 130


def test_a_second_ctrl_c_ends_it_now(home: Home, tmp_path: Path) -> None:
    program = start(home, tmp_path, "stubborn")
    runs(tmp_path, 2)
    program.send_signal(signal.SIGINT)
    eventually(lambda: len(caught(tmp_path)) == 2, what="the first interrupt")
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=60)  # far less than the 120 s of grace
    assert not running(program.pid)
