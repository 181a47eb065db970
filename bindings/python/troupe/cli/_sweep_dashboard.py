"""`troupe sweep dashboard`: optuna-dashboard over what a sweep's journal has, on this host alone."""
from __future__ import annotations

import socketserver
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from wsgiref import simple_server

import click

from troupe.tune._core.rules import lookup
from troupe.tune._core.trial import Phase, Trial
from troupe.tune._journal import history, view
from troupe.tune._journal.journal import FILE

if TYPE_CHECKING:
    from troupe.tune._search.optuna_storage import TrialRecord

HOST = "127.0.0.1"
_EXTRA = "troupe sweep dashboard needs optuna-dashboard, which is not installed: pip install 'troupe[tune]'"


class Changes:
    """The trials of a sweep as records, those alone that have changed since they were asked for; the journal is read where it has changed."""

    def __init__(self, folder: Path, metric: str) -> None:
        self._folder, self._metric = folder, metric
        self._stamp: tuple = ()
        self._told: dict[str, TrialRecord] = {}

    def __call__(self) -> Iterable[TrialRecord]:
        stamp = tuple((path.stat().st_mtime_ns, path.stat().st_size) for name in (FILE, f"{FILE}-wal") if (path := self._folder / name).exists())
        if stamp == self._stamp:
            return []
        self._stamp = stamp
        counted = history.all_reports(self._folder)
        found = [self._record(each, counted.get(each.id, [])) for each in view.of(self._folder).current()]
        changed = [each for each in found if self._told.get(each.trial) != each]
        self._told = {each.trial: each for each in found}
        return changed

    def _record(self, trial: Trial, reports: list[tuple[int, dict[str, Any]]]) -> TrialRecord:
        from troupe.tune._search.optuna_storage import TrialRecord

        values = {number: float(value) for number, metrics in reports if isinstance(value := lookup(metrics, self._metric), (int, float))}
        last = values.get(trial.number)
        state = trial.end.value if trial.phase is Phase.ENDED and trial.end is not None else "running"
        return TrialRecord(trial.id, trial.config, state, values, None if last is None else [last])


class _Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True


class _Quiet(simple_server.WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests of a page that looks again and again are of no interest."""


def serve(folder: Path, port: int) -> None:
    """Until Ctrl-C. A usage error without optuna-dashboard, and for a sweep that compares nothing."""
    try:
        import optuna_dashboard
    except ImportError:
        raise click.UsageError(_EXTRA) from None
    from troupe.tune._run.folder import tuner_of
    from troupe.tune._search.optuna_storage import SweepStorage

    seen = view.of(folder)
    if not seen.metric:
        raise click.UsageError(f"sweep {seen.name} compares nothing: TuneConfig(metric=..., mode=...), @tune.sweep(metric=..., mode=...) say what")
    storage = SweepStorage(Changes(folder, seen.metric))
    storage.follow(seen.name, [seen.about.get("mode") or "max"], tuner_of(folder)["space"])
    try:
        server = simple_server.make_server(HOST, port, optuna_dashboard.wsgi(storage), server_class=_Server, handler_class=_Quiet)
    except OSError as error:
        raise click.UsageError(f"port {port} of {HOST} cannot be had: {error.strerror}; --port 0 takes one that is free") from None
    with server:
        click.echo(f"sweep {seen.name}: http://{HOST}:{server.server_port}/ until Ctrl-C")
        server.serve_forever()
