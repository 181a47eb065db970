"""troupe.data takes what ray.data takes: names, kinds and defaults of arguments, as recorded of Ray
in `ray_data_signatures.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pip install '.[data]'")
from data_signatures import signatures

from troupe import data

RECORDED = dict(
    line.split(": ", 1) if ": " in line else (line.rstrip(": "), "")
    for line in (Path(__file__).parent / "ray_data_signatures.txt").read_text().splitlines()
    if not line.startswith("#")
)


@pytest.mark.parametrize(
    ("name", "parameters"), list(signatures(data)), ids=[name for name, _ in signatures(data)]
)
def test_arguments_are_those_of_ray(name: str, parameters: str) -> None:
    assert parameters == RECORDED[name]
