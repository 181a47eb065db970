"""`troupe run-as`: runs a script that imports another launcher's packages, on Troupe."""

from __future__ import annotations

import os
import runpy
import sys
from typing import NoReturn

import click

from troupe import cli
from troupe._code import shadows

_RUNNERS = {__file__, runpy.__file__, "<frozen runpy>"}


_SETTINGS = {"allow_interspersed_args": False, "ignore_unknown_options": True}
_as_module = click.option(
    "-m",
    "--module",
    "as_module",
    is_flag=True,
    help="SCRIPT is the name of a module, as for python -m.",
)


@click.command("run-as", context_settings=_SETTINGS)
@_as_module
@click.option(
    "--only",
    metavar="NAME,...",
    help="Stand in for these packages alone: serverless_gpu, databricks, ray, pyspark, azure.",
)
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run_as(as_module: bool, only: str | None, script: str, arguments: tuple[str, ...]) -> None:
    """Run SCRIPT with the packages of other launchers meaning Troupe: serverless_gpu,
    databricks.air, ray, pyspark.ml.torch, azure.ai.ml.

    The script is not changed. Its ranks, actors and tasks get the same, and every Python that it
    starts. A name that Troupe has not raises an error that says what to use. Exit code: the
    script's.

        troupe run-as train.py --epochs 3
    """
    from troupe import stand_ins

    try:
        names = stand_ins.check(stand_ins.NAMES if only is None else only.split(","))
    except ValueError as error:
        raise click.UsageError(f"--only: {error}") from None
    _with(names, as_module, script, arguments)


@click.command("run-as-ray", context_settings=_SETTINGS)
@_as_module
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run_as_ray(as_module: bool, script: str, arguments: tuple[str, ...]) -> None:
    """Run SCRIPT with `import ray` meaning Troupe: `troupe run-as --only ray`.

    The script's actors, tasks and ranks get it too, and every Python that it starts; these find a
    command `ray` (start, stop, status). ray.init(), or without it the first call, starts a cluster
    of this machine that ends with the script; set TROUPE_ADDRESS (and TROUPE_TOKEN_FILE), or
    RAY_ADDRESS, for one that runs. Exit code: the script's.

        troupe run-as-ray train.py --epochs 3
    """
    from troupe import stand_ins

    _with((stand_ins.RAY,), as_module, script, arguments)


def _with(
    names: tuple[str, ...], as_module: bool, script: str, arguments: tuple[str, ...]
) -> NoReturn:
    """Runs the script with these packages meaning Troupe."""
    from troupe import stand_ins

    if (
        script == stand_ins.RAY
        and stand_ins.RAY in names
        and not as_module
        and not os.path.exists(script)
    ):
        _ray_command(names, arguments)
    if not as_module and not os.path.isfile(script):
        raise click.UsageError(
            f"there is no script {script}; a module is run with -m {script}"
            if "/" not in script
            else f"there is no script {script}"
        )
    stand_ins.install(names)
    if stand_ins.RAY in names:
        from troupe.ray_compat import _command_path

        os.environ["PATH"] = os.pathsep.join(
            [_command_path.folder(), *filter(None, [os.environ.get("PATH")])]
        )
    sys.argv = [script, *arguments]
    # The last step before the script's own: a module beside it that has the name of one of Python's
    # is not for what is imported here.
    sys.path.insert(0, os.getcwd() if as_module else os.path.dirname(os.path.abspath(script)))
    stand_ins.pass_on(names)
    _run(script, as_module)


def _ray_command(names: tuple[str, ...], arguments: tuple[str, ...]) -> NoReturn:
    """Runs the command `ray` of Troupe, as a script that is run so would."""
    from troupe import stand_ins
    from troupe.ray_compat import _command

    stand_ins.install(names)
    stand_ins.pass_on(names)
    cli.main(list(arguments), program=_command.ray, name="ray")
    sys.exit(0)


def _run(script: str, as_module: bool) -> NoReturn:
    try:
        if as_module:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")
    except (Exception, KeyboardInterrupt) as error:
        _show(error)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)
    sys.exit(0)  # as an interpreter ends: with threads waited for


def _show(error: BaseException) -> None:
    """The traceback as `python SCRIPT` would print it: without the frames of what ran the
    script."""
    trace = error.__traceback__
    while (
        trace is not None
        and trace.tb_next is not None
        and trace.tb_frame.f_code.co_filename in _RUNNERS
    ):
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    shadowed = shadows.text_of(sys.path)
    if (
        shadowed
        and not getattr(error, "__notes__", None)
        and isinstance(error, (AttributeError, ImportError))
    ):
        click.echo(f"troupe: {shadowed}", err=True)
