"""progress.csv in each trial's folder, as Ray writes it."""

from __future__ import annotations

import csv
import functools
from pathlib import Path
from typing import IO, Any

from troupe.tune._callback import TrialView
from troupe.tune.logger.logger import LoggerCallback, OpenFiles, by_depth

FILE = "progress.csv"


class CSVLoggerCallback(LoggerCallback):
    """Writes a row for each report into `progress.csv` in the trial's folder, without its
    configuration; what is inside dicts as `a/b`.

    The columns are those of the trial's first report; what later ones have besides is left out
    (`troupe sweep export` has all). A trial that goes on adds to its file. As Ray's
    `ray.tune.logger.CSVLoggerCallback`.

        RunConfig(callbacks=[CSVLoggerCallback()])
    """

    @functools.cached_property
    def _files(self) -> OpenFiles[_Table]:
        return OpenFiles(_Table)

    def log_trial_result(self, iteration: int, trial: TrialView, result: dict[str, Any]) -> None:
        """See LoggerCallback."""
        self._files.of(trial).add(
            by_depth({name: value for name, value in result.items() if name != "config"})
        )

    def log_trial_end(self, trial: TrialView, failed: bool = False) -> None:
        """See LoggerCallback."""
        self._files.close(trial)

    def on_experiment_end(self, trials: Any, **info: object) -> None:
        """See Callback."""
        self._files.close_all()
        del self._files


class _Table:
    """A trial's file, with the columns that it has already or else those of the first row."""

    def __init__(self, trial: TrialView) -> None:
        trial.init_local_path()
        path = Path(trial.local_path, FILE)
        self._writer: csv.DictWriter[str] | None = None
        with path.open("a+", newline="") as file:
            file.seek(0)
            columns = next(csv.reader(file), None)
        self._file: IO[str] = path.open("a", newline="")
        if columns:
            self._writer = self._of(columns)

    def _of(self, columns: list[str]) -> csv.DictWriter[str]:
        return csv.DictWriter(self._file, columns, extrasaction="ignore")

    def add(self, row: dict[str, Any]) -> None:
        """Writes it through, so that who reads the file sees it."""
        if self._writer is None:
            self._writer = self._of(list(row))
            self._writer.writeheader()
        self._writer.writerow(row)
        self._file.flush()

    def close(self) -> None:
        """See Closes."""
        self._file.close()
