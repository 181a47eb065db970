"""The tracker of a launch: an actor without resources that has its run in MLflow, from the
submission to the durable marker.

It outlives the caller, so that whatever ends a launch is written down: the marker is asked of the
head, and the run ends as that says. A tracker that is lost with its node is made anew elsewhere and
finds launch and run under its own id among the cluster's values. MLflow is imported here, on a
thread, while the ranks start; a rank asks where the run is when its program imports MLflow.

Where the store is the caller's own, requests of the ranks wait here for the caller, who takes them
and brings the answers (`exchange`): nobody connects to the caller. At most WAITING_MAX wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import os
import threading
from typing import Any

from troupe import _pickled, exceptions
from troupe._base import calls as _calls
from troupe._base.context import ActorContext
from troupe._cluster import session as _session
from troupe._tracking import loopback, node as _node, rule, runs
from troupe._tracking.node import NodeMetrics

OPEN_S = 20.0  # for the run to be there, once MLflow is imported
OPEN_LOCAL_S = 80.0  # limit if the caller's store is created first, or MLflow is being imported
END_S = 30.0
TAG_S = 10.0
HEARD_S = 10.0  # for the caller to hear the last word
CARRY_S = 80.0
WAITING_MAX = 256
TAKEN_MAX = 64
SAID_MAX = 20
EXCHANGE_S = 30.0
MARKER_S = 60.0
AWAY_S = 1.0
UNTOLD_S = 60.0  # from its start to word of a launch


class Tracker:
    """Actor made before its launch is submitted: coroutines, MLflow's calls run on threads."""

    def __init__(self, wish: dict[str, Any]) -> None:
        known = {each.name for each in dataclasses.fields(rule.Wish)}
        self._wish = rule.Wish(**{name: value for name, value in wish.items() if name in known})
        self._launch = self._run = self._experiment = self._why_not = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begun = threading.Lock()
        self._known, self._said_more = asyncio.Event(), asyncio.Event()
        self._told, self._heard, self._over = threading.Event(), threading.Event(), False
        self._said: list[tuple[str, str]] = []
        self._door: loopback.Loopback | None = None
        self._measures: NodeMetrics | None = None
        self._nodes: dict[str, asyncio.Task[Any]] = {}
        self._measured: set[str] = set()
        self._epoch = 1
        self._tagging: threading.Thread | None = (
            None  # tag with the owner of a run that was made before the launch
        )
        self._asked: dict[int, asyncio.Future[loopback.Answer]] = {}
        self._waiting: asyncio.Queue[tuple[int, str, str, str, bytes]] = asyncio.Queue(WAITING_MAX)
        self._numbers = itertools.count()
        loop = asyncio.get_event_loop_policy().get_event_loop()
        threading.Thread(
            target=self._find_launch, args=(loop,), name="troupe-tracker-launch", daemon=True
        ).start()

    async def begin(self, launch: str) -> None:
        """The launch is submitted."""
        self._begin(launch)

    async def where(self, launch: str, epoch: int, node: str, node_name: str) -> dict[str, Any]:
        """For a rank on that node: `env`, the variables that lead to the run, and `run`,
        `experiment`; or `failed`, why there is none. Waits until that is known."""
        self._begin(launch)
        if node not in self._nodes:  # loading MLflow takes long: do it while the run is made
            self._nodes[node] = asyncio.create_task(self._of_node(node, node_name))
        await self._known.wait()
        if not self._run:
            return {"failed": self._why_not, "local": self._wish.local}
        if epoch > self._epoch:
            self._epoch = epoch
            threading.Thread(
                target=self._tag, args=({"troupe.epoch": str(epoch)},), daemon=True
            ).start()
        uri = await self._node(node, node_name)
        env = {rule.RUN: self._run, rule.EXPERIMENT: self._experiment}
        if self._wish.system_metrics:
            env[rule.SYSTEM_METRICS] = "false"  # per rank: the node's are written already
        if self._door is not None:
            env.update({rule.URI: uri, rule.TOKEN: self._door.token})
        return {
            "env": env,
            "run": self._run,
            "experiment": self._experiment,
            "local": self._wish.local,
            "adopted": self._wish.is_adopted,
            "name": self._wish.name,
        }

    async def tag(self, tags: dict[str, str]) -> None:
        """Tags for the run, once it is there."""
        await self._known.wait()
        if self._run:
            await asyncio.to_thread(self._tag, tags)

    async def failed(self, text: str) -> None:
        """Something of the tracking does not work: the caller says it, once for each text."""
        self._say("warning", text)

    async def news(self, seen: int) -> tuple[list[tuple[str, str]], bool]:
        """Return the messages after the first `seen`, as (kind, text) with kinds `link`, `warning`,
        `ended`, and whether there will be more. Waits for one."""
        while len(self._said) <= seen and not self._over:
            self._said_more.clear()
            await self._said_more.wait()
        return self._said[seen:], self._over

    async def heard(self) -> None:
        """The caller has the last word: nobody waits for anything of this one."""
        self._heard.set()

    async def exchange(
        self, answers: list[tuple[int, int, str, bytes]]
    ) -> list[tuple[int, str, str, str, bytes]]:
        """For the caller whose store it is: brings answers, and takes what the ranks ask, or
        nothing after EXCHANGE_S."""
        for number, status, kind, content in answers:
            asked = self._asked.pop(number, None)
            if asked is not None and not asked.done():
                asked.set_result((status, kind, content))
        try:
            taken = [await asyncio.wait_for(self._waiting.get(), EXCHANGE_S)]
        except TimeoutError:
            return []
        while len(taken) < TAKEN_MAX and not self._waiting.empty():
            taken.append(self._waiting.get_nowait())
        return taken

    async def carry(self, method: str, path: str, kind: str, body: bytes) -> loopback.Answer:
        """A request to the caller's store; its answer."""
        number = next(self._numbers)
        asked: asyncio.Future[loopback.Answer] = asyncio.get_running_loop().create_future()
        try:
            self._waiting.put_nowait((number, method, path, kind, body))
        except asyncio.QueueFull:
            return (
                503,
                "application/json",
                loopback.problem(
                    "TEMPORARILY_UNAVAILABLE",
                    f"{WAITING_MAX} requests wait for the launch's caller",
                ),
            )
        self._asked[number] = asked
        try:
            return await asyncio.wait_for(asked, CARRY_S)
        except TimeoutError:
            text = (
                f"the launch's caller, whose store {self._wish.store} is, has not answered "
                f"within {CARRY_S:g} s"
            )
            return 504, "application/json", loopback.problem("TEMPORARILY_UNAVAILABLE", text)
        finally:
            self._asked.pop(number, None)

    async def caller_ends(self, outcome: str) -> None:
        """The cluster, or the store, ends with the caller, who is leaving: the run is closed now.

        Waits for it.
        """
        await self._known.wait()
        if self._run and not self._over:
            await asyncio.to_thread(self._close, outcome)

    # On the loop.
    def _begin(self, launch: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._told.set()
        if self._begun.acquire(blocking=False):
            self._launch = launch
            if self._wish.local:
                self._door = loopback.Loopback(self._carry)
                os.environ.update({rule.URI: self._door.uri, rule.TOKEN: self._door.token})
            threading.Thread(target=self._live, name="troupe-tracker", daemon=True).start()

    async def _node(self, node: str, name: str) -> str:
        """The address for ranks of this node; "": their own. Its system metrics begin."""
        uri, actor = "", None
        try:
            uri, actor = await asyncio.shield(self._nodes[node])
        except Exception as error:
            del self._nodes[node]
            text = f"nothing could be started for tracking on node {name}: {runs.words_of(error)}"
            self._say("warning", text)
            if self._door is not None:
                raise exceptions.TroupeError(text) from error
        if self._wish.system_metrics and node not in self._measured:
            self._measured.add(node)
            if actor is not None:
                actor.measure.remote(self._run, os.environ.get(rule.URI, ""))
            elif self._is_here(node):
                self._measures = NodeMetrics(
                    self._run,
                    name,
                    uri or os.environ.get(rule.URI, ""),
                    lambda text: self._say_from("warning", text),
                )
        return str(uri)

    @staticmethod
    def _is_here(node: str) -> bool:
        return ActorContext.current is not None and ActorContext.current.node == node

    async def _of_node(self, node: str, name: str) -> tuple[str, Any]:
        """(address of its door, its actor)."""
        if self._is_here(node):
            return self._door.uri if self._door is not None else "", None
        if self._door is None and not self._wish.system_metrics:
            return "", None
        return await asyncio.to_thread(self._elsewhere, node, name)

    def _say(self, kind: str, text: str) -> None:
        if (kind, text) not in self._said and (len(self._said) < SAID_MAX or kind == "ended"):
            self._said.append((kind, text))
            print(f"troupe: {kind}: {text}", flush=True)
        self._said_more.set()

    # On threads.
    def _say_from(self, kind: str, text: str) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._say, kind, text)

    def _elsewhere(self, node: str, name: str) -> tuple[str, Any]:
        from troupe._actors import classes
        from troupe._base.strategies import NodeAffinitySchedulingStrategy

        session = _session.current()
        me = of(session, ActorContext.current.actor if ActorContext.current is not None else "")
        actor = classes.create(
            _node.NodeTracker,
            (me, name, self._door.token if self._door is not None else None),
            {},
            {
                "num_cpus": 0,
                "max_concurrency": 8,
                "scheduling_strategy": NodeAffinitySchedulingStrategy(node),
            },
            shown=False,
        )
        return _calls.get(actor.uri.remote(), OPEN_S), actor

    def _live(self) -> None:
        assert self._loop is not None
        try:
            self._open()
        except Exception as error:
            self._why_not = runs.words_of(error)
            self._say_from(
                "warning",
                f"no run in {self._wish.store}: {self._why_not}\n  the launch goes on without it; "
                "is the server there, and may "
                "this client write to it? TROUPE_TRACKING=0 says that none is wanted",
            )
        self._loop.call_soon_threadsafe(self._known.set)
        outcome = self._marker()
        ended = ""
        if self._run:
            ended = self._close(outcome)
        with contextlib.suppress(Exception):
            _session.current().request("KvDelete", {"scope": rule.SCOPE, "key": self._me()})
        self._loop.call_soon_threadsafe(self._finish, ended)
        self._heard.wait(HEARD_S)
        self._leave()

    def _leave(self) -> None:
        with contextlib.suppress(exceptions.TroupeError):
            _session.current().request("KillActor", {"actor": self._me(), "no_restart": True})

    def _finish(self, ended: str) -> None:
        self._over = True
        self._say("ended", ended)

    def _me(self) -> str:
        return ActorContext.current.actor if ActorContext.current is not None else ""

    def _open(self) -> None:
        """Makes the run, or finds that of the tracker that was here before; says where it is."""
        runs.impatient(local=self._wish.local)
        self._before()
        if self._wish.is_made:  # and said where it is
            self._run, self._experiment = (
                self._run or self._wish.run,
                self._experiment or self._wish.experiment,
            )
            self._remember()
            self._tagging = threading.Thread(
                target=self._tag,
                args=({"troupe.launch": self._launch}, OPEN_LOCAL_S),
                name="troupe-tag",
                daemon=True,
            )
            self._tagging.start()
            return
        import mlflow

        if not self._run:
            wait_s = OPEN_LOCAL_S if self._wish.local else OPEN_S
            self._run, self._experiment = runs.within(
                wait_s,
                f"MLflow at {self._wish.store}",
                lambda: runs.opened(runs.client(), self._named()),
            )
            self._remember()
        self._say_from(
            "link",
            rule.link(self._wish.store, self._experiment, self._run)
            if self._wish.local
            else runs.link_of(mlflow.get_tracking_uri(), self._experiment, self._run),
        )

    def _named(self) -> rule.Wish:
        return dataclasses.replace(
            self._wish, tags={**self._wish.tags, "troupe.launch": self._launch}
        )

    def _before(self) -> dict[str, str]:
        """Return the values that an earlier instance of the tracker stored."""
        _, value, data = _session.current().request(
            "KvGet", {"scope": rule.SCOPE, "key": self._me()}
        )
        kept: dict[str, str] = json.loads(data) if value["found"] else {}
        self._run, self._experiment = kept.get("run", ""), kept.get("experiment", "")
        return kept

    def _find_launch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Find the launch among the cluster's values, since the caller or a rank may be gone before
        it can name it. After UNTOLD_S without one, the caller ended before it submitted it."""
        pause_s, waited_s = 0.0, 0.0
        while not self._told.wait(pause_s):
            waited_s, pause_s = waited_s + pause_s, min(2 * pause_s, UNTOLD_S) or 1.0
            with contextlib.suppress(exceptions.TroupeError):  # the head is away: the next time
                kept = self._before()
                if kept:
                    loop.call_soon_threadsafe(self._begin, kept["launch"])
                    return
                if waited_s >= UNTOLD_S:
                    self._leave()
                    return

    def _remember(self) -> None:
        kept = json.dumps(
            {"launch": self._launch, "run": self._run, "experiment": self._experiment}
        ).encode()
        _session.current().request(
            "KvPut", {"scope": rule.SCOPE, "key": self._me(), "overwrite": True}, kept
        )

    def _carry(self, method: str, path: str, kind: str, body: bytes) -> loopback.Answer:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(
            self.carry(method, path, kind, body), self._loop
        ).result()

    def _tag(self, tags: dict[str, str], wait_s: float = TAG_S) -> None:
        def write() -> None:
            at = runs.client()
            for name, value in tags.items():
                at.set_tag(self._run, name, value)

        try:
            runs.within(wait_s, f"MLflow at {self._wish.store}", write)
        except Exception as error:
            self._say_from(
                "warning", f"{', '.join(tags)} could not be written: {runs.words_of(error)}"
            )

    def _marker(self) -> str:
        """The outcome, once it is durable."""
        pause = threading.Event()
        while True:
            try:
                asked = {"launch": self._launch, "timeout_ms": round(MARKER_S * 1000)}
                return str(
                    _session.current().request("WaitMarker", asked, timeout=MARKER_S + 10)[1][
                        "marker"
                    ]["outcome"]
                )
            except exceptions.NotFoundError:
                return "unknown"
            except (exceptions.GetTimeoutError, TimeoutError):
                continue
            except (
                exceptions.TroupeError
            ):  # the head is away: it comes back, or the node ends with it
                pause.wait(AWAY_S)

    def _close(self, outcome: str) -> str:
        """Writes the end of the run. What could not be written, for the caller; "": nothing."""
        others = [
            task.result()[1]
            for task in list(self._nodes.values())
            if task.done() and not task.exception()
        ]
        last = [each.stop.remote() for each in others if each is not None]
        if self._measures is not None:
            self._measures.stop()
        if last:
            with contextlib.suppress(Exception):
                _calls.wait(last, len(last), 5.0)
        if self._wish.is_adopted:
            return ""
        if self._tagging is not None:
            self._tagging.join(END_S)
        status = rule.status_of(outcome)
        try:
            runs.within(
                END_S,
                f"MLflow at {self._wish.store}",
                lambda: runs.client().set_terminated(self._run, status),
            )
        except Exception as error:
            return (
                f"the run could not be marked {status} in {self._wish.store}: "
                f"{runs.words_of(error)}\n  mlflow.MlflowClient().set_terminated({self._run!r}, "
                f"{status!r}) does it"
            )
        return ""


OPTIONS = {"num_cpus": 0, "lifetime": "detached", "max_restarts": 3}


def of(session: Any, actor: str) -> Any:
    """A handle of the tracker with this id, which does not keep it alive."""
    from troupe._actors.handle import ActorHandle, watched
    from troupe._actors.method_options import Traits

    traits = Traits.of_class(Tracker, OPTIONS)
    return ActorHandle(watched(session, actor, Tracker.__name__, traits), traits)


_pickled.named_in("troupe._pickled", Tracker)
