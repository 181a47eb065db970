"""`train(lr=0.1)`: a swept function here, once, with the values given; what it reports is shown."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from troupe._cluster import status_lines
from troupe.launch import _plain
from troupe.train import _here
from troupe.train._checkpoint import Checkpoint
from troupe.tune._context import TuneContext


class HereLoop(_here.Loop):
    """A run in this process. `folder`: where its latest checkpoint is, as long as it runs."""

    def __init__(self, name: str, folder: Path, *, quiet: bool) -> None:
        self.context = TuneContext(name=name, path=str(folder), trial_id=name, trial_name=name)
        self._folder, self._quiet = folder, quiet
        self._latest: Checkpoint | None = None
        self._reports = 0

    def report(
        self, metrics: dict[str, Any], checkpoint: Checkpoint | None, dir_name: str | None
    ) -> None:
        """See Loop: keeps the checkpoint until the next one, and shows the metrics.

        Nobody stops it.
        """
        self._reports += 1
        if checkpoint is not None:
            kept = self._folder / (dir_name or f"checkpoint_{self._reports:06d}")
            checkpoint.to_directory(kept)
            if self._latest is not None:
                shutil.rmtree(self._latest.path, ignore_errors=True)
            self._latest = Checkpoint(kept)
        status_lines.say(
            f"{self.context.name} · report {self._reports} · {_words(metrics)}", quiet=self._quiet
        )

    def latest(self) -> Checkpoint | None:
        """See Loop."""
        return self._latest


def _words(metrics: Mapping[str, Any]) -> str:
    return "  ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in metrics.items()
    )


def call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, quiet: bool
) -> Any:
    """Call the function and return its result. Inside of a trial its reports are the trial's."""
    if _here.is_entered():
        return function(*args, **kwargs)
    with tempfile.TemporaryDirectory(prefix="troupe-sweep-") as folder:
        _here.enter(HereLoop(getattr(function, "__name__", "trial"), Path(folder), quiet=quiet))
        try:
            return _plain.call(function, args, kwargs)
        finally:
            _here.enter(None)
