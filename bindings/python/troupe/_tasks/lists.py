"""Tasks of the cluster, for who lists them: those of this process, and what others say when the
head asks them for theirs.

Nobody but who started a task knows of it, and only its latest tasks that are over. So a list is
made when it is asked for: the head passes the question on to all processes that have tasks, and
their answers back (`head/core/nodes/task_lists.h`). View: the cluster, as each process saw it when
it answered; a process that does not answer in time is left out, and that is said.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from troupe import exceptions
from troupe._base.bridge import native
from troupe._base.identity import new_id
from troupe._cluster import session as _session, signals
from troupe._tasks.of_session import LEASES
from troupe._typed.per_session import PerSession

QUESTIONS_MAX = 64
LANES_MAX = 4096
MOST = 10_000
"""Tasks that one process tells of."""
ENDED = ("finished", "failed")
"""States of those that are over."""
ENDED_AGO = 3
"""Where native.ended_tasks says how long ago a task ended: it tells of all sessions that this
process had."""


class Answers:
    """The answers to one question so far."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._tasks: list[dict[str, Any]] = []
        self._count = 0

    def add(self, told: bytes) -> None:
        """Count the answer of one process, or its end. Any thread."""
        tasks = json.loads(zlib.decompress(told)) if told else []
        with self._news:
            self._tasks += tasks
            self._count += 1
            self._news.notify_all()

    def wait(self, count: int, timeout: float) -> tuple[list[dict[str, Any]], int]:
        """The tasks of so many processes, and how many of these have not answered after `timeout`
        seconds. Blocks."""
        deadline = time.monotonic() + timeout
        with self._news:
            while self._count < count and time.monotonic() < deadline:
                self._news.wait(signals.at_most(deadline - time.monotonic()))
            return list(self._tasks), count - self._count


_asks: PerSession[dict[str, Answers]] = PerSession("questions for tasks")


def of_cluster(
    session: _session.Session, *, limit: int, ended: bool, timeout: float, whole: bool
) -> list[dict[str, Any]]:
    """The tasks of this process, then those of all others, `limit` of each at most.

    Blocks. Raises GetTimeoutError where a process has not answered after `timeout` seconds and the
    list is to be `whole`.
    """
    asks = _asks.of(session, dict)
    ask, answers = new_id(), Answers()
    asks[ask] = answers
    deadline = time.monotonic() + timeout
    try:
        fields = session.request(
            "ListTasks", {"ask": ask, "limit": min(limit, MOST), "ended": ended}, timeout=timeout
        )[1]
        own = of_process(session, limit=limit, ended=ended)
        others, missing = answers.wait(fields["owners"], max(deadline - time.monotonic(), 0))
    finally:
        del asks[ask]
    if missing and whole:
        raise exceptions.GetTimeoutError(
            f"{missing} of {fields['owners']} other processes that have tasks did not say which "
            f"within {timeout:g} s: "
            "they are stopped, cut off, or keep the GIL\n  raise_on_missing_output=False gives "
            "those of the rest"
        )
    return [*own, *others]


def of_process(session: _session.Session, *, limit: int, ended: bool) -> list[dict[str, Any]]:
    """The tasks of this process that are not over, `limit` of them at most; then, if `ended`, the
    latest that are."""
    leases = LEASES.known(session)
    if leases is None:
        return []
    tasks = [_listed(each) for each in leases.tasks(limit)]
    if ended:
        open_s = time.monotonic() - leases.told.began
        tasks += [
            _ended(leases, *each)
            for each in native.ended_tasks(limit)
            if float(each[ENDED_AGO]) < open_s
        ]
    for each in tasks:
        each.update(job_id=session.job, owner_pid=os.getpid())
    return tasks


def hear(session: _session.Session, kind: str, fields: dict[str, Any], attachment: bytes) -> None:
    """A question, or an answer, that the head has passed on.

    On the thread that reads the session: does not block.
    """
    if kind == "TasksTold":
        answers = _asks.of(session, dict).get(fields["ask"])
        if answers is not None:  # else nobody waits any more
            answers.add(attachment)
        return
    leases = LEASES.known(session)
    if leases is not None:
        leases.told.ask(fields)


_session.hearers.update(TellTasks=hear, TasksTold=hear)


class Told:
    """The tasks a process reports to the head: that it has some, which ones when it is asked, and
    where its latest tasks ran."""

    def __init__(self, session: _session.Session, wake: Callable[[], None]) -> None:
        self._session = session
        self._wake = wake
        self.began = time.monotonic()
        self._questions: deque[dict[str, Any] | None] = deque([None], maxlen=QUESTIONS_MAX)
        self._lanes: OrderedDict[int, dict[str, Any]] = OrderedDict()

    def ask(self, question: dict[str, Any] | None) -> None:
        """To be answered; None: a head that is to be told that there are tasks.

        Any thread; does not block.
        """
        self._questions.append(question)
        self._wake()

    def answer(self) -> None:
        """Answers what was asked. Blocks for the head's word that it has the answers."""
        while self._questions:
            question = self._questions.popleft()
            ask, told = {}, b""
            if question is not None:
                tasks = of_process(self._session, limit=question["limit"], ended=question["ended"])
                ask, told = {"ask": question["ask"]}, zlib.compress(json.dumps(tasks).encode(), 1)
            with contextlib.suppress(
                exceptions.TroupeError
            ):  # the asker learns that this process did not answer
                self._session.request("TasksTold", ask, told)

    def note(self, lease: Any) -> None:
        """A process for tasks is there."""
        self._lanes[lease.lane] = {**lease.address, "actor": lease.actor}
        if len(self._lanes) > LANES_MAX:
            self._lanes.popitem(last=False)

    def where(self, lane: int) -> dict[str, Any]:
        """Node, process and actor of a lane, also of one that is gone; nothing where that is not
        known any more."""
        return self._lanes.get(lane, {})


def _listed(task: Any) -> dict[str, Any]:
    address = task.lease.address if task.lease is not None else {}
    return {
        "task_id": task.ref.hex(),
        "name": task.name,
        "state": task.stage,
        "node_id": address.get("node", ""),
        "pid": address.get("pid", 0),
        "worker_id": task.lease.actor if task.lease is not None else "",
        "num_cpus": task.options.get("num_cpus", 0),
        "num_gpus": task.options.get("num_gpus") or 0,
        "resources": dict(task.options.get("resources") or {}),
    }


def _ended(
    leases: Any, task: str, name: str, lane: int, ago_s: float, took_s: float, failed: bool
) -> dict[str, Any]:
    where = leases.told.where(lane)
    end_s = time.time() - ago_s
    return {
        "task_id": task,
        "name": name,
        "state": ENDED[failed],
        "node_id": where.get("node", ""),
        "pid": where.get("pid", 0),
        "worker_id": where.get("actor", ""),
        "start_s": end_s - took_s,
        "end_s": end_s,
    }
