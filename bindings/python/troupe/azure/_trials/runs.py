"""Sweeps of command jobs on the engine of `troupe.tune`: begun, found by their names, waited for,
their best child told.

A submitted sweep runs in a process of the cluster that outlives its submitter (`tune._handle`);
each trial is a job of its own (`trial`).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._base import identity as _identity
from troupe._cluster import session as _session, status_lines, workers
from troupe.azure import _code_folder, _instances, _plan, _start
from troupe.azure._jobs.current import as_current
from troupe.azure._jobs.job import Job, made_at
from troupe.azure._sweep_job import Sweep, SweepPlan
from troupe.azure._trials import trial as trial_of
from troupe.tune import RunConfig, TuneConfig, TuneError, Tuner, _handle
from troupe.tune._config import DEFAULT_STORAGE
from troupe.tune._journal import table, view
from troupe.tune._journal.view import SweepView
from troupe.tune._run import folder as _folder, looking
from troupe.tune._trainable import Given

_STATUS = {
    "starting": "Preparing",
    "running": "Running",
    "finished": "Completed",
    "stopped": "Canceled",
    "dead": "Failed",
}
_NODE = "ray.io/node-id"


class SweepState(Job):
    """A sweep as its folder has it: `trials`: how many run, have ended how; `best_child_run_id`:
    the name of the best trial's job, None: none has reported yet, with `best_value` of the metric
    and `best_parameters`; `properties` has it too. `studio_url`: the sweep's folder."""

    type = "sweep"

    def __init__(self, seen: SweepView) -> None:
        super().__init__(seen.name, seen.name, status_of(seen), created=made_at(seen.began))
        best = seen.best()
        self.trials = {name: count for name, count in seen.counts().items() if count}
        self.best_child_run_id = None if best is None else _child(best)
        self.best_value = None if best is None else seen.value_of(best)
        self.best_parameters = None if best is None else dict(best.config)
        self.path = str(seen.path)
        if self.best_child_run_id is not None:
            self.properties["best_child_run_id"] = self.best_child_run_id
        self.studio_url = Path(seen.path).absolute().as_uri()


def status_of(seen: SweepView) -> str:
    """The sweep's state in the service's word: a sweep of which no trial has come to its end well
    has failed."""
    counts = seen.counts()
    if seen.state == "finished" and counts["failed"] and counts["failed"] == len(seen.current()):
        return "Failed"
    return _STATUS[seen.state]


def _child(trial: Any) -> str | None:
    return trial.last.metrics.get(trial_of.JOB) if trial.last is not None else None


def submit(
    sweep: Sweep, session: _session.Session, storage: Path | None = None
) -> _handle.SweepHandle:
    """Begins it; sets the sweep's name where it has none.

    `storage`: the folder that its own is in, ~/troupe_results unless given. Raises what is wrong
    with it or its trials' job, ValueError for a name that is taken.
    """
    plan = sweep.plan()
    trial = plan.trial
    if sweep.queue_settings.priority is not None:
        trial.queue_settings = sweep.queue_settings
    trial.check(is_complete=True)
    with trial.located("code"):
        code = _code_folder.check(trial.code, trial.base_path)
    room = _room(plan, session)
    sweep.name = sweep.name or _new_name(sweep)
    path = _folder.absolute(storage or DEFAULT_STORAGE) / sweep.name
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", sweep.name):
        raise ValueError(
            f"name: {sweep.name!r}: a sweep's name is of letters, digits, '_', '-' and '.'"
        )
    if path.exists():
        raise ValueError(
            f"there is a sweep with the name {sweep.name!r} already, in {path}: give another name, "
            "or none for a new one"
        )
    path.mkdir(parents=True)  # by which the sweep is found from now on
    before = _session.set_current(session)
    try:
        job = trial.to_dict()
        if code is not None:
            job["code"] = str(_code_folder.keep(code, path / "code", "the code of the sweep"))
        run = trial_of.JobTrial(sweep.name, job, trial.base_path, plan.metric, plan.trial_timeout_s)
        handle = _handle.submit(
            Tuner(
                Given(run, {}, {"CPU": 0}, _here(session)),
                param_space=plan.space,
                run_config=RunConfig(name=sweep.name, storage_path=str(path.parent), verbose=0),
                tune_config=TuneConfig(
                    metric=plan.metric,
                    mode=plan.mode,
                    search_alg=plan.search_alg,
                    scheduler=plan.scheduler,
                    num_samples=plan.num_samples,
                    max_concurrent_trials=min(plan.max_concurrent, room),
                    time_budget_s=plan.timeout_s,
                ),
            )
        )
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    finally:
        _session.set_current(before)
    sweep.id, sweep.status = sweep.name, "Preparing"
    sweep.studio_url = path.absolute().as_uri()
    return handle


def _new_name(sweep: Sweep) -> str:
    short = (
        re.sub(
            r"[^A-Za-z0-9_-]+", "-", sweep.display_name or sweep.experiment_name or "sweep"
        ).strip("-")
        or "sweep"
    )
    return f"{short[:40]}-{_identity.new_id()[:8]}"


