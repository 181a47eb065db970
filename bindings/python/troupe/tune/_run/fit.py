"""The steps of one `fit()`: from the Tuner's arguments to the results."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._code import capture
from troupe.train._checkpoint import Checkpoint
from troupe.tune import _gpu_share, _resources, _trainable
from troupe.tune._callback import SweepSeen
from troupe.tune._config import RunConfig, TuneConfig
from troupe.tune._core import events as ev
from troupe.tune._core.deciding import End
from troupe.tune._core.ledger import Ledger
from troupe.tune._core.rules import Conditions, Rules
from troupe.tune._core.trial import Trial
from troupe.tune._errors import TrialFailedError, TuneError
from troupe.tune._journal import space, view
from troupe.tune._results import Result, ResultGrid, shown
from troupe.tune._run import directory
from troupe.tune._run.asks import Asks
from troupe.tune._run.audience import Audience
from troupe.tune._run.deciders import Deciders
from troupe.tune._run.engine import Engine, Plan, say
from troupe.tune._run.folder import SweepFolder
from troupe.tune._run.shown import Shown
from troupe.tune.schedulers.trial_scheduler import FIFOScheduler


@dataclasses.dataclass(frozen=True)
class Resumption:
    """The parts of a sweep that are resumed; see Begun."""

    unfinished: bool = True
    errored: str = ""
    lets_go: bool = True


def rules_of(
    trainable: _trainable.Given, tune: TuneConfig, run: RunConfig, decide: Deciders
) -> Rules:
    """Return the rules for the core."""
    failures, checkpoints = run.failure_config, run.checkpoint_config
    assert failures is not None and checkpoints is not None
    return Rules(
        metric=decide.metric,
        mode=decide.mode,
        trials_max=decide.samples,
        concurrent_max=tune.max_concurrent_trials,
        max_failures=failures.max_failures,
        fail_fast=bool(failures.fail_fast),
        num_to_keep=checkpoints.num_to_keep,
        keep_attribute=checkpoints.checkpoint_score_attribute,
        keep_order=checkpoints.checkpoint_score_order,
        time_budget_s=decide.time_s,
        reuse=tune.reuse_actors,
        scheduler_name=type(decide.scheduler).__name__,
        may_be_silent=getattr(trainable.function, "may_be_silent", False),
    )


def plan_of(
    name: str,
    trial_name: str,
    sweep_id: str,
    trainable: _trainable.Given,
    tune: TuneConfig,
    run: RunConfig,
    decide: Deciders,
) -> Plan:
    """Raises LaunchError where the function cannot travel."""
    checkpoints = run.checkpoint_config
    assert checkpoints is not None
    at_end = bool(checkpoints.checkpoint_at_end)
    # An end or pause from outside reaches a trial as the answer to its report, when it is too late
    # for a checkpoint of that report.
    every = checkpoints.checkpoint_frequency or int(at_end or decide.scheduler.needs_checkpoints)
    runs = _trainable.as_function(trainable, every=every, at_end=at_end)
    function = capture.dumps(
        _gpu_share.Capped(runs) if trainable.gpu_memory_fraction else runs,
        (),
        {},
        what=f"the trials' function {trial_name}",
    )
    by_config = trainable.resources if callable(trainable.resources) else None
    if trainable.resources is None and _trainable.says_resources(trainable):
        by_config = trainable.function.default_resource_request
    shape_of: Callable[[Mapping[str, Any]], str] | None = None
    if by_config is not None:

        def shape_of(config: Mapping[str, Any]) -> str:
            return _resources.shape_of(by_config(dict(config)))

    return Plan(
        name=name,
        function=function,
        parameters=trainable.parameters,
        rules=rules_of(trainable, tune, run, decide),
        scheduler=decide.scheduler,
        searcher=decide.searcher,
        conditions=decide.conditions,
        shape_of=shape_of,
        shape=_resources.shape_of(None if by_config else trainable.resources),
        trial_name=trial_name,
        sweep_id=sweep_id,
        options=trainable.options,
        has_directories=directory.is_wanted(tune.chdir_to_trial_dir),
    )


def about(plan: Plan, tune: TuneConfig, param_space: Any) -> dict[str, Any]:
    """Return the facts about the sweep for readers of its folder; JSON."""
    total = plan.searcher.total()
    return {
        "name": plan.name,
        "sweep_id": plan.sweep_id,
        "trial_name": plan.trial_name,
        "metric": plan.rules.metric,
        "mode": plan.rules.mode.value,
        "trials": plan.rules.trials_max if total is None else total,
        "scheduler": plan.rules.scheduler_name,
        "searcher": type(tune.search_alg).__name__,
        "began": time.time(),
        "space": space.encoded(param_space),
    }


def run(
    plan: Plan,
    folder: SweepFolder,
    run_config: RunConfig,
    decide: Deciders,
    resume: Resumption,
    asks: Asks | None = None,
) -> ResultGrid:
    """Runs the sweep in its folder, which is opened and closed by who calls this.

    Blocks. `asks`: where others say what it is to do. Raises what Tuner.fit does.
    """
    plan = _seen(plan, folder.path, run_config, decide)
    engine = Engine(plan, folder)
    how, outcome = "not ended well", "failed"
    if plan.audience is not None:
        plan.audience.begin()
    if plan.shown is not None:
        plan.shown.begin()
    try:
        if asks is not None:
            engine.listen(asks)
        done = engine.run(
            unfinished=resume.unfinished, errored=resume.errored, lets_go=resume.lets_go
        )
        how = done.error.partition("\n")[0]
        outcome = "stopped" if done.resumable else "failed" if done.error else "finished"
        if engine.interrupted and done.resumable:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        how, outcome = "stopped by Ctrl-C", "stopped"
        say(
            plan.name,
            f"stopped by Ctrl-C; Tuner.restore({str(folder.path)!r}, trainable).fit() goes on with "
            "it",
        )
        raise
    finally:
        if plan.audience is not None:
            plan.audience.close(outcome)
        if plan.shown is not None:
            plan.shown.end(how)
    if done.error:
        raise _failed(done, plan, folder.path)
    assert run_config.failure_config is not None
    if run_config.failure_config.fail_fast == "raise":
        for trial in engine.core.ledger.trials.values():
            if trial.end is End.FAILED:
                raise _error_of(trial, folder) or TuneError(f"trial {trial.id} failed")
    return ResultGrid(
        [
            _result(trial, engine.folder_of(trial.id), folder)
            for trial in engine.core.ledger.trials.values()
            if not trial.replaced_by
        ],
        str(folder.path),
        plan.rules.metric,
        plan.rules.mode.value,
    )


def results_of(path: Path) -> ResultGrid:
    """Return the results of a sweep that nobody runs, from its journal.

    Raises BlockingIOError where an engine is at it, FileNotFoundError where there is no sweep.
    """
    ledger = Ledger(Rules(), FIFOScheduler(), Conditions(), lambda told: None)
    with contextlib.closing(SweepFolder(path, new=False)) as folder:
        for row in folder.journal.read():
            ledger.apply(row)
        known = view.about_of(path)
        return ResultGrid(
            [
                _result(trial, path / f"{known.get('trial_name', 'trial')}_{trial.id}", folder)
                for trial in ledger.trials.values()
                if not trial.replaced_by
            ],
            str(path),
            known.get("metric"),
            known.get("mode") or "max",
        )


def _seen(plan: Plan, path: Path, run_config: RunConfig, decide: Deciders) -> Plan:
    """With who hears of it."""
    known = decide.searcher.total if decide.samples is None else lambda: decide.samples
    total = known()
    callbacks = run_config.callbacks or ()
    return dataclasses.replace(
        plan,
        shown=None
        if run_config.verbose == 0
        else Shown(plan.name, str(path), plan.rules.metric, known),
        audience=Audience(
            SweepSeen(
                plan.name,
                str(path),
                plan.rules.metric,
                plan.rules.mode.value,
                total,
                run_config.verbose == 0,
            ),
            callbacks,
            stop=run_config.stop,
            num_samples=decide.samples,
            total_num_samples=total,
        )
        if callbacks
        else None,
    )


def _failed(done: ev.Done, plan: Plan, path: Path) -> Exception:
    text = f"sweep {plan.name}: {done.error}\n  what it has done so far is in {path}"
    if done.unplaceable:
        return exceptions.with_type_of(TuneError, exceptions.PlacementError(done.error), text)
    return TuneError(text)


def _result(trial: Trial, path: Path, folder: SweepFolder) -> Result:
    def as_shown(metrics: Mapping[str, Any], done: bool) -> dict[str, Any]:
        return shown(metrics, trial=trial.id, config=trial.config, where=trial.where, done=done)

    kept: list[tuple[Checkpoint, Mapping[str, Any]]] = [
        (Checkpoint(path / one.name), as_shown(one.metrics, False)) for one in trial.kept
    ]
    metrics = as_shown(trial.last.metrics, trial.end is not None) if trial.last is not None else {}
    return Result(
        metrics=metrics,
        config=trial.config,
        checkpoint=kept[-1][0] if kept else None,
        error=_error_of(trial, folder),
        path=str(path),
        best_checkpoints=kept,
        trial_id=trial.id,
        stopped=trial.why if trial.end is End.STOPPED else "",
    )


def _error_of(trial: Trial, folder: SweepFolder) -> Exception | None:
    """Return the error that a trial failed with."""
    failure: ev.Failure | None = trial.failure
    if failure is None:
        return None
    raised = failure.raised
    if raised is None and failure.pickled:
        with contextlib.suppress(
            Exception
        ):  # the class cannot be loaded here: only its text is left
            raised = folder.journal.load(failure.pickled)
    return (
        raised
        if isinstance(raised, Exception)
        else TrialFailedError(f"trial {trial.id}: {failure.text}")
    )
