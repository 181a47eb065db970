"""Pictures of sweeps as coordinates: nothing leaves the picture, whatever trials have."""

from __future__ import annotations

import re

from hypothesis import given, settings, strategies as st

from troupe._dashboard import _charts

NUMBERS = st.floats(-1e300, 1e300)
VALUES = st.one_of(NUMBERS, st.integers(-5, 5), st.text(max_size=3), st.none(), st.booleans())
TRIALS = st.lists(
    st.tuples(st.text(max_size=3), st.dictionaries(st.sampled_from("abc"), VALUES), NUMBERS),
    max_size=8,
)


def _inside(points: str) -> bool:
    found = [tuple(map(float, each.split(","))) for each in points.split()]
    return all(0 <= x <= _charts.WIDTH and 0 <= y <= _charts.HEIGHT for x, y in found)


@settings(max_examples=100, deadline=None)
@given(TRIALS, st.booleans())
def test_all_lines_are_inside(trials, is_max) -> None:
    seen = _charts.parallel(trials, "loss", is_max=is_max)
    if seen is not None:
        assert len(seen.lines) == len(trials) and seen.axes[-1].name == "loss"
        assert all(_inside(each.points) for each in seen.lines)
        assert all(0 <= each.shade < _charts.SHADES for each in seen.lines)
    values = [(name, value) for name, _, value in trials]
    curve = _charts.best_so_far(values, "loss", is_max=is_max)
    assert (curve is None) == (not trials)
    if curve is not None:
        assert len(curve.dots) == len(trials) and _inside(curve.line)


def test_the_best_so_far_only_gets_better_and_large_spans_are_logarithmic() -> None:
    curve = _charts.best_so_far([("0", 3.0), ("1", 5.0), ("2", 1.0)], "loss", is_max=False)
    assert curve is not None
    heights = [float(each) for each in re.findall(r",([\d.]+)", curve.line)]
    assert heights == sorted(heights) and heights[0] < heights[-1]  # down is better here
    scale = _charts.scale_of("lr", [1e-4, 1e-2, 1.0])
    assert scale is not None and scale.is_log and scale.place(1e-2) == 0.5
    assert _charts.scale_of("optimizer", ["sgd", "adam", "sgd"]).words == ("adam", "sgd")
    assert _charts.scale_of("seed", [f"s{i}" for i in range(30)]) is None
