"""Helpers of the `troupe job` commands that wait for a job: its log as it comes, and its end."""

from __future__ import annotations

from typing import Any

import click

from troupe._base import visible as _visible
from troupe._cluster import connect, live_output, status_lines
from troupe.cli import _common
from troupe.job_submission import _jobs, _output
from troupe.launch._handle import LaunchHandle


def open_session(address: str | None, token_file: str | None, cluster: str | None) -> Any:
    """Return a session that outlives its head, for commands that wait."""
    return _common.session(address, token_file, cluster, return_timeout=connect.RETURN_TIMEOUT_S)


def follow(
    handle: LaunchHandle,
    *,
    as_json: bool = False,
    tail: int | None = None,
    since_s: float | None = None,
) -> int:
    """Show what the job writes until it has ended, and return its exit code.

    Of what it has written already the last `tail` lines are shown, of the last `since_s` seconds.
    Ctrl-C leaves the job running, and says so.
    """
    identity = _jobs.id_of(_jobs.info_of(handle.session, handle.id))
    shown = 0
    try:
        for attempt, finished, bars in _output.follow(handle, tail, since_s=since_s):
            if shown and attempt != shown:
                status_lines.say(f"job {identity} · attempt {attempt}")
            shown = attempt
            live_output.show(handle.id, "", finished, bars, is_error=False)
        info = handle.wait_end()
    except KeyboardInterrupt:
        click.echo(f"job {identity} goes on · come back: troupe job logs -f {identity}", err=True)
        raise
    return end(info, as_json=as_json)


def end(info: dict[str, Any], *, as_json: bool) -> int:
    """Say how a job ended, and return its exit code."""
    if as_json:
        _common.echo_json(_jobs.describe(info))
    else:
        cause = f": {_jobs.cause_of(info)}" if _jobs.cause_of(info) else ""
        click.echo(
            _visible.text(f"job {_jobs.id_of(info)} {str(_jobs.state_of(info)).lower()}{cause}"),
            err=True,
        )
    return _jobs.exit_code_of(info)
