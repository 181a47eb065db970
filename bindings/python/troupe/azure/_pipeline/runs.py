"""Pipelines as they run: submitted, found by their names, waited for, cancelled.

A submitted pipeline runs in an actor of the cluster that outlives its submitter (`host`); each step
is a job of its own.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import troupe
from troupe import exceptions
from troupe._actors import classes
from troupe._cluster import session as _session, status_lines, view
from troupe._code import disk, field_checks
from troupe.azure._jobs.current import as_current
from troupe.azure._jobs.job import Job, made_at
from troupe.azure._pipeline import graph, plan as _plan, shown
from troupe.azure._pipeline.record import LOG, PLAN, Folder, State, StepState, read_state
from troupe.azure._pipeline.submission import NAMESPACE, root, submit as submit

ANSWER_S = 30.0


@dataclass(frozen=True)
class PipelineView:
    """A pipeline as its folder has it.

    `is_lost`: no process drives it any more, and it is not over.
    """

    folder: Folder
    plan: _plan.Plan
    state: State
    is_lost: bool = False

    @property
    def name(self) -> str:
        """Return what the pipeline is called."""
        return self.plan.name


class PipelineState(Job):
    """A pipeline as it is: `steps`: the state of each step, with the name of its job; `studio_url`:
    the pipeline's folder."""

    type = "pipeline"

    def __init__(self, seen: PipelineView) -> None:
        status = (
            graph.FAILED
            if seen.is_lost
            else "Preparing"
            if seen.state.status == graph.NOT_STARTED
            else seen.state.status
        )
        about = seen.plan.about
        super().__init__(
            seen.name, seen.name, status, about=about, created=made_at(seen.folder.began_s())
        )
        self.steps = {
            name: {
                "job": each.job,
                "status": each.status,
                **({"reused": True} if each.is_reused else {}),
                **({"cause": each.cause} if each.cause else {}),
            }
            for name, each in seen.state.steps.items()
        }
        cause = shown.lost(seen.name, seen.state) if seen.is_lost else seen.state.cause
        if cause:
            self.cause = cause
        self.path = str(seen.folder.path)
        self.studio_url = seen.folder.path.absolute().as_uri()


def found(name: str) -> PipelineView | None:
    """Return the pipeline with that name, as it is now; None: there is none.

    Raises DamagedFileError.
    """
    if not isinstance(name, str) or not name or "/" in name or not (root() / name / PLAN).is_file():
        return None
    return _view(Folder(root() / name))


def _view(folder: Folder) -> PipelineView:
    made = folder.plan()
    assert made is not None
    state = folder.state()
    is_over = state.status in graph.TERMINAL
    if not is_over and not folder.is_driven() and _driver(made.name) is None:
        state = folder.state()  # the step may have ended meanwhile
        is_over = state.status in graph.TERMINAL
        return PipelineView(folder, made, state, not is_over)
    return PipelineView(folder, made, state)


def known() -> list[PipelineState]:
    """Return all pipelines of this user, the one that was begun first at the front."""
    if not root().is_dir():
        return []
    paths = sorted(
        (each for each in root().glob(f"*/{PLAN}")),
        key=lambda each: (each.stat().st_mtime, each.parent.name),
    )
    found = []
    for each in paths:
        try:
            found.append(PipelineState(_view(Folder(each.parent))))
        except (exceptions.DamagedFileError, FileNotFoundError) as error:
            status_lines.say(f"troupe: {error}")
    return found


def step_job(name: str) -> Job | None:
    """Return the job of a step by its name, as the pipeline's folder has it; None: it is no
    step's."""
    of = _of_job(name)
    return None if of is None else _job_of(name, of[0].state.steps[of[1]])


def _of_job(name: str) -> tuple[PipelineView, str] | None:
    """Return the pipeline and the step whose job has that name; None: it is no step's."""
    for at in [match.start() for match in re.finditer("_", name)]:
        seen = found(name[:at])
        if seen is not None and name[at + 1 :] in seen.state.steps:
            return seen, name[at + 1 :]
    return None


def children(seen: PipelineView, known: Iterable[Job]) -> list[Job]:
    """Return the jobs of the pipeline's steps that have begun, the latest first; `known`: jobs that
    the cluster has."""
    by_name = {each.name: each for each in known}
    begun = sorted(
        (each for each in seen.state.steps.values() if each.job), key=lambda each: -each.started
    )
    return [by_name.get(each.job) or _job_of(each.job, each) for each in begun]


def _job_of(name: str, step: StepState) -> Job:
    return Job(name, name, step.status)


