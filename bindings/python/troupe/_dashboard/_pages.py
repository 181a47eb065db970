"""The pages by their addresses: which template shows what, and how it is filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment
from markupsafe import Markup

from troupe._cluster import logs as _sources
from troupe._dashboard import _charts, _logs, _render, _views
from troupe._dashboard._access import PageSession
from troupe._dashboard._reader import ClusterReader
from troupe._dashboard._sweeps import SweepReader
from troupe.launch._handle import describe

_SECRET = re.compile("TOKEN|KEY|SECRET|PASSWORD", re.IGNORECASE)
NAVIGATION = (
    ("/nodes", "Nodes"),
    ("/launches", "Launches"),
    ("/jobs", "Jobs"),
    ("/actors", "Actors"),
    ("/queue", "Queue"),
    ("/logs", "Logs"),
    ("/events", "Events"),
)
SWEEPS = ("/sweeps", "Sweeps")
QUERY_CHARS_MAX = 200
LISTED_MAX = 50
LIVE = "/live"
"""In front of the path of a page: its changes, as server-sent events."""


@dataclass(frozen=True)
class Page:
    """A kind of page, with `path` as starlette's router has it."""

    path: str
    template: str
    view: _views.View


@dataclass(frozen=True)
class Asked:
    """A request for a page: where, with which search, by whom."""

    path: str
    identity: str | None
    query: Mapping[str, str]
    session: PageSession


def _job(reader: ClusterReader, query: Mapping[str, str], identity: str) -> dict[str, Any]:
    found = _views.job(reader, query, identity)
    launch = found["job"]["launch"]
    info = _views.find_launch(reader, launch)
    return {**found, "log": _logs.tail(reader, _logs.sources_of_launch(info, 0))}


def sources_of(
    reader: ClusterReader, query: Mapping[str, str]
) -> tuple[list[_sources.Source], str, int]:
    """Return the streams that a query asks for, a title for them, and how many ranks there are.

    Raises:
        NotThereError: nothing has the id that was asked for.
    """
    launch, actor = query.get("launch", ""), query.get("actor", "")
    if launch:
        info = _views.find_launch(reader, launch)
        title = f"launch {info['launch'][:8]} {info['name']}"
        return _logs.sources_of_launch(info, _rank(query)), title, info["ranks"]
    if actor:
        found = _views.one(reader.actors(), "actor_id", actor)
        title = f"actor {found['actor_id'][:8]} of {found['class_name']}"
        return _logs.sources_of_actor(found), title, 0
    return [], "", 0


def _rank(query: Mapping[str, str]) -> int | None:
    given = query.get("rank", "")
    return int(given) if given.isdecimal() and len(given) < 9 else None


def _log(reader: ClusterReader, query: Mapping[str, str]) -> dict[str, Any]:
    """`/logs`: whose there are; of one of them the last lines, or those that have a word."""
    sources, title, ranks = sources_of(reader, query)
    return {
        "of": title,
        "rank": _rank(query),
        "ranks": ranks,
        "ranks_max": _logs.RANKS_MAX,
        "log": _logs.tail(reader, sources, query.get("q", "")) if title else None,
        "launches": [] if title else [describe(each) for each in reader.launches()[:LISTED_MAX]],
    }


LOGS = Page("/logs", "logs.html", _log)
CLUSTER_PAGES = (
    Page("/", "overview.html", _views.overview),
    Page("/nodes", "nodes.html", _views.nodes),
    Page("/nodes/{id}", "node.html", _views.node),
    Page("/actors", "actors.html", _views.actors),
    Page("/launches", "launches.html", _views.launches),
    Page("/launches/{id}", "launch.html", _views.launch),
    Page("/jobs", "jobs.html", _views.jobs),
    Page("/jobs/{id}", "job.html", _job),
    Page("/queue", "queue.html", _views.queue),
    LOGS,
    Page("/events", "events.html", _views.events),
)


def sweep_pages(sweeps: SweepReader, *, has_optuna: bool) -> tuple[Page, ...]:
    """Return the pages of a storage folder's sweeps, which ask no cluster."""

    def listed(reader: ClusterReader | None, query: Mapping[str, str]) -> dict[str, Any]:
        return sweeps.list_page(query)

    def one(
        reader: ClusterReader | None, query: Mapping[str, str], identity: str
    ) -> dict[str, Any]:
        found = sweeps.page(query, identity)
        return {**found, "charts": _charts, "has_optuna": has_optuna}

    return (Page("/sweeps", "sweeps.html", listed), Page("/sweeps/{id}", "sweep.html", one))


class Pages:
    """Renders pages of one cluster, and of sweeps; without a reader, of sweeps alone."""

    def __init__(self, reader: ClusterReader | None, *, may_act: bool) -> None:
        self._reader = reader
        self._may_act = may_act
        self._templates: Environment = _render.environment()
        self._templates.filters["secret"] = _secret
        self._templates.globals["p"] = self._templates.get_template("parts.html").module

    @property
    def reader(self) -> ClusterReader:
        """Return what the pages of the cluster read; there is one wherever such a page is."""
        assert self._reader is not None
        return self._reader

    def whole(self, page: Page, asked: Asked) -> str:
        """Return the page as a document. Blocks.

        Raises:
            NotThereError: nothing has the id that was asked for.
        """
        return self._templates.get_template(page.template).render(self._context(page, asked))

    def blocks(self, page: Page, asked: Asked) -> dict[str, str]:
        """Return the parts of the page that change, by the names of their elements. Blocks.

        Raises:
            NotThereError: nothing has the id that was asked for.
        """
        return _render.blocks(self._templates, page.template, self._context(page, asked))

    def message(self, heading: str, text: str) -> str:
        """Return a page that says only this."""
        context = {**self._frame("", {}), "heading": heading, "text": text, "csrf": ""}
        return self._templates.get_template("message.html").render(context)

    def _context(self, page: Page, asked: Asked) -> dict[str, Any]:
        identity = () if asked.identity is None else (asked.identity,)
        shown = page.view(self._reader, asked.query, *identity)
        search = f"?{urlencode(asked.query)}" if asked.query else ""
        return {
            **self._frame(asked.path, asked.query),
            "csrf": asked.session.csrf,
            "live_path": f"{LIVE}{asked.path}{search}",
            **shown,
        }

    def _frame(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Return what every page shows, as it is after the page's own lists were read."""
        reader = self._reader
        status = reader.status() if reader is not None else {"cluster_id": "", "address": ""}

        def link(start: int) -> str:
            return f"{path}?{urlencode({**query, 'from': start})}"

        def older(cursor: str) -> str:
            kept = {name: value for name, value in query.items() if name != "before"}
            return f"{path}?{urlencode(kept | ({'before': cursor} if cursor else {}))}"

        def with_class(name: str) -> str:
            return f"{path}?{urlencode({'class': name})}"

        def current(place: str) -> Markup:
            is_here = path == place or (place != "/" and path.startswith(f"{place}/"))
            return Markup(' aria-current="page"') if is_here else Markup()

        return {
            "navigation": (*(NAVIGATION if reader is not None else ()), SWEEPS),
            "query": query,
            "link": link,
            "older": older,
            "with_class": with_class,
            "current": current,
            "may_act": self._may_act,
            "cluster_id": status["cluster_id"],
            "address": status["address"],
            "outage": reader.outage() if reader is not None else None,
            "live_path": "",
        }


def _secret(value: object, name: str) -> object:
    """Return a value unless its name says that it is a secret."""
    return "(not shown)" if _SECRET.search(name) else value
