"""The cluster as the launch's driver has it: Ray's nodes are started on those of the launch,
watched, and taken down.

View: rank 0 of a launch in mode driver, in its main thread; one more thread waits for the end of a
process of Ray's.
"""

from __future__ import annotations

import atexit
import contextlib
import secrets
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from troupe import exceptions
from troupe._base import calls as _calls
from troupe._cluster import logs, session as _session, workers
from troupe._code.capture import cloudpickled
from troupe._ray_cluster import words
from troupe._ray_cluster.node import RayNode
from troupe.launch import _context

_AT_ONCE = 4  # calls of a node's actor: what waits for the end, and what is asked meanwhile
_SWEEP_S = 5.0


class Member:
    """A node of the cluster: its share of the launch, its actor, and the rank that serves there."""

    def __init__(self, share: words.Share, rank: Any, held: Mapping[str, float]) -> None:
        import troupe
        from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.share = share
        self.rank = rank
        self.about: dict[str, str] = {}
        self.ended: Any = None
        self.actor = (
            troupe.remote(RayNode)
            .options(
                max_concurrency=_AT_ONCE,
                scheduling_strategy=NodeAffinitySchedulingStrategy(share.node, soft=False),
                num_cpus=held.get("CPU", 0),
                num_gpus=held.get("GPU", 0),
                memory=int(held.get("memory", 0)) or None,
            )
            .remote(share)
        )


class Cluster:
    """A cluster that runs. `variables`: what a process on this node finds it by."""

    def __init__(self, members: Sequence[Member], abort: Any) -> None:
        self._members = members
        self._abort = abort
        self._over = threading.Event()
        self.variables: dict[str, str] = {}

    def start(self, wishes: words.Wishes, enter: Callable[[words.Share], Any] | None) -> None:
        """Blocks until all nodes are in the cluster.

        Raises RuntimeEnvSetupError without a Ray that can be used, TroupeError where it does not
        start.
        """
        asked = [
            each.actor.prepare.remote(enter(each.share) if enter is not None else None)
            for each in self._members
        ]
        for each, about in zip(self._members, _all(asked), strict=True):
            each.about = about
        different = words.differing(
            {each.share.name: each.about["version"] for each in self._members}
        )
        if different:
            raise exceptions.RuntimeEnvSetupError(different)
        head, *others = self._members
        own = (
            secrets.token_hex(32) if head.share.api == words.RAY else ""
        )  # Troupe's head makes its tokens
        address, token = _all([head.actor.start.remote(wishes, "", own)])[0]
        _all([each.actor.start.remote(wishes, address, token) for each in others])
        self.variables = _all([head.actor.variables.remote(address)])[0]
        for each in self._members:
            each.ended = each.actor.ended.remote()
        threading.Thread(target=self._watch, name="troupe-ray", daemon=True).start()

    def _watch(self) -> None:
        """The first end of a process of Ray's is the launch's."""
        ready, _ = _calls.wait([each.ended for each in self._members], 1)
        if self._over.is_set():
            return
        member = next(each for each in self._members if each.ended is ready[0])
        error = self._what_ended(member)
        if error is not None and not self._over.is_set():
            _forget_ray()
            # the ends of these actors, which the launch's brings, leave them little time
            self.stop()
            self._abort(error)

    def _what_ended(self, member: Member) -> BaseException | None:
        try:
            death = _calls.get(member.ended)
        except exceptions.TroupeError as lost:
            self._sweep(member)
            return _died(
                f"what keeps Ray on {member.share.name} has ended, and all of Ray there with it: "
                f"{lost}",
                {},
            )
        return None if death is None else of_death(death)

    def what_has_died(self) -> BaseException | None:
        """The error that says which process of Ray's has ended by now; None where all live, as far
        as their nodes answer."""
        asked = [(each, each.actor.look.remote()) for each in self._members]
        for member, ref in asked:
            try:
                death = _calls.get(ref)
            except exceptions.TroupeError:
                return self._what_ended(member)
            if death is not None:
                return of_death(death)
        return None

    def stop(self) -> None:
        """Ends all of Ray on all nodes; blocks until nothing of it is left."""
        self._over.set()
        asked = [(each, each.actor.stop.remote()) for each in self._members]
        for member, ref in asked:
            try:
                _calls.get(ref)
            except exceptions.TroupeError:  # the actor's process is gone, and Ray's with it
                self._sweep(member)

    def _sweep(self, member: Member) -> None:
        """Let the rank of a node whose actor was killed remove the folder."""
        if not member.about:
            return
        payload = cloudpickled((shutil.rmtree, (member.about["folder"],), {"ignore_errors": True}))
        with contextlib.suppress(exceptions.TroupeError):
            if member.rank.rank == 0:
                shutil.rmtree(member.about["folder"], ignore_errors=True)
            else:
                _calls.get(member.rank.send(payload, False), _SWEEP_S)


