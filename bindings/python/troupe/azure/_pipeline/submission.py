"""Pipelines as they begin: checked, kept in their folder, driven by an actor of the cluster."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import troupe
from troupe import exceptions
from troupe._base import identity as _identity
from troupe._cluster import session as _session, status_lines, workers
from troupe.azure import _code_folder, _instances, _plan as _shape, _schema, _start
from troupe.azure._command import Command
from troupe.azure._jobs.current import as_current
from troupe.azure._pipeline import digests, plan as _plan
from troupe.azure._pipeline.job import PipelineJob
from troupe.azure._pipeline.record import Folder
from troupe.azure._sweep_job import Sweep
from troupe.tune._config import DEFAULT_STORAGE
from troupe.tune._handle import beside
from troupe.tune._run import folder as _folder

NAMESPACE = "troupe.azure.pipelines"
"""Of the actors that drive pipelines, each by the pipeline's name."""
ANSWER_S = 30.0
_WAITERS_MAX = 64


def root() -> Path:
    """Return the folder of all results of this user."""
    return _folder.absolute(DEFAULT_STORAGE)


def submit(pipeline: PipelineJob, session: _session.Session) -> None:
    """Begin a pipeline; set its name where it has none.

    Raises what is wrong with it or a step's job, ValueError for a name that is taken.
    """
    pipeline.check()
    steps, sources = _plan.flat(pipeline)
    codes = _check_all(steps, session)
    name = pipeline.name or _new_name(pipeline)
    for each in steps:
        if len(f"{name}_{each}") > _schema.NAME_CHARACTERS_MAX:
            raise ValueError(
                f"the job of step {each} would be called {name}_{each}; "
                f"{_schema.NAME_CHARACTERS_MAX} characters are the limit of a job's name"
            )
    path = root() / name
    if path.exists():
        raise ValueError(
            f"there is a pipeline or sweep with the name {name!r} already, in {path}: give another "
            "name, or none for a new one"
        )
    path.mkdir(parents=True)
    try:
        kept = _keep_code(codes, path / "code")
        made = _plan.Plan(
            name,
            {each: _step_plan(step, *kept[each]) for each, step in steps.items()},
            sources,
            {
                "run": _identity.new_id(),
                **{
                    field: value
                    for field in ("display_name", "description", "experiment_name", "tags")
                    if (value := getattr(pipeline, field))
                },
            },
            bool(pipeline.settings.continue_on_step_failure),
            bool(pipeline.settings.force_rerun),
        )
        Folder(path).begin(made)
        _say_what_means_nothing(pipeline, name, steps)
        with as_current(session):
            _drive(name, path)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    pipeline.name = pipeline.id = name
    pipeline.status, pipeline.studio_url = "Preparing", path.absolute().as_uri()


def _check_all(steps: Mapping[str, _plan.Step], session: _session.Session) -> dict[str, str | None]:
    """Check the jobs of all steps as their starts do, and return the path of each one's code.

    Raises what is wrong with one; what is wrong with several as FileNotFoundError, if files are
    missing alone, else as ValueError.
    """
    found: dict[str, str | None] = {}
    wrong: dict[str, Exception] = {}
    for name, each in steps.items():
        try:
            found[name] = _check(each.job, session)
        except (ValueError, TypeError, OSError) as error:
            wrong[name] = error
    lines = [f"step {name}: {error}" for name, error in wrong.items()]
    if len(wrong) > 1:
        kind = (
            FileNotFoundError
            if all(isinstance(each, FileNotFoundError) for each in wrong.values())
            else ValueError
        )
        raise kind("\n  ".join([f"{len(wrong)} steps are wrong", *lines]))
    for each_wrong in wrong.values():
        if type(each_wrong).__module__ == "builtins":
            raise type(each_wrong)(*lines) from None
        raise each_wrong
    return found


def _check(job: Any, session: _session.Session) -> str | None:
    command: Command = job.trial if isinstance(job, Sweep) else job
    job.check()
    command.check(is_complete=True)
    with command.located("compute"):
        kind, _ = _instances.meant(
            {"compute": job.compute, "instance_type": command.resources.instance_type}
        )
    with command.located("resources"):
        _shape.of(command, _start.nodes_of(session, workers.node_infos(session)), kind)
    for each, value in command.inputs.items():
        if getattr(value, "path", None) != _plan.UNKNOWN:
            _start.check_input(command, each, value)
    for each, value in command.outputs.items():
        _start.check_output(command, each, value)
    with command.located("code"):
        return _code_folder.check(command.code, command.base_path)


def _keep_code(codes: dict[str, str | None], folder: Path) -> dict[str, tuple[str, str]]:
    """Copy the code of all steps, each folder once, for steps that begin later.

    Returns (path, digest) by step; ("", "") for none.
    """
    found: dict[str | None, tuple[str, str]] = {None: ("", "")}
    for code in codes.values():
        if code not in found:
            folder.mkdir(exist_ok=True)
            assert code is not None
            copy = _code_folder.keep(code, folder / f"{len(found):03d}", "the code of the pipeline")
            found[code] = os.fspath(copy), digests.of_path(copy)
    return {name: found[code] for name, code in codes.items()}


def _step_plan(step: _plan.Step, code: str, digest: str) -> _plan.StepPlan:
    job = step.job
    command: Command = job.trial if isinstance(job, Sweep) else job
    fields = job.to_dict()
    inner = fields["trial"] if isinstance(job, Sweep) else fields
    if code:
        inner["code"] = code
    for each in (fields, inner):
        each.pop("name", None)
    return _plan.StepPlan(
        fields,
        command.base_path,
        step.sources,
        {name: about.type for name, about in command.outputs.items()},
        digest,
        command.is_deterministic is not False,
    )


def _say_what_means_nothing(pipeline: PipelineJob, name: str, steps: dict[str, _plan.Step]) -> None:
    said: dict[str, None] = {}
    for each in steps.values():
        job = each.job.trial if isinstance(each.job, Sweep) else each.job
        _, unknown = _instances.meant(
            {"compute": each.job.compute, "instance_type": job.resources.instance_type}
        )
        said.update(dict.fromkeys(_start.without_meaning(job, unknown)))
    if pipeline.settings.default_datastore:
        said["default_datastore"] = None
    if said:
        status_lines.say(f"troupe: pipeline {name}: without a meaning here: {'; '.join(said)}")


def _drive(name: str, path: Path) -> None:
    from troupe.azure._pipeline.host import PipelineHost

    file = _instances.file()
    made = troupe.remote(PipelineHost).options(
        name=name,
        namespace=NAMESPACE,
        lifetime="detached",
        num_cpus=0,
        max_restarts=-1,
        max_task_retries=-1,
        concurrency_groups={"waits": _WAITERS_MAX},
        scheduling_strategy=beside(_session.current()),
    )
    try:
        driver = made.remote(
            str(path), {_instances.VARIABLE: os.path.abspath(file)} if file else {}
        )
        try:
            troupe.get(driver.about.remote())
        except FileNotFoundError:
            troupe.kill(driver)
            raise
    except exceptions.AlreadyExistsError:
        raise ValueError(
            f"a pipeline called {name} runs in this cluster: give another name, or none for a new "
            "one"
        ) from None


def _new_name(pipeline: PipelineJob) -> str:
    short = (
        re.sub(
            r"[^A-Za-z0-9_-]+", "-", pipeline.display_name or pipeline.experiment_name or "pipeline"
        ).strip("-_")
        or "pipeline"
    )
    return f"{short[:40]}-{_identity.new_id()[:8]}"
