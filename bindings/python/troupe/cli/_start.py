"""`troupe start`: a head (with a worker of its own) or a worker that joins one.

The programs run in sessions of their own. Without --block the command returns when they are ready;
with it, it stays, and ends them at SIGTERM or Ctrl-C.
"""

from __future__ import annotations

import json
import os
import platform
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from troupe import exceptions
from troupe._cluster import executables, home, node_start, signals
from troupe._cluster.options import nodes
from troupe.cli import _common, _flags, _stop, _tables
from troupe.cli._start_head import _start_head

_NODE_OPTIONS = (
    *_flags.of_table(nodes.NODES, nodes.NodeOptions, nodes.NODES, checked=False),
    click.option("--node-name", metavar="NAME", help="Name of this node.  [default: the host's]"),
)


def node_options(command: Any) -> Any:
    """Add the flags of a node's options, and --node-name."""
    for option in reversed(_NODE_OPTIONS):
        command = option(command)
    return command


def _head_options(command: Any) -> Any:
    """Add the flags of a head's options."""
    flags = _flags.of_table(nodes.HEADS, nodes.HeadOptions, nodes.HEADS, first="With --head: ")
    for option in reversed(flags):
        command = option(command)
    return command


@click.command()
@click.option("--head", is_flag=True, help="Start a head, and a worker on this node.")
@click.option(
    "--address",
    metavar="HOST:PORT",
    callback=_common.an_address,
    help="Join the cluster whose head is there.",
)
@click.option("--token-file", metavar="FILE", help="The join token; `-` reads it from stdin.")
@click.option("--no-worker", is_flag=True, help="With --head: this node does no work.")
@click.option(
    "--listen",
    metavar="ADDRESS",
    help="Numeric address to listen on.  [default: 127.0.0.1 for a head; for a "
    "worker the one that reaches its head]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="With --head: its port, 0 for a free one.  [default: 6400]",
)
@click.option("--cluster", metavar="ID", help="With --head: resume this cluster.")
@click.option("--new", is_flag=True, help="With --head: make a new cluster, whatever there is.")
@_head_options
@click.option(
    "--force-tcp",
    is_flag=True,
    envvar="TROUPE_FORCE_TCP",
    help="This node is as a host of its own: others, of this host too, reach it over TLS only.",
)
@click.option(
    "--block",
    is_flag=True,
    help="Stay in the foreground; end cleanly at SIGTERM and SIGHUP. A node that has joined so "
    "ends with this process, however that ends.",
)
@click.option(
    "--until-stdin-ends",
    is_flag=True,
    help="With --token-file -: as --block; the token is stdin's first line, and the node ends when "
    "stdin ends or has another line. As `troupe up` starts nodes.",
)
@click.option(
    "--notice-command",
    metavar="COMMAND",
    help="With --address and --block: a shell command that exits with 0 once this machine will be "
    "taken away, run every 5 s. The node then ends in order.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document when ready.")
