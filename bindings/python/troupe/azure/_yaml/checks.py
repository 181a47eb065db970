"""Checks of the fields of a job file.

Each records what is wrong with its place in the file, and goes on, so that all errors are said at
once. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from troupe._code import field_checks
from troupe._code.yaml_files import Recorder
from troupe.azure import _distributions, _entities, _expressions, _schema
from troupe.azure._jobs import services
from troupe.azure._yaml.located import add_located, check_known

_KINDS = ("command", "sweep", "pipeline")
_OTHER_KINDS = {
    "spark": "troupe.spark has Spark's entry points for training, and `troupe run` starts a script",
    "automl": "a sweep of a command job (type: sweep) tries values of its inputs",
}
_ENVIRONMENT = (
    "name",
    "version",
    "description",
    "image",
    "build",
    "conda_file",
    "tags",
    "properties",
    "datastore",
    "inference_config",
    "os_type",
    "$schema",
    "path",
)
_Place = tuple[str, ...]
_Faults = Recorder


def kind_of_job(kind: Any) -> str:
    """Return "command", "sweep" or "pipeline".

    Raises ValueError for any other type, with the nearest or what to use instead.
    """
    if isinstance(kind, str) and kind.lower() in _OTHER_KINDS:
        raise ValueError(
            f"type is {kind!r}, and command jobs, sweeps and pipelines of them are run here: "
            f"{_OTHER_KINDS[kind.lower()]}"
        )
    return _schema.one_of("type", kind, _KINDS)


def fields_of_job(value: Any) -> dict[str, Any]:
    """Return the fields of a file; an empty one has none.

    Raises TypeError for anything but a mapping.
    """
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"a job must be a mapping with names as keys, not {value!r}")
    return {} if value is None else dict(value)


def command_job(
    faults: _Faults,
    fields: Mapping[str, Any],
    *,
    what: str = "a command job",
    needs_environment: bool = True,
) -> None:
    """Check a command job."""
    check_known(faults, (), fields, what, (*_schema.COMMAND, *_schema.OF_A_FILE))
    if fields.get("command") is None:
        faults.add(ValueError(f"{what} needs command: the line that a shell runs"))
    if needs_environment:
        need_environment(faults, (), what, fields)
    check_shared(faults, (), fields)
    check_run(faults, (), fields, fields.get("inputs"), ("inputs",), fields.get("outputs"), {})


def is_mapping(faults: _Faults, place: _Place, value: Any) -> bool:
    """Return True if the value is a mapping; else record the error."""
    with faults.at(*place):
        field_checks.mapping(": ".join(place[-1:]), {} if value is None else value)
        return value is not None
    return False


def mapping_of(faults: _Faults, name: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a field that is a mapping; of one that is none, which is recorded, an empty one."""
    value = fields.get(name)
    return value if is_mapping(faults, (name,), value) and value is not None else {}


def check_shared(faults: _Faults, place: _Place, fields: Mapping[str, Any]) -> None:
    """Check the fields that jobs of all types have."""
    for name in ("display_name", "description", "experiment_name", "compute", "parent_job_name"):
        if fields.get(name) is not None:
            with faults.at(*place, name):
                field_checks.text(name, fields[name])
    if fields.get("name") is not None:
        with faults.at(*place, "name"):
            _schema.name("name", fields["name"])
    for name in ("tags", "properties"):
        if fields.get(name) is not None and is_mapping(faults, (*place, name), fields[name]):
            for each, value in fields[name].items():
                with faults.at(*place, name, each):
                    _text_value(f"{name}: {each}", value)


def _text_value(what: str, value: Any) -> None:
    if isinstance(value, bool | int | float):
        raise TypeError(
            f"{what} must be a string, not {value!r}; quote it: "
            f"'{str(value).lower() if isinstance(value, bool) else value}'"
        )
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {value!r}")


def check_run(
    faults: _Faults,
    place: _Place,
    fields: Mapping[str, Any],
    inputs: Any,
    at_inputs: _Place,
    outputs: Any,
    space: Mapping[str, Any],
    *,
    resources: Any = None,
) -> None:
    """Check what is run: a command job, or the trial of a sweep, whose inputs and outputs may stand
    outside of it."""
    if place:
        check_shared(faults, place, fields)
    for name, cls, names in (
        ("resources", _entities.JobResourceConfiguration, _schema.RESOURCES),
        ("limits", _entities.CommandJobLimits, _schema.LIMITS),
        ("queue_settings", _entities.QueueSettings, _schema.QUEUE),
    ):
        if fields.get(name) is not None:
            check_section(faults, (*place, name), fields[name], cls, names)
    if place and resources is not None:
        check_section(
            faults, ("resources",), resources, _entities.JobResourceConfiguration, _schema.RESOURCES
        )
    if fields.get("distribution") is not None:
        add_located(
            faults,
            (*place, "distribution"),
            fields["distribution"],
            _distributions.of,
            "distribution",
            kinds=_distributions.TYPES,
        )
    _environment(faults, (*place, "environment"), fields.get("environment"))
    if fields.get("identity") is not None:
        _identity(faults, (*place, "identity"), fields["identity"])
    with faults.at(*place, "is_deterministic"):
        if not isinstance(fields.get("is_deterministic"), bool | None):
            raise TypeError(
                f"is_deterministic must be true or false, not {fields['is_deterministic']!r}"
            )
    with faults.at(*place, "code"):
        if fields.get("code") is not None and not isinstance(fields["code"], str):
            raise TypeError(f"code must be a path of a folder or a file, not {fields['code']!r}")
    if fields.get("services") is not None:
        if is_mapping(faults, (*place, "services"), fields["services"]):
            for name, each in fields["services"].items():
                _service(faults, (*place, "services", name), each)
    own = fields.get("inputs") if place else None
    own = own if isinstance(own, Mapping) else {}
    wrong = check_inputs(faults, (*place, "inputs"), own)
    if inputs is not None and is_mapping(faults, at_inputs, inputs):
        wrong |= check_inputs(
            faults, at_inputs, {name: each for name, each in inputs.items() if name not in own}
        )
    at_outputs = (*place, "outputs") if fields.get("outputs") is not None else ("outputs",)
    if outputs is not None and is_mapping(faults, at_outputs, outputs):
        for name, each in outputs.items():
            check_part(faults, (*at_outputs, name), each, _entities.output_of, _entities.OUTPUT)
    inputs = inputs if isinstance(inputs, Mapping) else {}
    needed = _texts(
        faults, place, fields, inputs, outputs if isinstance(outputs, Mapping) else {}, space
    )
    for name, each in inputs.items():
        if (
            each is None
            and name not in space
            and name not in wrong
            and _expressions.Place("inputs", name) in needed
        ):
            error = ValueError(
                f"inputs: {name} has no value; one that may have none stands in $[[...]] in the "
                "command"
            )
            faults.add(error, *((*place, "inputs") if name in own else at_inputs), name)


