"""From a job to a launch: what it names is looked at here, before anything starts, and travels
where nodes are on other hosts."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from troupe import exceptions
from troupe._base import checks as _checks, identity as _identity
from troupe._cluster import resources, selectors, status_lines, variables, view, workers
from troupe._code import environment, runtime_env
from troupe._code.program import COMMAND
from troupe._tracking.jobs import job_store
from troupe.azure import _code_folder, _deepspeed, _entities, _instances, _mpi, _plan, _rank, _ray
from troupe.azure._command import Command
from troupe.azure._distributions import RayDistribution
from troupe.azure._jobs import about
from troupe.azure._jobs.services import STUDIO
from troupe.launch import _cpu_ranks, _function, _ports, _program, _submit, _vendor_place
from troupe.launch._handle import LaunchHandle

_REMEDY = (
    "put it where all nodes read it, and give file:///PATH, its path there; or mode='direct' "
    "for what the program reads itself"
)
DOOR = "azure"
_SAID_ONLY = {"identity": "identity", "parent_job_name": "parent_job_name"}

_OWN_RUN = (
    "what this job logs by MLflow is its run {run} in {folder}; `troupe azure job download --all` "
    "brings it into artifacts/mlflow"
)


def start(
    job: Command,
    session: Any,
    *,
    quiet: bool = False,
    detach: bool = True,
    trial: Mapping[str, str] | None = None,
    root: str = "",
    idempotency_key: str | None = None,
) -> LaunchHandle:
    """Submits it; sets the job's name where it has none.

    What is said of its parts that mean nothing here is said once, on stderr. `trial`: of a sweep's:
    see JobStart. `root`: the pipeline that it is a step of.

    Raises FileNotFoundError, TypeError, ValueError, TooLargeError, PlacementError.
    """
    job.check(is_complete=True)
    with job.located("compute"):
        kind, unknown = _instances.meant(
            {"compute": job.compute, "instance_type": job.resources.instance_type}
        )
    nodes = workers.node_infos(session)
    reason = _cpu_ranks.reason(nodes)
    if reason:
        kind = _on_cpus(kind, reason, job, quiet=quiet)
    with job.located("resources"):
        plan = _plan.of(job, nodes_of(session, nodes), kind)
    options = replace(
        _options(job, plan, session, detach=detach, quiet=quiet, is_without_gpus=bool(reason)),
        idempotency_key=_checks.check_idempotency_key(idempotency_key),
    )
    known = _submit.submitted_before(session, options)
    if known is not None:
        return known
    job.name = name_of(job, session)
    options = replace(
        options,
        name=job.name,
        run_name=job.display_name or job.name,
        run_experiment=job.experiment_name or "",
        run_tags=dict(job.tags or {}),
        about=about.of_job(job),
    )
    with job.located("code"):
        code = _code_folder.check(job.code, job.base_path)
    start = _rank.JobStart(
        job.name,
        {"": job.command, **job.environment_variables},
        {name: _input(job, name, value, session) for name, value in job.inputs.items()},
        {name: _output(job, name, value) for name, value in job.outputs.items()},
        code=_code_folder.package(code, session) if code else None,
        experiment=job.experiment_name or "",
        tasks=_plan.tasks_of(job, plan),
        trial=trial,
        root=root,
        run=None if plan.kind == _plan.RAY else _own_run(job),
        serving=("ps", "worker") if getattr(job.distribution, "chief_ends_job", False) else ("ps",),
    )
    _say_what_means_nothing(job, unknown, quiet=quiet)
    if plan.kind == _plan.MPI:
        return _start_driver("mpirun", _mpi.MpiStart(start, plan.processes), plan, options, session)
    if plan.kind == _plan.DEEPSPEED:
        return _start_driver(
            "deepspeed",
            _deepspeed.DeepspeedStart(start, plan.processes, plan.gpus),
            plan,
            options,
            session,
        )
    if plan.kind == _plan.RAY:
        assert isinstance(job.distribution, RayDistribution)
        return _start_driver(
            "ray",
            _ray.RayStart(
                start, plan.threads, job.distribution.wishes(), job.distribution.to_dict()["api"]
            ),
            plan,
            options,
            session,
        )
    line = _program.Line(
        COMMAND,
        _rank.SHELL,
        (),
        plan.nodes,
        {"setup": start},
        plan.gpus or 1,
    )
    return _program.start(line, options, session)


def _on_cpus(kind: _instances.Kind, reason: str, job: Command, *, quiet: bool) -> _instances.Kind:
    """Return what a job's names of compute mean on a cluster whose ranks have no GPUs, for
    `reason`; says it where they ask for GPUs."""
    if kind.gpus:
        _vendor_place.tell(
            f"{reason}: {kind.gpus} GPUs of an instance of "
            f"{job.compute or job.resources.instance_type} mean processes without GPUs",
            quiet=quiet,
        )
    return replace(
        kind,
        gpus=0,
        labels={name: value for name, value in kind.labels.items() if name != selectors.GPU_TYPE},
    )


def nodes_of(session: Any, infos: list[dict[str, Any]]) -> Sequence[Mapping[str, float]]:
    """Return what each node that is alive has; `infos`: `workers.node_infos(session)`."""
    nodes = [resources.from_wire(node["resources"]) for node in infos if node["state"] == "alive"]
    if session.embedded is not None:  # an embedded node offers more CPUs than there are
        nodes = [{**each, "CPU": float(len(os.sched_getaffinity(0)))} for each in nodes]
    return nodes


def _options(
    job: Command,
    plan: _plan.Plan,
    session: Any,
    *,
    detach: bool,
    quiet: bool,
    is_without_gpus: bool,
) -> Any:
    """Return the options of the launch."""
    own = {name: value for name, value in job.environment_variables.items() if "${{" not in value}
    if plan.kind != _plan.RAY:  # Ray says it to each of its own
        own.setdefault("OMP_NUM_THREADS", str(plan.threads))
    options = _function.options_of(
        "a command job",
        {
            "gpus" if plan.gpus else "processes": plan.ranks,
            "detach": detach,
            "quiet": quiet,
            "remote": True,
            "cpus_per_rank": plan.processes,
            "timeout": plan.timeout,
            "priority": plan.priority,
            "runtime_env": {"env_vars": own},
            "infeasible": session.infeasible or "refuse",
        },
    )  # run-as, which makes Ray's tasks wait for a node, says nothing of jobs
    if is_without_gpus:
        options = replace(
            options, runtime_env={"env_vars": {**own, **_vendor_place.variables_of_ranks()}}
        )
    options = replace(options, where=dict(plan.where), door=DOOR)
    return (
        replace(options, cpus_per_rank=0) if session.embedded is not None else options
    )  # nobody else uses its own cluster


def _start_driver(
    launcher: str,
    driver: _mpi.MpiStart | _deepspeed.DeepspeedStart | _ray.RayStart,
    plan: _plan.Plan,
    options: Any,
    session: Any,
) -> LaunchHandle:
    """A launch of one rank on each node, of which the first drives the others."""
    options = replace(options, mode="driver", nodes=plan.nodes)
    environment_variables = {
        **options.runtime_env["env_vars"],
        status_lines.QUIET: "1",
    }  # the marker's line is no output of the job
    inherit = ("PATH",) if session.same_host else ()
    travels = environment.build(
        {"env_vars": environment_variables}, inherit, session=session, arguments=[launcher]
    )
    spec = _submit.spec_of(options, launcher, travels)
    amounts = {"CPU": options.cpus_per_rank, "GPU": plan.gpus, "memory": 0}
    spec["per_rank"] = resources.to_wire(
        {name: amount for name, amount in amounts.items() if amount}
    )
    return _submit.send(session, spec, pickle.dumps((driver, (), {}), protocol=5), options)


def _own_run(job: Command) -> dict[str, Any] | None:
    """Return what the job's run is to be in a store of its own."""
    return job_store.wish_of(
        job.display_name or str(job.name),
        job.experiment_name or "",
        {**dict(job.tags or {}), "troupe.job": str(job.name)},
        {**variables.now(), **job.environment_variables},
        told=_OWN_RUN,
    )