@node_options
def start(
    head: bool,
    address: str | None,
    token_file: str | None,
    no_worker: bool,
    listen: str | None,
    port: int | None,
    cluster: str | None,
    new: bool,
    force_tcp: bool,
    block: bool,
    until_stdin_ends: bool,
    notice_command: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Start a head, or a worker that joins one."""
    if until_stdin_ends and (not address or token_file != "-"):
        raise click.UsageError("--until-stdin-ends goes with --address and --token-file -")
    block = block or until_stdin_ends
    if notice_command and not (address and block):
        raise click.UsageError("--notice-command goes with --address and --block")
    offered = {name: value for name, value in given.items() if name not in nodes.HEADS}
    of_head = nodes.arguments(nodes.HEADS, given)
    if head == bool(address):
        raise click.UsageError("give either --head, or --address HOST:PORT to join a cluster")
    if address and (no_worker or new or cluster or port is not None or of_head):
        flags = ", ".join("--" + name.replace("_", "-") for name in nodes.HEADS)
        raise click.UsageError(f"--no-worker, --new, --cluster, --port, {flags} go with --head")
    if cluster and new:
        raise click.UsageError(
            "--new makes another cluster; --cluster resumes one: give one of them"
        )
    node = node_args(**offered) + (["--force_tcp=true"] if force_tcp else [])
    node_name = offered["node_name"]
    if block:
        signal.signal(signal.SIGTERM, _interrupt)  # while things start it ends them, as Ctrl-C does
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(signal.SIGHUP, _interrupt)
    if head:
        options = [*of_head, *node_start.log_file_option(offered["log_file_mib"])]
        started, shown = _start_head(
            listen, port, cluster, new, None if no_worker else node, node_name, options
        )
    else:
        started, shown = _join(
            address or "", token_file, listen, node, node_name, block=block, once=until_stdin_ends
        )

    # by a command that stands on this one: what to tell instead
    told: Callable[[dict[str, Any]], None] | None = click.get_current_context().obj

    def announce() -> None:
        if told is not None:
            told(shown)
        elif as_json:
            _common.echo_json(shown)
        else:
            _tell(shown, joined=not head)

    if block:
        _stay(started, shown, announce, until_stdin_ends, notice_command)
    else:
        announce()


def node_args(
    *,
    resources: str | None,
    labels: tuple[str, ...],
    node_name: str | None,
    preimport: tuple[str, ...] = (),
    **amounts: Any,
) -> list[str]:
    """The worker's options from those of `node_options`; a usage error names what is malformed."""
    others: dict[str, float] = {}
    if resources is not None:
        try:
            others = json.loads(resources)
        except ValueError as error:
            raise click.UsageError(f"--resources is no JSON: {error}") from None
        if not isinstance(others, dict):
            raise click.UsageError('--resources is an object of numbers, e.g. {"license": 2}')
    pairs = [pair for label in labels for pair in label.split(",")]
    for pair in pairs:
        if "=" not in pair:
            raise click.UsageError(f"--labels {pair!r} is not of the form key=value")
    try:
        args = node_start.offer(
            resources=others,
            labels=dict(pair.split("=", 1) for pair in pairs),
            preimport=[modules.split(",") for modules in preimport],
            **amounts,
        )
        if node_name is not None:
            args.append(f"--name={node_start.check_name(node_name)}")
    except ValueError as error:
        text = str(error)
        for name in nodes.NODES:
            if "_" in name or text.startswith((f"{name} ", f"{name}:")):
                text = text.replace(name, "--" + name.replace("_", "-"), 1)
        raise click.UsageError(text) from None
    return args


def _join(
    address: str,
    token_file: str | None,
    listen: str | None,
    node: list[str],
    name: str | None,
    *,
    block: bool,
    once: bool,
) -> tuple[list[executables.Started], dict[str, Any]]:
    """Start a worker that joins.

    `block`: it ends with this process. `once`: a node of this name that runs here already is an
    error instead of a reason for another name; the token is stdin's first line.
    """
    root = home.state_root()
    home.require_writable(root)
    token_file = token_file or os.environ.get("TROUPE_TOKEN_FILE") or None
    if token_file == "-":
        token_file = _token_from_stdin(first_line=once)
    cluster_id = (
        node_start.cluster_of_token(token_file)
        if token_file
        else node_start.known_cluster(root, address)
    )
    folder = node_start.node_dir(root, cluster_id, name, once=once)
    args = [*node, f"--listen={listen}"] if listen else node
    lifeline = (
        os.pipe()[0] if block else None
    )  # the other end belongs to this process alone: the node ends with it
    worker = node_start.start(
        address, folder, args, log=folder / "worker.log", token_file=token_file, lifeline=lifeline
    )
    return [worker], {
        "address": address,
        "cluster_id": cluster_id,
        **worker.ready,
        "pid": worker.pid,
    }


def _token_from_stdin(*, first_line: bool) -> str:
    """Return the path of a descriptor of memory with the token, so that it never lies in a file or
    in argv.

    `first_line`: what follows the first line is left in stdin.
    """
    text = b""
    if first_line:
        while len(text) < node_start.TOKEN_BYTES_MAX and not text.endswith(b"\n"):
            part = os.read(0, 1)
            if not part:
                break
            text += part
    else:
        text = sys.stdin.buffer.read()
    descriptor = os.memfd_create("token", 0)
    os.fchmod(descriptor, 0o600)
    os.write(descriptor, text)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _tell(shown: dict[str, Any], *, joined: bool) -> None:
    if joined:
        _common.echo_line(
            f"joined cluster {shown.get('cluster_id', '')[:8]} as "
            f"{shown.get('name', platform.node())}"
            f"{_amounts(shown)}"
        )
        return
    click.echo(
        f"head ready at {shown['address']}  (cluster {shown['cluster_id'][:8]}, state in "
        f"{shown['state']})"
    )
    if "node" in shown:
        _common.echo_line(
            "this node joined as "
            f"{shown['node'].get('name', platform.node())}{_amounts(shown['node'])}"
        )
    if "client_token" in shown:
        click.echo(
            "client token, shown this once (--no-local-clients; for 24 h):\n    "
            f"{shown['client_token']}"
        )
    click.echo(
        "join from another machine:\n"
        f"    troupe start --address {shown['address']} --token-file token        # token: troupe "
        "token create > "
        "token"
    )


def _amounts(ready: dict[str, Any]) -> str:
    amounts = ready.get("resources") or {}
    return (
        ": " + ", ".join(f"{_tables.amount(value, name)} {name}" for name, value in amounts.items())
        if amounts
        else ""
    )


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _stay(
    started: list[executables.Started],
    shown: dict[str, Any],
    announce: Callable[[], None],
    until_stdin_ends: bool,
    notice_command: str | None,
) -> None:
    """Say that all is up, and end the programs once one of them has ended, a signal or a notice
    came, or stdin has ended or has another line.

    Whoever reads the announcement may send the signal at once.
    """
    watched = [os.pidfd_open(program.pid) for program in started]
    asked = False
    try:
        announce()
        reasons = [0] * until_stdin_ends
        if notice_command:
            from troupe._provision.notices import NoticeWatch

            watch = NoticeWatch(notice_command)
            watch.start()
            reasons.append(watch.descriptor)
        while not (found := select.select(watched + reasons, [], [], signals.at_most(None))[0]):
            pass
        asked = not set(found) & set(watched)
        if set(found) & set(reasons) - {0}:
            click.echo("this machine will be taken away: the node ends", err=True)
    except KeyboardInterrupt:
        asked = True
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _stop.end_programs([program.pid for program in reversed(started)])
    for program, descriptor in zip(started, watched, strict=True):
        program.process.wait()
        os.close(descriptor)
    _stop.remove_sockets(str(shown["cluster_id"]))
    if not asked:
        raise exceptions.TroupeError(
            f"a program of the cluster ended by itself; see its log under {Path(home.state_root())}"
        )
