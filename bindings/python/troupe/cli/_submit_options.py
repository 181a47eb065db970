"""The options of `troupe submit` and `troupe torchrun`: torchrun's, with hyphens or underscores, by
PET_* too, and Troupe's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from troupe.cli import _common, _flags, _torchrun_words as words
from troupe.launch._options import table as launches

UNUSED = (
    "rdzv_backend",
    "rdzv_endpoint",
    "rdzv_conf",
    "node_rank",
    "master_addr",
    "master_port",
    "local_addr",
    "monitor_interval",
    "start_method",
    "event_log_handler",
    "logs_specs",
    "numa_binding",
)
"""Options of torchrun about how its agents find and watch each other, which the head and the
workers do here, and its own plugins."""
LAUNCH_FLAGS = tuple(name for name, each in launches.ALL.items() if each.flag)
"""Options of launches that are flags by the table's word alone."""
_ADDRESSES = ("node_rank", "master_addr", "rdzv_endpoint")
_END = "\0--"


class ProgramCommand(click.Command):
    """A command whose options end with the first word that is none: that word and all after it are
    a program's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's; an option is the same with underscores, and whether `--` ended the options is
        in ctx.obj."""
        ctx.token_normalize_func = lambda name: name.replace("_", "-")
        marked = list(args)
        if "--" in marked:  # click removes it where it ends the options
            marked.insert(marked.index("--") + 1, _END)
        rest = super().parse_args(ctx, marked)
        line = list(ctx.params["line"])
        ctx.obj = bool(line) and line[0] == _END
        ctx.params["line"] = tuple(each for each in line if each != _END)
        return rest


