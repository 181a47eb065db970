"""`troupe air`: AI Runtime workloads in YAML files, with the words of `databricks air`."""

from __future__ import annotations

import datetime
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from troupe import exceptions
from troupe._cluster import connect, session as _session, status_lines
from troupe.air import _fields, _runs, _workload
from troupe.cli import _common, _tables
from troupe.launch import _errors, _progress
from troupe.launch._handle import handle_of_known

_PATIENCE_S = 600.0  # for whoever reads the output more slowly than it was written
_HELP = ("-h", "--help")


class _RunCommand(click.Command):
    """`air run`, whose -h takes the path of a field: `-h config.compute`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for place, word in enumerate(args):
            topic = args[place + 1] if place + 1 < len(args) else ""
            if word in _HELP and (topic == "config" or topic.startswith("config.")):
                try:
                    click.echo(_fields.help_of(topic))
                except ValueError as error:
                    raise click.UsageError(str(error)) from None
                ctx.exit()
        return super().parse_args(ctx, args)


@click.group()
def air() -> None:
    """AI Runtime workloads, as for `databricks air`, on this cluster."""


def _where(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which cluster is meant.

    Those of the vendor's profiles are taken and mean nothing.
    """
    command = click.option("--profile", "-p", "_profile", hidden=True, expose_value=False)(command)
    return _common.cluster_options(command)


@contextmanager
def _cluster(
    address: str | None, token_file: str | None, cluster: str | None
) -> Iterator[_session.Session]:
    with _common.session(address, token_file, cluster) as session:
        before = _session.set_current(session)
        try:
            yield session
        finally:
            _session.set_current(before)


def _override(
    _: click.Context, __: click.Parameter, given: tuple[str, ...]
) -> list[tuple[str, str]]:
    pairs = [each.partition("=") for each in given]
    for name, equals, _value in pairs:
        if not name or not equals:
            raise click.BadParameter(
                f"{name!r} is no FIELD_PATH=VALUE, such as compute.num_accelerators=8"
            )
    return [(name, value) for name, _, value in pairs]


