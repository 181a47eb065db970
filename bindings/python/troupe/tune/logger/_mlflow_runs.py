"""A sweep's runs in MLflow: one for the sweep, and one below it for each trial; written in batches,
by one thread.

A store that is away costs the sweep nothing: it is asked again after a pause that grows
(`_tracking.guard.Breaker`), what comes meanwhile is left out and counted, and that is said once.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._cluster import folders, home
from troupe._tracking import guard, rule, runs
from troupe.tune._callback import SweepSeen, TrialView
from troupe.tune.logger import _values

FILE = "mlflow.json"
"""In the sweep's folder: its run, for an engine that goes on with it."""
TRIAL = "troupe.trial"
OPEN_S, CALL_S, ARTIFACTS_S = 30.0, 10.0, 60.0
METRICS_MAX, PARAMETERS_MAX, TAGS_MAX = 1000, 100, 100  # limits of one request
PUT_ASIDE_MAX = 2000
PAGE = 1000


@dataclass
class Aside:
    """The unwritten data of a trial. `metrics`: (name, number, time, step)."""

    trial: TrialView
    metrics: list[tuple[str, float, int, int]] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    status: str = ""
    ended_ms: int | None = None
    artifacts: str = ""
    reports: int = 0


class SweepRuns:
    """The MLflow runs of one sweep, all on one thread.

    `wish`: what its own run is to be; `client`: makes MLflow's; `say`: what a person is to know;
    `tags`: of the trials' runs; `late`: their parameters are written when they are over.
    """

    def __init__(
        self,
        sweep: SweepSeen,
        wish: rule.Wish,
        client: Callable[[], Any],
        say: Callable[[str], None],
        tags: Mapping[str, str],
        *,
        late: bool = False,
    ) -> None:
        self._sweep, self._wish, self._client, self._say, self._tags, self._late = (
            sweep,
            wish,
            client,
            say,
            dict(tags),
            late,
        )
        self._run = self._experiment = ""
        self._runs: dict[str, str] = {}  # run ids of unfinished trials
        self._first: dict[str, dict[str, str]] = {}  # parameters of these trials
        self._aside: dict[str, Aside] = {}
        self._to_end: dict[
            str, tuple[str, int | None]
        ] = {}  # runs of trials that are over: how, and when
        self._best: tuple[float, str] | None = None
        self._many = self._left_out = 0
        self._said: set[str] = set()
        self._breaker = guard.Breaker(self._is_away)

    # Handlers of events.

    def started(self, trial: TrialView) -> None:
        """Note that a trial runs, for the first time or again."""
        self._of(trial)
        self._first.setdefault(trial.trial_id, _values.parameters_of(trial.config))

    def reported(self, trial: TrialView, result: Mapping[str, Any]) -> None:
        """Put the trial's metrics aside; once there are many, they are written."""
        aside, now_ms = self._of(trial), _now_ms()
        found = {
            **_values.metrics_of(result),
            **_values.changed(self._first.get(trial.trial_id, {}), trial.config),
        }
        when, step = _values.time_ms_of(result, now_ms), _values.step_of(result)
        aside.metrics += [(name, number, when, step) for name, number in found.items()]
        aside.reports += 1
        self._compare(trial, found)
        self._many += len(found)
        if self._many >= PUT_ASIDE_MAX:
            self.write()

    def ended(self, trial: TrialView, status: str, *, artifacts: bool) -> None:
        """Note that a trial has ended."""
        aside = self._of(trial)
        aside.status, aside.ended_ms = status, _now_ms()
        if trial.stopped or trial.error:
            aside.tags["troupe.stopped" if trial.stopped else "troupe.error"] = (
                trial.stopped or trial.error
            )[: _values.TAG_CHARS_MAX]
        first = self._first.pop(trial.trial_id, None)
        aside.parameters = (
            _values.parameters_of(trial.config) if self._late or first is None else first
        )
        aside.artifacts = trial.path if artifacts else ""
        self._many += 1
        if self._many >= PUT_ASIDE_MAX:
            self.write()

    def write(self) -> None:
        """Write all data that was put aside; nothing stays, whatever happens."""
        if not self._run:
            with contextlib.suppress(guard.Away):
                self._opened()
        waiting, self._aside, self._many = list(self._aside.values()), {}, 0
        for each in waiting:
            try:
                if not self._run:
                    raise guard.Away
                self._write(each)
            except Exception:  # the store is away, which was reported
                self._left_out += each.reports
            if each.status and (run := self._runs.pop(each.trial.trial_id, "")):
                self._to_end[run] = each.status, each.ended_ms
        with contextlib.suppress(Exception):
            for run, (status, ended_ms) in list(self._to_end.items()):
                self._end(run, status, ended_ms)

    def close(self) -> None:
        """The sweep is over: so are its runs, as it is."""
        from mlflow.entities import Metric, RunTag

        self.write()
        status, now_ms = (
            {"finished": "FINISHED", "failed": "FAILED"}.get(self._sweep.outcome, "KILLED"),
            _now_ms(),
        )
        self._to_end |= dict.fromkeys(self._runs.values(), (status, now_ms))
        if not self._run:
            return
        with contextlib.suppress(Exception):
            if self._best is not None:
                best = Metric(_values.key_of(str(self._sweep.metric)), self._best[0], now_ms, 0)
                tag = RunTag("troupe.best_trial", self._best[1])
                self._call(lambda: self._client().log_batch(self._run, [best], [], [tag]))
            if not self._wish.run:
                self._to_end[self._run] = status, now_ms
            for run, (how, ended_ms) in list(self._to_end.items()):
                self._end(run, how, ended_ms)
        missing = (
            [f"{self._left_out:,} reports are not there, the sweep's journal has them"]
            if self._left_out
            else []
        )
        missing += [f"{len(self._to_end):,} runs stay RUNNING"] if self._to_end else []
        if missing:
            self._say(f"MLflow: {self._wish.store} was away: {'; '.join(missing)}")

    # How it is written.

    def _of(self, trial: TrialView) -> Aside:
        found = self._aside.get(trial.trial_id)
        if found is None:
            found = self._aside[trial.trial_id] = Aside(trial)
        return found

    @property
    def _where(self) -> str:
        return f"MLflow at {self._wish.store}"

    def _call(self, action: Callable[[], Any], seconds: float = CALL_S) -> Any:
        """Return the store's answer; None if it refuses, which is reported once for each kind.

        Raises what says that it is away.
        """
        try:
            return self._breaker.call(lambda: self._within(seconds, action))
        except Exception as error:
            if guard.is_away(error):
                raise
            self._once(
                type(error).__name__,
                f"MLflow: {self._wish.store} has refused something: {runs.words_of(error)}",
            )
            return None

    def _within(self, seconds: float, action: Callable[[], Any]) -> Any:
        try:
            return runs.within(seconds, self._where, action)
        except runs.Late as late:
            raise guard.Away(str(late)) from late

    def _end(self, run: str, status: str, ended_ms: int | None) -> None:
        self._call(lambda: self._client().set_terminated(run, status, ended_ms))
        self._to_end.pop(run, None)

    def _compare(self, trial: TrialView, found: Mapping[str, float]) -> None:
        value = found.get(_values.key_of(self._sweep.metric)) if self._sweep.metric else None
        if value is None or math.isnan(value):
            return
        if self._best is None or (
            value > self._best[0] if self._sweep.mode == "max" else value < self._best[0]
        ):
            self._best = value, trial.trial_id

    def _is_away(self, why: str) -> None:
        why = why.removeprefix(f"{guard.Away.__name__}: ")
        if not self._run:
            self._once(
                "away",
                f"MLflow: no run in {self._wish.store}: {why}\n  the sweep goes on without it; is "
                "the server there, and may this client write to it?",
            )
        else:
            self._once(
                "away",
                f"MLflow: {self._wish.store} is away: {why}\n  the sweep goes on, and what its "
                "trials report meanwhile is left out there",
            )

    def _once(self, kind: str, text: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            self._say(text)

    def _opened(self) -> None:
        """Raises Away, also where the store refuses: it is asked as seldom then."""

        def open_or_away() -> None:
            try:
                runs.within(OPEN_S, self._where, self._open)
            except runs.Late as late:
                raise guard.Away(str(late)) from late
            except Exception as error:
                raise guard.Away(runs.words_of(error)) from error

        self._breaker.call(open_or_away)

    def _open(self) -> None:
        """Makes the sweep's run, or goes on with the one that it has."""
        client = self._client()
        if not self._known(client):
            self._run, self._experiment = runs.opened(client, self._wish)
            if not self._wish.run:
                # The folder is full: an engine that goes on makes another run.
                with contextlib.suppress(OSError), folders.replacement(self._path) as fresh:
                    fresh.write_text(
                        json.dumps(
                            {
                                "store": self._wish.store,
                                "run": self._run,
                                "experiment": self._experiment,
                            }
                        )
                    )
        link = rule.link if self._wish.local else runs.link_of
        if not self._sweep.quiet:
            uri = self._wish.store if self._wish.local else client.tracking_uri
            self._once("link", f"MLflow: {link(uri, self._experiment, self._run)}")

    @property
    def _path(self) -> Path:
        return Path(self._sweep.path, FILE)

    def _known(self, client: Any) -> bool:
        """Return True if the sweep has a run in this store already; its unfinished trials then have
        theirs."""
        from mlflow.exceptions import MlflowException

        try:
            kept = home.read_record(
                self._path,
                "the sweep goes on in another run, and its run before stays as it is in MLflow; "
                "nothing is to be done",
                store=str,
                run=str,
                experiment=str,
            )
        except OSError:
            return False
        except exceptions.DamagedFileError as error:
            self._once("damaged", str(error))
            return False
        if kept is None or kept["store"] != self._wish.store or self._wish.run:
            return False
        try:
            client.update_run(kept["run"], status="RUNNING")
        except MlflowException as error:
            if guard.is_away(error):
                raise
            return False  # somebody has deleted it
        token = None
        while True:
            page = client.search_runs(
                [kept["experiment"]],
                f"tags.`mlflow.parentRunId` = '{kept['run']}'",
                max_results=PAGE,
                page_token=token,
            )
            for each in page:
                if each.info.status in ("RUNNING", "KILLED") and TRIAL in each.data.tags:
                    trial = each.data.tags[TRIAL]
                    self._runs[trial], self._first[trial] = each.info.run_id, dict(each.data.params)
            token = page.token
            if not token:
                break
        self._run, self._experiment = kept["run"], kept["experiment"]
        return True

    def _write(self, aside: Aside) -> None:
        from mlflow.entities import Metric, Param, RunTag

        trial = aside.trial
        run = self._runs.get(trial.trial_id)
        if run is None:
            first_tags = {
                **self._tags,
                "trial_name": trial.trial_name,
                TRIAL: trial.trial_id,
                "mlflow.parentRunId": self._run,
                "mlflow.user": self._wish.tags["mlflow.user"],
            }
            made = self._call(
                lambda: self._client().create_run(
                    self._experiment, tags=first_tags, run_name=trial.trial_name
                )
            )
            if made is None:
                return
            run = self._runs[trial.trial_id] = made.info.run_id
            if not self._late:
                aside.parameters = (
                    aside.parameters
                    or self._first.get(trial.trial_id)
                    or _values.parameters_of(trial.config)
                )
        elif not self._late:
            aside.parameters = {}  # the run has them since it was made
        metrics = [Metric(*each) for each in aside.metrics]
        parameters = [Param(*each) for each in aside.parameters.items()]
        tags = [RunTag(*each) for each in aside.tags.items()]
        while metrics or parameters or tags:
            batch = (
                metrics[: METRICS_MAX - PARAMETERS_MAX - TAGS_MAX],
                parameters[:PARAMETERS_MAX],
                tags[:TAGS_MAX],
            )
            metrics, parameters, tags = (
                metrics[len(batch[0]) :],
                parameters[len(batch[1]) :],
                tags[len(batch[2]) :],
            )
            self._call(functools.partial(self._log_batch, run, batch))
        if aside.artifacts and os.path.isdir(aside.artifacts):
            self._call(lambda: self._client().log_artifacts(run, aside.artifacts), ARTIFACTS_S)

    def _log_batch(self, run: str, batch: tuple[list[Any], list[Any], list[Any]]) -> None:
        self._client().log_batch(run, *batch)


def _now_ms() -> int:
    return int(time.time() * 1000)


@contextlib.contextmanager
def variables(given: Mapping[str, str]) -> Iterator[None]:
    """Meanwhile requests of this process end soon where nobody answers, and these are set; what the
    program itself has set, stays."""
    names = (
        "MLFLOW_HTTP_REQUEST_TIMEOUT",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES",
        "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR",
        *given,
    )
    with _setting:
        before = {name: os.environ.get(name) for name in names}
        runs.impatient()
        os.environ.update(given)
    try:
        yield
    finally:
        with _setting:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


_setting = threading.Lock()
