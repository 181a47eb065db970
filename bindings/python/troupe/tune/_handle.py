"""The handle of a submitted sweep: what it does, its result, its end; from any program of the
cluster."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from troupe import _pickled, exceptions
from troupe._actors import classes
from troupe._base.identity import boot_id
from troupe._base.strategies import NodeAffinitySchedulingStrategy
from troupe._cluster import session as _session, status_lines, workers
from troupe._code import capture
from troupe.tune._errors import TuneError
from troupe.tune._journal import view
from troupe.tune._results import ResultGrid

if TYPE_CHECKING:
    import os

    from troupe.tune._run.changes import NewRows

NAMESPACE = "troupe.tune"
"""Of the actors that run submitted sweeps, each by the sweep's name."""
ANSWER_S = 30.0


class SweepHandle:
    """A submitted sweep, whoever runs it by now.

    `name`; `path`: its folder. It can be pickled, and asked from any thread.
    """

    def __init__(self, name: str, path: str | Path) -> None:
        self.name, self.path = name, Path(path)

    def __repr__(self) -> str:
        return f"<sweep {self.name} in {self.path}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.sweep_handle, (self.name, str(self.path))

    def status(self) -> dict[str, Any]:
        """`state` ("starting", "running", "finished", "stopped", "dead"), `trials` (how many wait,
        run, are paused, and have ended how), `best` (`trial_id`, `config`, `value` of the metric in
        its last report), `engine` (host and pid), `path`.

        Read from the sweep's folder. Raises FileNotFoundError where this host does not see it.
        """
        try:
            return view.status_of(view.of(self.path))
        except FileNotFoundError:
            about = self._about()
            if about is None or about["over"]:
                raise
            return view.status_of(
                view.SweepView(
                    self.path, "starting", {}, {"host": about["host"], "pid": about["pid"]}
                )
            )

    def _about(self) -> dict[str, Any] | None:
        import troupe

        actor = _actor(self.name)
        return None if actor is None else troupe.get(actor.about.remote(), timeout=ANSWER_S)

    def done(self) -> bool:
        """Return True if the sweep has ended, for good or until somebody resumes it. Raises as
        `status`."""
        return self.status()["state"] not in ("starting", "running")

    def result(self, timeout: float | None = None) -> ResultGrid:
        """Waits for the sweep's end and returns its ResultGrid.

        Blocks. Raises GetTimeoutError after `timeout` seconds (the sweep goes on), TuneError where
        it was stopped, or has ended without a word, and what `Tuner.fit` raises.
        """
        import troupe

        actor = _actor(self.name)
        if actor is not None:
            try:
                grid = troupe.get(actor.result.remote(), timeout=timeout)
            except exceptions.GetTimeoutError:
                raise exceptions.GetTimeoutError(
                    f"sweep {self.name} has not ended after {timeout:g} s; it goes on: call "
                    "result() again, or stop()"
                ) from None
            except exceptions.ActorError:
                grid = None  # the sweep ended long ago, or is lost: the folder tells
            if grid is not None:
                self._refuse_stopped(view.of(self.path).state if self.path.is_dir() else "finished")
                found: ResultGrid = grid
                return found
        state = view.of(self.path).state
        self._refuse_stopped(state)
        from troupe.tune._run import looking

        return looking.results_of(self.path)

    def _changes(self) -> Iterator[NewRows]:
        """Yield the changes of its trials, from the beginning to the end; blocks for each.

        Nothing more where its engine is no process of this cluster, or is lost.
        """
        import troupe

        place = None
        while (actor := _actor(self.name)) is not None:
            try:
                new: NewRows = troupe.get(actor.changes.remote(place))
            except exceptions.ActorError:
                return
            yield new
            if new.is_over:
                return
            place = new.place

    def _refuse_stopped(self, state: str) -> None:
        if state in ("stopped", "dead"):
            how = "was stopped" if state == "stopped" else "has no engine: its process was lost"
            raise TuneError(
                f"sweep {self.name} {how}, and has no result yet\n  what it has done so far is in "
                f"{self.path}; `troupe sweep resume "
                f"{self.name}` goes on with it"
            )

    def stop(self) -> None:
        """Ends the sweep here: its trials have 5 s for their `finally` blocks.

        It can be gone on with: `troupe sweep resume NAME`.

        Blocks until it has ended. Nothing where it is over. Raises TuneError where its engine runs
        elsewhere than in the cluster.
        """
        import troupe

        actor = self._engine()
        if actor is None:
            return
        troupe.get(actor.stop.remote(f"stopped from {socket.gethostname()}"), timeout=ANSWER_S)
        with contextlib.suppress(exceptions.TroupeError):  # result() raises the error
            troupe.get(actor.result.remote())

    def pause(self) -> None:
        """From now on no trial is started; what runs goes on.

        Raises TuneError where the sweep does not run, or elsewhere than in the cluster.
        """
        self._hold(True)

    def resume(self) -> None:
        """Trials are started again after `pause`; a sweep that was stopped, or whose engine has
        died, is gone on with, each trial from its latest checkpoint. Raises TuneError where it is
        over."""
        if view.of(self.path).state == "running":
            self._hold(False)
        else:
            go_on(self.path)

    def _hold(self, held: bool) -> None:
        import troupe

        actor = self._engine()
        if actor is None:
            raise TuneError(f"sweep {self.name} does not run: it is {view.of(self.path).state}")
        troupe.get(actor.hold.remote(held), timeout=ANSWER_S)

    def _engine(self) -> Any:
        """The process that runs it; None: nobody does.

        Raises TuneError where another program does.
        """
        import troupe

        actor = _actor(self.name)
        if actor is not None and not troupe.get(actor.about.remote(), timeout=ANSWER_S)["over"]:
            return actor
        if view.of(self.path).state == "running":
            raise TuneError(running_elsewhere(self.path))
        return None