@air.command(cls=_RunCommand)
@click.option(
    "--file",
    "-f",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="The workload, a YAML file.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Show the output of node 0 until the run ends, and end with its exit code. Ctrl-C leaves "
    "the run running.",
)
@click.option(
    "--dry-run", is_flag=True, help="Check the file and print what it means, without submitting it."
)
@click.option(
    "--override",
    multiple=True,
    metavar="FIELD_PATH=VALUE",
    callback=_override,
    help="A value in place of the file's, any number of times.",
)
@click.option(
    "--idempotency-key",
    default="",
    metavar="KEY",
    help="Return the run that was submitted with this key before, if there is one.",
)
@_where
def run(
    file: str,
    watch: bool,
    dry_run: bool,
    override: list[tuple[str, str]],
    idempotency_key: str,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> int:
    """Submit the workload of a YAML file and print its run id.

    Where no cluster is known the workload runs on this machine, its output is shown, and Ctrl-C
    cancels it. The fields of a file: `troupe air run -h config`, and of one section `troupe air run
    -h config.compute`.

        troupe air run -f train.yaml --override compute.num_accelerators=16 --watch
    """
    workload = _workload.load(file, override, idempotency_key=idempotency_key)
    if dry_run:
        _print_checked(file, workload, as_json=as_json)
        return 0
    if not _common.is_cluster_known(address, cluster):
        status_lines.say(
            "troupe: no cluster is known, so the workload runs on this machine and ends with this "
            "command"
        )
        session = connect.embedded()
        return _follow(_runs.start(workload, session, detach=False), as_json=as_json, cancels=True)
    with _cluster(address, token_file, cluster) as session:
        handle = _runs.start(workload, session)
        if as_json and not watch:
            _common.echo_json(
                _runs.described(session.request("GetLaunch", {"launch": handle.id})[1]["info"])
            )
            return 0
        click.echo(handle.id, err=watch)
        return _follow(handle, as_json=as_json, cancels=False) if watch else 0


def _print_checked(file: str, workload: _workload.Workload, *, as_json: bool) -> None:
    if as_json:
        _common.echo_json({"valid": True, "workload": workload.shown()})
        return
    nodes = "1 node" if workload.nodes == 1 else f"{workload.nodes} nodes"
    _common.echo_line(
        f"{file} is valid: {workload.accelerators} GPUs of {workload.kind} on {nodes}, experiment "
        f"{workload.experiment}"
    )
    for each in workload.unused:
        _common.echo_line(f"  without an effect here: {each}")


def _follow(handle: Any, *, as_json: bool, cancels: bool) -> int:
    """Show the output of node 0 until the run ends, and return its exit code."""

    def label(rank: int, _local_rank: int, *, is_error: bool) -> str | None:
        return "" if rank == 0 else None

    if cancels:
        _common.interrupt_at_signals()
    show = _progress.Display(
        handle, label_of=label, patience_s=_PATIENCE_S, asked_by="env_variables: in the file"
    )
    try:
        show.follow()
        handle.succeeded()
        show.finish()
        code = 0
    except KeyboardInterrupt as told:
        number = told.args[0] if told.args else signal.SIGINT
        if cancels:
            show.stop(
                f"{signal.Signals(number).name} in the caller",
                by=number if number == signal.SIGINT else signal.SIGTERM,
            )
            show.finish()
        else:
            show.leave()
        return 128 + number
    except exceptions.TroupeError as error:
        show.finish()
        click.echo(f"{type(error).__name__}: {error}", err=True)
        code = _errors.exit_code_of(error)
    if as_json:
        _common.echo_json(
            _runs.described(handle.session.request("GetLaunch", {"launch": handle.id})[1]["info"])
        )
    return code


def _found(session: _session.Session, run_id: str) -> dict[str, Any]:
    """Return the LaunchInfo of the run with that id, or with one that begins so."""
    known = {each["launch"]: each for each in _runs.infos(session)}
    return known[_common.only_prefixed("run", run_id, known, "troupe air list --all-status")]


def _only_id(words: tuple[str, ...]) -> str:
    """Return the id of `get ID`, also in the older form `get run ID`."""
    words = words[1:] if len(words) == 2 and words[0] == "run" else words
    if len(words) != 1:
        raise click.UsageError("one run is shown: troupe air get RUN_ID")
    return words[0]


@air.command()
@click.argument("words", nargs=-1, metavar="RUN_ID")
@_where
def get(
    words: tuple[str, ...],
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Show the status, the configuration and the times of a run; a prefix of its id will do."""
    with _cluster(address, token_file, cluster) as session:
        found = _runs.described(_found(session, _only_id(words)))
    if as_json:
        _common.echo_json(found)
        return
    for name, value in found.items():
        if value not in ("", [], None):
            _common.echo_line(f"{name:<18}{_text(name, value)}")


def _text(name: str, value: Any) -> str:
    if name == "submitted_s":
        return datetime.datetime.fromtimestamp(value).isoformat(" ", "seconds")
    return (
        ", ".join(value)
        if isinstance(value, list)
        else f"{value:.1f}"
        if isinstance(value, float)
        else str(value)
    )


def _filters(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = dict(each.partition("=")[::2] for each in given)
    for name in pairs:
        if name not in _runs.FILTERS:
            raise click.BadParameter(f"{name!r} is none of {', '.join(_runs.FILTERS)}: KEY=VALUE")
    return pairs


@air.command("list")
@click.argument("words", nargs=-1, metavar="")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Show this many runs at most.",
)
@click.option("--all-status", is_flag=True, help="Show runs that have ended, too.")
@click.option("--all-users", is_flag=True, help="Show runs of other users, too.")
@click.option(
    "--active", is_flag=True, help="Show only runs that have not ended, which is the default."
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_filters,
    help=f"Show only runs with this value, any number of times: {', '.join(_runs.FILTERS)}.",
)
@_where
def list_(
    words: tuple[str, ...],
    limit: int,
    all_status: bool,
    all_users: bool,
    active: bool,
    filters: dict[str, str],
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """List this user's runs that have not ended, the latest first."""
    import getpass

    if words not in ((), ("runs",)):
        raise click.UsageError(f"list takes no {words[0]!r}")
    with _cluster(address, token_file, cluster) as session:
        runs = [_runs.described(each) for each in _runs.infos(session)]
    if not all_status or active:
        runs = [each for each in runs if each["status"] in _runs.ACTIVE]
    if not all_users and "user" not in filters:
        runs = [each for each in runs if each["user"] == getpass.getuser()]
    runs = [each for each in runs if _runs.matches(each, filters)][:limit]
    if as_json:
        _common.echo_json(runs)
        return
    rows = [
        [
            each["run_id"][:8],
            each["status"],
            each["experiment"],
            each["run_name"],
            f"{each['num_accelerators']} x {each['accelerator_type']}",
            _text("submitted_s", each["submitted_s"]),
        ]
        for each in runs
    ]
    _tables.show(["RUN", "STATUS", "EXPERIMENT", "NAME", "GPUS", "SUBMITTED"], rows)


@air.command()
@click.argument("run_id")
@click.option(
    "--node",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Show what this node printed.",
)
@click.option(
    "--download-to",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write the output of every node to DIR/node-N.log instead.",
)
@_where
def logs(
    run_id: str,
    node: int,
    download_to: str | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Print the output of a run, and go on until it ends. Ctrl-C ends the printing, not the run."""
    with _cluster(address, token_file, cluster) as session:
        info = _found(session, run_id)
        if node >= info["ranks"]:
            raise click.UsageError(
                f"run {info['launch'][:8]} has nodes 0 to {info['ranks'] - 1}, not {node}"
            )
        handle = handle_of_known(session, info["launch"])
        if download_to is not None:
            _download(handle, info["ranks"], Path(download_to))
        elif as_json:
            _common.echo_json(
                {"run_id": info["launch"], "node": node, "lines": list(handle.logs(node))}
            )
        else:
            handle.print_logs(node, follow=True)


def _download(handle: Any, nodes: int, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for node in range(nodes):
        path = folder / f"node-{node}.log"
        with path.open("w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{line}\n" for line in handle.logs(node))
        _common.echo_line(str(path))


@air.command()
@click.argument("run_ids", nargs=-1, metavar="[RUN_ID]...")
@click.option(
    "--all", "everything", is_flag=True, help="Cancel all of this user's runs that have not ended."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask before --all.")
@_where
def cancel(
    run_ids: tuple[str, ...],
    everything: bool,
    yes: bool,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Cancel runs and wait for their ends."""
    import getpass

    if bool(run_ids) == everything:
        raise click.UsageError("name the runs to cancel, or --all: one or the other")
    with _cluster(address, token_file, cluster) as session:
        found = [_found(session, each) for each in run_ids] or [
            each
            for each in _runs.infos(session)
            if _runs.described(each)["user"] == getpass.getuser() and each["state"] != "terminal"
        ]
        if everything and found and not yes:
            click.confirm(
                f"Cancel {len(found)} run{'s' if len(found) > 1 else ''}?", abort=True, err=True
            )
        ended = []
        for each in found:
            handle = handle_of_known(session, each["launch"])
            if each["state"] != "terminal":
                handle.cancel("cancelled by troupe air cancel")
            ended.append(
                _runs.described(session.request("GetLaunch", {"launch": each["launch"]})[1]["info"])
            )
    if as_json:
        _common.echo_json(ended)
        return
    for each in ended:
        _common.echo_line(f"run {each['run_id'][:8]} {each['run_name']}: {each['status']}")
