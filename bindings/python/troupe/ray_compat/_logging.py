"""Ray's `ray.LoggingConfig`: checked and taken by init(); what processes print is shown and kept as
they print it."""

from __future__ import annotations

import dataclasses
from typing import Any

_ENCODINGS = ("TEXT", "JSON")


@dataclasses.dataclass
class LoggingConfig:
    """How a program wants its log to look.

    Means nothing here. ValueError for an encoding that is none.
    """

    encoding: str = "TEXT"
    log_level: str = "INFO"
    additional_log_standard_attrs: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        if self.encoding not in _ENCODINGS:
            raise ValueError(f"encoding is {' or '.join(_ENCODINGS)}, not {self.encoding!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> LoggingConfig:
        """The inverse; fields that are not known are left out."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in fields.items() if name in known})


__all__ = ["LoggingConfig"]