def download(
    seen: PipelineView,
    session: _session.Session | None,
    folder: Path,
    output_name: str | None,
    everything: bool,
) -> None:
    """Bring what a pipeline that is over has written: its outputs, what the steps printed, and
    outputs/ and logs/ of steps that the cluster knows.

    Raises ValueError for an output that it has not, or that was not written, ObjectLostError where
    the output is not seen from this host, OSError.
    """
    if output_name is not None:
        field_checks.known(f"pipeline {seen.name}: outputs", output_name, seen.plan.outputs)
    for name in (
        [output_name] if output_name is not None else seen.plan.outputs if everything else ()
    ):
        step, output = seen.plan.outputs[name]
        about = seen.state.steps[step].outputs.get(output)
        if about is None:
            said = (
                f"pipeline {seen.name}: its output {name!r} was not written: step {step} is "
                f"{seen.state.steps[step].status}"
            )
            if output_name is not None:
                raise ValueError(said)
            status_lines.say(f"troupe: {said}")
            continue
        _bring(
            about["path"].removeprefix("file://"),
            folder / "named-outputs" / name,
            f"output {name!r} of pipeline {seen.name}",
        )
    for step, state in seen.state.steps.items() if output_name is None else ():
        of = _of_job(state.job) if state.is_reused else (seen, step)
        log = of[0].folder.step(of[1]) / LOG if of is not None else None
        if log is not None and log.exists():
            _bring(
                os.fspath(log),
                folder / "artifacts" / "steps" / step / "user_logs",
                f"the log of step {step} of pipeline {seen.name}",
            )
    if output_name is None:
        _bring_artifacts(seen, session, folder / "artifacts" / "steps")


def _bring_artifacts(seen: PipelineView, session: _session.Session | None, folder: Path) -> None:
    """Bring outputs/ and logs/ of the steps' jobs, those of the cluster and those that an embedded
    cluster has left on this host. What is lost is named."""
    from troupe.azure import _files
    from troupe.azure._past import jobs as past_jobs

    steps = {each.job: name for name, each in seen.state.steps.items() if each.job}
    launches = () if session is None else view.iter_launches(session)
    here: dict[str, Callable[[], _files.Kept]] = {
        info["name"]: partial(_files.Kept, session, info)
        for info in launches
        if info["name"] in steps and info["rank_infos"]
    }
    for name, opened in {**past_jobs.kept_here(steps.keys() - here.keys()), **here}.items():
        try:
            with opened() as kept:
                kept.artifacts(folder / steps[name])
        except exceptions.ObjectLostError as error:
            status_lines.say(f"troupe: {error}")


def _bring(source: str, target: Path, what: str) -> None:
    """Copy a file into a folder, or all in a folder."""
    if not os.path.exists(source):
        raise exceptions.ObjectLostError(
            f"{what} is not there: {source}\n  it was removed, or is on other hosts than "
            f"{os.uname().nodename}"
        )
    with disk.arriving(
        target, what, remedy="free room there, or give another download_path"
    ) as made:
        if os.path.isdir(source):
            shutil.copytree(source, made, dirs_exist_ok=True)
        else:
            shutil.copy2(source, made)


def follow(name: str, session: _session.Session | None) -> None:
    """Wait for a pipeline's end, and show its steps.

    Without a session its folder alone is asked. Raises LaunchCancelledError, or LaunchError with
    the step that failed and its last lines.
    """
    seen = found(name)
    if seen is None:
        raise exceptions.NotFoundError(f"there is no pipeline with the name {name!r}")
    status_lines.say(f"pipeline {name} · {seen.folder.path}")
    shown.say(shown.tree(seen.plan.needs, seen.state))
    last = seen.state
    with as_current(session):
        for state in _states(seen):
            shown.say(shown.changed(last, state))
            last = state
    if last.status not in graph.TERMINAL:
        raise exceptions.LaunchError(shown.lost(name, last))
    status_lines.say(f"pipeline {name} · {last.status}")
    if last.steps:
        shown.say(shown.tree(seen.plan.needs, last))
    if last.status == graph.CANCELED:
        raise exceptions.LaunchCancelledError(
            f"pipeline {name} was cancelled{': ' + last.cause if last.cause else ''}"
        )
    if last.status == graph.FAILED:
        error = exceptions.LaunchError(shown.failure(name, last))
        step = shown.first_failed(last)
        if step is not None:
            error.exit_code, error.signal = last.steps[step].exit_code, last.steps[step].signal
        raise error


def _states(seen: PipelineView) -> Iterator[State]:
    """Give the state whenever it has changed, until the pipeline is over or its driver is lost."""
    at = seen.state.version
    while (driver := _driver(seen.name)) is not None:
        try:
            fields = troupe.get(driver.wait.remote(at))
        except exceptions.ActorError:
            break
        is_over = fields.pop("is_over")
        state = read_state(fields)
        at = state.version
        yield state
        if is_over:
            return
    if seen.folder.is_driven():  # in the cluster of another program
        seen.folder.wait()
    yield seen.folder.state()


def stop(name: str, session: _session.Session | None) -> None:
    """Cancel a pipeline with all its steps, and return when it has ended; nothing where it is
    over."""
    seen = found(name)
    if seen is None or seen.state.status in graph.TERMINAL:
        return
    with as_current(session):
        driver = _driver(name)
        if driver is not None:
            troupe.get(
                driver.stop.remote("cancelled by jobs.cancel, or by Ctrl-C in the caller"),
                timeout=ANSWER_S,
            )
            for _ in _states(seen):
                pass
        elif seen.folder.is_driven():
            raise exceptions.TroupeError(
                f"pipeline {name} runs in the cluster of another program, pid {seen.state.pid} on "
                f"{seen.state.host}: end that one, "
                "which ends the pipeline"
            )


def _driver(name: str) -> Any:
    """Return the actor that drives a pipeline; None: there is none any more, or this process is
    connected to no cluster."""
    return classes.find_actor(name, NAMESPACE)
