"""The command `ray` of programs that `troupe run-as-ray` runs: `ray start`, `ray stop`, `ray
status`, `ray job`, by the commands of `troupe`.

    ray start --head --port=6379 --num-cpus=4        # a cluster that stays until `ray stop`
    ray start --address=127.0.0.1:6379               # one more node on this host
    ray status
    ray stop

It starts and stops clusters of TROUPE_HOME, and of these none but those that it started.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from troupe import __version__, exceptions
from troupe._cluster import connect, home, local_clusters
from troupe.ray_compat import _clusters, _job_command

_PORT = 6379
_TOKEN_S = 300  # the node joins at once
# Ray's options about its own parts, which mean nothing here.
_FLAGS = (
    "--disable-usage-stats",
    "--no-redirect-output",
    "--no-monitor",
    "--ray-debugger-external",
    "--include-log-monitor",
    "--enable-resource-isolation",
    "--verbose",
    "-v",
    "--log-color",
    "--log-style",
)
_VALUES = (
    "--dashboard-host",
    "--dashboard-port",
    "--dashboard-agent-listen-port",
    "--dashboard-agent-grpc-port",
    "--include-dashboard",
    "--min-worker-port",
    "--max-worker-port",
    "--worker-port-list",
    "--node-manager-port",
    "--object-manager-port",
    "--runtime-env-agent-port",
    "--metrics-export-port",
    "--ray-client-server-port",
    "--plasma-directory",
    "--temp-dir",
    "--system-config",
    "--tracing-startup-hook",
    "--cgroup-path",
    "--system-reserved-cpu",
    "--system-reserved-memory",
    "--redis-password",
    "--redis-username",
    "--autoscaling-config",
    "--gcs-server-port",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ray (troupe)")
def ray() -> None:
    """Ray's command, of Troupe. All that is not here: the command `troupe`."""


def _taken_and_ignored(command: Callable[..., None]) -> Callable[..., None]:
    for name in _FLAGS:
        command = click.option(name, is_flag=True, hidden=True, expose_value=False)(command)
    for name in _VALUES:
        command = click.option(name, hidden=True, expose_value=False)(command)
    return command


@ray.command()
@click.option("--head", is_flag=True, help="Start a head, and a node beside it.")
@click.option("--address", metavar="HOST:PORT", help="Join the cluster whose head is there.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    help="With --head: its port, 0 for a free one.",
)
@click.option("--node-ip-address", metavar="ADDRESS", help="Numeric address to listen on.")
@click.option("--num-cpus", help="CPUs this node offers.")
@click.option("--num-gpus", help="GPUs this node offers.")
@click.option("--memory", help="Memory that actors and tasks may ask for, in bytes.")
@click.option("--object-store-memory", help="Memory for objects, in bytes.")
@click.option("--object-spilling-directory", help="Where objects go beyond that.")
@click.option("--resources", help="Other resources, as JSON.")
@click.option("--labels", multiple=True, help="Labels of this node, K=V,K=V.")
@click.option("--node-name", help="Name of this node.")
@click.option("--block", is_flag=True, help="Stay in the foreground.")
@_taken_and_ignored
def start(
    head: bool,
    address: str | None,
    port: int,
    node_ip_address: str | None,
    block: bool,
    labels: tuple[str, ...],
    **offered: str | None,
) -> None:
    """Start a head, or a node that joins one."""
    if head == bool(address):
        raise click.UsageError("give either --head, or --address HOST:PORT to join a cluster")
    given = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in offered.items()
        if value is not None
    ]
    given += [f"--labels={each}" for each in labels]
    given += [f"--listen={node_ip_address}"] if node_ip_address else []
    if head:
        _start_head(port, given, block)
    else:
        _join(local_clusters.numeric(address or ""), given, block)


def _start_head(port: int, given: list[str], block: bool) -> None:
    def tell(shown: dict[str, Any]) -> None:
        Path(shown["state"], _clusters.MARK).touch(mode=0o600)
        click.echo(
            f"head ready at {shown['address']}; to add a node on this host:\n    ray start "
            f"--address='{shown['address']}'\n"
            "to use it: ray.init(), or RAY_ADDRESS; to end it: ray stop"
        )

    _run(["--head", "--new", f"--port={port}", *given], block, tell)


def _join(address: str, given: list[str], block: bool) -> None:
    """A node of a cluster whose head this user runs on this host gets its token here; for others
    TROUPE_TOKEN_FILE has one."""
    from troupe.cli import _common

    def tell(shown: dict[str, Any]) -> None:
        _common.echo_line(f"joined the cluster at {address} as {shown.get('name', '')}")

    cluster = next(
        (each for each in home.clusters(running_only=True) if each.address == address), None
    )
    if cluster is None and local_clusters.is_of_a_program(address):
        raise exceptions.JoinError(
            f"the cluster at {address} is of a program, made by its init(), and ends with it: no "
            "node joins it\n"
            "  start one that nodes can join: ray start --head"
        )
    if cluster is None or os.environ.get("TROUPE_TOKEN_FILE"):
        _run(["--address", address, *given], block, tell)
        return
    with _common.session(address, None, None) as session:
        token = session.request(
            "CreateToken",
            {"role": "worker", "ttl_s": _TOKEN_S, "single_use": True, "note": "ray start"},
        )[1]["token"]
    with tempfile.NamedTemporaryFile(
        "w", dir=cluster.path, prefix="join-", suffix=".token"
    ) as file:  # mode 0600
        file.write(token)
        file.flush()
        _run(["--address", address, "--token-file", file.name, *given], block, tell)


def _run(args: list[str], block: bool, tell: Callable[[dict[str, Any]], None]) -> None:
    from troupe.cli import _start

    _start.start.main(
        [*args, *(["--block"] if block else [])],
        prog_name="ray start",
        standalone_mode=False,
        obj=tell,
    )


@ray.command()
@click.option("--force", "-f", is_flag=True, hidden=True, expose_value=False)
@click.option("--grace-period", "-g", hidden=True, expose_value=False)
@click.option("--verbose", "-v", is_flag=True, hidden=True, expose_value=False)
def stop() -> None:
    """Stop the clusters that `ray start --head` started on this host."""
    from troupe.cli import _stop

    found = _clusters.running()
    for cluster in found:
        _stop.stop.main(
            ["--cluster", cluster.cluster_id], prog_name="ray stop", standalone_mode=False
        )
    if not found:
        click.echo("no cluster that `ray start` started was running here")


@ray.command()
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="Of which cluster.  [default: RAY_ADDRESS, else what `ray start` started last]",
)
@click.option("--verbose", "-v", is_flag=True, hidden=True, expose_value=False)
@click.option("--redis_password", hidden=True, expose_value=False)
def status(address: str | None) -> None:
    """Show the nodes of a cluster and what runs there."""
    from troupe.cli import _show

    address = (
        address
        or os.environ.get("RAY_ADDRESS")
        or _clusters.started_here()
        or connect.only_local_cluster()
    )
    _show.status.main(
        ["--address", local_clusters.numeric(address)],
        prog_name="ray status",
        standalone_mode=False,
    )


ray.add_command(_job_command.job)


def main() -> None:
    """Runs the command and leaves with its exit code."""
    from troupe import cli

    cli.main(program=ray, name="ray")


if __name__ == "__main__":
    main()
