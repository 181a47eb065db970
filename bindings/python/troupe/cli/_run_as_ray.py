"""`troupe run-as-ray`: runs a script that imports ray, on Troupe."""
from __future__ import annotations

import os
import runpy
import sys
from typing import NoReturn

import click

_RUNNERS = {__file__, runpy.__file__, "<frozen runpy>"}


@click.command("run-as-ray", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
@click.option("-m", "--module", "as_module", is_flag=True, help="SCRIPT is the name of a module, as for python -m.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run_as_ray(as_module: bool, script: str, arguments: tuple[str, ...]) -> None:
    """Run SCRIPT with `import ray` meaning Troupe.

    The script's actors, tasks and ranks get it too, and every Python that it starts; these find a command `ray` (start, stop, status).
    ray.init(), or without it the first call, starts a cluster of this machine that ends with the script; set TROUPE_ADDRESS (and
    TROUPE_TOKEN_FILE), or RAY_ADDRESS, for one that runs. Exit code: the script's.

        troupe run-as-ray train.py --epochs 3
    """
    from troupe import ray_compat
    from troupe.ray_compat import _command

    if not as_module and not os.path.isfile(script):
        raise click.UsageError(f"there is no script {script}; a module is run with -m {script}" if "/" not in script
                               else f"there is no script {script}")
    ray_compat.install()
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.getcwd() if as_module else os.path.dirname(os.path.abspath(script)))
    _before("PATH", _command.folder())
    _before("PYTHONPATH", ray_compat.FOLDER)
    _run(script, as_module)


def _before(variable: str, folder: str) -> None:
    """Puts a folder before the others of a variable, for the processes that the script starts."""
    os.environ[variable] = os.pathsep.join([folder, *filter(None, [os.environ.get(variable)])])


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
    """The traceback as `python SCRIPT` would print it: without the frames of what ran the script."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename in _RUNNERS:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)
