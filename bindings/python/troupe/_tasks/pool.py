"""A session's pool of one kind of tasks: their options, the processes for them, the unfinished
tasks; and the ending of tasks."""

from __future__ import annotations

import _thread
import os
import sys
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from troupe import exceptions
from troupe._base.bridge import native
from troupe._cluster import resources, session as _session
from troupe._tasks import lease_policy
from troupe._tasks.of_session import LEASES


class Lease:
    """A leased process, from its request on."""

    def __init__(self, pool: Pool, actor: str) -> None:
        self.pool = pool
        self.actor = actor
        self.starting = False  # granted room at a node, but not started yet
        self.lane = 0
        self.borrows = 0.0  # CPUs borrowed from the task of this process
        self.channel: Any = None
        self.over = False
        self.address: dict[str, Any] = {}
        self.came = 0.0
        self.lent: Any = None  # a ref of how many of its objects others hold
        self.lent_asked = 0.0
        self.wanted: float | None = None  # when the head said that others wait for its room


class Pool:
    """Tasks of one kind: what they need, and the processes that run them."""

    def __init__(
        self, wake: Callable[[], None], options: Mapping[str, Any], spec: Mapping[str, Any]
    ) -> None:
        self.options = dict(options)
        self.told = False  # true if the user was told that no node can hold its tasks' processes
        self.cpus = resources.from_wire(spec["resources"]).get("CPU", 0.0)
        self.needs = {each["name"] for each in spec["resources"]}
        self.native = native.TaskPool(wake)
        self.asked: dict[str, Lease] = {}  # by actor
        self.here: dict[int, Lease] = {}  # by lane
        self.starts_lost = 0
        self.retried: list[tuple[type[BaseException], ...]] = []  # by the number of a function
        self.due: float | None = None
        self.blocks_since: float | None = (
            None  # others wait for processes that are kept for what they own
        )
        self.blocking_said = False
        self.payloads: dict[
            bool, bytes
        ] = {}  # environments its processes begin with; processes that borrow have others
        self.claims = 0  # number of threads that bind a function to it just now

    @property
    def unused(self) -> bool:
        """True if the pool has no process and no task, and no function that could bring one: each
        refers to the native pool."""
        if self.claims or self.asked or self.here or sys.getrefcount(self.native) > 2:
            return False
        found: bool = self.native.waiting == 0 and self.native.held_back == 0
        return found

    def lane(self, lane: tuple[int, int, bool, float], now: float) -> lease_policy.Lane:
        """Return the plan's view of one of the processes, from the native pool's numbers."""
        lease = self.here.get(lane[0])
        if lease is None or lease.borrows:
            return lease_policy.Lane(*lane)
        wanted = lease.wanted is not None and now - lease.wanted < lease_policy.TURN_S
        return lease_policy.Lane(*lane, held=now - lease.came, wanted=wanted)

    def fail_waiting(self, error: exceptions.TroupeError) -> None:
        """Fail the tasks that have no process with `error`."""
        error.__dict__["_passed_on"] = True
        self.native.fail_waiting(error)


STAGES = ("arguments", "waiting", "queued", "running")


class Listed(NamedTuple):
    """A task that is not over."""

    ref: Any
    name: str
    stage: str
    """of STAGES: its arguments are to come; it waits for a process; it is with one, behind others;
    it runs"""
    lease: Lease | None
    """where it is"""
    options: Mapping[str, Any]


_bound: weakref.WeakSet[Any] = weakref.WeakSet()  # remote functions that know a pool


def note_bound(function: Any) -> None:
    """This remote function knows a pool: its `unbind()` is called when that is over."""
    _bound.add(function)


def unbind() -> None:
    """Unbind all functions: their session is over, or this is a forked child of its process."""
    for function in list(_bound):
        function.unbind()
    _bound.clear()


os.register_at_fork(after_in_child=unbind)


def cancel(ref: Any, *, force: bool, recursive: bool) -> bool:
    """Cancels a task, and with `recursive` those that it started; False: the ref is not that of a
    task that is not over."""
    how, lane = native.cancel_task(ref, force, recursive)
    if how == 0:
        return False
    leases = LEASES.known(_session.current_or_none())
    if how == 2 and leases is not None:
        if force:
            leases.end_lane(
                lane,
                exceptions.WorkerCrashedError(
                    "the process of the task was ended by troupe.cancel(force=True)"
                ),
            )
        else:
            leases.interrupt(ref, lane)
    return True


def cancel_started_soon(number: int) -> None:
    """Cancels the tasks that a call of this process started, and those that they started: on a
    thread of its own, for it may wait."""
    _thread.start_new_thread(_cancel_started, (number,))


def _cancel_started(number: int) -> None:
    for ref in native.tasks_of(number):
        cancel(ref, force=False, recursive=True)
