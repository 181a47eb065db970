"""Templates, and how values are written in them.

All that a template prints is escaped, and has nothing that a terminal or a browser would obey:
names, errors and logs come from strangers.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from troupe._base import visible as _visible
from troupe._base.identity import short

FOLDER = Path(__file__).parent
BASE = "base.html"
LIVE = "live_"
"""Blocks of a template whose names begin so are sent again when what they show has changed."""
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))
_GIB = 2**30


def environment() -> Environment:
    """Return the environment of the page's templates."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "ago": duration,
        "amount": amount,
        "held": held,
        "iso": iso,
        "line": first_line,
        "short": short,
        "when": when,
    }
    return made


def blocks(made: Environment, template: str, context: Mapping[str, Any]) -> dict[str, str]:
    """Return the live blocks of a template and of the base of all, rendered."""
    return {
        name: "".join(block(each.new_context(dict(context))))
        for each in (made.get_template(BASE), made.get_template(template))
        for name, block in each.blocks.items()
        if name.startswith(LIVE)
    }


def _finalize(value: Any) -> Any:
    if value is None:
        return ""
    return _visible.text(value) if isinstance(value, str) and type(value) is not Markup else value


def duration(seconds: float) -> str:
    """Return a time span as `41 min`."""
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


def amount(value: float, name: str = "") -> str:
    """Return so much of a resource: `0.5`; of memory, which is bytes, `1.5 GiB`."""
    return f"{value:g}" if name != "memory" else f"{value / _GIB:.4g} GiB"


def held(resources: Mapping[str, float]) -> str:
    """Return resources as `4 CPU, 1 GPU`."""
    return ", ".join(f"{amount(each, name)} {name}" for name, each in resources.items())


def first_line(text: str) -> str:
    """Return the first line of a text."""
    return text.partition("\n")[0]


def when(seconds: float) -> str:
    """Return a point in time in this host's own time zone."""
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def iso(seconds: float) -> str:
    """Return a point in time as programs read it."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds")
