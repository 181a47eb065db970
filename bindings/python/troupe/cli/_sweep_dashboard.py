"""`troupe sweep dashboard`: optuna-dashboard over what a sweep's journal has, for one person on
this host. Nothing is unpickled."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from troupe.cli import _page_login
from troupe.tune._core.rules import lookup
from troupe.tune._core.trial import Phase, Trial
from troupe.tune._journal import history, space, view
from troupe.tune._journal.journal import FILE, JournalError

if TYPE_CHECKING:
    from troupe.tune._search.optuna_storage import TrialRecord

_EXTRA = (
    "troupe sweep dashboard needs optuna-dashboard, which is not installed: pip install "
    "'troupe[tune]'"
)


class Changes:
    """The trials of a sweep as records, those alone that have changed since they were asked for;
    the journal is read where it has changed."""

    def __init__(self, folder: Path, metric: str) -> None:
        self._folder, self._metric = folder, metric
        self._stamp: tuple[Any, ...] = ()
        self._told: dict[str, TrialRecord] = {}

    def __call__(self) -> Iterable[TrialRecord]:
        stamp = tuple(
            (path.stat().st_mtime_ns, path.stat().st_size)
            for name in (FILE, f"{FILE}-wal")
            if (path := self._folder / name).exists()
        )
        if stamp == self._stamp:
            return []
        self._stamp = stamp
        counted = history.all_reports(self._folder)
        found = [
            self._record(each, counted.get(each.id, []))
            for each in view.of(self._folder, space.NotLoaded).current()
        ]
        changed = [each for each in found if self._told.get(each.trial) != each]
        self._told = {each.trial: each for each in found}
        return changed

    def _record(self, trial: Trial, reports: list[tuple[int, dict[str, Any]]]) -> TrialRecord:
        from troupe.tune._search.optuna_storage import TrialRecord

        values = {
            number: float(value)
            for number, metrics in reports
            if isinstance(value := lookup(metrics, self._metric), (int, float))
        }
        last = values.get(trial.number)
        state = (
            trial.end.value if trial.phase is Phase.ENDED and trial.end is not None else "running"
        )
        return TrialRecord(trial.id, trial.config, state, values, None if last is None else [last])


def _space_of(seen: view.SweepView) -> Any:
    """Return the sweep's space, {} where its folder does not say it.

    Raises JournalError for what is none.
    """
    try:
        return space.decoded(seen.about.get("space")) or {}
    except (LookupError, TypeError, ValueError) as error:
        raise JournalError(
            f"{seen.path / view.ABOUT} is damaged: its space cannot be understood "
            f"({type(error).__name__}: {error})\n"
            "  restore the file from a copy"
        ) from error


def serve(folder: Path, port: int) -> None:
    """Until Ctrl-C.

    A usage error without optuna-dashboard, and for a sweep that compares nothing.
    """
    try:
        import optuna_dashboard
    except ImportError:
        raise click.UsageError(_EXTRA) from None
    from troupe.tune._search.optuna_storage import SweepStorage

    seen = view.of(folder)
    if not seen.metric:
        raise click.UsageError(
            f"sweep {seen.name} compares nothing: TuneConfig(metric=..., mode=...), "
            "@tune.sweep(metric=..., mode=...) say what"
        )
    storage, parameters = SweepStorage(Changes(folder, seen.metric)), _space_of(seen)
    storage.follow(seen.name, [seen.about.get("mode") or "max"], parameters)
    login = _page_login.OneTimeLogin(optuna_dashboard.wsgi(storage))
    try:
        server = _page_login.make_server(login, port)
    except OSError as error:
        raise click.UsageError(
            f"port {port} of {_page_login.HOST} cannot be had: {error.strerror}; --port 0 takes "
            "one that is free"
        ) from None
    if not parameters:
        click.echo(
            f"trials are shown without their parameters: {folder / view.ABOUT} does not have the "
            "sweep's space, because it has no parameters, "
            f"takes more than {space.JSON_BYTES_MAX >> 20} MiB, or was begun by an earlier version",
            err=True,
        )
    link = f"http://{_page_login.HOST}:{server.server_port}{login.path}"
    _page_login.serve(
        server,
        lambda: click.echo(
            f"sweep {seen.name}: {link} (this link works once, in one browser) until Ctrl-C"
        ),
    )
