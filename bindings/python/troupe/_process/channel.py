"""A process's control channel to its worker, and the thread that reads it.

`first()` reads what the process is to be, on the thread that asks; `read_on` starts the thread that
reads from then on. It dispatches: RankRun to `wait_run()`, pushes to the session
(`troupe._cluster.session`) once one is attached, ProcessStop to `_process.stopping`, what befalls
the ranks' group to `_process.group_epochs`, ProcessEnd to `released()` where the process may take
its own time, else to the end of the process. It answers nothing itself. When the channel ends, the
worker is gone and so is this process.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from troupe._base import callbacks as _callbacks
from troupe._base.bridge import native
from troupe._code import failures
from troupe._process import exit as _leave, group_epochs, stopping

Message = tuple[str, dict[str, Any], bytes]
EXIT_WORKER_LOST = 75
EXIT_DEAF = 70  # the thread that reads the channel has died
_FIRST_KINDS = ("ForkRequest", "RankBegin", "ActorBegin")


class ProcessChannel:
    """The channel of a process to its worker, made once, after fork. Methods may be called from any
    thread."""

    def __init__(self, descriptor: int) -> None:
        self.control = native.ControlClient.adopt(descriptor, peer="the worker")
        self._run: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._on_push: Callable[[str, dict[str, Any], bytes], None] | None = None
        self._before_end: list[Callable[[dict[str, Any]], None]] = []
        self._when_started: Callable[[], None] | None = None
        self._released = threading.Event()
        self._when_released: Callable[[], None] | None = None
        self._reader = threading.Thread(target=self._read, name="troupe-control", daemon=True)

    def first(self) -> Message:
        """The next message of those that say what the process is to be; before `read_on`."""
        while True:
            message = self._next()
            if message is None:
                _leave.leave_now(EXIT_WORKER_LOST)
            if message[0] in _FIRST_KINDS:
                return message
            self._take(*message)

    def read_on(self) -> None:
        """Starts the thread that reads all that is still to come."""
        self._reader.start()

    def wait_run(self) -> dict[str, Any]:
        """Waits for RankRun: all ranks are there."""
        return self._run.get()

    def released(self) -> None:
        """Returns when this process is not needed any more: until then its connections to its peers
        stay."""
        self._released.wait()

    def when_released(self, action: Callable[[], None]) -> None:
        """Runs `action()` on the control thread when this process is not needed any more."""
        self._when_released = action

    def send(self, kind: str, fields: dict[str, Any], attachment: bytes = b"") -> None:
        """Queues a one-way message; written in order by the native control thread."""
        self.control.send(kind, fields, attachment)

    def finish(self) -> None:
        """Returns when what was sent has been handed to the kernel; the channel is then closed."""
        self._before_end.clear()
        self._on_push = None
        self._closing = True
        self.control.close()

    def join(self) -> None:
        """After `finish`: returns when the thread that reads has ended."""
        self._reader.join()

    def when_started(self, action: Callable[[], None]) -> None:
        """Set the action that `started` runs, once."""
        self._when_started = action

    def started(self) -> None:
        """The process is ready for what it is for."""
        action, self._when_started = self._when_started, None
        if action is not None:
            action()

    def on_push(self, handler: Callable[[str, dict[str, Any], bytes], None]) -> None:
        """Set the handler of the head's pushes."""
        self._on_push = handler

    def before_end(self, action: Callable[[dict[str, Any]], None]) -> None:
        """Runs `action(ProcessEnd's fields)` on the control thread before the process ends."""
        self._before_end.append(action)

    _closing = False

    def _read(self) -> None:
        try:
            while True:
                message = self._next()
                if message is None:
                    if self._closing:
                        return
                    _leave.leave_now(EXIT_WORKER_LOST)
                self._take(*message)
        except BaseException as died:  # nobody could tell this process anything any more
            _callbacks.report("the thread that reads the channel to the worker", died)
            _leave.leave_now(EXIT_DEAF)

    def _take(self, kind: str, fields: dict[str, Any], attachment: bytes) -> None:
        if kind == "RankRun":
            self._run.put(fields)
        elif kind == "ProcessStop":
            if fields["where"]:
                _callbacks.run("what says where the program is", self._say_where)
            if fields["signal"]:
                _callbacks.run("what tells the program to stop", stopping.tell, fields)
                self._release()
            elif fields[
                "peer_lost"
            ]:  # the call serves the driver, whose calls end when their collectives do
                _callbacks.run(
                    "what ends the connections of its groups", stopping.end_collectives, fields
                )
        elif kind == "PeersLost":
            _callbacks.run("what ends the groups of ranks that died", group_epochs.on_lost, fields)
        elif kind == "PeersReturned":
            group_epochs.on_returned(fields)
        elif kind == "ProcessAskBegun":
            _callbacks.run("what says how far the program is", self._say_how_far, fields)
        elif kind == "GroupFormed":
            group_epochs.on_formed(fields)
        elif kind == "ProcessEnd":
            if fields["own_time"]:
                self._release()
            else:
                self._end(fields)
        elif self._on_push is not None:
            _callbacks.run(
                f"what hears of a {kind} from the head", self._on_push, kind, fields, attachment
            )

    def _next(self) -> Message | None:
        try:
            message = self.control.next_push()
        except Exception:  # the channel ended: whatever its words, the meaning is the same
            return None
        return None if message is None else tuple(message[:3])

    def _say_where(self) -> None:
        self.send("ProcessWhere", {"text": failures.where()})

    def _say_how_far(self, asked: dict[str, Any]) -> None:
        from troupe._process import group_watch  # every rank has it, and no other process
        from troupe._process.returned import group_counts

        begun, waits = (
            group_counts.begun(asked["key"])
            if asked["key"]
            else group_watch.how_far(asked["torch_group"])
        )
        self.send(
            "ProcessBegun",
            {
                "question": asked["question"],
                "begun": begun,
                "waits": waits,
                "where": failures.where(),
            },
        )

    def _release(self) -> None:
        self._released.set()
        if self._when_released is not None:
            _callbacks.run("what was to run once the process is not needed", self._when_released)

    def _end(self, fields: dict[str, Any]) -> None:
        for action in self._before_end:
            _callbacks.run("what was to run before the end of the process", action, fields)
        _leave.leave_now(fields["exit_code"])
