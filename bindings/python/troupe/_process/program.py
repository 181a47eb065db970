"""A rank that runs a program: a script or module as `__main__` of this process, or any other by
exec.

What is wrong with the program itself (no such command here, a script that is no Python) is found
while the rank is prepared, so that it is told once. A script runs as `python train.py` would:
`__main__` is a module of its own that stays until the process ends, `sys.argv` and `sys.path[0]`
are the interpreter's, what is not caught is printed on stderr, and `sys.exit(3)` is the rank's
code.

By exec the process stays the worker's child, with its output and its environment, and speaks no
more: `RankProgram` says so before, and from then on the worker sends it signals instead of
messages, and takes how it ends for the rank's outcome.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import os
import shlex
import shutil
import signal
import string
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from troupe import stand_ins
from troupe._base.tracebacks import is_of_runtime
from troupe._cluster import session as _session
from troupe._code import option_files, program as _program
from troupe._code.capture import cloudpickled
from troupe._code.program import Program
from troupe._process import exit as _leave, notes, program_files, stopping
from troupe._process.channel import ProcessChannel

_CANNOT_EXECUTE = 126  # a shell's code for that


def prepared(
    program: Program, channel: ProcessChannel, begin: dict[str, Any], session: _session.Session
) -> Callable[[], None]:
    """Return a function that runs the program, once the roster is known.

    Raises what there is to say of a program that cannot be found or read on this host.
    """
    program_files.make(program, begin)
    if program.kind in (_program.SCRIPT, _program.PATH):
        file = _program.script_here(program, session)
    if program.kind == _program.COMMAND:
        rest = program.setup(session) if program.setup is not None else tuple
        found = _which(program.target)
        return lambda: _execute(program, found, lambda: [program.target, *rest()], channel, begin)
    if program.fresh:
        first = (
            ["-m", program.target]
            if program.kind == _program.MODULE
            else [_as_named(program, file)]
        )
        python = _which(program.python) if program.python else sys.executable
        return lambda: _execute(program, python, lambda: [python, "-u", *first], channel, begin)
    if program.kind == _program.MODULE:
        return _main(program, channel, begin, os.getcwd(), lambda: _module(program.target))
    if program.kind == _program.SCRIPT or os.path.isfile(file) and file.endswith(".py"):
        code = _program.compile_file(file)
        loader = importlib.machinery.SourceFileLoader("__main__", file)
        folder = os.path.dirname(os.path.realpath(file))
        return _main(program, channel, begin, folder, lambda: (code, file, None, loader))
    return _main(program, channel, begin, file, lambda: _module("__main__"))


def _main(
    program: Program,
    channel: ProcessChannel,
    begin: dict[str, Any],
    first: str,
    find: Callable[[], tuple[Any, str, Any, Any]],
) -> Callable[[], None]:
    """Return a function that runs the program in this process.

    The worker is told before it hears that this rank is prepared, and so before the program begins:
    one that leaves by os._exit(0) could not say it any more.
    """
    channel.send("RankProgram", {"command": ""}, cloudpickled(None))
    return lambda: _as_main(program, begin, first, find)


def _as_named(program: Program, file: str) -> str:
    """The caller's word for it, which is the program's sys.argv[0], where that is this file here
    too."""
    with contextlib.suppress(OSError):
        if os.path.samefile(program.target, file):
            return program.target
    return file


def _which(command: str) -> str:
    found = shutil.which(command)
    if found is None:
        there = os.path.exists(command)
        raise FileNotFoundError(
            f"{command} is no command on {os.uname().nodename}"
            + (
                ": it may not be executed\n  chmod +x, or name what runs it"
                if there
                else f"\n  PATH there is {os.environ.get('PATH', '')}"
            )
        )
    return found


def _variables(program: Program, begin: dict[str, Any]) -> None:
    """Set the variables that only programs, not functions, have."""
    os.environ["ROLE_NAME"] = program.role
    os.environ["TORCHELASTIC_MAX_RESTARTS"] = str(program.max_restarts)
    if program.run_id:
        os.environ["TORCHELASTIC_RUN_ID"] = program.run_id
    if program.virtual_local_rank:
        os.environ["LOCAL_RANK"] = "0"
        devices = [each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]
        if begin["local_rank"] < len(devices):
            os.environ["CUDA_VISIBLE_DEVICES"] = devices[begin["local_rank"]]


def _arguments(program: Program) -> list[str]:
    local = [f"--local_rank={os.environ['LOCAL_RANK']}"] if program.local_rank_argument else []
    given = program.arguments
    if program.macros:
        given = tuple(
            string.Template(each).safe_substitute(local_rank=os.environ["LOCAL_RANK"])
            for each in given
        )
    return [*local, *given, *option_files.placed(program.option_files)]


def _as_main(
    program: Program,
    begin: dict[str, Any],
    first: str,
    find: Callable[[], tuple[Any, str, Any, Any]],
) -> None:
    """Runs it as this process's `__main__`; `first` is its sys.path[0]."""
    _variables(program, begin)
    _import_path(program, first)
    sys.argv[:] = [program.target, *_arguments(program)]
    try:
        code, file, spec, loader = find()
        main = types.ModuleType("__main__")
        main.__dict__.update(
            __builtins__=builtins,
            __file__=file,
            __spec__=spec,
            __loader__=loader,
            __package__=spec.parent if spec else None,
            __cached__=spec.cached if spec else None,
            __annotations__={},
        )
        if spec is not None:
            sys.argv[0] = spec.origin or file
        sys.modules["__main__"] = main
        sys.modules.pop("__mp_main__", None)
        _started_here()
        exec(code, main.__dict__)
    except BaseException as error:
        if not isinstance(error, SystemExit) and not (
            isinstance(error, KeyboardInterrupt) and stopping.told() is not None
        ):
            notes.add(begin, error)
            if program.kind == _program.PATH:
                program_files.record(error)
            _show(error)
        raise


