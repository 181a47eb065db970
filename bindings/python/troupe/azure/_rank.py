"""Preparations of a rank of a command job before it runs the command: the job's directory on its
node, variables, the command's text.

    job-LAUNCH-EPOCH-NODE/   of the host's cache, made by the node's first rank
      code/                  the job's code, a copy of its own, and the ranks' directory; outputs/ and logs/ in it are the job's too
      inputs/NAME/FILE       an input, as its mode says (`_data.inputs`), or what was downloaded
      outputs/NAME           an output; a link where the job says a path
      mlflow/                what the job logs by MLflow (`_tracking.jobs.job_store`)
      job.json               which outputs there are

View: one rank, before it becomes the shell that runs the command.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from troupe import _pickled, exceptions
from troupe._base import identity as _identity
from troupe._code import disk, packages, runtime_env
from troupe._tracking.jobs import job_store
from troupe.azure import _expressions
from troupe.azure._data import inputs as _inputs
from troupe.launch import _context, _ports

TEXT, LOCAL, NODE, ADDRESS, JOBS_OWN = "text", "local", "node", "address", "job"
RECORD = "job.json"
SHELL = "bash"
_DOWNLOAD_STEP_S = 60.0
_NODE_CHARS = 8


@dataclass(frozen=True)
class JobStart:
    """The start of a job, as it travels.

    An input or output is a dict with `how`, one of TEXT, LOCAL, NODE, ADDRESS and JOBS_OWN, and
    what goes with that.
    """

    name: str
    texts: Mapping[str, str]  # the command's, under "", and variables', with their expressions
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    code: Mapping[str, Any] | None = None
    experiment: str = ""
    tasks: tuple[
        tuple[str, int], ...
    ] = ()  # TensorFlow's tasks: (type, count), in the order of the ranks
    serving: tuple[str, ...] = ("ps",)  # types of these that are ended once all that train have
    run: Mapping[str, Any] | None = (
        None  # name of the run in MLflow, where no address reaches it; None: MLflow's own choice
    )
    trial: Mapping[str, str] | None = (
        # A sweep's reporting: `reports` and `namespace` of the actor that its reports go to, and
        # `metric`
        None
    )
    root: str = ""  # the pipeline that the job is a step of

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.azure_job, (_pickled.fields_of(self),)

    def __call__(self, session: Any) -> Callable[[], Sequence[str]]:
        """Makes the directory and enters it; what it returns sets the variables, and gives the rest
        of the shell's line.

        Raises FileNotFoundError for an input that this node has not, OSError, RuntimeEnvSetupError.
        """
        context = _context.current()
        folder = self.enter(session, context)
        met = (
            _ports.Meeting(session, context, folder)
            if not self.tasks
            else _ports.Addresses(session, context)
        )

        def begin() -> Sequence[str]:
            if isinstance(met, _ports.Meeting):
                os.environ.update(met.variables(session, context))
            else:
                from troupe.azure import _tensorflow

                os.environ["TF_CONFIG"] = _tensorflow.config(
                    self.tasks, met.all(session, context), context.rank
                )
                kind = _tensorflow.task_of(self.tasks, context.rank)[0]
                if kind in self.serving:
                    line = (SHELL, "-c", self.settle(folder, context))
                    code = _tensorflow.serve(
                        session,
                        context,
                        _tensorflow.training_ranks(self.tasks, self.serving),
                        line,
                        _tensorflow.waiting_ranks(self.tasks, self.serving, context.rank),
                    )
                    leave_as(
                        "the parameter server" if kind == _tensorflow.PS else f"the {kind}", code
                    )
            beside = self.trial is not None and context.rank == 0
            text = self.settle(folder, context, becomes=not beside)
            if beside:
                from troupe.azure._trials import door

                leave_as("the command", door.run((SHELL, "-c", text)))
            return "-c", text

        return begin

    def enter(self, session: Any, context: Any, *, mounts: bool = True) -> Path:
        """Makes the job's directory, where this node has none yet, and enters its code; the
        directory. `mounts`: see `_data.inputs.place`."""
        folder = packages.held(
            folder_name(context.launch, context.epoch, context.node),
            lambda made: self._make(made, session, mounts),
            f"the directory of job {self.name}",
        )
        os.chdir(folder / "code")
        # `python`, `pip` and `torchrun` of a command are those of the node's own interpreter,
        # whatever its worker was started from.
        os.environ["PATH"] = os.pathsep.join(
            [os.path.dirname(sys.executable), *filter(None, [os.environ.get("PATH")])]
        )
        return folder

    def settle(self, folder: Path, context: Any, *, becomes: bool = False) -> str:
        """Sets the job's variables in this process; the command's text, as it is on this node.

        `becomes`: this thread becomes the command by exec next.

        Raises OSError where an input cannot be mounted any more.
        """
        os.environ.update({name: self._text(name, folder) for name in self.texts if name})
        os.environ.update(
            AZUREML_RUN_ID=self.name,
            AZUREML_ROOT_RUN_ID=self.root or self.name,
            AZUREML_NODE_COUNT=str(context.node_count),
        )
        if self.experiment:
            os.environ["AZUREML_EXPERIMENT_NAME"] = self.experiment
        if self.run is not None:
            node = context.node[:_NODE_CHARS] if context.node_count > 1 else ""
            job_store.apply(job_store.variables(folder, node, self.run, os.environ, self.texts))
        if self.trial is not None:
            from troupe.azure._trials import door

            if getattr(context, "rank", None) == 0:
                door.open_to(folder, self.trial)
            os.environ.update(door.variables(folder, self.trial))
        text = self._text("", folder)
        return (
            text
            if becomes and _inputs.mount_here(folder)
            else _inputs.with_mounts(folder, text, SHELL)
        )

    def _text(self, name: str, folder: Path) -> str:
        template = _expressions.read(self.texts[name], name or "command", self.inputs, self.outputs)
        return _expressions.put_together(template, lambda place: self._value(place, folder))

    def _value(self, place: _expressions.Place, folder: Path) -> str | None:
        about = (self.inputs if place.kind == "inputs" else self.outputs)[place.name]
        if about["how"] == TEXT:
            value: str | None = about["value"]
            return value
        return _inputs.shown(folder / place.kind / place.name / about.get("file", ""))

    def _make(self, folder: Path, session: Any, mounts: bool) -> None:
        code = folder / "code"
        if self.code is not None:
            code_here = runtime_env.package_here(self.code, session, f"the code of job {self.name}")
            disk.copy_tree(
                code_here, code, f"the code of job {self.name}", symlinks=True, remedy=packages.ROOM
            )
        for path in (code / "outputs", code / "logs", folder / "inputs", folder / "outputs"):
            path.mkdir(parents=True, exist_ok=True)
        sources: dict[str, tuple[str, str, str]] = {}
        for name, about in self.inputs.items():
            if about["how"] == ADDRESS:
                path = folder / "inputs" / name
                path.mkdir()
                _download(about["value"], path / about["file"], name)
            elif about["how"] != TEXT:
                sources[name] = (
                    self._source(name, about, session),
                    about.get("mode", ""),
                    about["file"],
                )
        _inputs.place(folder, sources, mounts=mounts)
        for name, about in self.outputs.items():
            _make_output(f"outputs: {name}", about, folder / "outputs" / name)
        (folder / RECORD).write_text(
            json.dumps(
                {
                    "job": self.name,
                    "outputs": {name: dict(about) for name, about in self.outputs.items()},
                }
            )
        )

    def _source(self, name: str, about: Mapping[str, Any], session: Any) -> str:
        """Return the path of the input on this node. Raises FileNotFoundError,
        RuntimeEnvSetupError."""
        file, there = about["file"], str(about["value"])
        if about["how"] == LOCAL and about["host"] != _identity.boot_id():
            if about.get("mode") == _inputs.IN_PLACE:
                raise exceptions.RuntimeEnvSetupError(
                    f"inputs: {name}: mode rw_mount is {there} itself, which is on another host "
                    f"than {os.uname().nodename}\n  give file:///PATH of a "
                    "place that all nodes share, or mode download, which gives each node a copy, "
                    "or write to an output"
                )
            if "package" not in about:
                raise exceptions.RuntimeEnvSetupError(
                    f"inputs: {name}: {there} is on another host, and this one was not in the "
                    "cluster when the "
                    "job was submitted\n  submit it again, now that the node is there"
                )
            there = runtime_env.package_here(about["package"], session, f"inputs: {name}")
            there = os.path.join(there, file) if file else there
        if not os.path.exists(there):
            raise FileNotFoundError(f"inputs: {name}: there is no {there} on {os.uname().nodename}")
        if bool(file) == os.path.isdir(there):
            raise FileNotFoundError(
                f"inputs: {name} is a {'file' if file else 'folder'}, and {there} on "
                f"{os.uname().nodename} is none"
            )
        return there


def leave_as(program: str, code: int) -> NoReturn:
    """Ends this rank as a program that it has run beside it: with its code, negative for a
    signal."""
    error = SystemExit(128 - code if code < 0 else code)
    error.of_program = (program, max(-code, 0))  # type: ignore[attr-defined]
    raise error


def folder_name(launch: str, epoch: int, node: str) -> str:
    """Return the name of a job's directory on a node, in the cache of its host."""
    return f"job-{launch}-{epoch}-{node}"


