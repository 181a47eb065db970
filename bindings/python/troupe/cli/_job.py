"""`troupe job`: commands that the cluster runs as drivers of the whole of it, detached from this
terminal."""

from __future__ import annotations

import datetime
import getpass
import sys
from typing import Any

import click

from troupe import _visible, exceptions
from troupe._cluster import connect, live_output, status_lines
from troupe.cli import _common, _submit_options as _options, _tables
from troupe.job_submission import _jobs, _output
from troupe.job_submission._request import JobRequest, id_of_key
from troupe.launch._handle import LaunchHandle

_RUNS_ANY = {"allow_interspersed_args": False}
OUT_OF_TIME = 124


def _session(address: str | None, token_file: str | None, cluster: str | None) -> Any:
    """Return a session that outlives its head, for commands that wait."""
    return _common.session(address, token_file, cluster, return_timeout=connect.RETURN_TIMEOUT_S)


@click.group()
def job() -> None:
    """Jobs: commands that drive the whole cluster, and go on without this terminal."""


def _memory(_: click.Context, __: click.Parameter, value: str | None) -> int:
    from troupe._cluster import resources

    try:
        return resources.bytes_of(int(value) if value and value.isdigit() else value or 0)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@job.command(cls=_options.ProgramCommand, context_settings=_RUNS_ANY)
