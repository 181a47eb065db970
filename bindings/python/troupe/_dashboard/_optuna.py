"""optuna-dashboard over what a sweep's journal has. Nothing is unpickled or changed: it is asked by
GET alone."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from troupe._dashboard._access import CONTENT_POLICY
from troupe._dashboard._sweeps import SweepReader, stamp_of
from troupe._dashboard._views import NotThereError
from troupe.tune._core.rules import lookup
from troupe.tune._core.trial import Phase, Trial
from troupe.tune._journal import history, space, view
from troupe.tune._journal.journal import JournalError

if TYPE_CHECKING:
    from troupe.tune._search.optuna_storage import TrialRecord

HOME = "/dashboard"
_PATHS = (HOME, "/api/", "/static/", "/csv/")
# optuna-dashboard sets its styles from its script, and draws pictures that it has made itself.
_POLICY = (
    CONTENT_POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'").replace(
        "img-src 'self'", "img-src 'self' data: blob:"
    )
    + "; font-src 'self' data:"
)
APPS_MAX = 8


def is_installed() -> bool:
    """Return True if optuna-dashboard, and what serves it, is there."""
    return all(
        importlib.util.find_spec(each) is not None for each in ("optuna_dashboard", "a2wsgi")
    )


def policy_of(path: str) -> str:
    """Return the content security policy for a path of the page."""
    return _POLICY if path.startswith(_PATHS) else CONTENT_POLICY


class OptunaPages:
    """Serves optuna-dashboard for the sweep that a browser's session has chosen last.

    Its addresses are the same for each sweep, so the session says which one is meant.
    """

    def __init__(self, sweeps: SweepReader, first: str = "") -> None:
        self._sweeps = sweeps
        self._first = first
        self._chosen: dict[str, str] = {}
        self._apps: dict[str, ASGIApp] = {}

    def routes(self) -> list[Route]:
        """Return the routes of optuna-dashboard, and the one that chooses its sweep."""
        paths = [f"{HOME}{{rest:path}}", *(f"{each}{{rest:path}}" for each in _PATHS[1:])]
        return [
            Route("/sweeps/{id}/optuna", self._choose, methods=["GET"]),
            *(Route(each, _Get(self), methods=["GET"]) for each in paths),
        ]

    def _choose(self, request: Request) -> Response:
        name = request.path_params["id"]
        try:
            self.app_of(name)
        except (NotThereError, ValueError) as error:
            return Response(f"{error}\n", 404, media_type="text/plain")
        while len(self._chosen) >= APPS_MAX * 2:
            self._chosen.pop(next(iter(self._chosen)))
        self._chosen[request.scope["state"]["session"].id] = name
        return RedirectResponse(f"{HOME}/studies/0", 303)

    def chosen(self, session: str) -> str:
        """Return the name of the sweep that a session looks at; "": none yet."""
        return self._chosen.get(session, self._first)

    def app_of(self, name: str) -> ASGIApp:
        """Return optuna-dashboard for a sweep.

        Raises:
            NotThereError: there is no such sweep.
            ValueError: it compares nothing, or is damaged.
        """
        if name not in self._apps:
            while len(self._apps) >= APPS_MAX:
                self._apps.pop(next(iter(self._apps)))
            self._apps[name] = _app(self._sweeps.folder(name))
        return self._apps[name]


class _Get:
    """An ASGI app that hands a request to the optuna-dashboard of the session's sweep."""

    def __init__(self, pages: OptunaPages) -> None:
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = self._pages.chosen(scope["state"]["session"].id)
        try:
            app = self._pages.app_of(name)
        except (NotThereError, ValueError) as error:
            answer: ASGIApp = Response(f"{error}\n", 404, media_type="text/plain")
            await answer(scope, receive, send)
            return
        await app({**scope, "root_path": ""}, receive, send)


def _app(folder: Path) -> ASGIApp:
    import optuna_dashboard
    from a2wsgi import WSGIMiddleware

    from troupe.tune._search.optuna_storage import SweepStorage

    seen = view.of(folder)
    if not seen.metric:
        raise ValueError(
            f"sweep {seen.name} compares nothing: TuneConfig(metric=..., mode=...), "
            "@tune.sweep(metric=..., mode=...) say what"
        )
    storage = SweepStorage(Changes(folder, seen.metric))
    storage.follow(seen.name, [seen.about.get("mode") or "max"], space_of(seen))
    return cast(ASGIApp, WSGIMiddleware(optuna_dashboard.wsgi(storage)))


def space_of(seen: view.SweepView) -> Any:
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


class Changes:
    """The trials of a sweep as records, those alone that have changed since they were asked for;
    the journal is read where it has changed."""

    def __init__(self, folder: Path, metric: str) -> None:
        self._folder, self._metric = folder, metric
        self._stamp: object = None
        self._told: dict[str, TrialRecord] = {}

    def __call__(self) -> Iterable[TrialRecord]:
        stamp = stamp_of(self._folder)
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