def _make_output(what: str, about: Mapping[str, Any], path: Path) -> None:
    """A folder of the job's own, or a link to where the job says it is to be, if that is on this
    host."""
    here = about["how"] == NODE or about["how"] == LOCAL and about["host"] == _identity.boot_id()
    if here:
        there = Path(about["value"])
        folder = there.parent if about["is_file"] else there
        with disk.writing(what, folder, remedy="give the output another path"):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(
                dir=folder
            ).close()  # a path that cannot be written is reported before the job has run for hours
        path.symlink_to(there)
    elif not about["is_file"]:
        path.mkdir()


def _download(address: str, path: Path, name: str) -> None:
    """Raises FileNotFoundError with what the server said, OutOfDiskError, an OSError, where it is
    not written."""
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(address, timeout=_DOWNLOAD_STEP_S) as answer:
            size = answer.length if isinstance(answer.length, int) else None
            with (
                disk.writing(
                    f"inputs: {name}: {address}",
                    path,
                    needed=size,
                    remedy=packages.ROOM,
                    partial=path.parent,
                ),
                open(path, "wb") as file,
            ):
                shutil.copyfileobj(answer, file)
    except (urllib.error.URLError, TimeoutError) as error:
        reason = getattr(error, "reason", None) or error
        raise FileNotFoundError(
            f"inputs: {name}: {address} could not be fetched on {os.uname().nodename}: {reason}"
        ) from None


@_pickled.maker("azure_job")
def _azure_job(fields: Mapping[str, Any]) -> Any:
    """Rebuild the start of a rank of a command job."""
    return _pickled.of_fields(JobStart, fields)
