"""`troupe job`: commands that the cluster runs as drivers of the whole of it, detached from this
terminal."""

from __future__ import annotations

import datetime
from typing import Any

import click

from troupe import exceptions
from troupe._base import visible as _visible
from troupe.cli import _common, _job_follow, _job_submit, _tables
from troupe.job_submission import _jobs, _labels, _output
from troupe.job_submission._labels import Term

OUT_OF_TIME = 124


@click.group()
def job() -> None:
    """Jobs: commands that drive the whole cluster, and go on without this terminal."""


def _find(session: Any, identity: str) -> dict[str, Any]:
    try:
        return _jobs.find(session, identity)
    except exceptions.NotFoundError as error:
        raise click.UsageError(str(error)) from None


job.add_command(_job_submit.submit)


def _selector(_: click.Context, __: click.Parameter, given: str | None) -> tuple[Term, ...]:
    try:
        return _labels.read_selector(given) if given is not None else ()
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@job.command("list")
@click.option("--all", "everybody", is_flag=True, help="Jobs of other users, too.")
@click.option(
    "--selector",
    "-l",
    metavar="NAME=VALUE",
    callback=_selector,
    help="Only jobs with this metadata: NAME=VALUE, NAME!=VALUE, NAME or !NAME, with commas "
    "between.",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([each.value for each in _jobs.JobState], case_sensitive=False),
    help="Only jobs in this state, any number of times.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Show this many at most.",
)
@_common.cluster_options
def list_(
    everybody: bool,
    selector: tuple[Term, ...],
    states: tuple[str, ...],
    limit: int,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """List this user's jobs, the latest first."""
    with _job_follow.open_session(address, token_file, cluster) as session:
        found = [_jobs.describe(each) for each in _jobs.infos(session)]
        asker = session.request("GetUsage", {"mine": True})[1]["asker"]
    found = [
        each
        for each in found
        if (everybody or each["user"] == asker)
        and (not states or each["state"] in states)
        and all(term.accepts(each["metadata"]) for term in selector)
    ][:limit]
    if as_json:
        _common.echo_json(found)
        return
    _tables.show(
        ["JOB", "NAME", "USER", "STATE", "ATTEMPT", "NODE", "SUBMITTED", "TOOK", "WHY"],
        [
            [
                each["id"],
                each["name"],
                each["user"],
                each["state"],
                f"{each['attempt']}/{each['attempts_max']}",
                each["node"],
                _time(each["submitted_s"]),
                _tables.ago(each["duration_s"]),
                (each["waiting_for"] or each["cause"]).split("\n")[0],
            ]
            for each in found
        ],
    )


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).isoformat(" ", "seconds")


@job.command()
@click.argument("identity", metavar="ID")
@_common.cluster_options
def show(
    identity: str, address: str | None, token_file: str | None, cluster: str | None, as_json: bool
) -> None:
    """Show all that is known of a job; a prefix of its id will do."""
    with _job_follow.open_session(address, token_file, cluster) as session:
        found = _jobs.describe(_find(session, identity))
    if as_json:
        _common.echo_json(found)
        return
    for name, value in found.items():
        if value not in ("", [], {}, None, False, 0.0):
            _common.echo_line(f"{name:<16}{_time(value) if name == 'submitted_s' else value}")


@job.command()
@click.argument("identity", metavar="ID")
@click.option(
    "--follow",
    "-f",
    is_flag=True,
    help="Go on until the job has ended, and end with its exit code. Ctrl-C leaves the job "
    "running.",
)
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines.")
@click.option(
    "--since",
    metavar="TIME",
    help="Only what was written in the last 30s, 5m or 2h, to about a second.",
)
@click.option("--previous", is_flag=True, help="The log of the attempt before this one.")
@_common.cluster_options
def logs(
    identity: str,
    follow: bool,
    tail: int | None,
    since: str | None,
    previous: bool,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> int:
    """Print the log of a job: what its command wrote to stdout and stderr."""
    if follow and previous:
        raise click.UsageError("--follow shows the present attempt: --previous does not go with it")
    since_s = None if since is None else float(_common.seconds_of(since))
    with _job_follow.open_session(address, token_file, cluster) as session:
        info = _find(session, identity)
        if follow:
            handle = _jobs.handle_of(session, info)
            return _job_follow.follow(handle, as_json=as_json, tail=tail, since_s=since_s)
        try:
            written = _output.read(session, info, previous=previous, since_s=since_s)
            lines = _output.last(written, tail)
            if as_json:
                _common.echo_json({"id": _jobs.id_of(info), "lines": list(lines)})
                return 0
            for line in lines:
                click.echo(_visible.output(line))
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    return 0


@job.command()
@click.argument("identity", metavar="ID")
@click.option(
    "--timeout",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help=f"Give up after this time, with exit code {OUT_OF_TIME}; the job goes on.",
)
@_common.cluster_options
def wait(
    identity: str,
    timeout: float | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> int:
    """Wait until a job has ended, and end with its exit code."""
    with _job_follow.open_session(address, token_file, cluster) as session:
        info = _find(session, identity)
        handle = _jobs.handle_of(session, info)
        try:
            return _job_follow.end(handle.wait_end(timeout), as_json=as_json)
        except TimeoutError:
            click.echo(
                f"job {_jobs.id_of(info)} has not ended after {timeout:g} s; it goes on", err=True
            )
            return OUT_OF_TIME


@job.command()
@click.argument("identities", nargs=-1, required=True, metavar="ID...")
@click.option(
    "--grace",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Time from SIGTERM to SIGKILL; 0 kills at once.  [default: the job's]",
)
@_common.cluster_options
def stop(
    identities: tuple[str, ...],
    grace: float | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Stop jobs and wait for their ends: SIGTERM to the command and its process group, SIGKILL to
    all that is left after the grace."""
    with _job_follow.open_session(address, token_file, cluster) as session:
        found = [_find(session, each) for each in identities]
        handles = [_jobs.handle_of(session, each) for each in found]
        for each, handle in zip(found, handles, strict=True):
            if each["state"] != "terminal":
                handle.stop("stopped by troupe job stop", grace=grace)
        ended = [_jobs.describe(handle.wait_end()) for handle in handles]
    if as_json:
        _common.echo_json(ended)
        return
    for before, after in zip(found, ended, strict=True):
        _common.echo_line(
            f"job {after['id']}: "
            f"{after['state']}{' already' if before['state'] == 'terminal' else ''}"
        )


@job.command()
@click.argument("identities", nargs=-1, required=True, metavar="ID...")
@_common.cluster_options
def delete(
    identities: tuple[str, ...],
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Forget jobs that have ended: they are listed no more, and their ids are free."""
    with _job_follow.open_session(address, token_file, cluster) as session:
        found = [_find(session, each) for each in identities]
        for each in found:
            _jobs.delete(session, each)
    if as_json:
        _common.echo_json([_jobs.id_of(each) for each in found])
        return
    for each in found:
        _common.echo_line(f"job {_jobs.id_of(each)} deleted")
