"""The results of a training."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from troupe import _pickled, exceptions
from troupe.train import _retention, _run_folder
from troupe.train._checkpoint import Checkpoint

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Result:
    """The result of `fit()`, or of a run that `Result.from_path` finds.

    `metrics`: of the last report, None without one. `checkpoint`: the latest. `path`: the run's
    folder. `best_checkpoints`: those that are kept, in their order, each with its metrics.
    `return_value`: what rank 0's loop returned. `error`: None, for `fit()` raises it.
    """

    metrics: dict[str, Any] | None
    checkpoint: Checkpoint | None
    path: str
    error: Exception | None = None
    best_checkpoints: list[tuple[Checkpoint, Mapping[str, Any]]] = field(default_factory=list)
    return_value: Any = None

    @property
    def metrics_history(self) -> list[dict[str, Any]]:
        """The metrics of all reports, in their order, as the run's `progress.jsonl` has them: what
        JSON has not is its text."""
        return _run_folder.history(Path(self.path))

    @property
    def metrics_dataframe(self) -> pd.DataFrame:
        """The history as a DataFrame of pandas.

        Raises ImportError where pandas is not installed.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise exceptions.MissingPackageError(
                "metrics_dataframe needs pandas (pip install pandas); metrics_history has the same "
                "as a list of dicts"
            ) from error
        return pandas.DataFrame(self.metrics_history)

    @property
    def filesystem(self) -> None:
        """None: the path is one of the machine's."""
        return None

    def get_best_checkpoint(self, metric: str, mode: str) -> Checkpoint | None:
        """Return the stored checkpoint with the largest (`mode="max"`) or smallest ("min") number
        under that key; None if none has one."""
        if mode not in ("max", "min"):
            raise ValueError(f"get_best_checkpoint(mode={mode!r}): 'max' or 'min'")
        kept = [
            _retention.Kept(checkpoint.path, number, metrics)
            for number, (checkpoint, metrics) in enumerate(self.best_checkpoints)
        ]
        best = _retention.best_first(
            [one for one in kept if _retention.value_of(one.metrics, metric) is not None],
            metric,
            mode,
        )
        return Checkpoint(best[0].name) if best else None

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> Result:
        """Load the result of a run's folder, also of a run that is still training.

        Raises FileNotFoundError where there is none.
        """
        folder = Path(os.path.abspath(os.path.expanduser(os.fspath(path))))
        if not (folder / _run_folder.REPORTS).is_dir():
            raise FileNotFoundError(
                f"{folder} is no folder of a run: RunConfig's storage_path and name, joined, are"
            )
        kept = [(Checkpoint(folder / one.name), one.metrics) for one in _run_folder.kept_in(folder)]
        history = _run_folder.history(folder)
        return cls(
            metrics=history[-1] if history else None,
            checkpoint=kept[-1][0] if kept else None,
            path=str(folder),
            best_checkpoints=kept,
        )


_pickled.named_in("troupe.train", Result)
