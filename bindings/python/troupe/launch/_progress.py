"""`.distributed()`: progress lines and the ranks' output while a launch runs."""
from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

from troupe import _visible, exceptions
from troupe._cluster import live_output, status_lines
from troupe._cluster.logs import Follower
from troupe._code import sources
from troupe._identity import short
from troupe.launch import _errors, _logs

DRAIN_DEADLINE_S = 2.0
VARIABLES_NAMED_MAX = 8
_shown: set[str] = set()  # launches whose output is printed now: where there are several, each line says which
_lock = threading.Lock()


def run(handle: Any, *, quiet: bool = False) -> list[Any]:
    """Follows the launch to its marker, prints, and returns its results. See `distributed`."""
    show = Display(handle, quiet=quiet)
    try:
        show.follow()
        values = handle.result()
    except KeyboardInterrupt:
        show.stop()
        show.finish()
        raise
    except exceptions.TroupeError:
        show.finish()
        raise
    show.finish()
    return values


class Display:
    """Prints what a person wants to see of one launch; one thread per epoch prints its output.

    `label_of(rank, local_rank, is_error=)`: what stands before the lines of a stream, None: it is not shown; by default its rank.
    `drain_s`: how long the end of the output is waited for. `asked_by`, `script`: how a variable is asked for that does not travel by itself, and
    the file that may name it, where it is not this program's.
    """

    def __init__(self, handle: Any, *, quiet: bool = False, label_of: Callable[..., str | None] | None = None,
                 drain_s: float = DRAIN_DEADLINE_S, asked_by: str = "inherit_env=", script: str = "") -> None:
        self._handle = handle
        self._quiet = quiet
        self._label_of = label_of or self._rank_label
        self._drain_s = drain_s
        self._asked_by, self._script = asked_by, script
        self._label = f"launch {short(handle.id)}"
        self._printers: list[threading.Thread] = []
        self._waiting = ""
        self._variables_told = False
        self._shown_epoch = 0

    def follow(self) -> None:
        """Returns when the launch is terminal."""
        with _lock:
            _shown.add(self._handle.id)
        seen: dict = {}

        def news(info: dict) -> bool:
            key = (info["state"], info["epoch"], info["waiting_for"], bool(info["rank_infos"]))
            changed = seen.get("key") != key
            seen["key"] = key
            return changed

        while True:
            info = self._handle.wait_state(news)
            self._show(info)
            if info["state"] == "terminal":
                return

    def stop(self, reason: str = "Ctrl-C in the caller", *, by: int = signal.SIGINT) -> None:
        """Ctrl-C: the ranks' code may say its last word; Ctrl-C again ends it at once. Returns when the launch has ended."""
        handle = self._handle
        handle.stop(reason, by=by)
        if not handle.done():
            self._say(f"stopping, {handle.stop_grace:g} s; Ctrl-C again ends it now")
        try:
            handle.wait_state(lambda state: state["state"] == "terminal")
        except KeyboardInterrupt:
            handle.cancel("Ctrl-C in the caller, twice", grace=0)

    def _show(self, info: dict) -> None:
        if not self._variables_told:
            self._variables_told = True
            variables = variables_text(info, self._asked_by, self._script)
            if variables:
                self._say(variables)
        if info["state"] in ("queued", "reserving") and info["waiting_for"] and info["waiting_for"] != self._waiting:
            self._waiting = info["waiting_for"]
            place = f" · place {info['queue_place']} in the queue" if info["queue_place"] else ""
            self._say(f"waiting{place}: {self._waiting}")
        begun = info["state"] in ("running", "stopping") or (info["state"] == "terminal" and info["ready_ms"])
        if begun and info["rank_infos"] and info["epoch"] != self._shown_epoch:
            self._shown_epoch = info["epoch"]
            nodes = len(set(each["node"] for each in info["rank_infos"]))
            again = f" · attempt {_errors.attempt(info)} of {info['attempts_max']}" if info["epoch"] > 1 else ""
            started = f" · {_visible.name(info['started_from'])}" if info["started_from"] else ""
            self._say(f"{_many(info['ranks'], 'rank')} on {_many(nodes, 'node')}{again} · "
                      f"ready in {info['ready_ms'] / 1000:.2f} s{started}")
            if self._handle.session.store.get("log_to_driver", True):
                self._print_output(info)

    def _print_output(self, info: dict) -> None:
        local = {each["rank"]: each["local_rank"] for each in info["rank_infos"]}
        shown = [each for each in _logs.sources(info, info["rank_infos"])
                 if self._label_of(each.label, local[each.label], is_error=each.target["stderr"]) is not None]
        follower = Follower(self._handle.session, shown)
        printer = threading.Thread(target=self._copy, args=(follower, local), name="troupe-print", daemon=True)
        self._printers.append(printer)
        printer.start()

    def _rank_label(self, rank: int, local_rank: int, *, is_error: bool) -> str:
        return f"[{short(self._handle.id)} {rank}]" if len(_shown) > 1 else f"[{rank}]"

    def _copy(self, follower: Follower, local: dict[int, int]) -> None:
        for rank, is_error, lines, bars in follower.news():
            label = self._label_of(rank, local[rank], is_error=is_error) or ""
            live_output.show((self._handle.id, rank, is_error), label, lines, bars, is_error=is_error)

    def finish(self) -> None:
        """Lets the last lines come out, then says how it ended."""
        for printer in self._printers:
            printer.join(self._drain_s)
        with _lock:
            _shown.discard(self._handle.id)
        entry = self._handle.session.board.get("launch", self._handle.id)
        if entry is not None and entry[0]["state"] == "terminal":
            self._say(f"{entry[0]['outcome']} · {entry[0]['duration_ms'] / 1000:.1f} s")

    def _say(self, text: str) -> None:
        status_lines.say(f"{self._label} · {text}", quiet=self._quiet)


def variables_text(info: dict, asked_by: str = "inherit_env=", script: str = "") -> str:
    """Which of the caller's variables the ranks have, and which of those that its script names they have not; empty: none."""
    parts = []
    if info["travelled"]:
        parts.append("taken along: " + _some(info["travelled"]))
    left = sources.named_in_sources(info["not_taken"], script)
    if left:
        parts.append(f"not taken along: {_some(left)} ({asked_by})")
    return "variables " + " · ".join(parts) if parts else ""


def _some(names: list[str]) -> str:
    more = len(names) - VARIABLES_NAMED_MAX
    return ", ".join(names[:VARIABLES_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
