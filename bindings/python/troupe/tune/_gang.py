"""A trial that is a gang: its process is rank 0, which starts the other ranks in the bundles beside
its own, and whose reports are the trial's."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import troupe
from troupe import _pickled, exceptions, state
from troupe._base.context import ActorContext
from troupe._base.identity import boot_id
from troupe._cluster.groups import PlacementGroup
from troupe._code import capture, user_main
from troupe._process import store_host
from troupe.launch import _parts
from troupe.train import _failures, _here, _worker
from troupe.train._checkpoint import Checkpoint
from troupe.train._gang import ranks_of
from troupe.tune import _resources
from troupe.tune._context import TuneContext
from troupe.tune._errors import TrialStopped
from troupe.tune._run import directory
from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy

STUCK_GRACE_S = 5.0
"""How long rank 0 has for an end of its own after another rank has failed: it may wait for that one
in a collective, for ever."""
LAST_WORD_S = 4.0
"""How long the others have for their `finally` blocks where the trial is stopped; the trial's
process has 5 s."""


@dataclasses.dataclass(frozen=True)
class GangTrial:
    """A trial's function that is run by all ranks of a gang.

    `bundle`: what each holds; `preimport`: what their processes have imported already.
    """

    function: Callable[..., Any]
    ranks: int
    bundle: Mapping[str, float]
    preimport: tuple[str, ...] = ()

    def __call__(self, config: Mapping[str, Any], **parameters: Any) -> Any:
        loop = _here.current("a gang's trial")
        others = self._others(loop.context.get_trial_name())
        try:
            about = [about_here(), *troupe.get([each.about.remote() for each in others])]
            store, plans = _plans(about, loop)
            payload = troupe.put(
                capture.dumps(
                    self.function, (dict(config),), parameters, what="the trial's function"
                )
            )
            running = [
                other.run.remote(payload, plan)
                for other, plan in zip(others, plans[1:], strict=True)
            ]
            return _as_rank_zero(
                RankZero(loop, plans[0].context, others, running, store),
                plans[0],
                self.function,
                config,
                parameters,
            )
        finally:
            for other in others:
                with contextlib.suppress(exceptions.TroupeError):
                    troupe.kill(other)

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", "trial")

    def _others(self, name: str) -> list[Any]:
        here = ActorContext.current
        assert here is not None
        made = troupe.remote(GangRank).options(
            **_resources.amounts_as_options(self.bundle),
            concurrency_groups={"control": 1},
            preimport=self.preimport,
        )
        group = PlacementGroup(here.group, [dict(self.bundle)] * self.ranks)
        return [
            made.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, rank)).remote(
                f"{name} rank {rank}"
            )
            for rank in range(1, self.ranks)
        ]


@dataclasses.dataclass(frozen=True)
class RankPlan:
    """The instructions for one rank: its number, and the variables by which it finds the others."""

    context: TuneContext
    variables: Mapping[str, str]
    latest: Checkpoint | None


def about_here() -> dict[str, Any]:
    """Return the place of this process, and the GPUs that it holds."""
    here = troupe.get_runtime_context()
    return {
        "node": here.get_node_id(),
        "host": socket.gethostname(),
        "boot_id": boot_id(),
        "gpus": list(troupe.get_gpu_ids()),
        "address": troupe.util.get_node_ip_address(),
    }


def _plans(about: list[dict[str, Any]], loop: _here.Loop) -> tuple[Any, list[RankPlan]]:
    """The store at which the ranks meet, which this process serves, and what each rank is told, the
    first for this process."""
    of_trial = loop.context
    assert isinstance(of_trial, TuneContext)
    one_host = len({each["boot_id"] for each in about}) == 1
    address = "127.0.0.1" if one_host else about[0]["address"]
    store, port = None, 0
    with contextlib.suppress(ImportError):  # without torch there are no groups of its
        importlib.import_module("torch.distributed")
        at = {each["node"] for each in about}
        peers = (
            []
            if one_host
            else store_host.addresses_of(
                node for node in state.list_nodes() if node["node_id"] in at
            )
        )
        store, port = store_host.serve(address, peers)
    plans: dict[int, RankPlan] = {}
    places = ranks_of([each["node"] for each in about])
    for bundle, node_rank, local_rank, local_size, rank in places:
        interface = "lo" if one_host else _worker.interface_of(about[bundle]["address"])
        gpus = [
            gpu for other, place, *_ in places if place == node_rank for gpu in about[other]["gpus"]
        ]
        variables = {
            "RANK": rank,
            "WORLD_SIZE": len(about),
            "LOCAL_RANK": local_rank,
            "LOCAL_WORLD_SIZE": local_size,
            "NODE_RANK": node_rank,
            "GROUP_RANK": node_rank,
            "MASTER_ADDR": address,
            "MASTER_PORT": port,
            "TORCHELASTIC_USE_AGENT_STORE": "True",
        }
        if interface:
            variables |= {
                name: os.environ.get(name, interface)
                for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
            }
        if (
            len(set(gpus)) == len(gpus) > 0
        ):  # all of a node see the same ones, as NCCL wants it, each rank's own at its LOCAL_RANK
            variables["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
        context = dataclasses.replace(
            of_trial,
            world_rank=rank,
            world_size=len(about),
            local_rank=local_rank,
            local_world_size=local_size,
            node_rank=node_rank,
        )
        plans[bundle] = RankPlan(
            context,
            {name: str(value) for name, value in variables.items()},
            loop.latest(),
        )
    return store, [plans[bundle] for bundle in range(len(about))]


@contextlib.contextmanager
def _as_rank(loop: _here.Loop, plan: RankPlan, after: _here.Loop | None) -> Iterator[None]:
    """Meanwhile the process is that rank.

    The process group that its code leaves is destroyed where that raises: others who wait in it
    raise, too.
    """
    before = {name: os.environ.get(name) for name in plan.variables}
    os.environ.update(plan.variables)
    _here.enter(loop)
    try:
        yield
    except BaseException:
        _destroy_group()
        raise
    finally:
        _here.enter(after)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _destroy_group() -> None:
    module = sys.modules.get("torch.distributed")
    if module is not None and module.is_available() and module.is_initialized():
        module.destroy_process_group()


@contextlib.contextmanager
def _part(plan: RankPlan) -> Iterator[None]:
    """Run the trial's function as this rank inside.

    Where others wait for a rank that has returned, they raise a TroupeError that names it.
    """
    with _parts.part(f"trial.{plan.variables['MASTER_PORT']}"):
        try:
            yield
        except SystemExit as left:
            if left.code not in (None, 0):
                raise RuntimeError(
                    f"the trial's function called sys.exit({left.code!r}) in rank "
                    f"{plan.context.world_rank}"
                ) from None


def _as_rank_zero(
    own: RankZero,
    plan: RankPlan,
    function: Callable[..., Any],
    config: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> Any:
    over = threading.Event()
    threading.Thread(target=own.watch, args=(over,), name="troupe-gang", daemon=True).start()
    try:
        value = None
        with _as_rank(own, plan, own.inner):
            with _part(plan):
                value = function(dict(config), **parameters)
            own.raise_cause(
                None
                # the group stays meanwhile, so that whoever waits for this rank hears that it has
                # returned
            )
        own.leave_group()
        return value
    except TrialStopped:
        own.await_last_words()
        raise
    except Exception as error:
        mine = _parts.latest()
        if _failures.is_symptom(error) and not (mine is not None and mine.verdict):
            own.raise_cause(error)
        raise
    finally:
        over.set()


class RankZero(_here.Loop):
    """The trial's own loop, whose decisions the other ranks get too."""

    def __init__(
        self,
        inner: _here.Loop,
        context: TuneContext,
        others: list[Any],
        running: list[Any],
        store: Any,
    ) -> None:
        self.inner, self.context, self.running = inner, context, running
        self._others = others
        self._store = store  # the store serves as long as it is held
        self._number = 0
        self._reporting: list[Any] = []

    def report(
        self, metrics: dict[str, Any], checkpoint: Checkpoint | None, dir_name: str | None
    ) -> None:
        """See Loop."""
        self._number += 1
        stop = ""
        try:
            self.inner.report(metrics, checkpoint, dir_name)
        except TrialStopped as stopped:
            stop = str(stopped) or "stopped"
            raise
        finally:
            self._reporting = [
                each.decided.remote(self._number, stop, self.inner.latest())
                for each in self._others
            ]

    def latest(self) -> Checkpoint | None:
        """See Loop."""
        return self.inner.latest()

    def await_last_words(self) -> None:
        """Wait for the other ranks that report too: they have been told, and clean up; the rest are
        in collectives, and have nothing to report."""
        waiting = []
        for told, run in zip(self._reporting, self.running, strict=True):
            with contextlib.suppress(exceptions.TroupeError):
                if troupe.get(told, timeout=LAST_WORD_S):
                    waiting.append(run)
        if waiting:
            troupe.wait(waiting, num_returns=len(waiting), timeout=LAST_WORD_S)

    def raise_cause(self, symptom: Exception | None) -> None:
        """Raises what another rank has failed of: that is why rank 0 lost its connection to it.

        Without a symptom it waits for all.
        """
        ready, _ = troupe.wait(
            list(self.running),
            num_returns=len(self.running),
            timeout=None if symptom is None else STUCK_GRACE_S,
        )
        for rank, ref in enumerate(self.running, 1):
            if ref not in ready:
                continue
            try:
                troupe.get(ref)
            except exceptions.TroupeError as error:
                if symptom is None or not _failures.is_symptom(error):
                    cause = (
                        error.cause
                        if isinstance(error, exceptions.TaskError)
                        and isinstance(error.cause, Exception)
                        else error
                    )
                    cause.add_note(f"in rank {rank} of {len(self.running) + 1}")
                    raise cause from symptom

    def leave_group(self) -> None:
        """Destroy the group in all ranks, which have ended: NCCL ends a group in all of its members
        together."""
        for each in self._others:
            each.leave_group.remote()
        _destroy_group()

    def watch(self, over: threading.Event) -> None:
        """A rank that fails is the trial's failure, also where rank 0 waits for it in a
        collective."""
        left = list(self.running)
        while left and not over.is_set():
            ready, left = troupe.wait(left, num_returns=1)
            for ref in ready:
                try:
                    troupe.get(ref)
                except exceptions.TroupeError as error:
                    if not over.wait(STUCK_GRACE_S):
                        self.inner.fail(error)  # type: ignore[attr-defined]
                    return


