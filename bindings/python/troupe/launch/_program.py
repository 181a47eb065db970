"""Launches whose ranks execute a program instead of a function."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from troupe._base import identity as _identity
from troupe._cluster import resources, session as _session
from troupe._code import environment, program as _program
from troupe._code.program import Program
from troupe.launch import _deaths, _function, _submit
from troupe.launch._handle import LaunchHandle

if TYPE_CHECKING:
    from typing import Unpack

    from troupe.launch._options.table import CommandOptions


@dataclass(frozen=True)
class Line:
    """A command line, and what of it is not an option of the launch."""

    kind: str
    target: str
    arguments: tuple[str, ...] = ()
    nodes: int = 0  # over that many, as evenly as possible; 0: as they fit
    traits: Mapping[str, Any] = field(default_factory=dict)  # fields of `Program`
    gpus_per_rank: int = 1  # used where the ranks have GPUs
    per_rank: Mapping[str, float] | None = (
        None  # all that each rank holds, by name; None: as the options say
    )


def submit_command(
    command: Sequence[str],
    *,
    nodes: int | None = None,
    fresh: bool = False,
    **options: Unpack[CommandOptions],
) -> LaunchHandle[None]:
    """Starts a launch whose ranks execute a program, and returns its LaunchHandle at once; the
    result of each rank is None.

    `command` is a list of words: `["train.py", "--lr", "1"]` a Python script, `["-m",
    "package.train"]` a module, `["--", "bash", "-c", ...]` any command. A script or module runs as
    `__main__` of a process that has torch loaded already; with `fresh` in an interpreter of its
    own. `nodes`: over that many nodes, as evenly as possible, with one rank more on the first ones.
    The other options are those of `distributed`, and `detach`: exactly one of `gpus` and
    `processes` is the number of ranks. The current directory is that of the ranks, and travels to
    other hosts.

    Raises FileNotFoundError, IsADirectoryError, ModuleNotFoundError and SyntaxError for a program
    that cannot run, ValueError and TypeError for options that cannot be meant, PlacementError,
    ConnectionError. A rank that ends with another code than 0, or by a signal, fails the launch:
    LaunchError has `exit_code` and `signal`.

        handle = submit_command(["train.py", "--epochs", "3"], gpus=8, remote=True)
    """
    if isinstance(command, str) or not all(isinstance(each, str) for each in command):
        raise TypeError(
            f"submit_command takes a list of words, not {command!r}: ['train.py', '--lr', '1'], or "
            "['--', 'bash', '-c', '...']"
        )
    kind, target, arguments = _program.read(command)
    if nodes is not None and (isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1):
        raise TypeError(f"nodes must be a whole number of at least 1, not {nodes!r}")
    chosen = replace(_function.options_of("submit_command", options), door="submit")
    line = Line(
        kind,
        target,
        arguments,
        nodes or 0,
        {"fresh": fresh, "max_restarts": chosen.max_attempts - 1},
    )
    _submit.refuse_inside_a_rank()
    return start(line, chosen, _submit.session_for(chosen.remote))


def start(
    line: Line,
    options: Any,
    session: _session.Session,
    *,
    settings: Mapping[str, str] | None = None,
    request: str = "",
) -> LaunchHandle[None]:
    """Submit it to the cluster of `session`.

    `settings`: variables of the ranks besides those of the runtime environment. `request`: see
    `_submit.send`.
    """
    if line.nodes > options.ranks:
        raise ValueError(
            f"nodes={line.nodes} needs as many ranks, and the launch has {options.ranks}: some "
            "nodes would have none"
        )
    same_host = session.same_host
    brings = {"pip", "uv"} & {
        *options.runtime_env,
        *(session.runtime_env or {}),
    }  # commands and modules that are not here
    file = _program.check(
        line.kind,
        line.target,
        same_host=same_host and not brings,
        other_python=bool(line.traits.get("python")),
    )
    inside, folder = _program.folder_of(file, session) if file else ("", {})
    program = Program(
        line.kind,
        line.target,
        line.arguments,
        file=file,
        inside=inside,
        folder=folder,
        host=_identity.boot_id(),
        python_path=_python_path(),
        **line.traits,
    )
    if program.executes:
        _deaths.refuse_executed(
            program.name, program.fresh, options.on_rank_death, options.hang_timeout
        )
    runtime_env = dict(options.runtime_env)
    inherit = options.inherit_env
    if not same_host:
        if program.setup is None:  # the program makes makes a directory itself
            runtime_env.setdefault("working_dir", os.getcwd())
    elif program.executes:
        inherit = (*inherit, "PATH")  # the caller's PATH decides which `python` is meant
    travels = environment.build(
        runtime_env, inherit, session=session, arguments=[line.target, *line.arguments], as_now=True
    )
    options = replace(options, runtime_env=runtime_env, nodes=line.nodes)
    spec = _submit.spec_of(options, program.name, travels)
    if options.gpus and line.gpus_per_rank != 1:
        spec["per_rank"] = resources.to_wire(
            {"CPU": options.cpus_per_rank, "GPU": line.gpus_per_rank, "memory": options.memory}
        )
    if line.per_rank is not None:
        spec["per_rank"] = resources.to_wire(line.per_rank)
    travels["env"] += [{"name": name, "value": value} for name, value in (settings or {}).items()]
    return _submit.send(
        session,
        spec,
        pickle.dumps((program, (), {}), protocol=5),
        options,
        source=file or program.target,
        request=request,
    )


def _python_path() -> tuple[str, ...]:
    """The caller's, on this host."""
    return tuple(
        os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each
    )
