"""The page as an ASGI app: routes, and what each answers."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs, quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from troupe import exceptions
from troupe._cluster.logs import Source
from troupe._dashboard import _access, _follow, _optuna, _render
from troupe._dashboard._live import Streams
from troupe._dashboard._pages import (
    CLUSTER_PAGES,
    LIVE,
    LOGS,
    QUERY_CHARS_MAX,
    Asked,
    Page,
    Pages,
    sources_of,
    sweep_pages,
)
from troupe._dashboard._sweeps import SweepReader
from troupe._dashboard._views import NotThereError, one

_NO_ACTIONS = (
    "This page only looks: start it with `troupe dashboard --allow-actions` to stop jobs and "
    "launches from it."
)


def make_app(
    pages: Pages,
    streams: Streams,
    sweeps: SweepReader,
    *,
    may_act: bool = False,
    has_cluster: bool = True,
    sweep: str = "",
) -> Starlette:
    """Return the app, without what lets people in (`_access.Access`).

    `sweep`: the sweep that the first page shows where there is no cluster.
    """
    has_optuna = _optuna.is_installed()
    shown = (
        *(CLUSTER_PAGES if has_cluster else ()),
        *sweep_pages(sweeps, has_optuna=has_optuna),
    )
    routes: list[BaseRoute] = [_page_route(pages, each) for each in shown]
    routes += [_live_route(pages, streams, each) for each in shown if each is not LOGS]
    if has_cluster:
        routes.append(_log_route(pages, streams))
        routes += [_stop_route(pages, each, may_act=may_act) for each in ("jobs", "launches")]
    else:
        routes.append(Route("/", lambda _: RedirectResponse(f"/sweeps/{quote(sweep)}", 303)))
    if has_optuna:
        routes += _optuna.OptunaPages(sweeps, sweep).routes()
    routes.append(Mount("/assets", StaticFiles(directory=_render.FOLDER / "assets")))

    def not_found(request: Request, error: Exception) -> Response:
        return _message(pages, 404, "Not found", "There is no such page.")

    return Starlette(routes=routes, exception_handlers={404: not_found})


def asked_of(request: Request) -> Asked:
    """Return what a request for a page asks for; long searches are cut."""
    query = {name: value[:QUERY_CHARS_MAX] for name, value in request.query_params.items()}
    path = request.url.path.removeprefix(LIVE)
    return Asked(path, request.path_params.get("id"), query, request.scope["state"]["session"])


def _page_route(pages: Pages, page: Page) -> Route:
    def show(request: Request) -> Response:
        try:
            return HTMLResponse(pages.whole(page, asked_of(request)))
        except NotThereError as error:
            return _message(pages, 404, "Not found", str(error))

    return Route(page.path, show, methods=["GET"])


def _live_route(pages: Pages, streams: Streams, page: Page) -> Route:
    async def follow(request: Request) -> Response:
        asked = asked_of(request)

        def render() -> Mapping[str, str]:
            try:
                return pages.blocks(page, asked)
            except NotThereError:
                return {}  # the session existed when the page was loaded, which still shows it

        return streams.respond(request, render)

    return Route(f"{LIVE}{page.path}", follow, methods=["GET"])


def _log_route(pages: Pages, streams: Streams) -> Route:
    async def follow(request: Request) -> Response:
        asked = asked_of(request)

        def find() -> list[Source]:
            try:
                return sources_of(pages.reader, asked.query)[0]
            except NotThereError:
                return []

        return streams.respond_with(
            _follow.follow(
                streams,
                pages.reader,
                find,
                asked.query.get("q", ""),
                lambda: streams.is_valid(asked.session),
            )
        )

    return Route(f"{LIVE}{LOGS.path}", follow, methods=["GET"])


def _stop_route(pages: Pages, noun: str, *, may_act: bool) -> Route:
    async def stop(request: Request) -> Response:
        if not may_act:
            return _message(pages, 403, "Not allowed", _NO_ACTIONS)
        given = parse_qs((await request.body()).decode("utf-8", "replace"))
        csrf = given.get(_access.CSRF_FIELD, [""])[0]
        if not _access.has_csrf(request.scope["state"]["session"], csrf):
            text = "This form is not of this session: load the page again."
            return _message(pages, 403, "Not allowed", text)
        return await run_in_threadpool(_stop, pages, noun, request.path_params["id"])

    return Route(f"/{noun}/{{id}}/stop", stop, methods=["POST"])


def _stop(pages: Pages, noun: str, identity: str) -> Response:
    try:
        launch = one(pages.reader.launches(), "launch", identity)["launch"]
        pages.reader.stop_launch(launch)
    except NotThereError as error:
        return _message(pages, 404, "Not found", str(error))
    except (exceptions.TroupeError, OSError) as error:
        return _message(pages, 409, "It was not stopped", str(error))
    return RedirectResponse(f"/{noun}/{launch}", 303)


def _message(pages: Pages, status: int, heading: str, text: str) -> Response:
    return HTMLResponse(pages.message(heading, text), status)
