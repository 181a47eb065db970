"""TensorBoard's files in each trial's folder, as Ray writes them, by tensorboardX."""

from __future__ import annotations

import functools
import importlib
import math
import sys
from collections.abc import Mapping
from typing import Any

from troupe import exceptions
from troupe.tune._callback import TrialView
from troupe.tune.logger.logger import LoggerCallback, OpenFiles, by_depth

PREFIX = "ray/tune/"  # by which Ray's boards know them
_LEFT_OUT = ("config", "pid", "timestamp", "time_total_s", "training_iteration")
FLUSH_S = 30


class TBXLoggerCallback(LoggerCallback):
    """Writes events for TensorBoard into each trial's folder: numbers as `ray/tune/NAME`, lists and
    arrays as histograms, images and videos by their dimensions; once a trial is over, its
    parameters beside its last metrics.

    The step is the report's `timesteps_total`, else its `training_iteration`. Raises ImportError
    without tensorboardX (`pip install 'troupe[tune]'`). As Ray's
    `ray.tune.logger.TBXLoggerCallback`.

        RunConfig(callbacks=[TBXLoggerCallback()])  # tensorboard --logdir ~/troupe_results/NAME
    """

    def __init__(self) -> None:
        try:
            importlib.import_module("tensorboardX")
        except ImportError as error:
            raise exceptions.MissingPackageError(
                "TBXLoggerCallback writes by tensorboardX, which is not installed here: pip "
                "install 'troupe[tune]', or tensorboardX"
            ) from error
        self._last: dict[TrialView, dict[str, Any]] = {}  # last results of unfinished trials

    @functools.cached_property
    def _writers(self) -> OpenFiles[Any]:
        return OpenFiles(_writer)

    def log_trial_start(self, trial: TrialView) -> None:
        """See LoggerCallback."""
        self._writers.of(trial)

    def log_trial_result(self, iteration: int, trial: TrialView, result: dict[str, Any]) -> None:
        """See LoggerCallback."""
        writer = self._writers.of(trial)
        step = result.get("timesteps_total") or result["training_iteration"]
        written: dict[str, Any] = {}
        for name, value in by_depth(
            {name: value for name, value in result.items() if name not in _LEFT_OUT}
        ).items():
            if _add(writer, PREFIX + name, value, step):
                written[PREFIX + name] = value
        self._last[trial] = written
        writer.flush()

    def log_trial_end(self, trial: TrialView, failed: bool = False) -> None:
        """See LoggerCallback."""
        last = self._last.pop(trial, {})
        numbers = {name: value for name, value in last.items() if _is_number(value)}
        try:
            if trial.evaluated_params and numbers:
                _add_parameters(self._writers.of(trial), trial.evaluated_params, numbers)
        finally:
            self._writers.close(trial)

    def on_experiment_end(self, trials: Any, **info: object) -> None:
        """See Callback."""
        self._last.clear()
        self._writers.close_all()
        del self._writers


def _writer(trial: TrialView) -> Any:
    from tensorboardX import SummaryWriter

    trial.init_local_path()
    return SummaryWriter(trial.local_path, flush_secs=FLUSH_S)


def _is_number(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    kinds = (int, float) if numpy is None else (int, float, numpy.floating, numpy.integer)
    return isinstance(value, kinds) and not math.isnan(value)


def _add(writer: Any, name: str, value: Any, step: int) -> bool:
    """Write the value; return False if TensorBoard has no form for it."""
    if _is_number(value):
        writer.add_scalar(name, value, global_step=step)
        return True
    is_array = type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"
    if not (isinstance(value, list) and value or is_array and value.size > 0):
        return False
    try:
        match value.ndim if is_array else 1:
            case 3:
                writer.add_image(name, value, global_step=step)
            case 4:
                writer.add_images(name, value, global_step=step)
            case 5:
                writer.add_video(name, value, global_step=step, fps=20)
            case _:
                writer.add_histogram(name, value, global_step=step)
    except (ValueError, TypeError):  # a list of texts, or one that is ragged
        return False
    return True


def _add_parameters(writer: Any, given: Mapping[str, Any], metrics: Mapping[str, Any]) -> None:
    """The table of hyperparameters; what it has no form for is left out."""
    from tensorboardX.summary import hparams

    plain = {
        name: value.item()
        if type(value).__module__ == "numpy"
        and hasattr(value, "item")
        and getattr(value, "ndim", 0) == 0
        else value
        for name, value in by_depth(given).items()
    }
    parameters = {
        name: value
        for name, value in plain.items()
        if isinstance(value, (str, bool, int, float, list))
    }
    for summary in hparams(hparam_dict=parameters, metric_dict=dict(metrics)):
        writer.file_writer.add_summary(summary)