class GangRank(_here.Loop):
    """The process of another rank than the first.

    `run` has the default group's thread, `decided` that of the group "control".
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._reports = self._decided = 0
        self._stop = ""
        self._latest: Checkpoint | None = None
        self.context = TuneContext()

    def __repr__(self) -> str:
        return self._name

    def about(self) -> dict[str, Any]:
        """See about_here."""
        with contextlib.suppress(ImportError):
            importlib.import_module("torch.distributed")
        return about_here()

    def run(self, payload: bytes, plan: RankPlan) -> None:
        """Run the function to its end.

        Raises what it raises. The group that it leaves stays until `leave_group`.
        """
        self.context, self._latest = plan.context, plan.latest
        with _as_rank(self, plan, None):
            function, args, kwargs = user_main.loads(payload)
            own = directory.working_directory(
                Path(plan.context.path), wanted=plan.context.has_own_directory, is_shared=True
            )
            with contextlib.suppress(TrialStopped), own, _part(plan):
                function(*args, **kwargs)

    def leave_group(self) -> None:
        """Destroy the group that the function has left."""
        _destroy_group()

    @troupe.method(concurrency_group="control")
    def decided(self, number: int, stop: str, latest: Checkpoint | None) -> bool:
        """The trial's report of that number was answered. Whether this rank reports too."""
        with self._changed:
            self._decided, self._stop = number, stop
            self._latest = latest
            self._changed.notify_all()
            return self._reports > 0

    def report(
        self, metrics: dict[str, Any], checkpoint: Checkpoint | None, dir_name: str | None
    ) -> None:
        """See Loop: waits for the decision about rank 0's report of the same number, and is stopped
        with it."""
        if checkpoint is not None:
            raise ValueError(
                f"report(checkpoint=...) of rank {self.context.world_rank}: of a trial that is a "
                "gang rank 0's checkpoint is kept, so all of "
                "it has to be written there: checkpoint=... if rank == 0 else None"
            )
        with self._changed:
            self._reports += 1
            self._changed.wait_for(lambda: self._decided >= self._reports or self._stop)
            if self._stop:
                raise TrialStopped(self._stop)

    def latest(self) -> Checkpoint | None:
        """See Loop."""
        return self._latest


_pickled.named_in("troupe._pickled", GangRank, GangTrial, RankPlan)
