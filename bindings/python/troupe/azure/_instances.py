"""Names of compute and of instance types, and the nodes that they mean here: by a file of the
user's, `instance_types.yml`.

    Standard_ND96isr_H100_v5:         # also the name of a compute
      labels: {gpu_type: H100}        # nodes that it may be, as a launch's label_selector
      prefer: {fabric: infiniband}    # of these, those that are taken while they have room
      gpus: 8                         # of each instance

It is found by TROUPE_INSTANCE_TYPES, in the current directory, or in TROUPE_HOME. Without such a
file any node may be taken.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from troupe._cluster import home, selectors
from troupe._code import field_checks, yaml_files
from troupe.azure import _schema

VARIABLE = "TROUPE_INSTANCE_TYPES"
NAME = "instance_types.yml"
_KEYS = ("labels", "prefer", "gpus", "cpus")


@dataclass(frozen=True)
class Kind:
    """The instances that a name stands for. `gpus`, `cpus`: of each instance; None: as many as its
    processes ask for."""

    labels: Mapping[str, str] = field(default_factory=dict)
    prefer: Mapping[str, str] = field(default_factory=dict)
    gpus: int | None = None
    cpus: int | None = None

    def where(self) -> dict[str, Any]:
        """The Where of a launch on such nodes."""
        if not self.prefer:
            return selectors.where(self.labels)
        return selectors.where(
            {**self.labels, **self.prefer}, [{"label_selector": dict(self.labels)}]
        )


def file() -> str | None:
    """The file that says it; None: there is none.

    Raises FileNotFoundError for one that was named and is not there.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not os.path.isfile(named):
            raise FileNotFoundError(f"{VARIABLE} names {named}, and there is no such file")
        return named
    return next((path for path in (NAME, str(home.home() / NAME)) if os.path.isfile(path)), None)


def meant(names: Mapping[str, str | None]) -> tuple[Kind, list[str]]:
    """Return the kind that `compute` and `instance_type` together stand for, and the names that no
    file defines, for people.

    Raises ValueError for a name that the file has not, with the nearest.
    """
    given = {what: name for what, name in names.items() if name and name != "local"}
    path = file() if given else None
    if path is None:
        return Kind(), [
            f"{what} {name!r} ({NAME} says which nodes a name means)"
            for what, name in given.items()
        ]
    table = _schema.mapping(path, yaml_files.read(path))
    found = Kind()
    for what, name in given.items():
        short = name.removeprefix("azureml:")
        if short not in table:
            raise ValueError(
                f"{what} {name!r} is not in {path}{field_checks.or_nearest(short, table)}"
            )
        found = _together(found, _kind(f"{path}: {short}", table[short]))
    return found, []


def _kind(what: str, given: Any) -> Kind:
    fields = _schema.mapping(what, given, _KEYS)
    for name in ("gpus", "cpus"):
        if fields.get(name) is not None:
            field_checks.count(f"{what}: {name}", fields[name], least=0)
    labels, prefer = (
        {
            key: str(value)
            for key, value in _schema.mapping(f"{what}: {name}", fields.get(name)).items()
        }
        for name in ("labels", "prefer")
    )
    return Kind(labels, prefer, fields.get("gpus"), fields.get("cpus"))


def _together(one: Kind, other: Kind) -> Kind:
    return Kind(
        {**one.labels, **other.labels},
        {**one.prefer, **other.prefer},
        one.gpus if other.gpus is None else other.gpus,
        one.cpus if other.cpus is None else other.cpus,
    )