def _import_path(program: Program, first: str) -> None:
    """As the interpreter's own: the script's folder, PYTHONPATH, the libraries; the directory that
    the rank was started in is not on it."""
    here = {os.getcwd(), first}
    python_path = [each for each in program.python_path if os.path.exists(each)]
    rest = [each for each in sys.path if each not in here and each not in python_path]
    sys.path[:] = [first, *python_path, *rest]


def _started_here() -> None:
    """multiprocessing's children find the script from the directory that the program was started
    in."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined]


def _module(name: str) -> tuple[Any, str, Any, Any]:
    import runpy  # functions that `python -m` itself calls

    found = (
        runpy._get_main_module_details(ImportError)  # type: ignore[attr-defined]
        if name == "__main__"
        else runpy._get_module_details(name, ImportError)  # type: ignore[attr-defined]
    )
    _, spec, code = found
    return code, spec.origin, spec, spec.loader


def _show(error: BaseException) -> None:
    """The traceback as `python train.py` prints it: by the program's own hook where it has one,
    without the frames that ran it."""
    trace = error.__traceback__
    while trace is not None and is_of_runtime(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    with contextlib.suppress(BaseException):
        sys.excepthook(type(error), error.with_traceback(trace), trace)


def _execute(
    program: Program,
    path: str,
    line: Callable[[], Sequence[str]],
    channel: ProcessChannel,
    begin: dict[str, Any],
) -> None:
    """Becomes another program, with the words that `line` returns; returns never, and raises
    nothing once the worker has been told."""
    _variables(program, begin)
    if "TROUPE_TRACKER" in os.environ:
        from troupe._tracking import rank

        rank.before_exec()
    inherited = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    python_path = [*program.python_path, *inherited]
    if python_path:
        os.environ["PYTHONPATH"] = os.pathsep.join(python_path)
    if stand_ins.START in inherited:  # before a sitecustomize of the program's own, which it runs
        stand_ins.run_start_hook_below()
    argv = [*line(), *_arguments(program)]
    value = cloudpickled(None)
    # From here on a signal ends this process at once, as it would the program: the worker sends
    # what it has said in messages again.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    _leave.flush()
    channel.send("RankProgram", {"command": shlex.join(argv)[:1000]}, value)
    channel.finish()
    try:
        os.execve(path, argv, os.environ)
    except BaseException as error:  # a script without a first line that says what runs it, for one
        os.write(
            2, f"troupe: {path} cannot be executed: {error}\n".encode(errors="backslashreplace")
        )
        os._exit(_CANNOT_EXECUTE)