def check_inputs(faults: _Faults, place: _Place, inputs: Mapping[str, Any]) -> set[str]:
    """Check inputs, and return the names of those that are wrong."""
    wrong = set()
    for name, each in inputs.items():
        count = len(faults)
        check_part(faults, (*place, name), each, _entities.input_of, _entities.INPUT)
        if len(faults) > count:
            wrong.add(name)
    return wrong


def check_name(what: str, name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{what}: a key must be a string, not {name!r}")
    _entities.check_name(what, name)


def check_part(
    faults: _Faults,
    place: _Place,
    given: Any,
    make: Callable[[str, Any], Any],
    names: tuple[str, ...],
) -> None:
    """Check an input or output."""
    name, count = place[-1], len(faults)
    with faults.at(*place, key=True):
        check_name(place[-2], name)
    if len(faults) == count:
        kinds = (*_schema.ASSET_TYPES, *(_schema.LITERAL_TYPES if "default" in names else ()))
        add_located(
            faults,
            place,
            given,
            lambda value: make(name, value),
            f"{place[-2]}: {name}",
            names=names,
            kinds=kinds,
        )


def check_section(
    faults: _Faults,
    place: _Place,
    given: Any,
    cls: type,
    names: tuple[str, ...],
    needs: tuple[str, ...] = (),
) -> None:
    add_located(
        faults,
        place,
        given,
        lambda value: _entities.part(cls, place[-1], value, names),
        place[-1],
        names=names,
        needs=needs,
    )


def need_environment(faults: _Faults, place: _Place, what: str, fields: Mapping[str, Any]) -> None:
    if fields.get("environment") is None:
        error = ValueError(
            f"{what} needs environment, as azureml:NAME@latest, or {{image: NAME}}: the service "
            "refuses a job without one; here it means nothing"
        )
        faults.add(error, *place, *(("environment",) if "environment" in fields else ()))


def _environment(faults: _Faults, place: _Place, given: Any) -> None:
    if isinstance(given, Mapping):
        check_known(faults, place, given, "environment", _ENVIRONMENT)
    elif given is not None:
        with faults.at(*place):
            if not isinstance(given, str):
                raise TypeError(
                    "environment must be a name or a mapping with image, conda_file or build, not "
                    f"{given!r}"
                )


def _identity(faults: _Faults, place: _Place, given: Any) -> None:
    add_located(
        faults,
        place,
        given,
        services.check_identity,
        "identity",
        names=services.IDENTITY,
        kinds=services.IDENTITY_TYPES,
        needs=("type",),
    )


def _service(faults: _Faults, place: _Place, given: Any) -> None:
    add_located(
        faults,
        place,
        given,
        lambda value: services.check_service(f"services: {place[-1]}", value),
        f"services: {place[-1]}",
        names=services.SERVICE,
        kinds=services.SERVICE_TYPES,
    )


def _texts(
    faults: _Faults,
    place: _Place,
    fields: Mapping[str, Any],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    space: Mapping[str, Any],
) -> set[_expressions.Place]:
    """Check the command and the variables, and return the inputs and outputs that they need."""
    texts: dict[_Place, tuple[str, str]] = {}
    what = ": ".join((*place, "command"))
    with faults.at(*place, "command"):
        if fields.get("command") is not None:
            texts[*place, "command"] = (what, field_checks.text(what, fields["command"]))
    variables = fields.get("environment_variables")
    if variables is not None and is_mapping(faults, (*place, "environment_variables"), variables):
        for name, each in variables.items():
            with faults.at(*place, "environment_variables", name, key=True):
                if not name or "=" in name or "\0" in name:
                    raise ValueError(
                        f"environment_variables: {name!r} is no name of an environment variable"
                    )
            with faults.at(*place, "environment_variables", name):
                if each is not None and not isinstance(each, str | int | float):
                    raise TypeError(
                        f"environment_variables: {name} must be a string, a number, True or False, "
                        f"not {each!r}"
                    )
                if isinstance(each, str):
                    texts[*place, "environment_variables", name] = (
                        f"environment_variables: {name}",
                        each,
                    )
    needed: set[_expressions.Place] = set()
    for at, (what, text) in texts.items():
        with faults.at(*at):
            needed |= _expressions.named(
                _expressions.read(text, what, {*inputs, *space}, outputs, space if place else None),
                required=True,
            )
    return needed
