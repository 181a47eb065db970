"""Inputs, outputs and the other parts of a job, as people write them: typed objects, or dicts with
the same names. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from troupe._code import field_checks
from troupe.azure import _schema

INPUT = (
    "type",
    "path",
    "mode",
    "default",
    "optional",
    "min",
    "max",
    "enum",
    "description",
    "value",
    "datastore",
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
OUTPUT = ("type", "path", "mode", "description", "name", "version")


class Named(dict[str, Any]):
    """Inputs or outputs by name, as items and as attributes: `job.inputs.epochs`."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"there is no {name!r}{field_checks.or_nearest(name, self)}")

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Part:
    """A set of named fields, given as keywords. Two with equal fields are equal."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set."""
        return {name: value for name, value in vars(self).items() if value is not None}


class Input(Part):
    """An input of a job: a file or folder by its path, or a literal with a type and a default.

    `path`: on this machine (relative to the file that the job is written in, else to the current
    directory), `file:///...` on the nodes, or an `https://` address of a file. `mode="direct"`
    hands the path itself to the command. Raises TypeError or ValueError for what is none.

        Input(type="uri_folder", path="./data")
    """

    def __init__(
        self,
        *,
        type: str = "uri_folder",
        path: Any = None,
        mode: str | None = None,
        default: Any = None,
        optional: bool | None = None,
        min: float | None = None,
        max: float | None = None,
        enum: Any = None,
        description: str | None = None,
        datastore: str | None = None,
    ) -> None:
        self.type = _schema.one_of(
            "an input's type", type, (*_schema.ASSET_TYPES, *_schema.LITERAL_TYPES)
        )
        self.path = _path("an input's path", path)
        self.mode = None if mode is None else _schema.mode("an input's mode", mode, self.type)
        self.default, self.optional, self.min, self.max = default, optional, min, max
        self.enum, self.description, self.datastore = enum, description, datastore
        if self.is_literal and path is not None:
            raise ValueError(f"an input of type {self.type} has a default, no path: {path!r}")
        if not self.is_literal and default is not None:
            raise ValueError(f"an input of type {self.type} has a path, no default: {default!r}")
        if self.is_literal and default is not None:
            self.default = literal("an input's default", default, self)

    @property
    def is_literal(self) -> bool:
        """True if the value is a text or number, not a file or folder."""
        return self.type in _schema.LITERAL_TYPES


class Output(Part):
    """An output of a job: a folder, or a file, that the command writes at `${{outputs.NAME}}`.

    `path`: where it is to be in the end, on this machine, or on the nodes as `file:///...`; without
    it, it stays with the job until `jobs.download`. Raises TypeError or ValueError for what is
    none.

        Output(type="uri_folder", path="./model")
    """

    def __init__(
        self,
        *,
        type: str = "uri_folder",
        path: Any = None,
        mode: str | None = None,
        description: str | None = None,
        name: str | None = None,
        version: str | None = None,
    ) -> None:
        self.type = _schema.one_of("an output's type", type, _schema.ASSET_TYPES)
        self.path = _path("an output's path", path)
        self.mode = (
            None
            if mode is None
            else _schema.mode("an output's mode", mode, self.type, is_output=True)
        )
        for each, value in (("description", description), ("name", name)):
            if value is not None:
                field_checks.text(f"an output's {each}", value)
        self.description, self.name, self.version = description, name, version


