"""Pictures of a sweep, as coordinates for templates. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troupe.tune._results import flat

WIDTH, HEIGHT = 960, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 20, 40
AXES_MAX = 10
CATEGORIES_MAX = 20
SHADES = 5
"""Lines have one of so many colours, by how good they are: 0 are the best."""
_LOG_SPAN = 100.0
_LARGEST = 1e300


@dataclass(frozen=True)
class Tick:
    """A number or word beside an axis, at a place between 0 (the axis's end) and HEIGHT."""

    at: float
    text: str


@dataclass(frozen=True)
class Scale:
    """Values of one axis, and where they stand on it: 0 to 1."""

    name: str
    low: float = 0.0
    high: float = 1.0
    is_log: bool = False
    words: tuple[str, ...] = ()

    def place(self, value: Any) -> float | None:
        """Return where a value stands; None where it has no place."""
        if self.words:
            text = str(value)
            if text not in self.words:
                return None
            return (self.words.index(text) + 0.5) / len(self.words)
        if not is_number(value):
            return None
        low, high, number = (
            (math.log(self.low), math.log(self.high), math.log(value))
            if self.is_log
            else (self.low, self.high, float(value))
        )
        return (number - low) / (high - low) if high > low else 0.5

    def ticks(self) -> list[Tick]:
        """Return what is written beside the axis."""
        if self.words:
            return [Tick(_y(self.place(each) or 0.0), each[:20]) for each in self.words]
        shares = (0.0, 0.25, 0.5, 0.75, 1.0) if self.high > self.low else (0.5,)
        return [Tick(_y(share), f"{self._value(share):.3g}") for share in shares]

    def _value(self, share: float) -> float:
        if self.is_log:
            return math.exp(math.log(self.low) * (1 - share) + math.log(self.high) * share)
        return self.low + (self.high - self.low) * share


@dataclass(frozen=True)
class Axis:
    """A vertical axis of parallel coordinates."""

    x: float
    name: str
    ticks: Sequence[Tick]


@dataclass(frozen=True)
class Line:
    """A polyline, as SVG has its points."""

    points: str
    shade: int
    title: str


@dataclass(frozen=True)
class Parallel:
    """Parallel coordinates: an axis for each parameter and for the metric, a line for each
    trial."""

    axes: list[Axis]
    lines: list[Line]


@dataclass(frozen=True)
class BestSoFar:
    """The value of each trial, in their order, and the best until then as a line of steps."""

    dots: list[tuple[float, float, str]]
    line: str
    ticks: list[Tick]


def scale_of(name: str, values: Sequence[Any]) -> Scale | None:
    """Return the scale for these values; None where they are nothing to compare."""
    if not values:
        return None
    if all(is_number(each) for each in values):
        low, high = float(min(values)), float(max(values))
        return Scale(name, low, high, is_log=low > 0 and high / low >= _LOG_SPAN)
    words = tuple(sorted({str(each) for each in values}))
    return Scale(name, words=words) if len(words) <= CATEGORIES_MAX else None


def parallel(
    trials: Iterable[tuple[str, Mapping[str, Any], float]], metric: str, *, is_max: bool
) -> Parallel | None:
    """Return parallel coordinates of trials: their names, configurations and values. None where
    there are no two axes."""
    rows = [(name, {**dict(flat(config)), metric: value}, value) for name, config, value in trials]
    names = list(dict.fromkeys(key for _, row, _ in rows for key in row if key != metric))
    scales = [
        found
        for key in names
        if (found := scale_of(key, [row[key] for _, row, _ in rows if key in row])) is not None
    ][: AXES_MAX - 1]
    last = scale_of(metric, [value for _, _, value in rows])
    if last is None or not scales:
        return None
    scales.append(last)
    step = (WIDTH - LEFT - RIGHT - 60) / (len(scales) - 1)
    places = [LEFT + step * number for number in range(len(scales))]
    axes = [
        Axis(round(x, 1), each.name, each.ticks()) for x, each in zip(places, scales, strict=True)
    ]
    ranked = sorted(rows, key=lambda each: -each[2] if is_max else each[2])
    lines = []
    for rank, (name, row, value) in enumerate(ranked):
        points = [
            f"{x:.1f},{_y(at):.1f}"
            for x, each in zip(places, scales, strict=True)
            if (at := each.place(row.get(each.name))) is not None
        ]
        shade = rank * SHADES // len(ranked)
        lines.append(Line(" ".join(points), shade, f"trial {name}: {metric} {value:.6g}"))
    return Parallel(axes, lines[::-1])  # the best are drawn last, above the others


def best_so_far(
    values: Sequence[tuple[str, float]], metric: str, *, is_max: bool
) -> BestSoFar | None:
    """Return the values of trials in their order, and the best until each. None for no values."""
    scale = scale_of(metric, [value for _, value in values])
    if scale is None:
        return None
    scale = Scale(metric, scale.low, scale.high)
    step = (WIDTH - LEFT - RIGHT) / max(1, len(values) - 1)
    dots, points = [], []
    best = values[0][1]
    for number, (name, value) in enumerate(values):
        x = LEFT + step * number
        if (value > best) if is_max else (value < best):
            points.append(f"{x:.1f},{_y(scale.place(best) or 0.0):.1f}")
            best = value
        points.append(f"{x:.1f},{_y(scale.place(best) or 0.0):.1f}")
        place = _y(scale.place(value) or 0.0)
        dots.append((round(x, 1), round(place, 1), f"trial {name}: {value:.6g}"))
    return BestSoFar(dots, " ".join(points), scale.ticks())


def _y(share: float) -> float:
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