@click.option(
    "--name", default="", metavar="NAME", help="Name of the job.  [default: the command's]"
)
@click.option(
    "--cpus",
    type=click.FloatRange(0),
    default=1,
    show_default=True,
    metavar="N",
    help="CPUs that the job holds.",
)
@click.option(
    "--gpus",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="GPUs that the job holds, of one node.",
)
@click.option(
    "--memory",
    callback=_memory,
    metavar="BYTES",
    help='Memory that the job holds: bytes, or a text such as "8GiB".',
)
@click.option(
    "--priority",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Place in the queue: the highest is first.",
)
@click.option(
    "--retries",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Times that the command is started again after a failure.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Time from the submission until the job is ended, waiting included.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Time from SIGTERM to SIGKILL when the job is stopped.",
)
@click.option(
    "--after",
    multiple=True,
    metavar="ID",
    help="Start when this job has succeeded, any number of times; when it ends otherwise, this one "
    "fails.",
)
@click.option(
    "--working-dir",
    metavar="DIR",
    help="The command's directory, which travels.  [default: this one]",
)
@click.option(
    "--exclude",
    "excludes",
    multiple=True,
    metavar="PATTERN",
    help="Files of the directory that do not travel, besides those of .gitignore.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="K=V",
    callback=_options.read_variables,
    help="A variable of the job, and of all that it starts; K alone: as it is here.",
)
@click.option(
    "--pip",
    "requirements",
    multiple=True,
    metavar="REQUIREMENT",
    help="A requirement that is installed for the job.",
)
@click.option(
    "--id",
    "identity",
    default="",
    metavar="ID",
    help="Id of the job. The same job again is not started twice; another one is refused.",
)
@click.option(
    "--idempotency-key",
    default="",
    metavar="KEY",
    help="As --id, with an id that is made of the key.",
)
@click.option(
    "--follow",
    "-f",
    is_flag=True,
    help="Show the log, and end with the job's exit code. Ctrl-C leaves the job running.",
)
@_common.cluster_options
@click.argument("line", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND [ARGS]...")
@click.pass_context
def submit(
    ctx: click.Context,
    line: tuple[str, ...],
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
    follow: bool,
    **given: Any,
) -> int:
    """Submit a command as a job, and print its id.

    The command runs on some node, in this directory or a copy of it, and troupe.init() or
    ray.init() in it finds the cluster.

        troupe job submit --gpus 1 -- python train.py --epochs 3
    """
    if not line:
        raise click.UsageError(
            "there is nothing to run: troupe job submit [OPTIONS] -- COMMAND [ARGS]..."
        )
    if given["identity"] and given["idempotency_key"]:
        raise click.UsageError(
            "--id and --idempotency-key both say which job it is: give one or the other"
        )
    try:
        request = _request(line, given).check()
    except (TypeError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    with _session(address, token_file, cluster) as session:
        try:
            handle = _jobs.start(request, session)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise click.UsageError(str(error)) from None
        info = _jobs.info_of(session, handle.id)
        if as_json and not follow:
            _common.echo_json(_jobs.describe(info))
            return 0
        _say_submitted(info, is_followed=follow)
        return _follow(handle, as_json=as_json) if follow else 0


def _request(line: tuple[str, ...], given: dict[str, Any]) -> JobRequest:
    runtime_env: dict[str, Any] = {"env_vars": given["variables"]} if given["variables"] else {}
    if given["working_dir"]:
        runtime_env["working_dir"] = given["working_dir"]
    if given["excludes"]:
        runtime_env["excludes"] = list(given["excludes"])
    if given["requirements"]:
        runtime_env["pip"] = list(given["requirements"])
    identity = given["identity"] or (
        id_of_key(given["idempotency_key"]) if given["idempotency_key"] else ""
    )
    return JobRequest(
        line,
        identity,
        given["name"],
        given["cpus"],
        given["gpus"],
        given["memory"],
        {},
        given["priority"],
        given["retries"],
        given["timeout"],
        given["grace"],
        given["after"],
        runtime_env,
    )


def _say_submitted(info: dict[str, Any], *, is_followed: bool) -> None:
    """Print the id alone where a program reads it."""
    identity = _jobs.id_of(info)
    if is_followed:
        status_lines.say(f"job {identity} submitted")
    elif sys.stdout.isatty():
        waits = f" · waits: {info['waiting_for']}" if info["waiting_for"] else ""
        _common.echo_line(
            f"job {identity} submitted{waits} · follow it: troupe job logs -f {identity}"
        )
    else:
        click.echo(identity)


def _follow(handle: LaunchHandle, *, as_json: bool = False, tail: int | None = None) -> int:
    """Show what the job writes until it has ended, of what it has written already the last `tail`
    lines, and return its exit code. Ctrl-C leaves it running, and says so."""
    identity = _jobs.id_of(_jobs.info_of(handle.session, handle.id))
    shown = 0
    try:
        for attempt, finished, bars in _output.follow(handle, tail):
            if shown and attempt != shown:
                status_lines.say(f"job {identity} · attempt {attempt}")
            shown = attempt
            live_output.show(handle.id, "", finished, bars, is_error=False)
        info = handle.wait_end()
    except KeyboardInterrupt:
        click.echo(f"job {identity} goes on · come back: troupe job logs -f {identity}", err=True)
        raise
    return _end(info, as_json=as_json)


def _end(info: dict[str, Any], *, as_json: bool) -> int:
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


def _find(session: Any, identity: str) -> dict[str, Any]:
    try:
        return _jobs.find(session, identity)
    except exceptions.NotFoundError as error:
        raise click.UsageError(str(error)) from None


@job.command("list")
@click.option("--all", "everybody", is_flag=True, help="Jobs of other users, too.")
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
    states: tuple[str, ...],
    limit: int,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """List this user's jobs, the latest first."""
    with _session(address, token_file, cluster) as session:
        found = [_jobs.describe(each) for each in _jobs.infos(session)]
    found = [
        each
        for each in found
        if (everybody or each["user"] == getpass.getuser())
        and (not states or each["state"] in states)
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
    with _session(address, token_file, cluster) as session:
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
@click.option("--previous", is_flag=True, help="The log of the attempt before this one.")
@_common.cluster_options
def logs(
    identity: str,
    follow: bool,
    tail: int | None,
    previous: bool,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> int:
    """Print the log of a job: what its command wrote to stdout and stderr."""
    if follow and previous:
        raise click.UsageError("--follow shows the present attempt: --previous does not go with it")
    with _session(address, token_file, cluster) as session:
        info = _find(session, identity)
        if follow:
            return _follow(_jobs.handle_of(session, info), as_json=as_json, tail=tail)
        try:
            lines = _output.last(_output.read(session, info, previous=previous), tail)
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
    with _session(address, token_file, cluster) as session:
        info = _find(session, identity)
        handle = _jobs.handle_of(session, info)
        try:
            return _end(handle.wait_end(timeout), as_json=as_json)
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
    with _session(address, token_file, cluster) as session:
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
    with _session(address, token_file, cluster) as session:
        found = [_find(session, each) for each in identities]
        for each in found:
            _jobs.delete(session, each)
    if as_json:
        _common.echo_json([_jobs.id_of(each) for each in found])
        return
    for each in found:
        _common.echo_line(f"job {_jobs.id_of(each)} deleted")