def checked(read: Callable[[str], Any]) -> Callable[..., Any]:
    """A callback that makes of an option's text what `read` does, and a usage error of its
    ValueError."""

    def callback(_: click.Context, __: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else read(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return callback


def _torchrun(*names: str, **about: Any) -> Callable[..., Any]:
    long = next(each for each in names if each.startswith("--"))
    return click.option(*names, envvar="PET_" + long[2:].replace("-", "_").upper(), **about)


def of_torchrun(command: Callable[..., Any]) -> Callable[..., Any]:
    """torchrun's options."""
    for name in reversed(UNUSED):
        command = _torchrun("--" + name.replace("_", "-"), hidden=True)(command)
    for each in reversed(
        (
            _torchrun(
                "--standalone",
                is_flag=True,
                help="A cluster of this machine, for this launch alone.",
            ),
            _torchrun(
                "--nnodes",
                metavar="N | MIN:MAX",
                callback=checked(words.nodes),
                help="Nodes, with as many ranks on each; MIN:MAX: as many as "
                "there are.  [default: 1]",
            ),
            _torchrun(
                "--nproc-per-node",
                metavar="N | gpu | cpu | auto",
                callback=checked(words.processes),
                help="Ranks on each node.  [default: 1]",
            ),
            _torchrun(
                "--max-restarts",
                type=click.IntRange(0),
                default=0,
                show_default=True,
                help="Times that all ranks are started again after a failure.",
            ),
            _torchrun(
                "-m", "--module", is_flag=True, help="The program is a module, as for python -m."
            ),
            _torchrun(
                "--no-python", is_flag=True, help="The program is a command, no Python script."
            ),
            _torchrun(
                "--run-path",
                is_flag=True,
                help="The program is a script, or a folder or archive with a __main__.py.",
            ),
            _torchrun(
                "-t",
                "--tee",
                metavar="S",
                default="0",
                callback=checked(words.streams),
                help="Streams that are shown with the rank in front: 1 "
                "stdout, 2 stderr, 3 both; 0:1,1:3 by local rank.  [default: all are shown, as "
                "they are]",
            ),
            _torchrun(
                "-r",
                "--redirects",
                metavar="S",
                default="0",
                callback=checked(words.streams),
                help="Streams that are in files alone, and not shown.",
            ),
            _torchrun(
                "--log-dir", metavar="DIR", help="Folder for the ranks' output and error files."
            ),
            _torchrun(
                "--rdzv-id",
                metavar="ID",
                help="TORCHELASTIC_RUN_ID of the ranks; the run's folder in --log-dir begins with "
                "it.",
            ),
            click.option(
                "--stop-grace",
                type=click.FloatRange(0),
                metavar="SECONDS",
                help="Time for ranks that are told to stop, by a signal to this "
                "command or since another rank has failed.  [default: 10; of troupe torchrun 30]",
            ),
            _torchrun(
                "--local-ranks-filter",
                metavar="R,R",
                default="",
                callback=checked(words.local_ranks),
                help="Whose output is shown.  [default: all]",
            ),
            _torchrun(
                "--duplicate-stdout-filters",
                metavar="S,S",
                default="",
                callback=checked(words.filters),
                help="Lines of teed stdout with one of "
                "these are in filtered_stdout.log of --log-dir too.",
            ),
            _torchrun(
                "--duplicate-stderr-filters",
                metavar="S,S",
                default="",
                callback=checked(words.filters),
                help="As --duplicate-stdout-filters, of stderr.",
            ),
            _torchrun(
                "--signals-to-handle",
                metavar="SIG,SIG",
                callback=checked(words.signals),
                help="Signals to this command that are passed on to "
                f"the ranks and end the launch.  [default: {words.DEFAULT_SIGNALS}; troupe submit "
                "passes SIGTERM on for the last two]",
            ),
            _torchrun(
                "--role", default="default", show_default=True, help="ROLE_NAME of the ranks."
            ),
            _torchrun(
                "--virtual-local-rank",
                is_flag=True,
                help="Each rank sees its own device only, as device 0, and LOCAL_RANK is 0.",
            ),
        )
    ):
        command = each(command)
    return command


def of_troupe(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that only `troupe submit` has."""
    for each in reversed(
        (
            *_flags.of_table(launches.ALL, launches.ChangedLaunchOptions, LAUNCH_FLAGS),
            click.option(
                "--ranks",
                type=click.IntRange(1),
                metavar="N",
                help="Ranks over all nodes, wherever they fit, instead of --nnodes and "
                "--nproc-per-node.",
            ),
            click.option(
                "--no-gpus",
                is_flag=True,
                help="Ranks without a GPU.  [default: one each, where nodes have some]",
            ),
            click.option(
                "--env",
                "variables",
                metavar="K=V",
                multiple=True,
                callback=read_variables,
                help="A variable of the ranks, any number of times; K alone: as it is here.",
            ),
            click.option(
                "--exclude",
                "excludes",
                metavar="PATTERN",
                multiple=True,
                help="Files of the current directory that do not travel to other "
                "hosts, besides those that .gitignore names; '!PATTERN': those that do.",
            ),
            click.option(
                "--pip",
                "requirements",
                metavar="REQUIREMENT",
                multiple=True,
                help="A requirement that is installed for the ranks, any number of times.",
            ),
            click.option(
                "--requirements",
                "requirements_file",
                metavar="FILE",
                help="A requirements file that is installed for the ranks; one of the "
                "current directory is not, unless it is named here.",
            ),
            click.option(
                "--fresh",
                is_flag=True,
                help="An interpreter of its own for each rank, instead of a process that has torch "
                "loaded.",
            ),
            click.option(
                "--local-rank-argument",
                is_flag=True,
                help="The program gets --local_rank=R as its first argument.",
            ),
            click.option(
                "--detach", is_flag=True, help="Print the launch's id, and leave it running."
            ),
            click.option(
                "--idempotency-key",
                metavar="KEY",
                help="Return the launch that was submitted with this key before, if the cluster "
                "still keeps it, "
                "instead of starting another one.",
            ),
            click.option("--quiet", "-q", is_flag=True, help="No status lines."),
            click.option(
                "--address",
                metavar="HOST:PORT",
                callback=_common.an_address,
                help="Address of the head.  [default: TROUPE_ADDRESS, else TROUPE_CLUSTER, else "
                "the cluster in use, else the only one of TROUPE_HOME, else one of this machine "
                "for this launch]",
            ),
            click.option("--token-file", metavar="FILE", help="Token for a head on another host."),
            click.option(
                "--cluster",
                metavar="NAME|ID",
                help="A cluster of `troupe cluster list`, or the beginning of the id of one of "
                "this user's on this host.",
            ),
        )
    ):
        command = each(command)
    return command


def read_variables(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Return the variables that --env names, with their values. A callback."""
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not name.replace("_", "a").isalnum() or name[0].isdigit():
            raise click.BadParameter(
                f"a variable is NAME=VALUE, or NAME of one that is set here; {name!r} is no name"
            )
        if not equals and name not in os.environ:
            raise click.BadParameter(f"{name} is not set here: --env {name}=VALUE")
        found[name] = value if equals else os.environ[name]
    return found


def given_addresses(options: dict[str, Any]) -> list[str]:
    """Return the unused options that give addresses of other nodes."""
    return ["--" + name.replace("_", "-") for name in _ADDRESSES if options.get(name)]
