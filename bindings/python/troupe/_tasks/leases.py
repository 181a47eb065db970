"""Processes for tasks of this session: one thread asks for them, watches them, gives them back.

`_tasks.lease_policy` decides. A process for tasks is an actor of the class TaskHost, whose only
caller is this process; calls take the native pool (`TaskPool`), which sends them on without this
module.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from troupe import exceptions
from troupe._actors import classes, options as _actor_options
from troupe._actors.deaths import death_of
from troupe._actors.method_options import Traits
from troupe._base import callbacks as _callbacks, calls as _calls
from troupe._base.bridge import native
from troupe._base.context import ActorContext
from troupe._base.identity import TASKS_CLASS, new_id
from troupe._base.strategies import NodeAffinitySchedulingStrategy
from troupe._cluster import infeasible, resources, session as _session
from troupe._code import capture, environment as _environment, runtime_env
from troupe._tasks import host as _task_host, lease_policy, lists
from troupe._tasks.host import LENT, LENT_AND_OVER, TaskHost
from troupe._tasks.interrupts import Reminders
from troupe._tasks.of_session import LEASES
from troupe._tasks.pool import STAGES, Lease, Listed, Pool, unbind
from troupe._wire import FailureKind

STARTS_LOST_MAX = 3
BLOCKING_S = 5.0
ANSWER_MOST_S = 30.0
"""From the question of what an idle process lends: one that does not answer is stopped."""


class Leases:
    """Leases processes for this session's tasks: asks the head for them, watches them, returns
    them. One thread."""

    def __init__(self, session: _session.Session) -> None:
        self._session = session
        self._pools: dict[str, Pool] = {}
        self._news: deque[tuple[Lease, dict[str, Any], bytes]] = deque()
        self.told = lists.Told(session, self.wake)
        self._signal = threading.Event()
        self._lock = threading.Lock()
        self._closed = False
        self._interrupters: dict[str, Any] = {}  # by node
        self._reminders = Reminders()
        self._strangers_asked = 0.0
        self._waits = 0  # waits of the task that this process runs
        self._thread = threading.Thread(target=self._run, name="troupe-tasks", daemon=True)
        self._thread.start()
        session.on_close(self.close)
        session.on_end(self.close)
        session.on_return(lambda: self.told.ask(None))

    @classmethod
    def of(cls, session: _session.Session) -> Leases:
        """The one of this session."""
        with _session._lock:
            return LEASES.of(session, lambda: cls(session))

    @contextlib.contextmanager
    def pool(self, options: Mapping[str, Any]) -> Iterator[Pool]:
        """Return the pool of tasks with these placement options, to bind a function to.

        Raises ValueError or TypeError for wrong ones.
        """
        spec = _actor_options.spec_of(options, self._session, TASKS_CLASS, "", {})
        runtime_env.check(options.get("runtime_env"))
        key = json.dumps(
            [
                spec,
                options.get("runtime_env"),
                options.get("infeasible"),
                _actor_options.running_of(options),
            ],
            sort_keys=True,
            default=str,
        )
        with self._lock:
            pool = self._pools.get(key)
            if pool is None:
                pool = self._pools[key] = Pool(self.wake, options, spec)
            pool.claims += 1
        try:
            yield pool
        finally:
            with self._lock:
                pool.claims -= 1

    def wake(self) -> None:
        """Something is to be looked at. Any thread; does not block."""
        self._signal.set()

    def lend(self, waits: bool) -> None:
        """The task that this process runs waits for others, or does not any more: they may use its
        CPU meanwhile."""
        with self._lock:
            before, self._waits = self._waits, self._waits + (1 if waits else -1)
            if before and self._waits:
                return
        wanted = False
        for pool in self.pools():
            wanted = wanted or pool.native.waiting > 0
            for lane, lease in list(pool.here.items()):
                if lease.borrows:
                    pool.native.pause(lane, not waits)
        if waits and wanted:
            self.wake()

    def _may_borrow(self, pool: Pool) -> int:
        host = TaskHost.current
        if not self._waits or host is None or not pool.cpus:
            return 0
        lent = sum(
            lease.borrows
            for each in self.pools()
            for lease in (*each.asked.values(), *each.here.values())
        )
        return int((host.lending.cpus - host.lending.lent - lent) / pool.cpus + 1e-6)

    def interrupt(self, ref: Any, lane: int) -> None:
        """Makes the process behind a lane look whether the task that it runs, that of `ref`, is
        cancelled."""
        self._interrupt(lane)
        with self._lock:
            self._reminders.add(ref, lane, time.monotonic())
        self.wake()

    def _interrupt(self, lane: int) -> None:
        lease = self._lease_of(lane)
        if lease is None or lease.over:
            return
        if _calls.is_here(lease.address):
            _task_host.interrupt(lease.address["pid"])
            return
        node = lease.address["node"]
        if node not in self._interrupters:
            there = NodeAffinitySchedulingStrategy(node, soft=False)
            self._interrupters[node] = classes.create(
                _task_host.Interrupter, (), {}, {"num_cpus": 0, "scheduling_strategy": there}
            )
        self._interrupters[node].interrupt.remote(lease.address["pid"])

    def end_lane(self, lane: int, error: exceptions.TroupeError) -> None:
        """Ends the process behind a lane at once; what it runs ends with `error`."""
        lease = self._lease_of(lane)
        if lease is not None:
            self._kill(lease)
            _calls.fail(lease.channel, error)
            self.wake()

    def _lease_of(self, lane: int) -> Lease | None:
        return next((pool.here[lane] for pool in self.pools() if lane in pool.here), None)

    def pools(self) -> list[Pool]:
        """All of them."""
        with self._lock:
            return list(self._pools.values())

    def tasks(self, most: int) -> list[Listed]:
        """The tasks of this process that are not over, so many at most, those of one pool after
        those of another."""
        listed: list[Listed] = []
        for pool in self.pools():
            for ref, name, stage, lane in pool.native.tasks(most - len(listed)):
                listed.append(Listed(ref, name, STAGES[stage], pool.here.get(lane), pool.options))
        return listed

    def close(self) -> None:
        """The session is over: what waits ends, and functions ask for another session."""
        if self._closed:
            return
        self._closed = True
        self.wake()
        unbind()
        error = exceptions.ConnectionError(
            "the session to the cluster has ended, and this task with it"
        )
        for pool in self.pools():
            pool.fail_waiting(error)
            for lease in list(pool.here.values()):
                _calls.fail(lease.channel, error)

    def _drop_unused(self) -> None:
        """Options may be many: each placement group's tasks have a pool of their own."""
        with self._lock:
            for key in [key for key, pool in self._pools.items() if pool.unused]:
                del self._pools[key]

    # ---- the thread ----------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed:
            due = min(
                (
                    each
                    for each in (self._reminders.due(), *(pool.due for pool in self.pools()))
                    if each is not None
                ),
                default=None,
            )
            self._signal.wait(None if due is None else max(due - time.monotonic(), 0))
            self._signal.clear()
            _callbacks.run("what watches processes for tasks", self._take_news)
            with self._lock:
                again = self._reminders.take(time.monotonic())
            for lane in again:
                _callbacks.run(
                    "what has a task look whether it is cancelled", self._interrupt, lane
                )
            for pool in self.pools():
                try:
                    self._judge(pool)
                    self._look(pool)
                except (
                    exceptions.ConnectionError
                ) as error:  # the session's end: close() says so to all
                    pool.fail_waiting(error)
                except BaseException as error:  # ours: nobody waits for ever because of it
                    _callbacks.report("what gets processes for tasks", error)
                    pool.fail_waiting(
                        exceptions.SystemError_(
                            f"the runtime could not get processes for tasks: {error}"
                        )
                    )
            self._drop_unused()
            _callbacks.run(
                "what tells of tasks", self.told.answer
            )  # last: processes for tasks do not wait for it
            if TaskHost.current is not None:
                _callbacks.run(
                    "what says how much of its CPUs a task lends",
                    self._look_at_lent,
                    TaskHost.current,
                )

    def _look_at_lent(self, host: TaskHost) -> None:
        """Compute how much of this process's CPUs its own tasks use, or will when their processes
        come."""
        used = 0.0
        for pool in self.pools():
            used += sum(lease.borrows for lease in pool.asked.values())
            if any(lease.borrows for lease in pool.here.values()):
                used += sum(
                    pool.here[lane].borrows
                    for lane, tasks, *_ in pool.native.look()[2]
                    if tasks and lane in pool.here
                )
        host.lending.look(used)

    def _take_news(self) -> None:
        while self._news:
            lease, info, attachment = self._news.popleft()
            if not lease.over:
                _callbacks.run(
                    "what hears of a process for tasks", self._take, lease, info, attachment
                )

    def _take(self, lease: Lease, info: dict[str, Any], attachment: bytes) -> None:
        if info["state"] == "alive" and not lease.lane:
            self._arrived(lease, info)
        elif info["state"] == "dead":
            self._died(lease, info, attachment)
        lease.starting = info["state"] == "starting"
        if info.get("room_wanted"):
            lease.wanted = time.monotonic()

    def _arrived(self, lease: Lease, info: dict[str, Any]) -> None:
        pool = lease.pool
        pool.asked.pop(lease.actor, None)
        pool.starts_lost = 0
        lease.channel = native.CallChannel(
            None, description=f"task process {lease.actor[:8]}", tasks=pool.native
        )
        _calls.aim(lease.channel, info["address"], self._session.control)
        lease.address, lease.came = info["address"], time.monotonic()
        with self._lock:  # a cancellation of a task that is sent there at once finds it
            lease.lane = pool.native.open(lease.channel)
            pool.here[lease.lane] = lease
            self.told.note(lease)
        if lease.borrows and not self._waits:
            pool.native.pause(lease.lane, True)

    def _died(self, lease: Lease, info: dict[str, Any], attachment: bytes) -> None:
        pool = lease.pool
        lease.over = True
        self._session.board.forget("actor", lease.actor)
        died = death_of(info, attachment, "the process of the task")
        crashed = exceptions.WorkerCrashedError
        error = exceptions.with_type_of(crashed, getattr(died, "cause", None), str(died))
        if lease.lane:
            _calls.fail(lease.channel, error)
            if pool.native.close(lease.lane):
                pool.here.pop(lease.lane, None)
            return
        pool.asked.pop(lease.actor, None)
        pool.starts_lost += 1
        if info["failure"]["kind"] == FailureKind.GROUP_REMOVED:
            pool.fail_waiting(exceptions.TaskPlacementGroupRemoved(str(died)))
        elif pool.starts_lost >= STARTS_LOST_MAX:
            pool.starts_lost = 0
            pool.fail_waiting(error)

    def _judge(self, pool: Pool) -> None:
        """Tasks that raised, of functions with a list of exceptions to run again for."""
        for ref, error, function in pool.native.take_doubtful():
            again = False
            try:
                again = isinstance(error, pool.retried[function])
            except BaseException as fault:  # the user's class says so
                _callbacks.report("what tells whether a task is to run again", fault)
            pool.native.judge(ref, again)

    def _look(self, pool: Pool) -> None:
        waiting, work, lanes = pool.native.look()
        others_wait = any(each is not pool and each.asked for each in self.pools())
        now = time.monotonic()
        view = lease_policy.View(
            waiting,
            work,
            [pool.lane(lane, now) for lane in lanes],
            sum(not lease.borrows for lease in pool.asked.values()),
            others_wait,
            strangers_wait=waiting > 0 and self._strangers_wait(pool, now),
            may_borrow=self._may_borrow(pool),
            starting=sum(lease.starting and not lease.borrows for lease in pool.asked.values()),
        )
        orders = lease_policy.decide(view)
        idle = {lane: now - since for lane, _, _, since in lanes}
        over = {lane for lane, _, takes_more, _ in lanes if not takes_more}
        needed = [
            lane
            for lane in orders.give_back
            if not self._give_back(pool, lane, idle[lane], over=lane in over)
        ]
        if orders.end is not None:
            pool.native.stop(orders.end)
        if orders.withdraw:
            for lease in [lease for lease in pool.asked.values() if not lease.starting]:
                self._end(lease)
        for number in range(orders.borrow + orders.ask):
            if not self._ask(pool, borrows=number < orders.borrow):
                break
        self._note_blocking(pool, len(needed) if others_wait else 0)
        again = [lease_policy.LOOK_S] if needed else []
        if orders.look_again is not None:
            again.append(orders.look_again)
        pool.due = time.monotonic() + min(again) if again else None
        pool.native.wake_above(0 if waiting == 0 else -1)
        if orders.when_idle:
            gone = {*orders.give_back} - {*needed}
            pool.native.wake_above_idle(
                sum(each.open and not each.tasks and each.lane not in gone for each in view.lanes)
            )

    def _note_blocking(self, pool: Pool, kept: int) -> None:
        """Says once why tasks with other options wait, when processes that nobody can do without
        hold the room."""
        if not kept:
            pool.blocks_since = None
        elif pool.blocks_since is None:
            pool.blocks_since = time.monotonic()
        elif time.monotonic() - pool.blocks_since > BLOCKING_S and not pool.blocking_said:
            pool.blocking_said = True
            needs = (
                resources.describe({"CPU": pool.cpus})
                if pool.cpus
                else ", ".join(sorted(pool.needs))
            )
            print(
                f"troupe: tasks have waited {BLOCKING_S:g} s for room that {kept} idle process"
                f"{'es' if kept > 1 else ''} for tasks with other options ({needs} each) keep"
                f"{'' if kept > 1 else 's'}: refs are held to objects that were made there "
                "(troupe.put, or tasks started "
                "by tasks)\n  drop those refs, return the values themselves, or give the tasks the "
                "same options",
                file=sys.stderr,
                flush=True,
            )

    def _strangers_wait(self, pool: Pool, now: float) -> bool:
        """Return True if actors of others wait for resources that our processes hold.

        Asked of the head every TURN_S, and only where something was held for so long.
        """
        held = [lease for lease in pool.here.values() if not lease.borrows]
        if not any(now - lease.came >= lease_policy.TURN_S for lease in held):
            return False
        if now - self._strangers_asked < lease_policy.TURN_S:
            return False
        self._strangers_asked = now
        ours = {actor for each in self.pools() for actor in each.asked}
        infos = self._session.request("ListActors", {})[1]["actors"]
        return any(
            info["state"] == "pending"
            and info["actor"] not in ours
            and pool.needs & {each["name"] for each in info["resources"]}
            for info in infos
        )

    def _give_back(self, pool: Pool, lane: int, idle_since: float, *, over: bool) -> bool:
        """False: its process is needed still. `over`: it gets no more tasks."""
        lease = pool.here.get(lane)
        if (
            lease is not None
            and not lease.over
            and not self._lets_go(pool, lease, idle_since, over=over)
        ):
            return False
        if not pool.native.close(lane):
            return True  # a task came first: it goes once that is over
        pool.here.pop(lane, None)
        if lease is not None and not lease.over:
            lease.channel.close()
            self._end(lease)
        return True

    def _lets_go(self, pool: Pool, lease: Lease, idle_since: float, *, over: bool) -> bool:
        """Return True if nobody holds an object of the process, which would be lost with it.

        It is asked, and the answer counts if it has run nothing since. One that is over and stays
        lends what it holds: tasks that it has started may need that.
        """
        if lease.lent is None or lease.lent_asked < idle_since:
            lease.lent, lease.lent_asked = (
                pool.native.ask(lease.lane, LENT_AND_OVER if over else LENT),
                time.monotonic(),
            )
            if lease.lent is None:
                return True
            _calls.when_done(lease.lent, self.wake)
            return False
        if not lease.lent.done():
            return time.monotonic() - lease.lent_asked > ANSWER_MOST_S
        asked, lease.lent = lease.lent, None
        try:
            return bool(_calls.get(asked) == 0)
        except exceptions.TroupeError:
            return True  # the process is gone

    def _end(self, lease: Lease) -> None:
        lease.over = True
        lease.pool.asked.pop(lease.actor, None)
        self._session.board.forget("actor", lease.actor)
        if not self._session.closed:
            self._kill(lease)

    def _kill(self, lease: Lease) -> None:
        """A request, not a word: it is said again to a head that comes back, and only requests
        leave a process that a worker started. That it ended already is as well."""
        self._session.ask("KillActor", {"actor": lease.actor})

    def _ask(self, pool: Pool, *, borrows: bool) -> bool:
        """Asks for one more process. False: there will be none."""
        lease = Lease(pool, new_id())
        lease.borrows = pool.cpus if borrows else 0.0
        environment = _environment.build(
            pool.options.get("runtime_env"),
            session=self._session,
            preimport=pool.options.get("preimport") or (),
        )
        spec = _actor_options.spec_of(
            pool.options, self._session, TASKS_CLASS, lease.actor, environment
        )
        spec["leased"] = True
        if borrows:
            _on_our_cpu(spec)
        pool.asked[lease.actor] = lease
        board = self._session.board
        board.subscribe("actor", lease.actor, lambda info, data: self._tell(lease, info, data))
        try:
            _, update, data = infeasible.request(
                self._session,
                "CreateActor",
                {"spec": spec},
                spec,
                self._host_payload(pool, borrows),
                asked=pool.options.get("infeasible"),
                what="" if pool.told else "a task",
            )
            pool.told = pool.told or bool(spec.get("infeasible_waits"))
        except exceptions.TroupeError as error:
            self._end(lease)
            if isinstance(error, exceptions.PlacementError):
                error = exceptions.TaskUnschedulableError(str(error))
            elif isinstance(error, exceptions.NotFoundError) and spec.get("group"):
                error = exceptions.TaskPlacementGroupRemoved(
                    f"the task cannot run any more: {error}"
                )
            pool.fail_waiting(error)
            return False
        board.post_reply("actor", lease.actor, update["info"], data)
        return True

    def _tell(self, lease: Lease, info: dict[str, Any], attachment: bytes) -> None:
        self._news.append((lease, info, attachment))
        self.wake()

    def _host_payload(self, pool: Pool, borrows: bool) -> bytes:
        if borrows not in pool.payloads:
            given = (pool.cpus, _lender()) if borrows else (pool.cpus,)
            pool.payloads[borrows] = capture.dumps(
                TaskHost,
                given,
                {},
                Traits(),
                _actor_options.running_of(pool.options),
                what="the runtime's class for tasks",
            )
        return pool.payloads[borrows]


def _lender() -> str:
    """Return the actor that holds the CPUs which this process lends to processes for its tasks."""
    host, context = TaskHost.current, ActorContext.current
    return (host.lending.lender if host is not None else "") or (
        context.actor if context is not None else ""
    )


def _on_our_cpu(spec: dict[str, Any]) -> None:
    """A process here, which needs no CPU of the cluster's."""
    for field in ("resources", "run_resources"):
        spec[field] = [each for each in spec[field] if each["name"] != "CPU"]
    if ActorContext.current is not None and not spec.get("group"):
        spec.update(node=ActorContext.current.node, node_soft=False)
