"""The `troupe` command: starts and stops heads and workers, shows what a cluster holds.

`main` is the console script. Errors are one screen on stderr; exit codes: 0 done, 1 failed, 2
usage. With `--json` the only output is one JSON document on stdout, an error included.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import sys
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from troupe import __version__, exceptions

_WHERE = {
    "air": ("_air", "air"),
    "azure": ("_azure", "azure"),
    "cancel": ("_cancel", "cancel"),
    "cluster": ("operation._cluster", "cluster"),
    "completion": ("operation._completion", "completion"),
    "dashboard": ("operation._dashboard", "dashboard"),
    "doctor": ("operation._doctor", "doctor"),
    "down": ("operation._up", "down"),
    "drain": ("operation._drain", "drain"),
    "explain": ("_show", "explain"),
    "job": ("_job", "job"),
    "journal": ("_journal", "journal"),
    "list": ("_show", "list_"),
    "logs": ("_logs", "logs"),
    "profile": ("operation._profile", "profile"),
    "prometheus": ("operation._prometheus", "prometheus"),
    "quota": ("operation._people", "quota"),
    "ray-jobs": ("operation._ray_jobs", "ray_jobs"),
    "run": ("_run", "run"),
    "run-as": ("_run_as", "run_as"),
    "run-as-ray": ("_run_as", "run_as_ray"),
    "start": ("_start", "start"),
    "service": ("operation._service", "service"),
    "stack": ("_stack", "stack"),
    "status": ("_show", "status"),
    "stop": ("_stop", "stop"),
    "submit": ("_submit", "submit"),
    "sweep": ("_sweep", "sweep"),
    "timeline": ("operation._timeline", "timeline"),
    "token": ("_token", "token"),
    "top": ("operation._top", "top"),
    "torchrun": ("_submit", "torchrun"),
    "up": ("operation._up", "up"),
    "usage": ("operation._people", "usage"),
}
_SHORT_HELP = {
    "air": "AI Runtime workloads, as for `databricks air`, on this cluster.",
    "azure": "Command jobs, as for the Azure ML service, on this cluster.",
    "cancel": "Cancel a launch and wait for its end; a prefix of its id will do.",
    "cluster": "Name clusters, and say which one is meant.",
    "completion": "Print the script by which a shell completes commands, options and names of "
    "clusters.",
    "dashboard": "Serve a page that shows the cluster, for a browser on this host.",
    "doctor": "Look for what is wrong: limits, /dev/shm, disk, clocks, ports, versions, GPUs, "
    "settings of NCCL, and whether the nodes of a cluster reach each other both ways.",
    "down": "End the nodes that `troupe up` started, or only those of the HOSTs.",
    "drain": "Start nothing more on NODE, and wait until nothing runs there.",
    "explain": "Show where a launch, an actor or a placement group is, or why it waits.",
    "job": "Jobs: commands that drive the whole cluster, and go on without this terminal.",
    "journal": "Check or repair the journal of a stopped head; back up a head's state, and "
    "restore it.",
    "list": "List nodes, actors, launches, placement-groups, tasks that are not over, or "
    "events: what has happened since the head started.",
    "logs": "Print the output of a launch, an actor or a process for tasks; a prefix of its "
    "id will do.",
    "profile": "Sample where the ranks of a launch, an actor, or a process spend their time.",
    "prometheus": "Let Prometheus scrape a cluster.",
    "quota": "Say how much of the cluster the owner of a token may hold.",
    "ray-jobs": "Let Ray's own client and `ray job` submit to a cluster of Troupe.",
    "run": "Run COMMAND on a cluster made of the nodes that this line is started on.",
    "run-as": "Run SCRIPT with the packages of other launchers meaning Troupe: serverless_gpu, "
    "databricks.air, ray, pyspark.ml.torch, azure.ai.ml.",
    "run-as-ray": "Run SCRIPT with `import ray` meaning Troupe: `troupe run-as --only ray`.",
    "service": "Let systemd start a head or a worker, and start it again when it fails.",
    "stack": "Print the Python and C++ stacks of a launch's ranks, of an actor, or of a process.",
    "start": "Start a head, or a worker that joins one.",
    "status": "Nodes, launches and what waits.",
    "stop": "Stop a cluster of this host: its head, and its workers wherever they are.",
    "submit": "Run a script, a module or a command on N ranks, wait for it, and end with its code.",
    "sweep": "List, show, stop and go on with sweeps, by their names.",
    "timeline": "Write what ranks, actors and programs did lately, as a trace for Perfetto.",
    "token": "Create, list and revoke join tokens.",
    "top": "Show how much of each node is held, and by which launches and actors, until Ctrl-C.",
    "torchrun": "Run what torchrun would, by the same line.",
    "up": "Start a node on each host of FILE by ssh, or only on the HOSTs that are named.",
    "usage": "Show who holds what of the cluster, and how much they held in the last 24 hours.",
}
"""First sentences of the commands' help: `troupe --help` loads none of the commands for them."""
_RUN_PROGRAMS = ("run", "run-as", "run-as-ray", "submit", "torchrun")
"""Whose line is a program's too: --json there is not for us."""


class _Commands(click.Group):
    """Loads a command's module when the command is run: starting a cluster takes four of them in a
    row."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_WHERE)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands as click does, without loading those whose help is known."""
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        rows = []
        for name in names:
            known = _SHORT_HELP.get(name)
            command = click.Command(name, help=known) if known else self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(limit)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands, without loading each for its help, and options."""
        names = [each for each in self.list_commands(ctx) if each.startswith(incomplete)]
        return [CompletionItem(each) for each in names] + click.Command.shell_complete(
            self, ctx, incomplete
        )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = _WHERE.get(cmd_name)
        return (
            getattr(importlib.import_module(f"troupe.cli.{where[0]}"), where[1]) if where else None
        )


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="troupe")
def commands() -> None:
    """Actor runtime for multi-node GPU training: start, watch and stop clusters."""


def main(
    args: list[str] | None = None, program: click.Command = commands, name: str = "troupe"
) -> None:
    """Runs a command and leaves with its exit code."""
    arguments = sys.argv[1:] if args is None else args
    try:
        code = program.main(arguments, prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(130)
    except (exceptions.TroupeError, OSError, ValueError) as error:
        report(error, as_json="--json" in arguments and arguments[0] not in _RUN_PROGRAMS)
        sys.exit(1)
    leave(code if isinstance(code, int) else 0)


def leave(code: int) -> NoReturn:
    """Ends the process as sys.exit would, without taking the interpreter apart: a tenth of a
    command's time."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or 1  # the reader is gone, or the disk is full
    os._exit(code)


def report(error: BaseException, *, as_json: bool) -> None:
    """Print an error, for a person or for a script."""
    name = type(error).__name__
    if as_json:
        document: dict[str, Any] = {"error": name, "text": str(error)}
        click.echo(json.dumps(document))
    click.echo(f"{name}: {error}", err=True)