def name_of(job: Command, session: Any) -> str:
    """The job's own, which no other has, or a new one.

    What other jobs that are over have left at the head is taken away.
    """
    told = _ports.told_by_all(session)
    launches = list(view.iter_launches(session))
    _ports.forget(
        session, told, {each["launch"] for each in launches if each["state"] != "terminal"}
    )
    if job.name is None:
        short = (
            re.sub(r"[^A-Za-z0-9_-]+", "-", job.display_name or job.experiment_name or "job").strip(
                "-"
            )
            or "job"
        )
        return f"{short[:40]}-{_identity.new_id()[:8]}"
    if any(each["name"] == job.name for each in launches):
        raise ValueError(
            f"there is a job with the name {job.name!r} already: give another name, or none for a "
            "new one"
        )
    return job.name


def _input(job: Command, name: str, value: Any, session: Any) -> dict[str, Any]:
    """Return how a rank finds an input. Raises FileNotFoundError, ValueError, TooLargeError."""
    with job.located("inputs", name, "path"):
        return _found_input(name, value, job.base_path, session)


def check_input(job: Command, name: str, value: Any) -> None:
    """Check an input of a job that begins later: what it names has to be there now.

    Raises FileNotFoundError, ValueError.
    """
    with job.located("inputs", name, "path"):
        _found_input(name, value, job.base_path, None)


def check_output(job: Command, name: str, value: Any) -> None:
    """Check an output of a job that begins later. Raises ValueError."""
    _output(job, name, value)


