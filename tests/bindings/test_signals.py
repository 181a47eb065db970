"""Signals that do not end the system call which the main thread waits in: another thread raises
them, as happens when one comes just before that call."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from troupe._cluster import signals
from troupe._cluster.watched_state import Board
from troupe._run.node import Watch

PATIENCE_S = 10


class _Session:
    """The part of a session that Watch uses."""

    def __init__(self) -> None:
        self.board = Board()
        self.on_end = lambda action: None


def _blocked(thread: int) -> bool:
    return Path(f"/proc/self/task/{thread}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@contextlib.contextmanager
def _interrupted_by_another_thread(release: Callable[[], object]) -> Iterator[None]:
    """Let another thread raise SIGINT while the block waits; `release` ends the wait if that does
    not."""
    main = threading.get_native_id()
    over, late = threading.Event(), threading.Event()

    def run() -> None:
        while not _blocked(main):
            pass
        signal.raise_signal(signal.SIGINT)
        if not over.wait(PATIENCE_S):
            late.set()
            release()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    over.set()
    thread.join()
    assert not late.is_set(), "the signal did not end the wait"


def test_a_wait_for_a_state() -> None:
    board = Board()
    with _interrupted_by_another_thread(lambda: board.post("launch", "1", {"state": "terminal"})):
        board.wait("launch", "1", lambda info: True)


def test_a_wait_for_an_event() -> None:
    event = threading.Event()
    with _interrupted_by_another_thread(event.set):
        signals.wait(event)


def test_a_wait_for_the_end_of_processes() -> None:
    read, write = os.pipe()
    child = os.posix_spawn(
        "/bin/cat",
        ["cat"],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, read, 0), (os.POSIX_SPAWN_CLOSE, write)],
    )
    os.close(read)
    watch = Watch(_Session(), "1")  # type: ignore[arg-type]
    watch.process(child, "cat")
    with _interrupted_by_another_thread(lambda: os.close(write)):
        watch.next()
    assert watch.next(0) == []
    os.close(write)
    assert watch.next() == ["cat"]
    os.waitpid(child, 0)
    watch.close()


def test_other_threads_wait_as_long_as_they_like() -> None:
    found: list[float | None] = []
    thread = threading.Thread(
        target=lambda: found.extend([signals.at_most(None), signals.at_most(7.0)])
    )
    thread.start()
    thread.join()
    assert found == [None, 7.0]
    assert signals.at_most(None) == signals.SLICE_S and signals.at_most(0.0) == 0.0
