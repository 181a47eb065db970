"""`troupe ray-jobs`: Ray's REST API for jobs, for Ray's own client and command."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from troupe._cluster import connect
from troupe.cli import _common, _submit_options as _options

_PORT = 8265  # port of Ray's dashboard, the default of Ray's client
_EXTRA = (
    "troupe ray-jobs serve needs aiohttp, which is not installed: pip install 'troupe[ray-jobs]'"
)
_RUNS_ANY = {"allow_interspersed_args": False}


@click.group("ray-jobs")
def ray_jobs() -> None:
    """Let Ray's own client and `ray job` submit to a cluster of Troupe."""


@ray_jobs.command(cls=_options.ProgramCommand, context_settings=_RUNS_ANY)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help=f"Port on loopback; 0: a free one.  [default: {_PORT}; a free one with a COMMAND]",
)
@_common.cluster_options
@click.argument("line", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND [ARGS]...]")
def serve(
    line: tuple[str, ...],
    port: int | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> int:
    """Serve Ray's REST API for jobs on loopback, until Ctrl-C or while COMMAND runs.

    Callers show a token of this server alone, which Ray's client reads from a file. COMMAND gets
    the variables that say so; for other shells they are printed.

        troupe ray-jobs serve -- ray job submit --working-dir . -- python train.py
    """
    try:
        from troupe.job_submission.ray_api import _serving
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "aiohttp":
            raise click.UsageError(_EXTRA) from None
        raise
    from troupe import stand_ins

    environment = dict(os.environ)  # COMMAND's own `ray` is the one that is installed
    stand_ins.install([stand_ins.RAY], starts=False)
    stand_ins.pass_on([stand_ins.RAY])
    _common.interrupt_at_signals()

    def announce(variables: Mapping[str, str]) -> None:
        if as_json:
            _common.echo_json({"address": variables[_serving.ADDRESS], "variables": variables})
        elif not line:
            _say(variables)

    chosen = port if port is not None else 0 if line else _PORT
    with (
        _common.session(
            address, token_file, cluster, return_timeout=connect.RETURN_TIMEOUT_S
        ) as session,
        tempfile.TemporaryDirectory(prefix="troupe-ray-jobs-") as folder,
    ):
        return _serving.serve(session, Path(folder), chosen, announce, line, environment)


def _say(variables: Mapping[str, str]) -> None:
    click.echo("Ray's API for jobs is served until Ctrl-C. In the shell that runs `ray job`:")
    for name, value in variables.items():
        _common.echo_line(f"  export {name}={value}")
