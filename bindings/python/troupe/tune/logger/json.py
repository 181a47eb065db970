"""result.json, params.json and params.pkl in each trial's folder, as Ray writes them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from troupe.tune._callback import TrialView
from troupe.tune.logger.logger import AsJson, LoggerCallback, OpenFiles

RESULTS, PARAMETERS, PICKLED = "result.json", "params.json", "params.pkl"


class JsonLoggerCallback(LoggerCallback):
    """Writes each report as a line of JSON into `result.json` in the trial's folder, and its
    configuration into `params.json` and `params.pkl`.

    Those are written again where the configuration changes, as by population based training. A
    trial that goes on adds to its file. As Ray's `ray.tune.logger.JsonLoggerCallback`.

        RunConfig(callbacks=[JsonLoggerCallback()])
    """

    @functools.cached_property
    def _files(self) -> OpenFiles[IO[str]]:
        return OpenFiles(_results)

    def log_trial_start(self, trial: TrialView) -> None:
        """See LoggerCallback."""
        self.update_config(trial, trial.config)
        self._files.of(trial)

    def update_config(self, trial: TrialView, config: Mapping[str, Any]) -> None:
        """Writes down the configuration.

        Raises OSError where it cannot be written, what pickling raises.
        """
        import cloudpickle

        trial.init_local_path()
        folder = Path(trial.local_path)
        folder.joinpath(PARAMETERS).write_text(
            json.dumps(dict(config), indent=2, sort_keys=True, cls=AsJson)
        )
        folder.joinpath(PICKLED).write_bytes(cloudpickle.dumps(dict(config)))

    def log_trial_result(self, iteration: int, trial: TrialView, result: dict[str, Any]) -> None:
        """See LoggerCallback."""
        file = self._files.of(trial)
        file.write(json.dumps(result, cls=AsJson) + "\n")
        file.flush()

    def log_trial_end(self, trial: TrialView, failed: bool = False) -> None:
        """See LoggerCallback."""
        self._files.close(trial)

    def on_experiment_end(self, trials: Any, **info: Any) -> None:
        """See Callback."""
        self._files.close_all()
        del self._files


def _results(trial: TrialView) -> IO[str]:
    trial.init_local_path()
    return Path(trial.local_path, RESULTS).open("a")
