"""MLflow in the trial's own function, as Ray's `setup_mlflow` gives it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

from troupe._tracking import rule
from troupe.train import _here
from troupe.tune._context import TuneContext
from troupe.tune.logger import _values


def setup_mlflow(
    config: Mapping[str, Any] | None = None,
    tracking_uri: str | None = None,
    registry_uri: str | None = None,
    experiment_id: str | None = None,
    experiment_name: str | None = None,
    tracking_token: str | None = None,
    artifact_location: str | None = None,
    run_name: str | None = None,
    create_experiment_if_not_exists: bool = False,
    tags: Mapping[str, Any] | None = None,
    rank_zero_only: bool = True,
) -> Any:
    """The module `mlflow` with an active run of this trial's, or of this training's, which ends as
    that returns; what ranks after the first get takes all calls and does nothing.

    `config` is logged as its parameters. `experiment_id`, else MLFLOW_EXPERIMENT_ID, where there is
    one by that id; else `experiment_name`, else MLFLOW_EXPERIMENT_NAME, else the trial's name.
    `run_name`: the experiment's name unless given. Blocks while the server answers. Raises
    RuntimeError without MLflow, ValueError for an experiment that is not there unless
    `create_experiment_if_not_exists`, what MLflow raises. As Ray's
    `ray.air.integrations.mlflow.setup_mlflow`.

        def train(config):
            mlflow = setup_mlflow(
                config, experiment_name="digits", create_experiment_if_not_exists=True)
            mlflow.log_metric("loss", 0.1, step=0)
    """
    try:
        mlflow = importlib.import_module("mlflow")
    except ImportError as error:
        raise RuntimeError(
            "setup_mlflow(): MLflow is not installed here: pip install 'troupe[tracking]', or "
            "mlflow"
        ) from error
    context = _context()
    if rank_zero_only and context is not None and context.get_world_rank() != 0:
        return Nothing()
    trial = context.get_trial_name() if isinstance(context, TuneContext) else None
    if tracking_token:
        os.environ[rule.TOKEN] = tracking_token
    if tracking_uri is not None:
        mlflow.set_tracking_uri(tracking_uri)
    if registry_uri is not None:
        mlflow.set_registry_uri(registry_uri)
    name = experiment_name or os.environ.get(rule.EXPERIMENT_NAME) or trial
    experiment = _experiment(
        mlflow,
        experiment_id or os.environ.get(rule.EXPERIMENT),
        name,
        artifact_location,
        create_experiment_if_not_exists,
    )
    if mlflow.active_run() is None:
        if context is not None:  # the process ends without reporting to MLflow
            _here.at_its_end(mlflow.end_run)
        mlflow.start_run(
            experiment_id=experiment,
            run_name=run_name or name,
            tags={str(key): str(value) for key, value in (tags or {}).items()},
        )
    if config:
        mlflow.log_params(_values.parameters_of(config))
    return mlflow


def _context() -> Any:
    """None outside of trials and trainings."""
    try:
        return _here.get_context()
    except RuntimeError:
        return None


def _experiment(
    mlflow: Any,
    experiment_id: str | None,
    name: str | None,
    artifact_location: str | None,
    make: bool,
) -> str:
    client = mlflow.MlflowClient()
    if experiment_id is not None:
        try:
            return str(client.get_experiment(experiment_id).experiment_id)
        except mlflow.exceptions.MlflowException as error:
            if getattr(error, "error_code", "") != "RESOURCE_DOES_NOT_EXIST":
                raise
    found = client.get_experiment_by_name(name) if name is not None else None
    if found is not None:
        return str(found.experiment_id)
    if name is not None and make:
        return str(client.create_experiment(name, artifact_location))
    said = [f"experiment_id={experiment_id!r}"] * (experiment_id is not None) + [
        f"experiment_name={name!r}"
    ] * (name is not None)
    raise ValueError(
        f"setup_mlflow(): there is no experiment of {' or '.join(said) or 'no name'} in "
        f"{rule.shown(mlflow.get_tracking_uri())}; "
        "experiment_name=..., create_experiment_if_not_exists=True makes one"
    )


class Nothing:
    """Takes whatever is asked of it, and does nothing."""

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        return None
