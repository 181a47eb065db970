"""The description of a job that travels with its launch. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from troupe._code import travelled
from troupe.azure._jobs.job import DESCRIBED, plain

_NAME = "job"
_CHARS_MAX = 4000
_LEFT_AWAY_FIRST = ("command", "inputs", "outputs", "properties", "tags", "description")
"""Of a description that is too long, in this order."""


def of_job(job: Any) -> dict[str, str]:
    """Return the texts that go with the launch of a job: variables of its processes are not in
    them."""
    fields = {
        name: plain(value) for name in DESCRIBED if (value := getattr(job, name)) not in (None, {})
    }
    for name in ("", *_LEFT_AWAY_FIRST):
        fields.pop(name, None)
        text = json.dumps(fields)
        if len(text) <= _CHARS_MAX:
            return travelled.pieces(_NAME, text)
    return {}


def told(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known by a LaunchInfo of its job's description."""
    text = travelled.whole(travelled.about(info), _NAME)
    try:
        found = json.loads(text or "{}")
    except ValueError:  # another program has told it
        return {}
    return found if isinstance(found, dict) else {}
