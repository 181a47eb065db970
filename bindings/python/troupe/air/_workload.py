"""A workload file, read and checked: what `troupe air run -f` starts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from troupe._code import yaml_files
from troupe.air import _accelerators, _fields

MAX_RETRIES = 3


@dataclass(frozen=True)
class Code:
    """The source of a workload's code: a folder, a part of it, or git's version of it.

    `branch`, `commit`, `remote`: "" is none.
    """

    root: str
    include: tuple[str, ...] = ()
    branch: str = ""
    commit: str = ""
    remote: str = ""


@dataclass(frozen=True)
class Workload:
    """A workload: what runs, on how many nodes.

    `secrets`: of each variable the reference of its value. `timeout_s`: None is no limit. `unused`:
    fields without an effect.
    """

    experiment: str
    run_name: str
    command: str
    kind: _accelerators.AcceleratorType
    accelerators: int
    nodes: int
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    requirements: tuple[str, ...] = ()
    code: Code | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    max_retries: int = MAX_RETRIES
    timeout_s: float | None = None
    idempotency_key: str = ""
    pool: str = ""
    priority: int = 0
    unused: tuple[str, ...] = ()

    def shown(self) -> dict[str, Any]:
        """Return the workload as JSON shows it. Values of secrets are not part of it."""
        return {
            "experiment_name": self.experiment,
            "run_name": self.run_name,
            "command": self.command,
            "compute": {
                "accelerator_type": str(self.kind),
                "num_accelerators": self.accelerators,
                "nodes": self.nodes,
            },
            "env_variables": dict(self.variables),
            "secret_env_variables": dict(self.secrets),
            "dependencies": list(self.requirements),
            "code_source": None if self.code is None else self.code.root,
            "hyperparameters": dict(self.hyperparameters),
            "max_retries": self.max_retries,
            "timeout_minutes": None if self.timeout_s is None else self.timeout_s / 60,
        }


def load(
    path: str, overrides: Sequence[tuple[str, str]] = (), *, idempotency_key: str = ""
) -> Workload:
    """Return the workload of a YAML file.

    Args:
        path: The file. Relative paths in it start at its folder.
        overrides: (field path, value) pairs that replace the file's; a value is written as in YAML.
        idempotency_key: Wins over the file's `idempotency_token`.

    Raises:
        FileNotFoundError: if the file, its requirements or its code are not there.
        ValueError: if the file is no YAML, or anything in it is wrong; all errors at once, each
            with file, line and column.
        MissingPackageError: if PyYAML is not installed.
    """
    document = yaml_files.read_document(path)
    faults = yaml_files.Faults(document)
    if isinstance(document.value, dict):
        for name, value in overrides:
            try:
                _fields.find(name)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
            document.set(name.removeprefix("config."), yaml_files.value_of(value))
    found = _fields.checked(document.value, faults)
    faults.raise_any()
    return _of_fields(found, os.path.dirname(os.path.abspath(path)), idempotency_key, faults)


def _of_fields(
    found: Mapping[str, Any], base: str, idempotency_key: str, faults: yaml_files.Faults
) -> Workload:
    """Return the workload of fields that are right by themselves.

    Raises as `load` for those that are not together.
    """
    compute, environment = found["compute"], found.get("environment", {})
    kind = compute["accelerator_type"]
    nodes, variables, secrets, code = 0, {}, {}, None
    requirements: tuple[str, ...] = ()
    with faults.at("environment"):
        _refuse_together(
            "environment",
            environment,
            ("docker_image", "unity_catalog_image"),
            ("version", "dependencies"),
        )
    with faults.at("compute", "priority_class"):
        if "priority_class" in compute and "pool_id" not in compute:
            raise ValueError("compute.priority_class needs compute.pool_id")
    with faults.at("compute", "num_accelerators"):
        nodes = _accelerators.count_nodes(
            "compute.num_accelerators", compute["num_accelerators"], kind
        )
    with faults.at("env_variables"):
        variables = _merged("env_variables", found, environment)
    with faults.at("secret_env_variables"):
        secrets = _merged("secret_env_variables", found, environment)
        both = sorted({*variables} & {*secrets})
        if both:
            raise ValueError(
                f"{both[0]} is in env_variables and in secret_env_variables; give it once"
            )
    with faults.at("parameters"):
        if "hyperparameters" in found and "parameters" in found:
            raise ValueError("hyperparameters and parameters are the same field; give one of them")
    with faults.at("environment", "dependencies"):
        requirements = _requirements(environment.get("dependencies", ()), base)
    with faults.at("code_source"):
        code = _code(found.get("code_source"), base)
    faults.raise_any()
    timeout = found.get("timeout_minutes")
    return Workload(
        experiment=found["experiment_name"],
        run_name=found.get("run_name", found["experiment_name"]),
        command=found["command"],
        kind=kind,
        accelerators=compute["num_accelerators"],
        nodes=nodes,
        variables=variables,
        secrets=secrets,
        requirements=requirements,
        code=code,
        hyperparameters=found.get("hyperparameters", found.get("parameters", {})),
        max_retries=found.get("max_retries", MAX_RETRIES),
        timeout_s=None if timeout is None else timeout * 60.0,
        idempotency_key=idempotency_key or found.get("idempotency_token", ""),
        pool=compute.get("pool_id", ""),
        priority=compute.get("priority_class", 0),
        unused=tuple(_fields.unused(found)),
    )


def _merged(name: str, found: Mapping[str, Any], environment: Mapping[str, Any]) -> dict[str, str]:
    outside, inside = found.get(name, {}), environment.get(name, {})
    different = sorted(each for each in outside if each in inside and inside[each] != outside[each])
    if different:
        raise ValueError(
            f"{name}.{different[0]} and environment.{name}.{different[0]} have different values; "
            "give one of them"
        )
    return {**outside, **inside}


def _refuse_together(
    where: str, found: Mapping[str, Any], ones: Sequence[str], others: Sequence[str]
) -> None:
    for one in ones:
        for other in others:
            if one in found and other in found:
                raise ValueError(
                    f"{where}.{one} and {where}.{other} exclude each other: an image brings its "
                    "own packages"
                )


def _requirements(given: str | tuple[str, ...], base: str) -> tuple[str, ...]:
    """Return requirements as pip takes them.

    A file is a list in YAML, a YAML mapping with `dependencies`, or one of pip's.
    """
    if not isinstance(given, str):
        return given
    path = Path(base, os.path.expanduser(given))
    if not path.is_file():
        raise FileNotFoundError(f"environment.dependencies: there is no file {path}")
    if path.suffix not in (".yaml", ".yml"):
        return (f"-r {path}",)
    listed = yaml_files.read(str(path))
    if isinstance(listed, Mapping):
        listed = listed.get("dependencies", [])
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise ValueError(
            f"environment.dependencies: {path} must be a list of requirements, or a mapping with "
            "the list `dependencies`"
        )
    return tuple(listed)


def _code(given: Mapping[str, Any] | None, base: str) -> Code | None:
    if given is None:
        return None
    nested = given.get("snapshot", {})
    twice = sorted({*nested} & {*given})
    if twice:
        raise ValueError(
            f"code_source.{twice[0]} and code_source.snapshot.{twice[0]} are the same field; give "
            "one of them"
        )
    fields = {**given, **nested}
    if "root_path" not in fields:
        raise ValueError("code_source needs root_path")
    git = fields.get("git", {})
    if "branch" in git and "commit" in git:
        raise ValueError("code_source.git: branch and commit exclude each other")
    if "git" in fields and not {"branch", "commit"} & {*git}:
        raise ValueError("code_source.git needs branch or commit")
    if git.get("remote") and "branch" not in git:
        raise ValueError("code_source.git.remote needs code_source.git.branch")
    root = os.path.abspath(os.path.join(base, os.path.expanduser(fields["root_path"])))
    if not os.path.isdir(root):
        raise FileNotFoundError(f"code_source.root_path: there is no folder {root}")
    for each in fields.get("include_paths", ()) if not git else ():
        if not os.path.exists(os.path.join(root, each)):
            raise FileNotFoundError(f"code_source.include_paths: there is no {each} in {root}")
    return Code(
        root,
        fields.get("include_paths", ()),
        git.get("branch", ""),
        git.get("commit", ""),
        git.get("remote", ""),
    )
