"""Output of actors and tasks, shown by the program that made them (`init(log_to_driver=True)`),
each line labelled with its source.

The head tells where each of them is, those that they make included (OutputOf). The text stays with
the workers: one thread for each node that has some waits there for more of all of them at once
(ReadLogs). Nothing is left out but what a size cap dropped, which is said.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from typing import Any

from troupe import exceptions
from troupe._base import callbacks as _callbacks, job as _job, visible as _visible
from troupe._base.identity import TASKS_CLASS
from troupe._base.tracebacks import CppFrames
from troupe._cluster import live_output, output_rows, workers

CHUNK_BYTES = 256 << 10
LONG_POLL_MS = 55_000
LAST_WORDS_S = 2.0
ROUND_S, STREAM_S = (
    0.05,
    100e-6,
)  # from an answer to the next round, at least: a worker spends a tenth of its time here at most
STREAMS_MAX = 16384  # streams per request; beyond that the oldest ones
_READ_MAX = 10_000  # offsets of streams that ended, should their actor be started again


class Outputs:
    """All that a session's program shows; thread-safe."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._nodes: dict[str, _NodeOutput] = {}
        self._closes = False

    def hear(self, told: dict[str, Any]) -> None:
        """An actor is placed, or its process ends. Does not block."""
        with self._lock:
            node = self._nodes.get(told["node"])
            if node is None:
                node = self._nodes[told["node"]] = _NodeOutput(
                    self, self._session, told["node"], told["node_name"]
                )
        node.hear(told["actor"], _label_of(told), told["pid"], told["ended"])

    def connected(self) -> None:
        """There is a link to a worker: what was said last is to be shown before it is closed."""
        with self._lock:
            first, self._closes = not self._closes, True
        if first:
            self._session.on_close(self.close)

    def close(self) -> None:
        """Shows what is there, and no more. Blocks, for LAST_WORDS_S at most."""
        with self._lock:
            nodes = list(self._nodes.values())
        deadline = time.monotonic() + LAST_WORDS_S
        for thread in [node.close() for node in nodes]:
            if thread is not None and thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))


def of(session: Any) -> Outputs:
    """The session's, made at first use, by the thread that reads its pushes."""
    if session.outputs is None:
        session.outputs = Outputs(session)
    found: Outputs = session.outputs
    return found


def _label_of(told: dict[str, Any]) -> str:
    who = "task" if told["class_name"] == TASKS_CLASS else told["class_name"]
    if _job.follows_ray():
        return told["repr_name"] or who
    return f'{who} "{told["name"]}"' if told["name"] else f"{who} {told['actor'][:8]}"


class _Stream:
    """Stdout or stderr of an actor. `pid`: the writing process, where that is known."""

    def __init__(self, actor: str, label: str, offset: int) -> None:
        self.label, self.offset, self.pid = label, offset, 0
        self.rows = output_rows.Rows()
        self.cpp_frames = CppFrames(
            f"... C++ frames left out here; all of it: troupe logs {actor[:8]} ..."
        )
        self.over = False


