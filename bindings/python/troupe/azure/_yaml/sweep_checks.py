"""Checks of the fields of a sweep in a file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe._code import field_checks
from troupe._code.yaml_files import Recorder
from troupe.azure import _entities, _schema, _sweep_job, _sweep_spaces
from troupe.azure._yaml import checks
from troupe.azure._yaml.located import add_located, check_known

_OBJECTIVE = ("goal", "primary_metric")


def sweep_job(
    faults: Recorder, fields: Mapping[str, Any], *, needs_environment: bool = True
) -> None:
    """Check a sweep of command jobs."""
    check_known(faults, (), fields, "a sweep job", (*_schema.SWEEP, *_schema.OF_A_FILE))
    for name in ("trial", "search_space", "objective"):
        if not fields.get(name):
            faults.add(ValueError(f"a sweep job needs {name}"))
    checks.check_shared(faults, (), fields)
    trial, inputs = fields.get("trial"), fields.get("inputs")
    space = fields.get("search_space")
    if space and checks.is_mapping(faults, ("search_space",), space):
        for name, each in space.items():
            with faults.at("search_space", name):
                checks.check_name("search_space", name)
            _search_space(faults, name, each)
    _sections(faults, fields, space)
    if isinstance(trial, Mapping):
        check_known(faults, ("trial",), trial, "trial", (*_schema.COMMAND, *_schema.OF_A_FILE))
        if trial.get("command") is None:
            faults.add(ValueError("trial needs command: the line that a shell runs"), "trial")
        if needs_environment:
            checks.need_environment(faults, ("trial",), "trial", trial)
        both = {
            **(inputs if isinstance(inputs, Mapping) else {}),
            **(trial["inputs"] if isinstance(trial.get("inputs"), Mapping) else {}),
        }
        checks.check_run(
            faults,
            ("trial",),
            trial,
            both if both or isinstance(inputs, Mapping) else inputs,
            ("inputs",),
            trial.get("outputs") or fields.get("outputs"),
            space if isinstance(space, Mapping) else {},
            resources=fields.get("resources"),
        )
    elif trial:
        with faults.at("trial"):
            field_checks.mapping("trial", trial)


def parts_of_sweep(fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the trial of a checked sweep, and all inputs."""
    trial = dict(fields["trial"])
    return trial, {**(fields.get("inputs") or {}), **(trial.get("inputs") or {})}


def _search_space(faults: Recorder, name: str, given: Any) -> None:
    kind = (
        _sweep_spaces.KINDS.get(str(given.get("type")).lower())
        if isinstance(given, Mapping)
        else None
    )
    add_located(
        faults,
        ("search_space", name),
        given,
        lambda value: _sweep_spaces.of(name, value),
        f"search_space: {name}",
        kinds=_sweep_spaces.KINDS,
        names=None if kind is None else ("type", *kind.fields),
        needs=kind.fields if kind else (),
    )


def _sections(faults: Recorder, fields: Mapping[str, Any], space: Any) -> None:
    """Check the sections of a sweep."""
    for name, cls, names, needs in (
        ("objective", _sweep_job.Objective, _OBJECTIVE, _OBJECTIVE),
        ("limits", _sweep_job.SweepJobLimits, _sweep_job.LIMITS, ()),
        ("queue_settings", _entities.QueueSettings, _schema.QUEUE, ()),
    ):
        if fields.get(name):
            checks.check_section(faults, (name,), fields[name], cls, names, needs)
    for name, make, kinds in (
        ("sampling_algorithm", _sweep_job.algorithm_of, _sweep_job.ALGORITHMS),
        ("early_termination", _sweep_job.policy_of, _sweep_job.POLICIES),
    ):
        if fields.get(name):
            add_located(faults, (name,), fields[name], make, name, kinds=kinds)
    algorithm = fields.get("sampling_algorithm")
    if algorithm and isinstance(space, Mapping) and not len(faults):
        for name, each in space.items():
            with faults.at("search_space", name):
                _sweep_job.check_sampled(
                    _sweep_job.algorithm_of(algorithm), name, _sweep_spaces.of(name, each)
                )
