"""`troupe run`: the same line on every node of a job; one leads and runs the command, the others
serve it."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING, Any

import click

from troupe import exceptions
from troupe._cluster.node_start import log_file_option
from troupe.cli._start import node_args, node_options

if TYPE_CHECKING:
    from troupe._run.node import RunOptions
    from troupe._run.secret import Derived

_DEFAULT_WAIT_S, _DEFAULT_LOST_S, _DEFAULT_GRACE_S = 600.0, 15.0, 10.0


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--nodes",
    type=click.IntRange(1),
    metavar="N",
    help="How many nodes the run has.  [default: as many as the launcher started]",
)
@click.option(
    "--secret-file",
    metavar="FILE",
    help="32 random bytes that all nodes share.  [default: TROUPE_SECRET_FILE]",
)
@click.option(
    "--make-secret", metavar="FILE", help="Write a new secret to FILE, and do nothing else."
)
@click.option(
    "--address",
    metavar="HOST[:PORT]",
    help="Where node 0 is.  [default: what the launcher says; the port is derived from the secret]",
)
@click.option(
    "--node-rank",
    type=click.IntRange(0),
    metavar="K",
    help="Which node this is; 0 leads.  [default: what the "
    "launcher says; else the node that has the address leads]",
)
@click.option(
    "--run-id",
    metavar="ID",
    help="Name of the run, the same on all its nodes: runs that share a secret are kept "
    "apart by it.  [default: the launcher's job]",
)
@click.option(
    "--wait",
    type=click.FloatRange(0, min_open=True),
    default=_DEFAULT_WAIT_S,
    show_default=True,
    metavar="S",
    help="Seconds to wait for the other nodes.",
)
@click.option(
    "--lost-after",
    type=click.FloatRange(0, min_open=True),
    default=_DEFAULT_LOST_S,
    show_default=True,
    metavar="S",
    help="Seconds without the head after which a node gives up (exit 75).",
)
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=_DEFAULT_GRACE_S,
    show_default=True,
    metavar="S",
    help="Seconds from SIGTERM to SIGKILL of the command when the run is stopped.",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    help="Numeric address to listen on.  [default: the one that reaches the others]",
)
@node_options
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def run(
    nodes: int | None,
    secret_file: str | None,
    make_secret: str | None,
    address: str | None,
    node_rank: int | None,
    run_id: str | None,
    wait: float,
    lost_after: float,
    grace: float,
    listen: str | None,
    command: tuple[str, ...],
    **offered: Any,
) -> int:
    """Run COMMAND on a cluster made of the nodes that this line is started on.

    Start the same line on every node; node 0 leads: it runs the command, with TROUPE_ADDRESS set,
    so that `troupe.init()` in it finds the cluster. The others serve until it ends. Exit codes, on
    every node: the command's own; 130 cancelled; 75 unknown, the head was lost; 78 another cluster
    answered; 2 usage.

        srun -N4 troupe run --nodes 4 --secret-file run.secret -- python train.py
    """
    from troupe._run import node, place, secret

    try:
        if make_secret:
            secret.make(make_secret)
            click.echo(
                f"a new secret is in {make_secret}; give every node of the run the same file"
            )
            return 0
        if not command:
            raise click.UsageError("what is to be run? troupe run --nodes N -- python train.py")
        where = place.read(
            os.environ, nodes=nodes, address=address, node_rank=node_rank, run=run_id
        )
        secret_file = secret_file or os.environ.get("TROUPE_SECRET_FILE") or ""
        if where.nodes > 1 and not secret_file:
            raise click.UsageError(
                "a run of several nodes needs a secret that they share: --secret-file FILE\n"
                "  make one, where all nodes can read it: troupe run --make-secret FILE"
            )
        derived = secret.derive(secret_file, where.run) if secret_file else None
        derived = derived if where.nodes > 1 else None  # nobody joins a run of one node
    except (place.PlaceError, secret.SecretError) as error:
        raise click.UsageError(str(error)) from None
    name = (
        offered["node_name"]
        if offered["node_name"] is not None
        else where.own_name(platform.node())
    )
    args = node_args(**{**offered, "node_name": name})
    node.raise_on_signals()
    of_head = log_file_option(offered["log_file_mib"])
    options = node.RunOptions(
        where,
        secret_file,
        command,
        tuple(args),
        tuple(of_head),
        name,
        listen or "",
        wait,
        lost_after,
        grace,
    )
    try:
        return _play(options, derived)
    except node.Stopped as stopped:
        node.say(f"stopped by {stopped.name} before the run began")
        return node.EXIT_CANCELLED


def _play(options: RunOptions, derived: Derived | None) -> int:
    """Leads or follows. Of nodes that know no ranks the one leads that has the address, free."""
    from troupe._run import follow, lead

    where = options.place
    port = where.port or (derived.port if derived is not None else 0)
    if (
        derived is not None  # nobody else leads a run of one node
        and where.rank != 0
        and (where.rank or not lead.may_lead(where.host, port))
    ):
        return follow.follow(options, derived)
    try:
        return lead.lead(options, derived)
    except lead.PortTaken as taken:
        if where.rank is None and derived is not None:  # another one of this host was faster
            return follow.follow(options, derived)
        raise exceptions.TroupeError(
            f"node 0 cannot lead: {taken}\n  another run with this secret and id may be there, or "
            "a second node 0 "
            "of this one; else choose another port, the same on every node: --address HOST:PORT"
        ) from None
