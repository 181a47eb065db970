"""A trial of a sweep of command jobs: a job of its own, whose metrics are the trial's reports.

    process of the user's -> socket of rank 0's node -> TrialReports, an actor -> the trial's
process -> the sweep's engine View: the trial's process, which holds nothing; what the job needs,
its launch holds, and that ends with this process.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import troupe
from troupe import _pickled, exceptions, tune
from troupe._base import visible as _visible
from troupe._cluster import session as _session, view
from troupe.tune._errors import TrialStopped, TuneError

NAMESPACE = "troupe.azure"
JOB = "job_name"
"""In each report: which job it is of."""
_END_GRACE_S = 4.0  # part of the 5 s that a trial has once it is stopped
_WAITING_MAX = 64
_NAMES_MAX, _NAME_LENGTH_MAX = 200, 250


class TrialReports:
    """Reports of one job on their way to its trial, one at a time.

    A report's asker waits for the decision.
    """

    def __init__(self) -> None:
        self._said: queue.Queue[tuple[dict[str, Any], queue.SimpleQueue[str]] | None] = queue.Queue(
            _WAITING_MAX
        )
        self._waits: queue.SimpleQueue[str] | None = None
        self._names: set[str] = set()

    @troupe.method(concurrency_group="jobs")
    def tell(self, metrics: dict[str, Any]) -> str:
        """Report metrics of a process of the job; return why the job must end, "" if it goes on."""
        decided: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._said.put((metrics, decided))
        return decided.get()

    @troupe.method(concurrency_group="ends")
    def note_names(self, names: list[str]) -> str:
        """Note metrics that were logged without the sweep's; "", as for a job that goes on."""
        for each in names[: max(0, _NAMES_MAX - len(self._names))]:
            self._names.add(str(each)[:_NAME_LENGTH_MAX])
        return ""

    @troupe.method(concurrency_group="ends")
    def names(self) -> list[str]:
        """Return the metrics that `note_names` was given."""
        return sorted(self._names)

    @troupe.method(concurrency_group="ends")
    def end(self) -> None:
        """The job has ended: nothing more comes."""
        self._said.put(None)

    def next(self, answer: str) -> dict[str, Any] | None:
        """Answers the last report, and waits for the next one; None: the job has ended."""
        self.decide(answer)
        said = self._said.get()
        if said is None:
            return None
        metrics, self._waits = said
        return metrics

    def decide(self, answer: str) -> None:
        """Answers the last report."""
        if self._waits is not None:
            self._waits.put(answer)
            self._waits = None


@dataclass(frozen=True)
class JobTrial:
    """A trial's function.

    `job`: the command job, as it stands in a file in the folder `base`; `metric`: what is compared.
    """

    sweep: str
    job: Mapping[str, Any]
    base: str
    metric: str
    timeout_s: float | None = None

    __name__ = "job"
    may_be_silent = True  # a job that logs no metric has ended well all the same

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.azure_job_trial, (_pickled.fields_of(self),)

    def __call__(self, config: Mapping[str, Any]) -> None:
        """Runs the job to its end, and reports what it does.

        Raises what a job raises that has failed, TuneError for one that never logged the metric.
        """
        session = _session.current()
        name = self._free_name(session, tune.get_context().get_trial_id())
        reports = (
            troupe.remote(TrialReports)
            .options(
                name=name,
                namespace=NAMESPACE,
                num_cpus=0,
                concurrency_groups={"jobs": _WAITING_MAX, "ends": 1},
            )
            .remote()
        )
        handle = self._start(name, config, session)
        threading.Thread(
            target=_tell_end, args=(handle, reports), name="troupe-job-end", daemon=True
        ).start()
        said, has_metric = troupe.get(reports.next.remote("")), False
        while said is not None:
            has_metric = has_metric or self.metric in said
            try:
                tune.report({**said, JOB: name})
            except TrialStopped as stopped:
                troupe.get(reports.decide.remote(str(stopped) or "stopped"))
                handle.cancel(f"the sweep {self.sweep} ended it: {stopped}", grace=_END_GRACE_S)
                raise
            said = troupe.get(reports.next.remote(""))
        handle.succeeded()
        if not has_metric:
            raise TuneError(without_metric(name, self.metric, troupe.get(reports.names.remote())))

    def _start(self, name: str, config: Mapping[str, Any], session: Any) -> Any:
        from troupe.azure import _start

        job = made(self.job, self.base, config)
        job.name = name
        if self.timeout_s is not None:
            job.set_limits(timeout=self.timeout_s)
        return _start.start(
            job,
            session,
            quiet=True,
            detach=False,
            trial={"reports": name, "namespace": NAMESPACE, "metric": self.metric},
        )

    def _free_name(self, session: Any, trial: str) -> str:
        """SWEEP_TRIAL; of a trial that is run again, with a number."""
        taken = {each["name"] for each in view.iter_launches(session)}
        first = name_of(self.sweep, trial)
        return next(
            each
            for number in range(1, len(taken) + 2)
            if (each := first if number == 1 else f"{first}_{number}") not in taken
        )


def name_of(sweep: str, trial: str) -> str:
    """Return the name of a trial's job: SWEEP_00007.

    A trial that is run again has it with "_2" behind it. Pure.
    """
    return f"{sweep}_{trial.rpartition('_')[2]}"


def without_metric(name: str, metric: str, logged: Sequence[str]) -> str:
    """Return the error of a job that has succeeded and never logged the metric; `logged`: the
    metrics that it did log. Pure."""
    others = (
        f"it logged {', '.join(map(_visible.name, logged))}"
        if logged
        else "it logged no metric at all"
    )
    return (
        f"job {name} ended without {metric}, by which its sweep compares trials: {others}\n  "
        f"mlflow.log_metric({metric!r}, value) in a Python of the "
        "job's command reports it; one with -I, -E or -S, or with another PYTHONPATH than "
        "PYTHONPATH=more:$PYTHONPATH, is not watched"
    )


def made(job: Mapping[str, Any], base: str, config: Mapping[str, Any]) -> Any:
    """The job of one configuration, of what `Command.to_dict` gave.

    Its processes have the values as `AZUREML_SWEEP_<name>` too. Pure.
    """
    from troupe.azure._command import Command

    fields = {name: value for name, value in job.items() if name not in ("type", "status", "id")}
    given = Command(
        base, **{**fields, "inputs": {**dict.fromkeys(config, ""), **fields.get("inputs", {})}}
    )(**config)
    given.environment_variables.update(
        {f"AZUREML_SWEEP_{name}": str(value) for name, value in config.items()}
    )
    return given


def _tell_end(handle: Any, reports: Any) -> None:
    handle.wait_end()
    try:
        troupe.get(reports.end.remote())
    except exceptions.TroupeError:
        return  # the trial is over


@_pickled.maker("azure_job_trial")
def _azure_job_trial(fields: Mapping[str, Any]) -> Any:
    """Rebuild a trial of a sweep of command jobs."""
    return _pickled.of_fields(JobTrial, fields)


_pickled.named_in("troupe._pickled", TrialReports, JobTrial)