class _NodeOutput:
    """Follows the streams of the actors of one node.

    Of several threads one reads, at most one has it look again.
    """

    def __init__(self, outputs: Outputs, session: Any, node: str, name: str) -> None:
        self._outputs, self._session, self._node, self._name = outputs, session, node, name
        self._where = self._address = ""  # set for another host
        self._lock = threading.Lock()
        self._streams: dict[tuple[str, bool], _Stream] = {}
        self._read: OrderedDict[tuple[str, bool], int] = OrderedDict()
        self._round = 0
        self._waits = False  # true while a request to the worker is open
        self._stale = False  # something is new since that round began
        self._reader: threading.Thread | None = None
        self._asker: threading.Thread | None = None
        self._closing = False
        self._hurry = threading.Event()

    def hear(self, actor: str, label: str, pid: int, over: bool) -> None:
        """An actor is here now, is alive, or its process ends."""
        with self._lock:
            for key in ((actor, False), (actor, True)):
                if not over and not self._closing:
                    self._streams.setdefault(
                        key, _Stream(actor, label, self._read.pop(key, 0))
                    ).over = False
                if (stream := self._streams.get(key)) is not None:
                    stream.label, stream.pid, stream.over = (
                        label,
                        pid or stream.pid,
                        over or stream.over,
                    )
            self._look_again()

    def close(self) -> threading.Thread | None:
        """Stop after showing the output that is there; return the thread that does so, if any."""
        with self._lock:
            self._closing = True
            self._hurry.set()
            self._look_again()
            return self._reader

    def _look_again(self) -> None:
        if not self._streams:
            return
        self._stale = True
        if self._reader is None:
            self._reader = threading.Thread(target=self._follow, name="troupe-output", daemon=True)
            self._reader.start()
        elif self._asker is None and self._waits:
            self._asker = threading.Thread(target=self._ask, name="troupe-output-ask", daemon=True)
            self._asker.start()

    def _ask(self) -> None:
        """Ends the round that waits, so that the next one has what is new."""
        while True:
            with self._lock:
                number = self._round
            try:
                self._request({"enough": number})
            except Exception:
                pass  # the reader meets it as well
            with self._lock:
                # A round that has begun since has what was new by then, that one ends now: else
                # there is more to ask.
                if not self._stale or self._round == number or self._reader is None:
                    self._asker = None
                    return

    def _follow(self) -> None:
        try:
            while self._one_round():
                self._hurry.wait(max(ROUND_S, STREAM_S * len(self._streams)))
        except Exception as error:  # or of our own stdout, which is gone or is the user's
            with self._lock:
                self._streams.clear()
                self._reader = None
                closing = self._closing or not isinstance(error, exceptions.TroupeError)
            workers.forget(self._session, self._node)
            if not closing and not self._session.closed:
                _callbacks.say(f"troupe: no more output of actors on node {self._name}: {error}")

    def _one_round(self) -> bool:
        with self._lock:
            asked = list(itertools.islice(self._streams.items(), STREAMS_MAX))
            if not asked:
                self._reader = None
                return False
            self._round += 1
            self._stale = False
            closing = self._closing
            self._waits = not closing
            streams = [
                {"actor": actor, "stderr": is_error, "offset": stream.offset, "over": stream.over}
                for (actor, is_error), stream in asked
            ]
            fields = {
                "streams": streams,
                "bytes_max": CHUNK_BYTES,
                "wait_ms": 0 if closing else LONG_POLL_MS,
                "round": self._round,
            }
        parts, text = self._request(fields)
        with self._lock:
            self._waits = False
        at = 0
        for part in parts:
            key, stream = asked[part["stream"]]
            self._show(stream, text[at : at + part["bytes"]], part, key[1])
            at += part["bytes"]
        with self._lock:
            for part in parts:
                if part["ended"]:
                    key, stream = asked[part["stream"]]
                    self._end(key, stream)
            if not closing or parts:
                return True
            self._streams.clear()
            self._reader = None
        for (_, is_error), stream in asked:
            self._say(stream, stream.rows.feed(b"", ended=True), is_error)
        return False

    def _show(self, stream: _Stream, text: bytes, part: dict[str, Any], is_error: bool) -> None:
        before: list[str] = []
        if part["dropped_bytes"]:
            before, text = stream.rows.after_gap(part["dropped_bytes"], text)
        whole = before + stream.rows.feed(text, ended=part["ended"])
        stream.offset, stream.pid = part["next"], part["pid"] or stream.pid
        self._say(stream, whole, is_error)

    def _end(self, key: tuple[str, bool], stream: _Stream) -> None:
        if self._streams.get(key) is not stream or not stream.over:
            return  # the actor is registered again
        del self._streams[key]
        self._read[key] = stream.offset
        if len(self._read) > _READ_MAX:
            self._read.popitem(last=False)

    def _request(self, fields: dict[str, Any]) -> tuple[list[dict[str, Any]], bytes]:
        link = workers.link(self._session, self._node)
        self._where, self._address = (
            ("", "") if link.here else (f", {self._name}", f", ip={link.host}")
        )
        self._outputs.connected()
        _, answer, text = link.request("ReadLogs", fields, timeout=LONG_POLL_MS / 1000 + 30)
        return answer["parts"], text

    def _say(self, stream: _Stream, lines: list[str], is_error: bool) -> None:
        where = self._where
        if _job.follows_ray():
            where = f" pid={stream.pid}{self._address}" if stream.pid else ""
        label = _visible.name(stream.label + where)
        live_output.show(
            stream,
            f"({label}) ",
            stream.cpp_frames.filter(lines),
            stream.rows.live(),
            is_error=is_error,
        )
