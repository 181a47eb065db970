"""`troupe azure job`: command jobs in YAML files, with the words of `az ml job`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from troupe import exceptions
from troupe._cluster import connect, session as _session
from troupe._code.yaml_files import value_of
from troupe.azure._jobs.job import plain
from troupe.azure._jobs.operations import JobOperations
from troupe.azure._jobs.services import STUDIO
from troupe.cli import _common, _outputs
from troupe.launch import _errors


@click.group()
def azure() -> None:
    """Command jobs, as for the Azure ML service, on this cluster."""


_COLUMNS = ("type", "name", "id", "status", "nodes", "processes", "display_name")
"""Of a table of jobs, whose other fields -o json has."""


@azure.group()
def job() -> None:
    """Create, show, list, stream, cancel and download jobs."""


def _options(command: Any) -> Any:
    """Add the options that choose the cluster, and the workspace, which is accepted and has no
    meaning."""
    for option in (
        click.option(
            "--cluster",
            metavar="NAME|ID",
            help="A cluster of `troupe cluster list`, or the beginning of the id of one of this "
            "user's on this host.",
        ),
        click.option("--token-file", metavar="FILE", help="Token for a head on another host."),
        click.option(
            "--address",
            metavar="HOST:PORT",
            callback=_common.an_address,
            help="Address of the head.  [default: TROUPE_ADDRESS, else TROUPE_CLUSTER, else the "
            "cluster in use, else the only one of TROUPE_HOME]",
        ),
        click.option("--workspace-name", "-w", "_workspace", hidden=True, expose_value=False),
        click.option("--resource-group", "-g", "_group", hidden=True, expose_value=False),
        click.option("--subscription", "_subscription", hidden=True, expose_value=False),
    ):
        command = option(command)
    return command


_name = click.option(
    "--name", "-n", required=True, metavar="NAME", help="Of the job, or the beginning of its id."
)


_web = click.option("--web", is_flag=True, help="Open the job's page (studio_url) in a browser.")


def _open_page(job: Any) -> None:
    """Show the page of a job in a browser; where none opens, its address."""
    import webbrowser

    if job.studio_url and not webbrowser.open(job.studio_url):
        click.echo(f"no browser opens here: {job.studio_url}", err=True)


def _fields(job: Any) -> dict[str, Any]:
    """Return what is printed of a job, with the address of its page as `az` has it."""
    found: dict[str, Any] = plain(job.to_dict())
    services = {**found.get("services", {}), STUDIO: {"endpoint": job.studio_url}}
    return {**found, "studio_url": job.studio_url, "services": services}


@contextmanager
def _jobs(
    address: str | None, token_file: str | None, cluster: str | None, *, starts: bool = False
) -> Iterator[JobOperations]:
    """Give the operations on the cluster that is meant.

    `starts`: a job is submitted, for which a cluster is needed; else jobs of embedded clusters may
    be meant.
    """
    if not (starts or address or cluster or _common.is_cluster_known()):
        yield JobOperations()
        return
    with _common.session(address, token_file, cluster) as session:
        before = _session.set_current(session)
        try:
            yield JobOperations(session)
        finally:
            _session.set_current(before)


@job.command()
@click.option(
    "--file",
    "-f",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="The job, with the keys of az ml.",
)
@click.option("--name", "-n", metavar="NAME", help="Name of the job, instead of the file's.")
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="A value in place of the file's, any number of times: inputs.epochs=3.",
)
@click.option(
    "--stream",
    "-s",
    is_flag=True,
    help="Show its output and end as it does, instead of its description.",
)
@click.option(
    "--idempotency-key",
    metavar="KEY",
    help="Return the job that was submitted with this key before, if the cluster still keeps it.",
)
@_web
@_outputs.options("json")
@_options
def create(
    file: str,
    name: str | None,
    overrides: tuple[str, ...],
    stream: bool,
    idempotency_key: str | None,
    web: bool,
    form: str,
    query: Any,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
) -> int:
    """Submit the job of a file, and print it.

    With --stream its output is shown, and the exit code is that of the process which failed; where
    no cluster is known it then runs on one of this machine. Ctrl-C cancels it.

        troupe azure job create -f job.yml --set inputs.epochs=3 --stream
    """
    from troupe.azure._yaml.load import load_job

    described = load_job(file, params_override=[dict([_override(each)]) for each in overrides])
    if name is not None:
        described.name = name
    if stream and not (address or cluster or _common.is_cluster_known()):
        jobs = JobOperations(connect.embedded())
        submitted = jobs.create_or_update(described, idempotency_key=idempotency_key)
        if web:
            _open_page(submitted)
        return _follow(jobs, submitted)
    with _jobs(address, token_file, cluster, starts=True) as jobs:
        submitted = jobs.create_or_update(described, idempotency_key=idempotency_key)
        if web:
            _open_page(submitted)
        if stream:
            return _follow(jobs, submitted)
        _outputs.show(_fields(submitted), form, query)
        return 0


def _override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.UsageError(f"--set is KEY=VALUE, as inputs.epochs=3, not {text!r}")
    return key, value_of(value)


def _follow(jobs: JobOperations, submitted: Any) -> int:
    """Print the job's output and return the exit code for its end; SIGTERM ends it as Ctrl-C
    does."""
    _common.interrupt_at_signals()
    try:
        if submitted.type != "command":
            return _code_of(
                lambda: jobs.follow_driven(submitted.type, submitted.name, cancels=True)
            )
        info = jobs.info(submitted.name)
        try:
            return _code_of(lambda: jobs.follow(jobs.handle(info), cancels=True))
        finally:
            jobs.tell_place(info)
    except KeyboardInterrupt as told:
        return 128 + (told.args[0] if told.args else signal.SIGINT)


def _code_of(follow: Callable[[], None]) -> int:
    """The exit code of a job that `follow` shows until it has ended; how it failed is said on
    stderr."""
    try:
        follow()
    except (
        exceptions.LaunchError,
        exceptions.LaunchCancelledError,
        exceptions.GetTimeoutError,
    ) as error:
        click.echo(f"{type(error).__name__}: {error}", err=True)
        return _errors.exit_code_of(error)
    return 0


@job.command()
@_name
@_web
@_outputs.options("json")
@_options
def show(
    name: str,
    web: bool,
    form: str,
    query: Any,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
) -> None:
    """Print a job: name, id, status."""
    with _jobs(address, token_file, cluster) as jobs:
        found = jobs.get(name)
        if web:
            _open_page(found)
        _outputs.show(_fields(found), form, query)


@job.command("list")
@click.option(
    "--max-results",
    "-r",
    type=click.IntRange(min=1),
    metavar="N",
    help="So many at most, the latest.",
)
@click.option("--parent-job-name", "-p", metavar="NAME", help="Only the trials of this sweep.")
@_outputs.options("table")
@_options
def list_(
    max_results: int | None,
    parent_job_name: str | None,
    form: str,
    query: Any,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
) -> None:
    """Print the command jobs and sweeps that the cluster knows, the latest first.

    Scripts ask for the form that they read:

        troupe azure job list -o json --query "[?status=='Failed'].name"
    """
    with _jobs(address, token_file, cluster) as jobs:
        own = [each for each in jobs.list(parent_job_name=parent_job_name) if each.is_command_job][
            :max_results
        ]
        shown = [plain(each.to_dict()) for each in own]
        if form == "table" and query is None:
            shown = [{name: each[name] for name in _COLUMNS} for each in shown]
        _outputs.show(shown, form, query)


@job.command()
@_name
@_options
def stream(name: str, address: str | None, token_file: str | None, cluster: str | None) -> int:
    """Show a job's output until it has ended, and end with its code. Ctrl-C leaves it running."""
    with _jobs(address, token_file, cluster) as jobs:
        return _code_of(lambda: jobs.stream(name))


@job.command()
@_name
@_options
def cancel(name: str, address: str | None, token_file: str | None, cluster: str | None) -> None:
    """Cancel a job and wait for its end."""
    with _jobs(address, token_file, cluster) as jobs:
        jobs.cancel(name)
        _common.echo_line(f"job {name}: {jobs.get(name).status}")


@job.command()
@_name
@click.option(
    "--download-path",
    "-p",
    default=".",
    show_default=True,
    type=click.Path(file_okay=False),
    help="Folder for it.",
)
@click.option(
    "--output-name", metavar="OUTPUT", help="Only this output, into named-outputs/OUTPUT."
)
@click.option(
    "--all", "everything", is_flag=True, help="All outputs, outputs/, logs/ and what was printed."
)
@_options
def download(
    name: str,
    download_path: str,
    output_name: str | None,
    everything: bool,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
) -> None:
    """Bring what a job that is over has written."""
    with _jobs(address, token_file, cluster) as jobs:
        jobs.download(name, download_path=download_path, output_name=output_name, all=everything)
        print(f"{download_path}", file=sys.stdout)
