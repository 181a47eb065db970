"""`ray job`: Ray's commands for jobs, on a cluster of Troupe (`_command`).

    ray job submit --working-dir . -- python train.py
    ray job logs ID --follow

Options about Ray's dashboard and its HTTP are taken and mean nothing here.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import click

from troupe._base import visible as _visible
from troupe._code import yaml_files
from troupe.job_submission._client import JobDetails, JobStatus, JobSubmissionClient

_IGNORED = ("--headers", "--verify", "--log-style", "--log-color")


@click.group()
def job() -> None:
    """Jobs: commands that the cluster runs, detached from this one."""


def _where(command: Callable[..., Any]) -> Callable[..., Any]:
    for name in _IGNORED:
        command = click.option(name, hidden=True, expose_value=False)(command)
    command = click.option("--verbose", "-v", is_flag=True, hidden=True, expose_value=False)(
        command
    )
    return click.option(
        "--address",
        metavar="ADDRESS",
        help="HOST:PORT of the head.  [default: RAY_ADDRESS, else the cluster of this host]",
    )(command)


def _json(_: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise click.BadParameter(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.BadParameter("no JSON object")
    return found


@job.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--submission-id", "--job-id", metavar="ID", help="Id of the job.  [default: a new one]"
)
@click.option(
    "--runtime-env",
    "runtime_env_file",
    type=click.Path(exists=True, dir_okay=False),
    help="A YAML file with the environment of the job.",
)
@click.option(
    "--runtime-env-json", callback=_json, metavar="JSON", help="The environment of the job."
)
@click.option("--working-dir", metavar="DIR", help="The job's directory, which travels.")
@click.option(
    "--metadata-json", callback=_json, metavar="JSON", help="Texts that are kept with the job."
)
@click.option("--entrypoint-num-cpus", type=float, help="CPUs that the command holds.")
@click.option("--entrypoint-num-gpus", type=float, help="GPUs that the command holds.")
@click.option("--entrypoint-memory", type=int, help="Bytes of memory that the command holds.")
@click.option(
    "--entrypoint-resources",
    callback=_json,
    metavar="JSON",
    help="Other resources that the command holds.",
)
@click.option(
    "--no-wait",
    is_flag=True,
    help="Return at once, instead of showing the log until the job has ended.",
)
@_where
@click.argument("entrypoint", nargs=-1, required=True, type=click.UNPROCESSED)
def submit(
    address: str | None,
    runtime_env_file: str | None,
    runtime_env_json: dict[str, Any] | None,
    working_dir: str | None,
    no_wait: bool,
    metadata_json: dict[str, str] | None,
    entrypoint: tuple[str, ...],
    **options: Any,
) -> int:
    """Submit a command as a job, and show its log until it has ended. Exit code: the job's."""
    if runtime_env_file and runtime_env_json:
        raise click.UsageError(
            "--runtime-env and --runtime-env-json both say what the environment is: give one or "
            "the other"
        )
    runtime_env = dict(runtime_env_json or {})
    if runtime_env_file:
        runtime_env = dict(yaml_files.read(runtime_env_file) or {})
    if working_dir:
        runtime_env["working_dir"] = working_dir
    client = JobSubmissionClient(address)
    try:
        identity = client.submit_job(
            entrypoint=shlex.join(entrypoint),
            runtime_env=runtime_env,
            metadata=metadata_json,
            **options,
        )
    except (TypeError, RuntimeError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"Job '{identity}' submitted successfully")
    for verb in ("logs", "status", "stop"):
        click.echo(f"  ray job {verb} {identity}", err=True)
    return 0 if no_wait else _tail(client, identity)


def _tail(client: JobSubmissionClient, identity: str) -> int:
    try:
        for text in client.follow(identity):
            click.echo(_visible.output(text), nl=False)
    except KeyboardInterrupt:
        click.echo(f"Job '{identity}' goes on; come back: ray job logs -f {identity}", err=True)
        raise
    code = client.wait(identity)
    _say(client, identity)
    return code


def _say(client: JobSubmissionClient, identity: str) -> JobDetails:
    details = client.get_job_info(identity)
    click.echo(_visible.text(_sentence(identity, details)))
    return details


def _sentence(identity: str, details: JobDetails) -> str:
    name = f"Job '{identity}'"
    if details.status is JobStatus.SUCCEEDED:
        return f"{name} succeeded"
    why = f": {details.message}" if details.message else ""
    return (
        f"{name} failed{why}"
        if details.status is JobStatus.FAILED
        else f"Status for job '{identity}': {details.status}{why}"
    )


def _known(call: Callable[[], Any]) -> Any:
    """Return what the call does; for a job that there is not, a message and exit code 1."""
    try:
        return call()
    except RuntimeError as error:
        raise click.ClickException(str(error)) from None


@job.command()
@_where
@click.argument("identity", metavar="ID")
def status(address: str | None, identity: str) -> None:
    """Show the status of a job."""
    client = JobSubmissionClient(address)
    _known(lambda: _say(client, identity))


@job.command()
@click.option("--follow", "-f", is_flag=True, help="Go on until the job has ended.")
@_where
@click.argument("identity", metavar="ID")
def logs(address: str | None, identity: str, follow: bool) -> int:
    """Print the log of a job."""
    client = JobSubmissionClient(address)
    if follow:
        return int(_known(lambda: _tail(client, identity)))
    click.echo(_visible.output(_known(lambda: client.get_job_logs(identity))), nl=False)
    return 0


@job.command()
@click.option(
    "--no-wait", is_flag=True, help="Return at once, instead of waiting for the job's end."
)
@_where
@click.argument("identity", metavar="ID")
def stop(address: str | None, no_wait: bool, identity: str) -> None:
    """Stop a job."""
    client = JobSubmissionClient(address)
    was_running = _known(lambda: client.stop_job(identity))
    if was_running and not no_wait:
        client.wait(identity)
    click.echo(
        f"Job '{identity}' was stopped" if was_running else f"Job '{identity}' had ended already"
    )


@job.command()
@_where
@click.argument("identity", metavar="ID")
def delete(address: str | None, identity: str) -> None:
    """Forget a job that has ended."""
    client = JobSubmissionClient(address)
    _known(lambda: client.delete_job(identity))
    click.echo(f"Job '{identity}' deleted successfully")


@job.command("list")
@_where
def list_(address: str | None) -> None:
    """List the jobs that the cluster keeps."""
    for each in JobSubmissionClient(address).list_jobs():
        click.echo(_visible.name(f"{each.submission_id}  {each.status}  {each.entrypoint}"))


__all__ = ["job"]
