"""Actions of `troupe sweep` on a running sweep, and output of its processes."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import click

from troupe import state
from troupe._base import checks as _checks, visible as _visible
from troupe._cluster import logs as _logs, session as _session
from troupe.cli import _common
from troupe.tune import _handle
from troupe.tune._core.trial import Trial
from troupe.tune._errors import TuneError
from troupe.tune._journal import view

Opens = Callable[[], AbstractContextManager[_session.Session]]


@contextmanager
def _in_cluster(opens: Opens) -> Iterator[None]:
    """The calls inside go to that cluster."""
    with opens() as session:
        before = _session.set_current(session)
        try:
            yield
        finally:
            _session.set_current(before)


def stop(folder: Path, opens: Opens, *, as_json: bool) -> None:
    """See `troupe sweep stop`."""
    seen = view.of(folder)
    if seen.state != "running":
        _said(seen, f"is {seen.state} already, and stays so", as_json)
        return
    if seen.engine.get("served"):
        with _in_cluster(opens):
            _handle.SweepHandle(seen.name, folder).stop()
    else:
        _interrupt(seen)
    view.wait_for_end(folder)
    after = view.of(folder)
    _said(
        after,
        f"is stopped: troupe sweep resume {seen.name} goes on with it"
        if after.state == "stopped"
        else f"is {after.state}",
        as_json,
    )


def _interrupt(seen: view.SweepView) -> None:
    """Ctrl-C for the program that runs it. Raises TuneError where that is on another host."""
    host, pid = seen.engine.get("host"), seen.engine.get("pid")
    if host != socket.gethostname() or not isinstance(pid, int):
        raise TuneError(_handle.running_elsewhere(seen.path))
    with contextlib.suppress(ProcessLookupError):
        watched = os.pidfd_open(pid)
        try:
            if view.engine_of(seen.path)[0]:  # else it has ended, and the pid may be another one's
                signal.pidfd_send_signal(watched, signal.SIGINT)
        finally:
            os.close(watched)


def pause(folder: Path, opens: Opens, *, as_json: bool) -> None:
    """See `troupe sweep pause`."""
    seen = _submitted(folder, "pause")
    with _in_cluster(opens):
        _handle.SweepHandle(seen.name, folder).pause()
    _said(
        view.of(folder),
        f"starts nothing more, and what runs goes on: troupe sweep resume {seen.name} lets it "
        "start trials again",
        as_json,
    )


def _submitted(folder: Path, word: str) -> view.SweepView:
    """A sweep that runs, and not in a program. Raises TuneError for others."""
    seen = view.of(folder)
    if seen.state != "running":
        raise TuneError(f"sweep {seen.name} does not run: it is {seen.state}")
    if not seen.engine.get("served"):
        raise TuneError(
            f"sweep {seen.name} runs in a program, pid {seen.engine.get('pid')} on "
            f"{seen.engine.get('host')}: {word} is for sweeps that were "
            f"submitted; `troupe sweep stop {seen.name}` ends it there, and `troupe sweep resume "
            f"{seen.name}` goes on with it"
        )
    return seen


def resume(folder: Path, opens: Opens, *, as_json: bool, errored: str = "") -> None:
    """See `troupe sweep resume` and `retry-failed`."""
    seen = view.of(folder)
    if seen.state == "running" and not errored:
        _submitted(folder, "resume")
        if not seen.held:
            _said(seen, "runs already", as_json)
            return
        with _in_cluster(opens):
            _handle.SweepHandle(seen.name, folder).resume()
        _said(view.of(folder), "starts trials again", as_json)
        return
    _handle.check_can_go_on(folder, errored)
    with _in_cluster(opens):
        _handle.go_on(folder, errored)
    _said(seen, f"goes on in a process of the cluster: troupe sweep show {seen.name}", as_json)


def logs(
    session: _session.Session, folder: Path, *, trial: str | None, follow: bool, as_json: bool
) -> None:
    """See `troupe sweep logs`."""
    seen = view.of(folder)
    known = {each["actor_id"]: each for each in state.list_actors(session)}
    sources: list[_logs.Source] = []
    gone: list[str] = []
    if trial is None:
        own = next(
            (
                each
                for each in known.values()
                if each["name"] == seen.name and each["namespace"] == _handle.NAMESPACE
            ),
            None,
        )
        sources += _sources("sweep", own)
    labels: dict[str, list[str]] = {}
    for each in _chosen(seen, trial):
        labels.setdefault(each.where.get("actor", ""), []).append(each.id.rpartition("_")[2])
    for actor, numbers in labels.items():
        if actor in known:
            sources += _sources(",".join(numbers), known[actor])
        elif actor:
            gone += numbers
    if not sources:
        raise TuneError(
            f"nothing that sweep {seen.name} wrote is known in this cluster: no process of it has "
            "started here, or the head remembers it no more"
        )
    lines = (f"[{label}] {line}" for label, _, line in _lines(session, sources, follow=follow))
    if as_json:
        _common.echo_json({"sweep": seen.name, "lines": list(lines), "forgotten": gone})
        return
    for line in lines:
        click.echo(_visible.output(line))
    if gone:
        click.echo(
            f"the head remembers the processes of {len(gone)} trials no more: "
            f"{', '.join(gone[:10])}{', ...' if len(gone) > 10 else ''}",
            err=True,
        )


def _sources(label: str, actor: dict[str, Any] | None) -> list[_logs.Source]:
    return (
        []
        if actor is None or not actor["node_id"]
        else [each._replace(label=label) for each in _logs.of_actor(actor)]
    )


def _lines(
    session: _session.Session, sources: list[_logs.Source], *, follow: bool
) -> Iterator[tuple[str, bool, str]]:
    if follow:
        yield from _logs.Follower(session, sources)
        return
    for source in sources:
        for line in _logs.lines(session, source, follow=False):
            yield source.label, source.target["stderr"], line


def _chosen(seen: view.SweepView, trial: str | None) -> list[Trial]:
    """The trials that have been started, or one.

    A usage error, with the nearest, for what is none.
    """
    if trial is None:
        return [each for each in seen.trials.values() if each.where]
    found = [
        each
        for name, each in seen.trials.items()
        if trial in (name, name.rpartition("_")[2], seen.name_of(name))
    ]
    if not found and trial.isdecimal():
        found = [
            each
            for name, each in seen.trials.items()
            if name.rpartition("_")[2].lstrip("0") == trial.lstrip("0")
        ]
    if not found:
        raise click.UsageError(
            f"sweep {seen.name} has no trial {trial!r}{_checks.or_nearest(trial, seen.trials)}"
        )
    if not found[0].where:
        raise TuneError(f"trial {found[0].id} has not been started: it is {found[0].phase.value}")
    return found


def _said(seen: view.SweepView, words: str, as_json: bool) -> None:
    if as_json:
        _common.echo_json(view.status_of(seen))
    else:
        _common.echo_line(f"sweep {seen.name} {words}")