@contextlib.contextmanager
def running(
    wishes: words.Wishes,
    *,
    api: str = words.RAY,
    cpus: float | None = None,
    enter: Callable[[words.Share], Any] | None = None,
) -> Iterator[Cluster]:
    """A cluster on the nodes of the launch whose driver this is, for the length of the block;
    whatever ends the block ends it.

    Of `cpus` on each node, where that is not what the launch has. `enter`, of a node's share: what
    its actor calls before it starts anything. The end of one of its processes fails the launch; an
    error that the block raises after such an end is that end's. Raises as Cluster.start.
    """
    context = _context.current()
    cluster = Cluster(_members(context, _session.current(), api, cpus), context._abort)
    try:
        cluster.start(wishes, enter)
        yield cluster
    except Exception as error:
        died = cluster.what_has_died() if cluster.variables else None
        if died is None:
            raise
        _forget_ray()
        raise died from error
    finally:
        _leave_ray()
        cluster.stop()


def _members(context: Any, session: Any, api: str, cpus: float | None) -> list[Member]:
    """Return a member for each node of the launch, rank 0's first."""
    infos = session.request("GetLaunch", {"launch": context.launch})[1]["info"]["rank_infos"]
    nodes = {each["node"]: each for each in workers.node_infos(session)}
    of_node: dict[str, list[int]] = {}
    for info in sorted(infos, key=lambda info: info["rank"]):
        of_node.setdefault(info["node"], []).append(info["rank"])
    found = []
    for node, ranks in of_node.items():
        held = {name: amount * len(ranks) for name, amount in context.resources_per_rank.items()}
        share = words.Share(
            node,
            nodes[node]["name"],
            nodes[node]["listen_host"],
            cpus or held.get("CPU", 0),
            held.get("GPU", 0),
            int(held.get("memory", 0)),
            api,
        )
        found.append(Member(share, context.ranks[ranks[0]], held))
    return found


def _all(refs: Sequence[Any]) -> list[Any]:
    """Return the values of refs; an error of a node is raised as its cause."""
    try:
        return [_calls.get(ref) for ref in refs]
    except exceptions.TaskError as error:
        if isinstance(error.cause, exceptions.TroupeError):
            raise error.cause from None
        raise


def of_death(death: dict[str, Any]) -> exceptions.RayProcessDiedError:
    """The error that says which process of Ray's ended where, and how."""
    lines = logs.last_lines(death["log_tail"])
    said = "".join(f"\n    {line}" for line in lines)
    return _died(
        f"Ray's {death['process']} on {death['node']} {words.exit_text(death['code'])} (host "
        f"{death['host']}, pid {death['pid']}), and ended the cluster"
        + (f"\n  the last lines it wrote:{said}" if lines else ""),
        death,
    )


def _died(text: str, death: dict[str, Any]) -> exceptions.RayProcessDiedError:
    error = exceptions.RayProcessDiedError(text)
    code = death.get("code", 0)
    error.process, error.host, error.log_tail = (
        death.get("process", ""),
        death.get("host", ""),
        death.get("log_tail", ""),
    )
    error.exit_code, error.signal = (None, -code) if code < 0 else (code, None)
    return error


def _leave_ray() -> None:
    """As `ray.shutdown()`, where this process has used Ray and its cluster lives: it shows what
    tasks have printed last."""
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        ray.shutdown()


def _forget_ray() -> None:
    """The cluster is broken: Ray's own exit handler would wait for it."""
    ray = sys.modules.get("ray")
    if ray is not None:
        atexit.unregister(ray.shutdown)
