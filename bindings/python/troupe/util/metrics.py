"""Ray's `ray.util.metrics`: counters, gauges and histograms of one's own.

    requests = Counter("requests", description="answered", tag_keys=("path",))
    requests.inc(tags={"path": "/"})

The head's `/metrics` shows it as `troupe_app_requests_total{path="/"}`, some seconds later: what
all processes of the cluster have counted together, and of a gauge the value that was set last
(docs/reference/metrics.md). `collected()` returns what this process has counted. Calls take a lock
and return at once; a thread reports.
"""

from __future__ import annotations

import bisect
import os
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from troupe.util import _metric_reports

_NAME = re.compile("[a-zA-Z_:][a-zA-Z0-9_:]*")
_TAG = re.compile("(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_OWN = ("troupe_sweep_trials", "troupe_sweep_reports_total", "troupe_sweep_decision_seconds")
"""Metrics of the runtime's own that processes report (head/core/machine/program_metrics.cc)."""
# Limit of all metrics together: a tag with a value of its own for each call would fill the memory
SERIES_MAX = 10_000
_lock = threading.Lock()
_series: dict[tuple[Any, ...], dict[str, Any]] = {}  # by kind, name and tags


class Metric:
    """The base of Counter, Gauge and Histogram.

    Made anew in the process that it travels to, where it counts from nothing.

    Raises ValueError for a name that is no metric's, or a tag that is not among `tag_keys`,
    TypeError for keys and values that are no texts.
    """

    _kind = ""

    def __init__(
        self, name: str, description: str = "", tag_keys: tuple[str, ...] | None = None
    ) -> None:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise ValueError(
                f"{name!r} is no name of a metric: letters, digits, '_' and ':', no digit first"
            )
        tag_keys = () if tag_keys is None else tag_keys
        if not isinstance(tag_keys, tuple) or not all(isinstance(key, str) for key in tag_keys):
            raise TypeError(f"tag_keys is a tuple of texts, not {tag_keys!r}")
        if name.startswith("troupe_") and name not in _OWN:
            raise ValueError(f"{name!r}: names that begin with troupe_ are the runtime's own")
        for key in tag_keys:
            if _TAG.fullmatch(key) is None or key == "le":
                raise ValueError(
                    f"{key!r} is no name of a tag: letters, digits and '_', no digit first, and "
                    "neither 'le' nor '__' at the beginning"
                )
        self._name, self._description, self._tag_keys = name, description, tag_keys
        self._default_tags: dict[str, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (
            type(self),
            (self._name, self._description, *self._own(), self._tag_keys),
            self._default_tags,
        )

    def _own(self) -> tuple[Any, ...]:
        return ()

    def set_default_tags(self, default_tags: Mapping[str, str]) -> Metric:
        """Tags of every call that does not say otherwise; the metric itself."""
        self._default_tags = self._checked(default_tags)
        return self

    @property
    def info(self) -> dict[str, Any]:
        """How it was made."""
        return {
            "name": self._name,
            "description": self._description,
            "tag_keys": self._tag_keys,
            "default_tags": self._default_tags,
        }

    def _checked(self, tags: Mapping[str, str] | None) -> dict[str, str]:
        for key, value in (tags or {}).items():
            if key not in self._tag_keys:
                raise ValueError(
                    f"{key!r} is no tag of the metric {self._name}, which has "
                    f"{', '.join(self._tag_keys) or 'none'}"
                )
            if not isinstance(value, str):
                raise TypeError(f"the value of the tag {key!r} is a text, not {value!r}")
        return dict(tags or {})

    def _at(self, tags: Mapping[str, str] | None) -> dict[str, Any]:
        """The series of these tags. To be called with the lock."""
        merged = {**self._default_tags, **self._checked(tags)}
        missing = [key for key in self._tag_keys if key not in merged]
        if missing:
            raise ValueError(
                f"the metric {self._name} needs a value of the tag {', '.join(missing)}"
            )
        _reporter.begin()
        key = (self._kind, self._name, *sorted(merged.items()))
        found = _series.get(key)
        if found is None:
            if len(_series) >= SERIES_MAX:
                raise ValueError(
                    f"the metrics of this process have {SERIES_MAX} series, which is all they may: "
                    f"which tag of {self._name} has "
                    "a new value each time?"
                )
            found = _series[key] = {
                "name": self._name,
                "type": self._kind,
                "description": self._description,
                "tags": merged,
                **self._empty(),
            }
        return found

    def _empty(self) -> dict[str, Any]:
        return {"value": 0.0}

    def _number(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"the metric {self._name} takes a number, not {value!r}")
        return float(value)


class Counter(Metric):
    """A metric that only grows."""

    _kind = "counter"

    def inc(self, value: float = 1.0, tags: Mapping[str, str] | None = None) -> None:
        """Adds `value`, which is above 0."""
        if self._number(value) <= 0:
            raise ValueError(f"the counter {self._name} grows by a number above 0, not {value!r}")
        with _lock:
            self._at(tags)["value"] += value


class Gauge(Metric):
    """The latest value."""

    _kind = "gauge"

    def set(self, value: float | None, tags: Mapping[str, str] | None = None) -> None:
        """Takes `value` in place of the one before; None changes nothing."""
        if value is None:
            return
        number = self._number(value)
        with _lock:
            self._at(tags)["value"] = number


class Histogram(Metric):
    """How many values lie up to each of `boundaries`, numbers above 0 in rising order, and beyond
    the last."""

    _kind = "histogram"

    def __init__(
        self,
        name: str,
        description: str = "",
        boundaries: Sequence[float] | None = None,
        tag_keys: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(name, description, tag_keys)
        if (
            not boundaries
            or any(each <= 0 for each in boundaries)
            or list(boundaries) != sorted(boundaries)
        ):
            raise ValueError(
                f"boundaries are numbers above 0 in rising order, at least one, not {boundaries!r}"
            )
        self.boundaries = list(boundaries)

    def _own(self) -> tuple[Any, ...]:
        return (self.boundaries,)

    def _empty(self) -> dict[str, Any]:
        return {
            "boundaries": self.boundaries,
            "buckets": [0] * (len(self.boundaries) + 1),
            "count": 0,
            "sum": 0.0,
        }

    @property
    def info(self) -> dict[str, Any]:
        """How it was made."""
        return {**super().info, "boundaries": self.boundaries}

    def observe(self, value: float, tags: Mapping[str, str] | None = None) -> None:
        """Counts a value."""
        number = self._number(value)
        with _lock:
            at = self._at(tags)
            at["buckets"][bisect.bisect_left(at["boundaries"], number)] += 1
            at["count"] += 1
            at["sum"] += number


def _made(kind: type[Metric], args: tuple[Any, ...], default_tags: dict[str, str]) -> Metric:
    return kind(*args).set_default_tags(default_tags)


def collected() -> list[dict[str, Any]]:
    """Return the values of this process's metrics: a dict for each name and tags, with `value`, or
    for a histogram `boundaries`, `buckets`, `count` and `sum`."""
    return list(_collect().values())


def _collect() -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return copies of all series by their keys."""
    with _lock:
        return {
            key: {
                **each,
                "tags": dict(each["tags"]),
                **({"buckets": list(each["buckets"])} if "buckets" in each else {}),
            }
            for key, each in _series.items()
        }


# A forked child must not find the lock held by a thread that it does not have.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)
_reporter = _metric_reports.make_reporter(_collect)


__all__ = ["Counter", "Gauge", "Histogram", "Metric", "collected"]
