"""A sweep in MLflow: a run for it, and one below that for each trial."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from typing import Any

from troupe import exceptions
from troupe._cluster import status_lines
from troupe._tracking import begin, rule, turns
from troupe.tune._callback import SweepLogger, SweepSeen, TrialView
from troupe.tune.logger._mlflow_runs import SweepRuns, variables
from troupe.tune.logger.logger import LoggerCallback

DEFAULT_STORE = "sqlite:///mlflow.db"  # as MLflow has it


class MLflowLoggerCallback(LoggerCallback, SweepLogger):
    """Writes the sweep into MLflow: a run for it, and below that one for each trial, with its
    parameters, its metrics by `training_iteration`, how it ended.

    `tracking_uri`: None: what MLFLOW_TRACKING_URI or the program says. `experiment_name`: made
    where there is none; None: as MLflow has it, below the active run if there is one. `tags`: of
    the trials' runs. `tracking_token`: for the server; in a sweep that is submitted or restored
    MLFLOW_TRACKING_TOKEN has it, for it is not kept. `save_artifact`: what is in a trial's folder
    is stored when it is over. `log_params_on_trial_end`: parameters then too. It writes on a thread
    of its own; a server that is away is said once, and costs the sweep nothing. Raises ImportError
    without MLflow (`pip install 'troupe[tracking]'`), TypeError or ValueError for what is none of
    these. As Ray's `ray.air.integrations.mlflow.MLflowLoggerCallback`.

        logger = MLflowLoggerCallback("http://mlflow.example:5000", experiment_name="digits")
        RunConfig(callbacks=[logger])
    """

    def __init__(
        self,
        tracking_uri: str | None = None,
        *,
        registry_uri: str | None = None,
        experiment_name: str | None = None,
        tags: Mapping[str, Any] | None = None,
        tracking_token: str | None = None,
        save_artifact: bool = False,
        log_params_on_trial_end: bool = False,
    ) -> None:
        if importlib.util.find_spec("mlflow") is None:
            raise exceptions.MissingPackageError(
                "MLflowLoggerCallback writes by MLflow, which is not installed here: pip install "
                "'troupe[tracking]', or mlflow"
            )
        for name, given in (
            ("tracking_uri", tracking_uri),
            ("registry_uri", registry_uri),
            ("experiment_name", experiment_name),
        ):
            if given is not None and not isinstance(given, (str, os.PathLike)):
                raise TypeError(f"MLflowLoggerCallback({name}={given!r}): a text")
        if tags is not None and not isinstance(tags, Mapping):
            raise TypeError(f"MLflowLoggerCallback(tags={tags!r}): a dict of texts")
        self.tracking_uri = None if tracking_uri is None else os.fspath(tracking_uri)
        self.registry_uri, self.experiment_name, self.tracking_token = (
            registry_uri,
            experiment_name,
            tracking_token,
        )
        self.tags = {str(name): str(value) for name, value in (tags or {}).items()}
        self.should_save_artifact, self.log_params_on_trial_end = (
            save_artifact,
            log_params_on_trial_end,
        )
        self._live: _Live | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what is secret."""
        kept = {**vars(self), "tracking_token": None, "_live": None}
        if self.tracking_uri is not None and "@" in self.tracking_uri:
            kept["tracking_uri"] = rule.shown(self.tracking_uri)
        return kept

    def belongs_to(self, sweep: SweepSeen) -> None:
        """See SweepLogger."""
        self._live = _Live(self, sweep)

    def setup(
        self,
        stop: Any = None,
        num_samples: int | None = None,
        total_num_samples: int | None = None,
        **info: object,
    ) -> None:
        """See Callback."""
        if self._live is not None:
            self._live.begin()

    def caught_up(self) -> None:
        """See SweepLogger."""
        if (runs := self._runs) is not None:
            runs.write()

    def log_trial_start(self, trial: TrialView) -> None:
        """See LoggerCallback."""
        if (runs := self._runs) is not None:
            runs.started(trial)

    def log_trial_result(self, iteration: int, trial: TrialView, result: dict[str, Any]) -> None:
        """See LoggerCallback."""
        if (runs := self._runs) is not None:
            runs.reported(trial, result)

    def log_trial_end(self, trial: TrialView, failed: bool = False) -> None:
        """See LoggerCallback."""
        if (runs := self._runs) is not None:
            runs.ended(
                trial, "FAILED" if failed else "FINISHED", artifacts=self.should_save_artifact
            )

    def on_experiment_end(self, trials: Any, **info: object) -> None:
        """See Callback."""
        live, self._live = self._live, None
        if live is not None:
            live.end()

    @property
    def _runs(self) -> SweepRuns | None:
        return None if self._live is None else self._live.runs


class _Live:
    """The state of a callback while its sweep runs."""

    def __init__(self, given: MLflowLoggerCallback, sweep: SweepSeen) -> None:
        self._given, self._sweep = given, sweep
        program = begin.of_this_program()  # the active run is known per thread
        self._uri = (
            given.tracking_uri or os.environ.get(rule.URI) or program["uri"] or DEFAULT_STORE
        )
        own = given.experiment_name is not None
        self._wish = rule.Wish(
            local=turns.is_local(self._uri),
            store=rule.shown(self._uri),
            name=sweep.name,
            run="" if own or program["run"] else os.environ.get(rule.RUN, ""),
            parent="" if own else program["run"],
            experiment="" if own else program["experiment"] or os.environ.get(rule.EXPERIMENT, ""),
            experiment_name=given.experiment_name or os.environ.get(rule.EXPERIMENT_NAME, ""),
            tags={
                "troupe.sweep": sweep.name,
                "mlflow.user": begin.user_name(),
                "mlflow.source.type": "LOCAL",
                "mlflow.source.name": os.path.abspath(sys.argv[0])
                if sys.argv and os.path.isfile(sys.argv[0])
                else sweep.name,
                **({"troupe.trials": str(sweep.total)} if sweep.total is not None else {}),
            },
        )
        self._client: Any = None
        self._stack = contextlib.ExitStack()
        self.runs: SweepRuns | None = None

    def begin(self) -> None:
        """On its own thread, which may take long."""
        if importlib.util.find_spec("mlflow") is None:
            self._say(
                "MLflow is not installed here: the sweep goes on without its runs; pip install "
                "'troupe[tracking]'"
            )
            return
        self._stack.enter_context(
            variables(
                {rule.TOKEN: self._given.tracking_token} if self._given.tracking_token else {}
            )
        )
        importlib.import_module("mlflow")  # takes seconds: no server is waited for yet
        self.runs = SweepRuns(
            self._sweep,
            self._wish,
            self._made_client,
            self._say,
            self._given.tags,
            late=self._given.log_params_on_trial_end,
        )
        self.runs.write()

    def end(self) -> None:
        """The sweep is over."""
        with self._stack:
            if self.runs is not None:
                self.runs.close()

    def _made_client(self) -> Any:
        if self._client is None:
            import mlflow

            self._client = mlflow.MlflowClient(self._uri, self._given.registry_uri)
        return self._client

    def _say(self, text: str) -> None:
        status_lines.say(
            f"troupe.tune: sweep {self._sweep.name}: "
            f"{rule.without_secrets(text, {**os.environ, rule.URI: self._uri})}"
        )