def running_elsewhere(path: Path) -> str:
    """Return the message that a sweep belongs to a program."""
    _, engine = view.engine_of(path)
    return (
        f"the sweep in {path} runs in a program, pid {engine.get('pid')} on {engine.get('host')}, "
        "and not as one that was submitted: Ctrl-C there "
        "ends it, or `troupe sweep stop` on that host"
    )


def submit(tuner: Any, resume: tuple[bool, str] | None = None) -> SweepHandle:
    """Starts an engine that outlives this process.

    `resume`: of a sweep that was begun: see Tuner.restore. Raises what `Tuner.fit` does before it
    starts, FileExistsError for a name that is taken.
    """
    from troupe.tune._run import deciders
    from troupe.tune._run.folder import is_sweep

    session = _session.current()
    if session.launch:
        raise TuneError(
            "this is a part of a launch, with which all that it makes ends: sweep(...) runs the "
            "sweep here, in this launch's nodes"
        )
    deciders.of(deciders.complete(tuner._tune), tuner._space, tuner._run.stop)
    path = tuner._path
    if resume is None and is_sweep(path):
        raise FileExistsError(
            f"there is a sweep in {path} already: `troupe sweep resume {path.name}` goes on with "
            "it, and name= with another name "
            "begins a new one"
        )
    handle = _start(path, capture.dumps(None, (tuner,), {}, what="the sweep"), resume)
    if session.embedded is not None:
        status_lines.say(
            f"troupe.tune: sweep {path.name} runs in a cluster of this program, and ends with it: "
            "with remote=True a cluster of "
            "`troupe start --head` keeps it"
        )
    return handle


def go_on(path: Path, errored: str = "") -> SweepHandle:
    """Has a process of the cluster go on with a sweep that nobody runs, by what its folder has.

    `errored`: see Begun. Raises FileNotFoundError where that does not have what the trials run,
    TuneError for a sweep that runs, or is over and is not to try what failed again.
    """
    check_can_go_on(path, errored)
    return _start(path, b"", (True, errored))


def check_can_go_on(path: Path, errored: str = "") -> None:
    """Raises what `go_on` does."""
    from troupe.tune._run.folder import TRAINABLE, trainable_of

    seen = view.of(path)
    if seen.state == "running":
        raise TuneError(
            f"sweep {path.name} runs: pid {seen.engine.get('pid')} on {seen.engine.get('host')}"
            + ("; what failed is tried again once it is over, or stopped" if errored else "")
        )
    failed = seen.counts()["failed"]
    if seen.state == "finished" and not (errored and failed):
        again = (
            f"; `troupe sweep retry-failed {path.name}` tries the {failed} trials again that failed"
            if failed
            else ""
        )
        raise TuneError(
            f"sweep {path.name} is over: "
            f"{seen.over}{again if not errored else ', and no trial of it has failed'}"
        )
    if not (path / TRAINABLE).exists():
        trainable_of(path)


def _start(path: Path, pickled: bytes, resume: tuple[Any, ...] | None) -> SweepHandle:
    import troupe
    from troupe.tune._run.served import SweepHost

    _let_go_of_the_name(path)
    made = troupe.remote(SweepHost).options(
        name=path.name,
        namespace=NAMESPACE,
        lifetime="detached",
        num_cpus=0,
        max_restarts=-1,
        max_task_retries=-1,
        concurrency_groups={"waits": 64},
        scheduling_strategy=beside(_session.current()),
    )
    try:
        troupe.get(made.remote(path.name, pickled, str(path), resume).about.remote())
    except exceptions.AlreadyExistsError:
        raise FileExistsError(
            f"a sweep called {path.name} runs in this cluster: name= with another name begins one "
            "beside it"
        ) from None
    return SweepHandle(path.name, path)


def beside(session: _session.Session) -> Any:
    """A node of this host, where there is one: the sweep's folder is there."""
    here = boot_id()
    nodes = [
        each["node"]
        for each in workers.node_infos(session)
        if each["boot_id"] == here and each["state"] == "alive"
    ]
    return NodeAffinitySchedulingStrategy(nodes[0], soft=True) if nodes else None


def _actor(name: str) -> Any:
    """The process of a submitted sweep; None: there is none any more, or this process is connected
    to no cluster."""
    return classes.find_actor(name, NAMESPACE)


def _let_go_of_the_name(path: Path) -> None:
    """Release the name of a sweep that is over, without waiting for its process."""
    import troupe

    actor = _actor(path.name)
    if actor is None:
        return
    try:
        if troupe.get(actor.about.remote(), timeout=ANSWER_S)["over"]:
            troupe.kill(actor)
    except exceptions.TroupeError:
        return


def attach(name: str, storage: str | os.PathLike[str] | None = None) -> SweepHandle:
    """The handle of a sweep that was submitted, by another program perhaps, by its name: it runs in
    this program's cluster, or is found in `storage` (~/troupe_results unless given), over or not.

    Blocks for the answer. Raises ValueError, with the nearest, for a name that no sweep has.

        tune.attach("digits").result()
    """
    import troupe
    from troupe.tune._run import looking

    if not isinstance(name, str) or not name:
        raise TypeError(f"attach takes the name of a sweep, not {name!r}")
    actor = _actor(name)
    if actor is not None:
        return SweepHandle(name, troupe.get(actor.about.remote(), timeout=ANSWER_S)["path"])
    return SweepHandle(name, looking.folder_of(name, storage))


@_pickled.maker("sweep_handle")
def _sweep_handle(name: str, path: str) -> Any:
    """The handle of a submitted sweep."""
    return SweepHandle(name, path)


_pickled.named_in("troupe.tune", SweepHandle, attach)
