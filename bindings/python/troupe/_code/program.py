"""A program that ranks execute instead of a function: a Python script, a module, or a command line.

View: the caller finds and checks it (`read`, `check`), so that what is wrong is said once and
before there are ranks; a rank finds what the same words mean on its host (`script_here`). What a
rank then does with it: `_process.program`.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from troupe import _pickled, exceptions
from troupe._base import identity as _identity
from troupe._code import runtime_env

SCRIPT, MODULE, PATH, COMMAND = "script", "module", "path", "command"


@dataclass(frozen=True)
class Program:
    """The program that the ranks of a launch run. Plain values: it travels as the launch's
    payload."""

    # SCRIPT; MODULE, as `python -m`; PATH, a folder or archive with a __main__.py too; COMMAND
    kind: str
    target: str  # as it was given
    arguments: tuple[str, ...] = ()
    file: str = ""  # the caller's absolute path, for SCRIPT and PATH
    inside: str = ""  # and from the caller's directory, where it lies below that; "": it does not
    host: str = ""  # boot id of the caller's
    folder: Mapping[str, Any] = field(
        default_factory=dict
    )  # for other hosts, where it is not inside: the script's folder, packed
    python_path: tuple[str, ...] = ()  # the caller's PYTHONPATH
    fresh: bool = False  # a script or module in an interpreter of its own
    role: str = "default"
    virtual_local_rank: bool = False
    local_rank_argument: bool = False
    max_restarts: int = 0
    option_files: tuple[
        tuple[str, str], ...
    ] = ()  # (option, text): as _code.option_files gives them, behind the arguments
    log_folder: str = ""  # folder for the ranks' output, as torchrun's --log-dir; "": no files
    # on the caller's host, where the folder of the ranks' error files is without a log_folder; "":
    # nowhere
    error_base: str = ""
    run_id: str = ""  # TORCHELASTIC_RUN_ID; "": the launch's id
    macros: bool = False  # ${local_rank} in arguments is the local rank, as under torchrun
    python: str = ""  # the interpreter that runs it in place of the rank's own; implies `fresh`
    # Setup of a COMMAND that is more than its line: called with the rank's session before it is
    # prepared, to make its directory and the like; it returns a function that, called once the
    # roster's variables are set, returns the rest of the line.
    setup: Callable[[Any], Callable[[], Sequence[str]]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.program, (_pickled.fields_of(self),)

    @property
    def executes(self) -> bool:
        """True if the rank's process becomes the program, by exec."""
        return self.kind == COMMAND or self.fresh

    @property
    def name(self) -> str:
        """For people: `train.py`, `-m package.train`, `bash`."""
        return (
            f"-m {self.target}"
            if self.kind == MODULE
            else os.path.basename(self.target.rstrip("/"))
        )


def read(
    words: Sequence[str], *, module: bool = False, command: bool = False, path: bool = False
) -> tuple[str, str, tuple[str, ...]]:
    """(kind, target, arguments) of a command line: `train.py --lr 1`, `-m package.train --lr 1`,
    `-- bash -c ...`.

    The keywords say it where the line's own beginning does not. Raises ValueError for an empty one.
    """
    rest = list(words)
    if not (module or command or path) and rest and rest[0] in ("-m", "--"):
        module, command = rest[0] == "-m", rest[0] == "--"
        rest = rest[1:]
    if not rest or not rest[0]:
        raise ValueError(
            "there is nothing to run: give a script (train.py --lr 1), -m module, or -- command"
        )
    kind = PATH if path else COMMAND if command else MODULE if module else SCRIPT
    return kind, rest[0], tuple(rest[1:])


def check(kind: str, target: str, *, same_host: bool = True, other_python: bool = False) -> str:
    """The file of a script, absolute; "" of anything else.

    `same_host`: the ranks see what is installed here. `other_python`: another interpreter runs it,
    whose syntax and modules are not this one's.

    Raises FileNotFoundError, IsADirectoryError, ModuleNotFoundError, SyntaxError: what each rank
    would only say in its turn.
    """
    if kind == COMMAND:
        if same_host and shutil.which(target) is None:
            raise FileNotFoundError(f"there is no command {target}" + _python_meant(target))
        return ""
    if kind == MODULE:
        if not other_python:
            _check_module(target, same_host)
        return ""
    file = os.path.abspath(target)
    if not os.path.lexists(file):
        raise FileNotFoundError(
            f"there is no script {target} in {os.getcwd()}"
            if not os.path.isabs(target)
            else f"there is no script {target}"
        )
    if os.path.isdir(file) and (
        kind == SCRIPT or not os.path.isfile(os.path.join(file, "__main__.py"))
    ):
        has = os.path.isfile(os.path.join(file, "__main__.py"))
        raise IsADirectoryError(
            f"{target} is a folder, not a script"
            + ("\n  its __main__.py is run with --run-path" if has else "")
        )
    if os.path.isfile(file) and (kind == SCRIPT or file.endswith(".py")) and not other_python:
        compile_file(file)
    return file