def _found_input(name: str, value: Any, base: str, session: Any) -> dict[str, Any]:
    """Return what a rank is told of an input; without a session it is looked at, and nothing is
    sent."""
    if not isinstance(value, _entities.Input) or value.is_literal:
        value = value.default if isinstance(value, _entities.Input) else value
        return {"how": _rank.TEXT, "value": None if value is None else str(value)}
    if value.path is None:
        return {"how": _rank.TEXT, "value": None}
    if value.mode == "direct":
        return {"how": _rank.TEXT, "value": value.path}
    is_file = value.type == "uri_file"
    where = _where(f"inputs: {name}", value.path, base)
    if where["how"] == _rank.ADDRESS:
        if not is_file:
            raise ValueError(
                f"inputs: {name}: {value.path} is of type {value.type}; of an address only a file "
                f"is fetched, type='uri_file'\n  {_REMEDY}"
            )
        name_there = os.path.basename(unquote(urlsplit(value.path).path))
        return {**where, "file": "file" if name_there in ("", ".", "..") else name_there}
    if where["how"] == _rank.NODE:
        return {
            **where,
            "file": os.path.basename(where["value"]) if is_file else "",
            "mode": value.mode or "",
        }
    return _local(name, where, is_file, value, session)


def _local(
    name: str, where: dict[str, Any], is_file: bool, value: Any, session: Any
) -> dict[str, Any]:
    path = where["value"]
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"inputs: {name}: there is no {value.path}"
            + ("" if os.path.isabs(value.path) else f": {path}")
        )
    if os.path.isdir(path) and is_file:
        raise IsADirectoryError(
            f"inputs: {name}: {value.path} is a folder, and its type is uri_file: type='uri_folder'"
        )
    if not os.path.isdir(path) and value.type == "uri_folder":
        raise NotADirectoryError(
            f"inputs: {name}: {value.path} is a file, and its type is uri_folder: type='uri_file'"
        )
    is_file = not os.path.isdir(path)  # a model may be either
    found = {**where, "file": os.path.basename(path) if is_file else "", "mode": value.mode or ""}
    if session is None:
        return found
    if not is_file:
        try:
            return {**runtime_env.directory(path, session), **found}
        except exceptions.TooLargeError as error:
            raise exceptions.TooLargeError(
                f"inputs: {name}: {str(error).splitlines()[0]}\n  {_REMEDY}"
            ) from None
    if not session.same_host:
        found["package"] = _code_folder.file(path, f"inputs: {name}", session, _REMEDY)
    return found


def _output(job: Command, name: str, value: Any) -> dict[str, Any]:
    """Return how a rank makes an output. Raises ValueError."""
    with job.located("outputs", name, "path"):
        where = (
            {"how": _rank.JOBS_OWN}
            if value.path is None
            else _where(f"outputs: {name}", value.path, job.base_path, is_output=True)
        )
        if where["how"] == _rank.ADDRESS:
            raise ValueError(
                f"outputs: {name}: {value.path} is an address; a job's outputs are written to a "
                "path: of this machine, or file:///PATH on the nodes"
            )
    return {**where, "is_file": value.type == "uri_file"}


def _where(what: str, path: str, base: str, *, is_output: bool = False) -> dict[str, Any]:
    """A path of this machine, one on the nodes, or an address."""
    scheme, separator, _ = path.partition(":")
    if path.startswith("file://"):
        return {"how": _rank.NODE, "value": os.path.abspath(unquote(urlsplit(path).path))}
    if scheme in ("http", "https") and separator:
        return {"how": _rank.ADDRESS, "value": path}
    if separator and (path.startswith(f"{scheme}://") or scheme == "azureml"):
        remedy = (
            "a path of this machine, or file:///PATH on the nodes"
            if is_output
            else (
                "a path of this machine, file:///PATH on the nodes, or an https:// address of a "
                "file; mode='direct' hands it to the program"
            )
        )
        raise ValueError(
            f"{what}: {path} is in a storage or workspace that is not known here\n  give {remedy}"
        )
    return {
        "how": _rank.LOCAL,
        "value": os.path.abspath(os.path.join(base, os.path.expanduser(path))),
        "host": _identity.boot_id(),
    }


def _say_what_means_nothing(job: Command, unknown: list[str], *, quiet: bool) -> None:
    said = without_meaning(job, unknown)
    if said:
        status_lines.say(
            f"troupe: job {job.name}: without a meaning here: {'; '.join(said)}", quiet=quiet
        )


def without_meaning(job: Command, unknown: list[str]) -> list[str]:
    """Return what a job has that does nothing here, in words; `unknown`: names of compute that no
    file says anything of."""
    said = list(unknown)
    if job.environment:
        name = (
            job.environment.get("name") or job.environment.get("image")
            if isinstance(job.environment, Mapping)
            else job.environment
        )
        said.append(
            f"environment {str(name or 'without a name')!r} (what is installed on the nodes is "
            "what runs)"
        )
    said += [words for field, words in _SAID_ONLY.items() if getattr(job, field)]
    said += ["services"] if any(name != STUDIO for name in job.services or {}) else []
    said += [
        field for field in ("docker_args", "shm_size", "locations") if getattr(job.resources, field)
    ]
    said += (
        ["the address of its distribution (the head is on the first node)"]
        if getattr(job.distribution, "address", None)
        else []
    )
    return [*said, *(["job_tier"] if job.queue_settings.job_tier else [])]
