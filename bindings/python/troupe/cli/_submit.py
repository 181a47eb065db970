"""`troupe submit` and `troupe torchrun`: a program on many ranks, its output here, its exit code
this one's."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import traceback
from dataclasses import replace
from typing import Any

import click

from troupe import exceptions
from troupe._cluster import (
    connect,
    known_clusters,
    resources,
    session as _session,
    status_lines,
    variables,
    workers,
)
from troupe._code import program as _program
from troupe.cli import _common, _submit_options as _options
from troupe.cli._filtered_output import FilteredOutput
from troupe.cli._rank_files import RankFiles, record_failure
from troupe.cli._torchrun_words import DEFAULT_SIGNALS, Console, signals
from troupe.launch import (
    _errors,
    _function,
    _options as _launch_options,
    _program as _launch,
    _progress,
)

_RUNS_ANY = {"allow_interspersed_args": False}
_OWN: dict[str, Any] = {
    **dict.fromkeys(_options.LAUNCH_FLAGS),
    "ranks": None,
    "no_gpus": False,
    "variables": {},
    "excludes": (),
    "requirements": (),
    "requirements_file": None,
    "fresh": False,
    "local_rank_argument": False,
    "detach": False,
    "idempotency_key": None,
    "quiet": False,
    "door": "torchrun",
    "address": None,
    "token_file": None,
    "cluster": None,
}
_WITHOUT_GPUS = "--no-gpus: ranks without a GPU"


class _TorchrunUsage(click.UsageError):
    """A usage error that ends `troupe torchrun` with torchrun's code."""

    exit_code = 1


@click.command(cls=_options.ProgramCommand, context_settings=_RUNS_ANY)
@_options.of_troupe
@_options.of_torchrun
@click.argument(
    "line",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="SCRIPT [ARGS]... | -m MODULE [ARGS]... | -- COMMAND [ARGS]...",
)
@click.pass_context
def submit(ctx: click.Context, /, line: tuple[str, ...], **given: Any) -> int:
    """Run a script, a module or a command on N ranks, wait for it, and end with its code.

    All that torchrun takes is taken, and PET_* for it; what stands after the program is the
    program's. The output of all ranks is shown. The exit code is that of the rank which failed, 128
    and its signal for one that was killed, 130 where it was cancelled. Ctrl-C gives the ranks time
    for a last word, Ctrl-C again ends them.

        troupe submit --nproc-per-node 2 train.py --lr 1
    """
    return _run(line, {**given, "door": "submit"}, command=ctx.obj or given["no_python"])


