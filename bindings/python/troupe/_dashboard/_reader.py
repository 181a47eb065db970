"""Reads from the head what the pages show: lists, each kept for a moment, and the session that they
come by."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from troupe import exceptions, state
from troupe._cluster import resources, session as _session, view
from troupe._dashboard._launches import LaunchPages
from troupe.job_submission import _jobs
from troupe.launch._handle import handle_of_known

KEPT_S = 1.0
"""How old a list may be that a page shows, unless the head has told of a change since."""
REQUEST_S = 5.0
RECONNECT_S = 1.0
LATEST = 1000
"""Launches that are over, on pages that are about something else: the latest so many."""
LISTS = ("status", "actors", "launches", "groups", "events", "owners", "deleted_jobs")


@dataclass(frozen=True)
class Reading:
    """A list as the head told it.

    `failed`: why it could not be read again since; "": it is current.
    """

    value: Any
    read_s: float
    failed: str = ""


class ClusterReader:
    """Reads lists of one cluster, over a session that is opened again when its head comes back.

    Methods may be called from any thread. Each list is asked for once, however many want it.
    """

    def __init__(
        self, connect: Callable[[], _session.Session], clock: Callable[[], float] = time.time
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._connecting = threading.Lock()
        self._opened: _session.Session | None = None
        self._failed: tuple[float, exceptions.TroupeError | OSError] | None = None
        self._locks = {name: threading.Lock() for name in LISTS}
        self._known: dict[str, Reading] = {}
        self._tried_s: dict[str, float] = {}
        self.launch_pages = LaunchPages(self.session)
        """All launches that the head keeps, in pages."""

    def close(self) -> None:
        """End the session."""
        with self._connecting:
            if self._opened is not None:
                self._opened.close()

    def session(self) -> _session.Session:
        """Return the session with the head.

        Raises:
            TroupeError, OSError: the head cannot be reached, or lets nobody in.
        """
        with self._connecting:
            if self._opened is not None and not self._opened.closed:
                return self._opened
            now = time.monotonic()
            if self._failed is not None and now < self._failed[0] + RECONNECT_S:
                raise self._failed[1]
            try:
                self._opened = self._connect()
            except (exceptions.TroupeError, OSError) as error:
                self._failed = (time.monotonic(), error)
                raise
            self._failed = None
            return self._opened

    def forget(self, names: Iterable[str] = LISTS) -> None:
        """Ask for these lists again when they are wanted next."""
        for name in names:
            self._tried_s.pop(name, None)
            if name == "launches":
                self.launch_pages.forget()

    def read(self, name: str) -> Reading:
        """Return a list, as it is now or was when the head was last heard.

        A list that never could be read is empty.
        """
        lock = self._locks[name]
        if not lock.acquire(timeout=REQUEST_S):
            return self._known.get(name, _nothing(name, "the head does not answer"))
        try:
            tried = self._tried_s.get(name)
            if tried is None or time.monotonic() >= tried + KEPT_S:
                self._known[name] = self._read_now(name)
                self._tried_s[name] = time.monotonic()
            return self._known[name]
        finally:
            lock.release()

    def _read_now(self, name: str) -> Reading:
        try:
            return Reading(_QUESTIONS[name](self.session()), self._clock())
        except (exceptions.TroupeError, OSError) as error:
            known = self._known.get(name) or _nothing(name, "")
            return Reading(known.value, known.read_s, str(error).partition("\n")[0] or "no answer")

    # ---- the lists, as the pages have them ----

    def status(self) -> dict[str, Any]:
        """Return the ClusterStatus: the head itself and the nodes."""
        found: dict[str, Any] = self.read("status").value
        return found

    def nodes(self) -> list[dict[str, Any]]:
        """Return the nodes by name, each with what it `held` of each resource."""
        found = [
            _with_held(state.node_dict(each), each["devices"]) for each in self.status()["nodes"]
        ]
        return sorted(found, key=lambda each: (each["state"] == "dead", each["name"]))

    def launches(self) -> list[dict[str, Any]]:
        """Return the LaunchInfos of those that are not over, and of the latest ones, the latest
        first."""
        found: list[dict[str, Any]] = self.read("launches").value
        return found

    def jobs(self) -> list[dict[str, Any]]:
        """Return the jobs among those as `troupe job list --json` has them, the latest first."""
        return [_jobs.describe(each) for each in self.launches() if self.is_job(each)]

    def is_job(self, info: dict[str, Any]) -> bool:
        """Return True if the launch of this LaunchInfo is a job that was not deleted."""
        return _jobs.is_job(info) and info["launch"] not in self.read("deleted_jobs").value

    def find_launches(self, prefix: str) -> list[dict[str, Any]]:
        """Return the LaunchInfos of all launches whose id, or whose job's id, begins so; none while
        the head does not answer."""
        try:
            return view.find_launches(self.session(), prefix)
        except (exceptions.TroupeError, OSError):
            return []

    def actors(self) -> list[dict[str, Any]]:
        """Return the actors, dead ones included."""
        found: list[dict[str, Any]] = self.read("actors").value
        return found

    def groups(self) -> list[dict[str, Any]]:
        """Return the GroupInfos: what is reserved, and what waits for a place."""
        found: list[dict[str, Any]] = self.read("groups").value
        return found

    def events(self) -> list[dict[str, Any]]:
        """Return the events, the latest first."""
        found: list[dict[str, Any]] = self.read("events").value
        return found

    def owners(self) -> list[dict[str, Any]]:
        """Return the owners as `troupe usage --json` shows them, the largest share first."""
        found: list[dict[str, Any]] = self.read("owners").value
        return found

    def explain(self, group: str) -> str:
        """Return why a group waits, node by node; "" where it does not any more."""
        try:
            answer = self.session().request(
                "GetGroup", {"group": group, "explain": True}, timeout=REQUEST_S
            )
            return str(answer[1]["info"]["reason"])
        except (exceptions.TroupeError, OSError) as error:
            return str(error)

    def stop_launch(self, launch: str) -> None:
        """Tell a launch to stop, and do not wait for its end.

        Raises:
            TroupeError: the head does not know it, or refuses.
        """
        handle_of_known(self.session(), launch).stop("stopped on the dashboard")
        self.forget()

    def outage(self) -> tuple[float, str] | None:
        """Return since when the lists that were asked for last are not current (0: they never
        were), and why; None: they are."""
        recent = time.monotonic() - 2 * KEPT_S
        failed = [
            each
            for name, each in self._known.copy().items()
            if each.failed and self._tried_s.get(name, 0.0) >= recent
        ]
        if not failed:
            return None
        oldest = min(failed, key=lambda each: each.read_s)
        return oldest.read_s, oldest.failed


def _ask(kind: str, key: str) -> Callable[[_session.Session], Any]:
    def ask(session: _session.Session) -> Any:
        return session.request(kind, {}, timeout=REQUEST_S)[1][key]

    return ask


def _status(session: _session.Session) -> dict[str, Any]:
    found = dict(session.request("GetStatus", {}, timeout=REQUEST_S)[1])
    del found["launches"]
    return found


def _launches(session: _session.Session) -> list[dict[str, Any]]:
    asked = {"limit": LATEST, "in_memory": True}
    latest = session.request("ListLaunches", asked, timeout=REQUEST_S)[1]["launches"]
    known = {each["launch"]: each for each in [*view.open_launches(session), *latest]}
    return sorted(known.values(), key=lambda each: -each["submitted_us"])


def _events(session: _session.Session) -> list[dict[str, Any]]:
    return state.list_events(session)[::-1]


def _owners(session: _session.Session) -> list[dict[str, Any]]:
    return view.owners_by_share(session.request("GetUsage", {}, timeout=REQUEST_S)[1]["users"])


def _deleted_jobs(session: _session.Session) -> frozenset[str]:
    """Return the launches of deleted jobs; none for an observer, who may not ask for them."""
    try:
        fields = {"scope": _jobs.SCOPE, "prefix": ""}
        return frozenset(session.request("KvList", fields, timeout=REQUEST_S)[1]["keys"])
    except exceptions.InvalidError:
        return frozenset()


_QUESTIONS: dict[str, Callable[[_session.Session], Any]] = {
    "status": _status,
    "actors": state.list_actors,
    "launches": _launches,
    "groups": _ask("ListGroups", "groups"),
    "events": _events,
    "owners": _owners,
    "deleted_jobs": _deleted_jobs,
}


def _nothing(name: str, failed: str) -> Reading:
    empty: Any = {"nodes": [], "cluster_id": "", "address": "", "up_ms": 0, "version": ""}
    return Reading(empty if name == "status" else [], 0.0, failed)


def _with_held(node: dict[str, Any], devices: list[dict[str, Any]]) -> dict[str, Any]:
    total, free = node["resources"], node["free"]
    held = (
        {}
        if node["state"] == "dead"
        else {name: round(each - free.get(name, 0.0), 4) for name, each in total.items()}
    )
    return {**node, "held": held, "device_infos": devices}


def waiting(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the groups that wait for a place, in the order of the queue."""
    found = [each for each in groups if each["queue_place"]]
    return sorted(found, key=lambda each: each["queue_place"])


def gpu_owners(groups: list[dict[str, Any]], node: str) -> dict[int, dict[str, Any]]:
    """Return the group that holds each GPU of a node, by the number of the GPU."""
    return {
        gpu: group
        for group in groups
        for place in group["places"]
        if place["node"] == node and not group["shares"]
        for gpu in place["gpu_ids"]
    }


def amounts(wire: list[dict[str, Any]]) -> dict[str, float]:
    """Return resources of a message by name."""
    return resources.from_wire(wire)
