"""Pages of all launches that the head keeps, those in its archive too, the latest first."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from troupe import exceptions
from troupe._cluster import session as _session, view

ROWS_MAX = 200
SEARCHED_PAGES_MAX = 5
"""Pages of the head that one page shows matches of, at most: a search goes on behind its link."""
KEPT_S = 1.0
_KEPT_PAGES_MAX = 32
_CURSOR = re.compile(r"(\d{1,20})-([0-9a-f]{32})")

Infos = list[dict[str, Any]]


@dataclass(frozen=True)
class LaunchPage:
    """LaunchInfos, the latest first.

    `following`: where older ones begin; "": there are none.
    """

    rows: Infos
    following: str


class LaunchPages:
    """Reads pages from the head, each kept for KEPT_S. Methods may be called from any thread."""

    def __init__(self, connect: Callable[[], _session.Session]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, tuple[Infos, bool]]] = {}

    def forget(self) -> None:
        """Ask for all pages again when they are wanted next."""
        with self._lock:
            self._known = {each: (0.0, page) for each, (_, page) in self._known.items()}

    def page(self, start: str, fits: Callable[[dict[str, Any]], bool]) -> LaunchPage:
        """Return the page that begins at the cursor `start` ("": with the latest), of the launches
        that `fits` accepts.

        A page that the head does not answer for is as it was last known, or empty.
        """
        rows: Infos = []
        for _ in range(SEARCHED_PAGES_MAX):
            infos, has_more = self._read(start)
            for info in infos:
                start = f"{info['submitted_us']}-{info['launch']}"
                if fits(info):
                    rows.append(info)
                if len(rows) == ROWS_MAX:
                    has_more = has_more or info is not infos[-1]
                    return LaunchPage(rows, start if has_more else "")
            if not has_more or not infos:
                return LaunchPage(rows, "")
        return LaunchPage(rows, start)

    def _read(self, start: str) -> tuple[Infos, bool]:
        now = time.monotonic()
        with self._lock:
            read_s, page = self._known.get(start, (0.0, ([], False)))
        if now < read_s + KEPT_S:
            return page
        found = _CURSOR.fullmatch(start)
        before = (int(found[1]) % 2**64, found[2]) if found else (0, "")
        try:
            page = view.list_page(self._connect(), limit=ROWS_MAX, before=before)
        except (exceptions.TroupeError, OSError):
            return page
        with self._lock:
            self._known[start] = (now, page)
            while len(self._known) > _KEPT_PAGES_MAX:
                del self._known[min(self._known, key=lambda each: self._known[each][0])]
        return page
