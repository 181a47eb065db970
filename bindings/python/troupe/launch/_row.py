"""The row that says where a launch is, in a terminal or a notebook, while it waits, starts, and its
ranks have printed nothing yet."""

from __future__ import annotations

import threading
import time
from typing import Any

from troupe import exceptions
from troupe._base.identity import short
from troupe._cluster import live_output
from troupe.launch import _errors, _phase

AFTER_S = 0.25  # a launch that is quicker shows none
ASK_S = 2.0
_BEFORE_RANKS = ("queued", "reserving", "starting")


class Row:
    """The status line of one display; thread-safe. Does nothing where no row is seen."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._lock = threading.Lock()
        self._info: dict[str, Any] | None = None
        self._info_at = self._began = time.monotonic()
        self._hidden = threading.Event()
        self._speaks = False

    def show(self) -> None:
        """From now on, until `hide`."""
        if live_output.sees_rows():
            live_output.row(self, self._text)
            threading.Thread(target=self._ask, name="troupe-where", daemon=True).start()

    def hide(self) -> None:
        """Remove the line for good. Idempotent."""
        self._hidden.set()
        live_output.row(self, None)

    def know(self, info: dict[str, Any], *instead_of: dict[str, Any] | None) -> None:
        """The latest that is known; of an answer, instead of what was known when it was asked
        for."""
        with self._lock:
            if info is not self._info and (not instead_of or self._info is instead_of[0]):
                self._info, self._info_at = info, time.monotonic()

    def begins(self) -> None:
        """The ranks of another attempt are there."""
        self._speaks = False

    def speaks(self) -> None:
        """Note that ranks have printed something: their running needs no line any more."""
        self._speaks = True

    def _text(self) -> str:
        with self._lock:
            info, known_at = self._info, self._info_at
        now = time.monotonic()
        if (
            info is None
            or now - self._began < AFTER_S
            or self._speaks
            and info["state"] == "running"
        ):
            return ""
        line = _phase.text(
            info, info["duration_ms"] / 1000 + now - known_at, again=_errors.again(info)
        )
        return f"launch {short(self._handle.id)} · {line}" if line else ""

    def _ask(self) -> None:
        """Asks where the launch is while somebody sees it: of one that waits or starts nobody is
        told until its ranks are there."""
        wait_s = AFTER_S
        while not self._hidden.wait(wait_s):
            known, wait_s = self._info, ASK_S
            if known is not None and known["state"] not in _BEFORE_RANKS:
                continue
            try:
                info = self._handle.session.request("GetLaunch", {"launch": self._handle.id})[1][
                    "info"
                ]
            except exceptions.TroupeError:
                continue  # the head is away; who follows the launch hears of it
            self.know(info, known)