@click.command(cls=_options.ProgramCommand, context_settings=_RUNS_ANY)
@_options.of_torchrun
@click.argument("line", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def torchrun(line: tuple[str, ...], **given: Any) -> int:
    """Run what torchrun would, by the same line.

    The exit code is torchrun's: 1 for whatever is no success. Ranks that are told to stop have 30
    s. The cluster is that of TROUPE_ADDRESS, else the only one of TROUPE_HOME, else one of this
    machine for this launch, as with --standalone. More options has troupe submit.

        troupe torchrun --standalone --nproc_per_node=2 train.py --lr 1
    """
    return _run(line, {**_OWN, **given}, command=given["no_python"])


def _run(line: tuple[str, ...], given: dict[str, Any], *, command: bool) -> int:
    try:
        kind, target, arguments = _program.read(
            line,
            module=given["module"],
            command=command and not given["run_path"],
            path=given["run_path"],
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    _check_counts(given)
    inside = os.environ.get("TROUPE_LAUNCH_ID")
    if inside and not given["standalone"]:
        raise click.UsageError(
            f"this runs inside launch {inside[:4]} already, and would wait for what that holds\n  "
            "--standalone: ranks on this host beside it"
        )
    choice = None if given["standalone"] else _choice(given)
    if given["detach"] and choice is None:
        raise click.UsageError(
            "--detach leaves the launch to a cluster, and none is known: a cluster that is started "
            "for the launch ends with this "
            "command\n  start one with troupe start --head, or give --address"
        )
    traits = {
        "fresh": given["fresh"],
        "role": given["role"],
        "virtual_local_rank": given["virtual_local_rank"],
        "local_rank_argument": given["local_rank_argument"],
        "max_restarts": given["max_restarts"],
        "log_folder": os.path.abspath(given["log_dir"]) if given["log_dir"] else "",
        "macros": given["door"] == "torchrun",
        "error_base": tempfile.gettempdir() if _passes_errors_on(given) else "",
        "run_id": given["rdzv_id"] if given["rdzv_id"] and not given["standalone"] else "",
    }
    try:
        traits.update(_python_of(kind))
        if (
            given["log_dir"]
            and os.path.lexists(given["log_dir"])
            and not os.path.isdir(given["log_dir"])
        ):
            raise NotADirectoryError(f"--log-dir {given['log_dir']} is a file, not a folder")
        if choice is None:
            _program.check(
                kind,
                target,
                same_host=not given["requirements"] and not given["requirements_file"],
                other_python="python" in traits,
            )  # before anything is started
        session = _connected(choice, given)
        alive = [
            resources.from_wire(node["resources"])
            for node in workers.node_infos(session)
            if node["state"] == "alive"
        ]
        ranks, nodes, gpus = _counts(session, alive, given)
        launch = _launch.Line(kind, target, arguments, nodes, traits)
        if ranks == nodes:
            _let_use_the_node(session, alive, given)
        _say_what_is_unused(given)
        return _follow(launch, _options_of(ranks, gpus, given), session, given)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ModuleNotFoundError) as error:
        raise (_TorchrunUsage if given["door"] == "torchrun" else click.UsageError)(
            str(error)
        ) from None
    except SyntaxError as error:
        click.echo("".join(traceback.format_exception_only(error)), nl=False, err=True)
        return 1
    except exceptions.TroupeError as error:
        record_failure(f"{type(error).__name__}: {error}", quiet=given["quiet"])
        raise


def _check_counts(given: dict[str, Any]) -> None:
    if given["ranks"] is not None and (given["nnodes"] or given["nproc_per_node"]):
        raise click.UsageError(
            "--ranks is the number of all, in place of --nnodes and --nproc-per-node: give one or "
            "the other"
        )
    if given["gpu_type"] and given["no_gpus"]:
        raise click.UsageError("--gpu-type and --no-gpus are each other's opposite")


def _choice(given: dict[str, Any]) -> known_clusters.Choice | None:
    """Return the cluster that is meant; None if there is none, so that one is started."""
    address, cluster = given["address"], given["cluster"]
    known = _common.is_cluster_known(address, cluster)
    return _common.which_cluster(address, cluster) if known else None


def _connected(choice: known_clusters.Choice | None, given: dict[str, Any]) -> _session.Session:
    if choice is not None:
        return connect.connect_chosen(
            choice, given["token_file"], return_timeout=connect.RETURN_TIMEOUT_S
        )
    most = given["nnodes"][0] if given["nnodes"] else 1
    if most > 1:
        named = (
            " " + ", ".join(_options.given_addresses(given))
            if _options.given_addresses(given)
            else ""
        )
        raise click.UsageError(
            f"--nnodes {most} needs a cluster, and none is "
            f"known{' (unused here:' + named + ')' if named else ''}\n"
            f"  on every node, with a secret that they share: troupe run --nodes {most} "
            f"--secret-file FILE -- troupe submit --nnodes {most} ...\n"
            "  or start one with troupe start --head, and let the other nodes join it"
        )
    os.environ[variables.ONE_LAUNCH] = "1"
    return connect.embedded()


def _let_use_the_node(
    session: _session.Session, alive: list[dict[str, float]], given: dict[str, Any]
) -> None:
    """Let a single rank on each node have as many threads as there are CPUs, as torchrun's would;
    where ranks share a node each has one."""
    if given["cpus_per_rank"] is None and not {"OMP_NUM_THREADS"} & {
        *given["variables"],
        *os.environ,
    }:
        given["variables"] = {
            **given["variables"],
            "OMP_NUM_THREADS": str(
                max(1, min((_cpus(session, each) for each in alive), default=1))
            ),
        }


def _counts(
    session: _session.Session, alive: list[dict[str, float]], given: dict[str, Any]
) -> tuple[int, int, bool]:
    """(ranks, nodes or 0 for wherever they fit, whether each has a GPU)."""
    gpus = [int(each.get("GPU", 0)) for each in alive]
    each = given["nproc_per_node"] or 1
    with_gpus = not given["no_gpus"] and each != "cpu" and max(gpus, default=0) > 0
    if given["ranks"] is not None:
        return given["ranks"], 0, with_gpus
    if each == "gpu" and not with_gpus:
        raise click.UsageError(
            "--nproc-per-node gpu: no node of the cluster has a GPU; cpu, or a number, is for "
            "ranks without"
        )
    least, most = given["nnodes"] or (1, 1)
    if isinstance(each, str):
        has = gpus if with_gpus else [_cpus(session, node) for node in alive]
        room = sorted((count for count in has if count > 0), reverse=True)
        each = (
            room[min(len(room), most) - 1] if room else 1
        )  # among as many nodes, the resources of the smallest
    fit = sum(
        1
        for node, own in zip(alive, gpus, strict=True)
        if (own if with_gpus else node.get("CPU", 0)) >= each
    )
    nodes = max(least, min(most, fit))
    return nodes * each, nodes, with_gpus


def _cpus(session: _session.Session, node: dict[str, float]) -> int:
    """A cluster that is started for the launch offers more than there are."""
    return int(node.get("CPU", 0)) if session.embedded is None else len(os.sched_getaffinity(0))


def _options_of(ranks: int, gpus: bool, given: dict[str, Any]) -> Any:
    runtime_env: dict[str, Any] = {"env_vars": dict(given["variables"])}
    if given["excludes"]:
        runtime_env["excludes"] = list(given["excludes"])
    if given["requirements"] or given["requirements_file"]:
        runtime_env["pip"] = [
            *given["requirements"],
            *([f"-r {given['requirements_file']}"] if given["requirements_file"] else []),
        ]
    asked = {
        "gpus" if gpus else "processes": ranks,
        "max_attempts": given["max_restarts"] + 1,
        "runtime_env": runtime_env,
        "detach": given["detach"],
        "idempotency_key": given["idempotency_key"],
        "quiet": given["quiet"],
        "remote": True,
        "stop_grace": _stop_grace(given),
    }
    flags = {name: given[name] for name in _options.LAUNCH_FLAGS if given[name] is not None}
    try:
        return replace(
            _function.options_of("troupe submit", {**asked, **flags}), door=given["door"]
        )
    except (TypeError, ValueError) as error:  # raised for two that do not go together
        raise click.UsageError(str(error)) from None


def _stop_grace(given: dict[str, Any]) -> float:
    if given["stop_grace"] is not None:
        return float(given["stop_grace"])
    return _TORCHRUN_GRACE_S if given["door"] == "torchrun" else _launch_options.STOP_GRACE_S


def _python_of(kind: str) -> dict[str, Any]:
    """Fields of `Program` for the interpreter that PYTHON_EXEC names; torchrun takes that for
    scripts and modules."""
    python = os.environ.get("PYTHON_EXEC", "")
    if kind not in (_program.SCRIPT, _program.MODULE) or python in ("", sys.executable):
        return {}
    found = shutil.which(python)
    if found is None:
        raise FileNotFoundError(f"there is no command {python}, which PYTHON_EXEC names")
    return {"fresh": True, "python": os.path.abspath(found)}


def _passes_errors_on(given: dict[str, Any]) -> bool:
    """Return True if error files are needed only to pass one of them on to the process that started
    this command."""
    return (
        bool(os.environ.get("TORCHELASTIC_ERROR_FILE"))
        and not given["log_dir"]
        and not given["detach"]
    )


def _say_what_is_unused(given: dict[str, Any]) -> None:
    unused = [
        "--" + name.replace("_", "-") for name in _options.UNUSED if given.get(name) is not None
    ]
    if _filters_of(given) and not (given["log_dir"] and any(given["tee"].values())):
        status_lines.say(
            "troupe: --duplicate-stdout-filters and --duplicate-stderr-filters choose from streams "
            "of --tee, for a file in --log-dir: without both "
            "they have no effect",
            quiet=given["quiet"],
        )
    if unused:
        status_lines.say(
            f"troupe: not used, for head and workers do what these are for: {', '.join(unused)}",
            quiet=given["quiet"],
        )


def _follow(
    line: _launch.Line, options: Any, session: _session.Session, given: dict[str, Any]
) -> int:
    if (
        session.embedded is not None
        and options.ranks * options.cpus_per_rank > connect.EMBEDDED_CPUS_MIN
    ):
        options = replace(options, cpus_per_rank=0)  # nobody else uses its own cluster
    try:
        handle = _launch.start(line, options, session)
    except exceptions.PlacementError as error:
        hint = (
            ""
            if options.gpus
            else (
                "\n  --cpus-per-rank 0: as many as one likes share a node's CPUs, as under torchrun"
            )
        )
        raise exceptions.PlacementError(f"{error}{hint}") from None
    except exceptions.TooLargeError as error:
        raise exceptions.TooLargeError(f"{error}\n  here: --exclude PATTERN") from None
    if given["detach"]:
        click.echo(handle.id)
        return 0
    console = Console(
        given["tee"],
        given["redirects"],
        given["local_ranks_filter"],
        given["role"],
        os.environ.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", ""),
    )
    traits = line.traits
    written = RankFiles(
        handle,
        log_folder=traits["log_folder"],
        error_base=traits["error_base"],
        run_id=traits["run_id"],
        quiet=given["quiet"],
    )
    filtered = FilteredOutput(
        written,
        console,
        out=given["duplicate_stdout_filters"],
        err=given["duplicate_stderr_filters"],
        quiet=given["quiet"],
    )
    show = _progress.Display(
        handle,
        quiet=given["quiet"],
        label_of=console.label,
        patience_s=_PATIENCE_S,
        heard=filtered.hear if _filters_of(given) and traits["log_folder"] else None,
        asked_by="--env",
        script=_program.check(
            line.kind, line.target, same_host=False, other_python="python" in traits
        ),
    )
    numbers = given["signals_to_handle"] or signals(DEFAULT_SIGNALS)
    # torchrun handles all of its signals, ignored ones too. An ignored SIGHUP stays so unless it
    # was named: who writes nohup wants the launch to outlive the terminal.
    ignored = [each for each in numbers if each != signal.SIGHUP]
    if given["signals_to_handle"] is not None:
        ignored = list(numbers)
    elif given["door"] != "torchrun":
        ignored = []
    _common.interrupt_at_signals(numbers, ignored=ignored)
    try:
        code = _code_of(
            show,
            handle,
            written,
            passes_on=given["door"] == "torchrun" or given["signals_to_handle"] is not None,
        )
    finally:
        filtered.close()
        written.settle()
    return min(code, 1) if given["door"] == "torchrun" else code


def _filters_of(given: dict[str, Any]) -> tuple[str, ...]:
    return (*given["duplicate_stdout_filters"], *given["duplicate_stderr_filters"])


def _code_of(show: _progress.Display, handle: Any, written: RankFiles, *, passes_on: bool) -> int:
    """Follow the launch to its end, say what went wrong, and return the exit code.

    With `passes_on` the ranks get the very signal that came here, whichever it is; without, SIGTERM
    for all but Ctrl-C.
    """
    try:
        show.follow()
        handle.succeeded()
    except KeyboardInterrupt as told:
        number = told.args[0] if told.args else signal.SIGINT
        written.record_signal(number)
        is_ctrl_c = number == signal.SIGINT
        show.stop(
            "Ctrl-C in the caller" if is_ctrl_c else f"{signal.Signals(number).name} in the caller",
            by=number if passes_on or is_ctrl_c else signal.SIGTERM,
        )
        show.finish()
        return 128 + number
    except exceptions.TroupeError as error:
        show.finish()
        click.echo(f"{type(error).__name__}: {error}", err=True)
        return _errors.exit_code_of(error)
    show.finish()
    return 0


_TORCHRUN_GRACE_S = 30.0  # torchrun's own
_PATIENCE_S = 600.0  # for who reads the output more slowly than it was written