def _python_meant(target: str) -> str:
    return (
        f"\n  {target} is a file here: a Python script is given without --"
        if os.path.isfile(target)
        else ""
    )


def compile_file(file: str) -> Any:
    """A script's code. Raises SyntaxError, also for what is no text; OSError."""
    with open(file, "rb") as source:
        data = source.read()
    try:
        return compile(data, file, "exec", dont_inherit=True)
    except ValueError as error:  # null bytes, for one
        raise SyntaxError(f"{file} is no Python source: {error}") from None


def _check_module(name: str, same_host: bool) -> None:
    """Looks for it without importing anything: what a package does when it is loaded is for the
    ranks."""
    spec: importlib.machinery.ModuleSpec | None = None
    where: Sequence[str] | None = [os.getcwd(), *sys.path]
    parts = name.split(".")
    for number in range(len(parts)):
        whole = ".".join(parts[: number + 1])
        if number == 0 and (
            whole in sys.builtin_module_names or importlib.machinery.FrozenImporter.find_spec(whole)
        ):
            return
        spec = importlib.machinery.PathFinder.find_spec(whole, where)
        if spec is None:
            if same_host:
                raise ModuleNotFoundError(
                    f"there is no module {whole} in {os.getcwd()}, nor on the import path",
                    name=whole,
                )
            return
        where = spec.submodule_search_locations
        if where is None and number + 1 < len(parts):
            raise ModuleNotFoundError(
                f"{whole} is a module, no package: there is no {name} in it", name=name
            )
    if spec is not None and spec.submodule_search_locations is not None:
        main = importlib.machinery.PathFinder.find_spec(
            f"{name}.__main__", spec.submodule_search_locations
        )
        if main is None and same_host:
            raise ModuleNotFoundError(
                f"{name} is a package without a __main__: python -m could not run it either",
                name=name,
            )
        spec = main
    if spec is not None and spec.origin and spec.origin.endswith(".py"):
        compile_file(spec.origin)


def folder_of(file: str, session: Any) -> tuple[str, dict[str, Any]]:
    """(path from the current directory, the script's folder as it travels): for a script below the
    directory only the first, for that one travels itself; of another one the second, where the
    cluster has other hosts."""
    inside = os.path.relpath(file, os.getcwd())
    if not inside.startswith(os.pardir + os.sep):
        return inside, {}
    if session.same_host:
        return "", {}
    return "", runtime_env.directory(os.path.dirname(file), session)


def script_here(program: Program, session: Any) -> str:
    """The file on this host: the caller's own where this is its host, else in what came along."""
    if program.host == _identity.boot_id():
        return program.file
    if program.inside:
        return os.path.join(os.getcwd(), program.inside)
    if not program.folder:
        raise exceptions.RuntimeEnvSetupError(
            f"{program.file} is on another host, and this one was not in the cluster when it was "
            "submitted\n"
            "  submit it again, now that the node is there"
        )
    return os.path.join(
        runtime_env.folder_here(program.folder, session), os.path.basename(program.file)
    )


def job_of_json(payload: bytes) -> Program:
    """Return the program of a job that was submitted over HTTP, of a payload that the head wrote.

    Such a payload begins with `{`, as no pickle does.
    """
    asked = json.loads(payload)
    command = tuple(asked["command"])
    start = {
        "job": asked["job"],
        "token": asked["token"],
        "runtime_env": {"env_vars": asked["env"]} if asked["env"] else {},
        "is_by_token": True,
    }
    return Program(COMMAND, command[0], command[1:], setup=_pickled.job_start(start))


@_pickled.maker("program")
def _program(fields: Mapping[str, Any]) -> Any:
    """A program that the ranks of a launch execute."""
    return _pickled.of_fields(Program, fields)
