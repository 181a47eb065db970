"""`troupe job submit`."""

from __future__ import annotations

import sys
from typing import Any

import click

from troupe._cluster import resources, status_lines
from troupe.cli import _common, _job_follow, _submit_options as _options
from troupe.job_submission import _jobs, _labels
from troupe.job_submission._request import JobRequest, id_of_key

_RUNS_ANY = {"allow_interspersed_args": False}


def _memory(_: click.Context, __: click.Parameter, value: str | None) -> int:
    try:
        return resources.bytes_of(int(value) if value and value.isdigit() else value or 0)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _pairs(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    try:
        return _labels.read_pairs(given)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command(cls=_options.ProgramCommand, context_settings=_RUNS_ANY)
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
    "--metadata",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_pairs,
    help="Text that is kept with the job, for `troupe job list -l`, any number of times.",
)
@click.option(
    "--follow",
    "-f",
    is_flag=True,
    help="Show the log, and end with the job's exit code. Ctrl-C leaves the job running.",
)
@_common.cluster_options
@click.argument("line", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND [ARGS]...")
def submit(
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
    with _job_follow.open_session(address, token_file, cluster) as session:
        try:
            handle = _jobs.start(request, session)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise click.UsageError(str(error)) from None
        info = _jobs.info_of(session, handle.id)
        if as_json and not follow:
            _common.echo_json(_jobs.describe(info))
            return 0
        _say_submitted(info, is_followed=follow)
        return _job_follow.follow(handle, as_json=as_json) if follow else 0


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
        given["metadata"],
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
