"""The ranks of a `@ray_launch` as seen by its driver, and what each of the others serves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from troupe import exceptions
from troupe._base import rendezvous as _rendezvous
from troupe._cluster import session
from troupe._code import user_main
from troupe._code.capture import cloudpickled
from troupe.launch import _arguments, _parts, _shares

STUCK_GRACE_S = 5.0
_group_formed = False


def form_group(context: Any) -> None:
    """Joins the launch's process group, once; blocks until every rank has.

    Nothing without torch.
    """
    global _group_formed
    if _group_formed:
        return
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        _group_formed = True
        return
    if not dist.is_initialized():
        on_gpu = torch.cuda.is_available() and torch.cuda.device_count() > context.local_rank
        if on_gpu:
            torch.cuda.set_device(context.local_rank)
        dist.init_process_group("nccl" if on_gpu else "gloo")
    _group_formed = True


def run_part(context: Any, payload: bytes, run: int) -> Any:
    """Run one rank's part of the run `run` of `current().run`; 0: of a rank's own run, outside any
    collective."""

    fn, args, kwargs = user_main.loads(payload)
    if not run:
        return fn(*args, **kwargs)
    form_group(context)
    with _parts.part(f"{context.epoch}.{run}"):
        return fn(*args, **kwargs)


class RankService:
    """The actor of a rank that is not the driver; its methods run in the rank's main thread."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def run(self, payload: bytes, number: int) -> bytes:
        """Runs a part and returns its value pickled by cloudpickle."""
        try:
            value = run_part(self._context, payload, number)
        except SystemExit as error:
            raise RuntimeError(
                f"rank {self._context.rank} called sys.exit({error.code!r}) inside current().run; "
                "return instead"
            ) from error
        return cloudpickled(value)


class RankHandle:
    """A handle of one rank, for the driver. `run` runs a function there alone, outside any
    collective."""

    def __init__(self, gang: Gang, rank: int, address: dict[str, Any]) -> None:
        self.rank = rank
        self.node = address["node"]
        self._gang = gang
        self._address = address
        self._channel: Any = None

    def __repr__(self) -> str:
        return f"<rank {self.rank} on node {self.node[:8]}>"

    def send(self, payload: bytes, number: int) -> Any:
        """Starts a part of the run of that number; a ref of its pickled value."""
        from troupe._base import calls as _calls

        if self._channel is None:
            self._channel = _calls.connect(
                self._address, f"rank {self.rank}", session.current().control
            )
        return self._channel.call("run", payload, number)

    def run(
        self, fn: Callable[..., Any], /, *args: Any, timeout: float | None = None, **kwargs: Any
    ) -> Any:
        """Runs `fn` on this rank and returns its value.

        Blocks.

        The rank holds its share of the launch's resources meanwhile, as in `current().run`;
        `timeout` seconds for the share and the other rank's part, then GetTimeoutError.
        """
        _arguments.refuse_unclear_timeout(fn, timeout)
        payload = cloudpickled((fn, args, kwargs))
        gang, started = self._gang, time.monotonic()
        gang.refuse_inside("a rank's run")
        with _shares.leased(gang.context, self.rank, timeout) as hold:
            if self.rank == 0:
                return gang.run_here(payload, 0)
            hold.parts = [self.send(payload, 0)]
            return gang.receive(self, hold.parts[0], _left(started, timeout), timeout)


def _left(started: float, timeout: float | None) -> float | None:
    """Return the rest of `timeout` seconds since `started`."""
    return None if timeout is None else max(0.0, started + timeout - time.monotonic())


class Gang:
    """All ranks of the launch, made at the driver's first use."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.ranks = [
            RankHandle(self, rank, address) for rank, address in enumerate(context.rank_actors)
        ]
        self._broken: BaseException | None = None
        self._one_run = threading.Lock()
        self._runs = 0
        self._inside = threading.local()

    def run(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        timeout: float | None,
    ) -> list[Any]:
        """See LaunchContext.run."""
        started = time.monotonic()
        self.refuse_inside("current().run")
        with self._one_run:
            if self._broken is not None:
                raise exceptions.TroupeError(
                    f"an earlier current().run failed ({self._broken}), so the process group is "
                    "not usable "
                    "any more"
                ) from self._broken
            payload = cloudpickled((fn, args, kwargs))
            self._runs += 1
            with _shares.leased(self.context, None, timeout) as hold:
                try:
                    hold.parts = [handle.send(payload, self._runs) for handle in self.ranks[1:]]
                    own = self._own_part(payload, hold.parts)
                    return [own] + [
                        self.receive(handle, ref, _left(started, timeout), timeout)
                        for handle, ref in zip(self.ranks[1:], hold.parts, strict=True)
                    ]
                except BaseException as error:
                    self._broken = error
                    raise

    def refuse_inside(self, what: str) -> None:
        """Refuses a run inside a run of the same thread: it would wait for what the outer one
        holds."""
        if getattr(self._inside, "part", False):
            raise RuntimeError(
                f"{what} was called inside a function that a run of this launch runs on rank 0: it "
                "would wait for resources and ranks that the outer run holds"
            )

    def run_here(self, payload: bytes, number: int) -> Any:
        """Rank 0's own part, in the calling thread."""
        self._inside.part = True
        try:
            with _rendezvous.with_all_ranks():
                return run_part(self.context, payload, number)
        finally:
            self._inside.part = False

    def _own_part(self, payload: bytes, parts: list[Any]) -> Any:
        """Rank 0's part, watched: a failed peer would leave it in a collective for ever."""
        done = threading.Event()
        watch = threading.Thread(
            target=self._watch, args=(parts, done), name="troupe-run", daemon=True
        )
        watch.start()
        try:
            return self.run_here(payload, self._runs)
        finally:
            done.set()

    def _watch(self, parts: list[Any], done: threading.Event) -> None:
        from troupe._base import calls as _calls

        waiting = list(parts)
        while waiting and not done.is_set():
            ready, waiting = _calls.wait(waiting, 1)
            for ref in ready:
                try:
                    _calls.get(ref)
                except BaseException as error:
                    if not done.wait(STUCK_GRACE_S) and self.context._abort is not None:
                        self.context._abort(error)
                    return

    def receive(
        self, handle: RankHandle, ref: Any, left: float | None, timeout: float | None
    ) -> Any:
        """The value of a part, waiting `left` of `timeout` seconds.

        Raises its exception as its own type, or GetTimeoutError.
        """
        import cloudpickle

        from troupe._base import calls as _calls

        try:
            return cloudpickle.loads(_calls.get(ref, left))
        except exceptions.GetTimeoutError:
            raise exceptions.GetTimeoutError(
                f"rank {handle.rank} did not finish its part within {timeout:g} s"
            ) from None
