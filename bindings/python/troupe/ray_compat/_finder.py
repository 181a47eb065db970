"""The import hook: modules `ray`, `ray.util` and so on, whose names are looked up in Troupe when
used."""

from __future__ import annotations

from typing import Any

from troupe.ray_compat import _starting
from troupe.ray_compat._missing import instead_of
from troupe.ray_compat._names import MODULES, VERSION
from troupe.stand_ins import _finder

RAY = _finder.Package(claims=("ray",), modules=MODULES, instead_of=instead_of, version=VERSION)
missing = RAY.missing


class RayModule(_finder.StandInModule):
    """A module of Ray's, with Troupe's names."""

    package = RAY

    def made(self, name: str, value: Any) -> Any:
        """See StandInModule: functions that start a cluster where there is none."""
        return (
            _starting.starting(name)
            if self.__name__ == "ray" and name in _starting.NAMES
            else value
        )


class Finder(_finder.Finder):
    """Answers for `ray` and all below it."""

    def __init__(self) -> None:
        super().__init__(RayModule)