class Data(Part):
    """A data asset: a path with a name, given as an input. Assets are registered nowhere here.

    Data(name="titanic", type="uri_file", path="./titanic.csv")
    """

    def __init__(
        self,
        *,
        path: Any,
        type: str = "uri_folder",
        name: str | None = None,
        version: str | None = None,
        description: str | None = None,
        tags: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.type = _schema.one_of("a data asset's type", type, _schema.ASSET_TYPES)
        self.path = _path("a data asset's path", path)
        self.name, self.version, self.description = name, version, description
        self.tags, self.properties = (
            _schema.mapping("tags", tags),
            _schema.mapping("properties", properties),
        )


class Model(Part):
    """A model: a path with a name, given as an input. Models are registered nowhere here.

    Model(name="digits", type="custom_model", path="./model")
    """

    def __init__(
        self,
        *,
        path: Any = None,
        type: str = "custom_model",
        name: str | None = None,
        version: str | None = None,
        description: str | None = None,
        tags: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        flavors: Any = None,
        stage: str | None = None,
    ) -> None:
        self.type = _schema.one_of("a model's type", type, _schema.ASSET_TYPES)
        self.path = _path("a model's path", path)
        self.name, self.version, self.description, self.flavors, self.stage = (
            name,
            version,
            description,
            flavors,
            stage,
        )
        self.tags, self.properties = (
            _schema.mapping("tags", tags),
            _schema.mapping("properties", properties),
        )


class JobResourceConfiguration(Part):
    """How many instances a job has, and of which type; `ResourceConfiguration` is another name of
    it.

    JobResourceConfiguration(instance_count=2, instance_type="Standard_ND96isr_H100_v5")
    """

    def __init__(
        self,
        *,
        instance_count: int | None = None,
        instance_type: str | None = None,
        locations: Any = None,
        properties: Mapping[str, Any] | None = None,
        docker_args: Any = None,
        shm_size: str | None = None,
        max_instance_count: int | None = None,
    ) -> None:
        self.instance_count = (
            None if instance_count is None else _schema.whole("instance_count", instance_count)
        )
        self.instance_type = (
            None if instance_type is None else field_checks.text("instance_type", instance_type)
        )
        self.locations = None if locations is None else _texts("locations", locations)
        self.docker_args = (
            docker_args
            if docker_args is None or isinstance(docker_args, str)
            else _texts("docker_args", docker_args)
        )
        self.shm_size = None if shm_size is None else _schema.size("shm_size", shm_size)
        self.max_instance_count = (
            None
            if max_instance_count is None
            else _schema.whole("max_instance_count", max_instance_count)
        )
        self.properties = _schema.mapping("properties", properties) or None


class CommandJobLimits(Part):
    """`timeout`: seconds that a job has, from when it is submitted."""

    def __init__(self, *, timeout: float | None = None) -> None:
        self.timeout = _schema.seconds("timeout", timeout)


class QueueSettings(Part):
    """`priority`: low, medium or high in the cluster's queue.

    `job_tier` is taken, and does nothing.
    """

    def __init__(self, *, job_tier: str | None = None, priority: str | None = None) -> None:
        self.job_tier = (
            None if job_tier is None else _schema.one_of("job_tier", job_tier, _schema.TIERS)
        )
        self.priority = (
            None if priority is None else _schema.one_of("priority", priority, _schema.PRIORITIES)
        )


def part(cls: type, what: str, given: Any, names: tuple[str, ...]) -> Any:
    """Return an object of the class, given as one or as a mapping of its keywords.

    Raises TypeError or ValueError.
    """
    if isinstance(given, cls):
        return given
    fields = _schema.mapping(what, given, names)
    try:
        return cls(**fields)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what}: {error}") from None


def input_of(name: str, given: Any) -> Any:
    """Return an input in the job's form: an Input, or a literal.

    Raises TypeError or ValueError, naming it.
    """
    check_name("inputs", name)
    try:
        if isinstance(given, Data | Model):
            return Input(type=given.type, path=given.path)
        if isinstance(given, Mapping):
            fields = _schema.mapping("it", given, INPUT)
            if set(fields) == {"value"}:
                return _literal(fields["value"])
            fields.pop("value", None)
            return Input(**fields)
        return given if isinstance(given, Input) else _literal(given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"inputs: {name}: {error}") from None


def bound_input(declared: Any, text: str) -> Any:
    """Return a declared input whose value a pipeline gives: `text` says by which binding."""
    if not isinstance(declared, Input) or declared.is_literal:
        return text
    return Input(type=declared.type, path=text, mode=declared.mode, optional=declared.optional)


def output_of(name: str, given: Any) -> Output:
    """Return an output in the job's form; None, or an empty dict, means a folder that stays with
    the job.

    Raises TypeError or ValueError.
    """
    check_name("outputs", name)
    if isinstance(given, str | os.PathLike):
        raise TypeError(
            f"outputs: {name}: it must be a mapping, such as {{type: uri_folder, path: "
            f"{os.fspath(given)}}}, not {given!r}"
        )
    try:
        return (
            given if isinstance(given, Output) else Output(**_schema.mapping("it", given, OUTPUT))
        )
    except (TypeError, ValueError) as error:
        raise type(error)(f"outputs: {name}: {error}") from None


def check_name(what: str, name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise ValueError(
            f"{what}: {name!r} is no name: it has letters, digits, '_' and '-' alone, and begins "
            "with a letter or '_'"
        )


def _literal(value: Any) -> Any:
    if value is not None and not isinstance(value, str | int | float | bool):
        raise TypeError(
            f"it must be a string, a number, True or False, an Input or a mapping, not {value!r}"
        )
    return value


def literal(what: str, value: Any, about: Input) -> Any:
    """The value, of the type and within the limits that its Input says.

    Raises TypeError or ValueError.
    """
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool}
    if not isinstance(value, kinds[about.type]) or isinstance(value, bool) != (  # type: ignore[arg-type]
        about.type == "boolean"
    ):
        raise TypeError(f"{what} must be of type {about.type}, not {value!r}")
    if about.min is not None and value < about.min or about.max is not None and value > about.max:
        raise ValueError(
            f"{what} is {value!r}, which is not within {about.min!r} and {about.max!r}"
        )
    if about.enum is not None and value not in about.enum:
        raise ValueError(
            f"{what} is {value!r}, which is none of {', '.join(map(repr, about.enum))}"
        )
    return value


def _texts(what: str, given: Any) -> list[str]:
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise TypeError(f"{what} must be a list of strings, not {given!r}")
    return list(given)


def _path(what: str, path: Any) -> str | None:
    if path is not None and not isinstance(path, str | os.PathLike):
        raise TypeError(f"{what} must be a path or an address, not {path!r}")
    return None if path is None else field_checks.text(what, os.fspath(path))