def _room(plan: SweepPlan, session: _session.Session) -> int:
    """How many of its jobs run at once on the nodes that there are, at least one: more would only
    wait."""
    trial = plan.trial
    kind, _ = _instances.meant(
        {"compute": trial.compute, "instance_type": trial.resources.instance_type}
    )
    nodes = _start.nodes_of(session, workers.node_infos(session))
    shape = _plan.of(trial, nodes, kind)
    ranks = sum(
        int(
            min(
                node.get("CPU", 0) // shape.processes,
                node.get("GPU", 0) // shape.gpus if shape.gpus else float("inf"),
            )
        )
        for node in nodes
    )
    return max(1, ranks // shape.ranks)


def _here(session: _session.Session) -> dict[str, Any]:
    """Options of the trials' processes: they are where the job's code and its inputs are, if there
    is a node of this host."""
    here = _identity.boot_id()
    nodes = [
        each["node"]
        for each in workers.node_infos(session)
        if each["boot_id"] == here and each["state"] == "alive"
    ]
    return {"label_selector": {_NODE: nodes[0]}} if nodes and not session.same_host else {}


def found(name: str, storage: Path | None = None) -> SweepView | None:
    """The sweep with that name, as it is now; None: there is none."""
    path = _folder.absolute(storage or DEFAULT_STORAGE) / name
    try:
        return view.of(path) if name and "/" not in name and path.is_dir() else None
    except FileNotFoundError:  # the trial was submitted just now
        return SweepView(path, "starting", {}, {})


def follow(name: str, session: _session.Session | None, storage: Path | None = None) -> None:
    """Waits for the sweep's end, and says what it came to.

    Without a session its folder alone is asked. Raises LaunchCancelledError for one that was
    stopped, LaunchError where none of its trials has come to its end well, with what the first
    failed of.
    """
    with as_current(session):
        status_lines.say(
            f"sweep {name} · troupe sweep show {name}: its trials; troupe azure job stream -n "
            f"{name}_00000: the output of one"
        )
        _show_trials(name, storage)
        grid = _result(name, storage)
    seen = found(name, storage)
    assert seen is not None
    state = SweepState(seen)
    counted = ", ".join(f"{count} {what}" for what, count in state.trials.items())
    if state.status == "Failed":
        error = exceptions.LaunchError(
            f"sweep {name}: all of its {len(grid)} trials have failed; the first of "
            f"this:\n{grid.errors[0]}"
        )
        raise error
    best = (
        f"; best {seen.metric}={state.best_value:.6g} of {state.best_child_run_id} "
        f"{state.best_parameters}"
        if state.best_child_run_id
        else (
            f"; no trial has reported {seen.metric}: mlflow.log_metric({seen.metric!r}, ...) in "
            "the job's script does"
        )
    )
    status_lines.say(f"sweep {name} · {counted}{best}")


_WIDTHS = (6, 10, 8, 12)
"""Of the first columns, whose rows are shown one by one; the others follow as they are."""


def _show_trials(name: str, storage: Path | None) -> None:
    """A row of the sweep's table for each trial that begins or ends, and the best so far."""
    handle, head = _handle.attach(name, storage), False
    for new in handle._changes():
        if not head and (seen := found(name, storage)) is not None:
            status_lines.say(_line(table.head(seen.metric)))
            head = True
        if new.missed:
            status_lines.say(f"and {new.missed:,} more changes: troupe sweep show {name}")
        for row in new.rows:
            status_lines.say(_line(row))


def _line(row: Iterable[str]) -> str:
    cells = list(row)
    fixed = [cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=False)]
    return "  ".join([*fixed, *(cell for cell in cells[len(_WIDTHS) :] if cell)])


def _result(name: str, storage: Path | None) -> Any:
    try:
        return _handle.attach(name, storage).result()
    except TuneError:
        seen = found(name, storage)
        if seen is not None and seen.state == "stopped":
            raise exceptions.LaunchCancelledError(
                f"sweep {name} was cancelled; `troupe sweep resume {name}` goes on with it"
            ) from None
        raise


def stop(name: str, session: _session.Session | None, storage: Path | None = None) -> None:
    """Ends it, and returns when it has ended; nothing where it is over."""
    with as_current(session):
        _handle.attach(name, storage).stop()


def best_child(seen: SweepView) -> str:
    """The name of the best trial's job. Raises ValueError where none has reported."""
    best = SweepState(seen).best_child_run_id
    if best is None:
        raise ValueError(
            f"sweep {seen.name}: no trial has reported {seen.metric}, so there is no best one to "
            "download"
        )
    return best


def children(seen: SweepView, jobs: Iterable[Job]) -> list[Job]:
    """Return those of the jobs that are the sweep's trials."""
    names = "|".join(re.escape(trial_of.name_of(seen.name, trial)) for trial in seen.trials)
    pattern = re.compile(rf"(?:{names})(?:_\d+)?" if names else "(?!)")
    return [each for each in jobs if pattern.fullmatch(str(each.name)) is not None]


def known() -> list[SweepState]:
    """Sweeps of this user whose trials are jobs."""
    return [
        SweepState(view.of(path))
        for path in looking.folders()
        if view.about_of(path).get("trial_name") == "job"
    ]
