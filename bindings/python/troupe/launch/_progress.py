"""`.distributed()` and `watch()`: where a launch is, and its ranks' output, while it runs.

In a terminal and a notebook a row says what the launch waits for or does, until its ranks print;
elsewhere what changes is a line.
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable
from typing import Any

from troupe._base import visible as _visible
from troupe._base.identity import short
from troupe._cluster import live_output, status_lines, variables
from troupe._cluster.logs import Follower
from troupe._code import environment, sources, travelled
from troupe.launch import _errors, _logs, _phase
from troupe.launch._output import Printer
from troupe.launch._row import Row

PATIENCE_S = (
    10.0  # after the end of a launch, for who reads its output more slowly than it was written
)
VARIABLES_NAMED_MAX = 8
_shown: set[str] = (
    set()
)  # launches whose output is printed now: where there are several, each line says which
_lock = threading.Lock()


def run(
    handle: Any,
    *,
    quiet: bool = False,
    show: Display | None = None,
    take: Callable[[Any], Any] | None = None,
) -> Any:
    """Follows the launch to its marker, prints, and returns its results, or what `take` has of its
    handle. See `distributed`."""
    show = show or Display(handle, quiet=quiet)
    try:
        show.follow()
        values = handle.result() if take is None else take(handle)
    except KeyboardInterrupt:
        show.stop()
        show.finish()
        raise
    except BaseException:
        show.finish()
        raise
    show.finish()
    return values


def watch(handle: Any, *, quiet: bool = False) -> None:
    """See LaunchHandle.watch."""
    show = Display(handle, quiet=quiet)
    try:
        show.follow()
    except KeyboardInterrupt:
        show.leave()
        return
    except BaseException:
        show.finish()
        raise
    show.finish()


def _ready(info: dict[str, Any]) -> str:
    """Return how long the ranks took to be ready, or that they never were."""
    if not info["ready_ms"]:
        return "stopped before all were ready"
    return f"ready in {info['ready_ms'] / 1000:.2f} s"


class Display:
    """Prints what a person wants to see of one launch; one thread per epoch prints its output.

    `label_of(rank, local_rank, is_error=)`: what stands before each line of a stream, as it is;
    None: it is not shown; by default its rank. `patience_s`: how long who reads the output may keep
    its end waiting. `heard(info, rank, is_error, lines)`: told of lines as they come, with the
    launch as it is in their epoch.
    `asked_by`, `script`: how a variable is asked for that does not travel by itself, and the file
    that may name it, where it is not this program's.
    """

    def __init__(
        self,
        handle: Any,
        *,
        quiet: bool = False,
        label_of: Callable[..., str | None] | None = None,
        patience_s: float = PATIENCE_S,
        heard: Callable[[dict[str, Any], int, bool, list[str]], None] | None = None,
        asked_by: str = "inherit_env=",
        script: str = "",
    ) -> None:
        self._handle = handle
        self._quiet = status_lines.is_quiet(quiet)
        self._label_of = label_of or self._rank_label
        self._patience_s, self._heard = patience_s, heard
        self._asked_by, self._script = asked_by, script
        self._label = f"launch {short(handle.id)}"
        self._printers: list[Printer] = []
        self._waiting = ""
        self._variables_told = self._differences_told = False
        self._printed_epoch = 0
        self._row = Row(handle)

    def follow(self) -> None:
        """Returns when the launch is terminal."""
        with _lock:
            _shown.add(self._handle.id)
        if not self._quiet:
            self._row.show()
        seen: dict[str, Any] = {}

        def news(info: dict[str, Any]) -> bool:
            self._row.know(info)
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
        """Ctrl-C: the ranks' code may say its last word; Ctrl-C again ends it at once.

        Returns when the launch has ended.
        """
        handle = self._handle
        handle.stop(reason, by=by)
        if not handle.done():
            again = "interrupt" if live_output.in_notebook() else "Ctrl-C"
            self._say(f"stopping, {handle.stop_grace:g} s; {again} again ends it now")
        try:
            while True:
                info = handle.wait_state(self._is_over_or_silent)
                self._print_output(info)
                if info["state"] == "terminal":
                    return
        except KeyboardInterrupt:
            handle.cancel("Ctrl-C in the caller, twice", grace=0)

    def leave(self) -> None:
        """Shows no more of it, and says how to come back; the launch goes on."""
        self._hide()
        for printer in self._printers:
            printer.leave()
        if self._handle.done():
            return
        meanwhile = " while this program does" if self._handle.ends_with_program else ""
        self._say(
            f"goes on{meanwhile} · come back: "
            f"{self._handle.found_by('watch()', 'troupe logs {} --follow')}"
        )

    def _is_over_or_silent(self, info: dict[str, Any]) -> bool:
        """Return True if the launch has ended, or has ranks whose output is not followed yet: the
        interrupt came before."""
        self._row.know(info)
        return bool(info["state"] == "terminal" or self._is_silent(info))

    def _is_silent(self, info: dict[str, Any]) -> bool:
        begun = info["state"] in ("running", "stopping") or (
            info["state"] == "terminal" and info["ready_ms"]
        )
        return bool(begun and info["rank_infos"] and info["epoch"] != self._printed_epoch)

    def _show(self, info: dict[str, Any]) -> None:
        if not self._variables_told:
            self._variables_told = True
            line = variables_text(info, self._asked_by, self._script)
            if line:
                self._say(line)
        if (
            info["state"] in ("queued", "reserving")
            and info["waiting_for"]
            and info["waiting_for"] != self._waiting
        ):
            self._waiting = info["waiting_for"]
            place = f" · place {info['queue_place']} in the queue" if info["queue_place"] else ""
            if not live_output.sees_rows():
                self._say(f"waiting{place}: {self._waiting}")
        if self._is_silent(info):
            self._row.begins()
            nodes = len(set(each["node"] for each in info["rank_infos"]))
            started = (
                f" · {_visible.name(environment.started_from(info['started_from']))}"
                if info["started_from"]
                else ""
            )
            self._say(
                f"{_phase.many(info['ranks'], 'rank')} on "
                f"{_phase.many(nodes, 'node')}{_errors.again(info)} · "
                f"{_ready(info)}{started}"
            )
            if not self._quiet and not self._differences_told:
                self._differences_told = True
                differences = self._handle.differences(info)
                if differences:
                    self._say(
                        "\n  ".join(["other versions than here:", *map(_visible.name, differences)])
                    )
                slow = self._handle.slow_paths(info)
                if slow:
                    self._say("\n  ".join(["slow network:", *map(_visible.name, slow)]))
            self._print_output(info)

    def _print_output(self, info: dict[str, Any]) -> None:
        """Follows the output of the epoch that there is now, unless that is done already."""
        if not self._is_silent(info):
            return
        if not self._handle.session.log_to_driver:
            self._printed_epoch = info["epoch"]
            return
        local = {each["rank"]: each["local_rank"] for each in info["rank_infos"]}
        shown = [
            each
            for each in _logs.sources(info, info["rank_infos"], self._handle)
            if self._label_of(each.label, local[each.label], is_error=each.target["stderr"])
            is not None
        ]
        for printer in self._printers:
            printer.end(self._patience_s)
        self._printers.append(
            Printer(
                Follower(self._handle.session, shown),
                self._handle.id,
                lambda rank, is_error: self._label_of(rank, local[rank], is_error=is_error) or "",
                self._handle.found_by("print_logs()", "troupe logs {}"),
                self._row.speaks,
                functools.partial(self._heard, info) if self._heard is not None else None,
            )
        )
        self._printed_epoch = info["epoch"]

    def _rank_label(self, rank: int, local_rank: int, *, is_error: bool) -> str:
        return f"[{short(self._handle.id)} {rank}] " if len(_shown) > 1 else f"[{rank}] "

    def finish(self) -> None:
        """Lets the last lines come out, then says how it ended."""
        try:
            for printer in self._printers:
                printer.end(self._patience_s)
            for printer in self._printers:
                printer.join()
        except KeyboardInterrupt:
            for printer in self._printers:
                printer.leave()
            raise
        finally:
            self._hide()
        unsaid = sum(printer.unsaid_lines for printer in self._printers)
        if unsaid:
            self._say(
                f"{_phase.many(unsaid, 'line')} of its output not shown: nobody read them; all of "
                f"it: {self._handle.found_by('print_logs()', 'troupe logs {}')}"
            )
        if self._handle.done():
            self._handle.settle()
        entry = self._handle.session.board.get("launch", self._handle.id)
        if entry is not None and entry[0]["state"] == "terminal":
            self._say(f"{entry[0]['outcome']} · {entry[0]['duration_ms'] / 1000:.1f} s")

    def _hide(self) -> None:
        self._row.hide()
        live_output.settle()
        with _lock:
            _shown.discard(self._handle.id)

    def _say(self, text: str) -> None:
        status_lines.say(f"{self._label} · {text}", quiet=self._quiet)


def variables_text(info: dict[str, Any], asked_by: str = "inherit_env=", script: str = "") -> str:
    """Return the line about variables that the user set and that can matter; "" without any.

    Of those that the ranks have: what the program's source names, and what was exported to
    libraries that compute otherwise by it. Of those that they have not: what the source names.
    """
    parts = []
    taken = travelled.variables(info["travelled"])
    if names := {*sources.named_in_sources(taken, script), *variables.exported_for_results(taken)}:
        parts.append("taken along: " + _some(sorted(names)))
    left = sources.named_in_sources(info["not_taken"], script)
    if left:
        parts.append(f"not taken along: {_some(left)} ({asked_by})")
    return "variables " + " · ".join(parts) if parts else ""


def _some(names: list[str]) -> str:
    more = len(names) - VARIABLES_NAMED_MAX
    return ", ".join(names[:VARIABLES_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
