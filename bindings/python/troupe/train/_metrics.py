"""Pure. Metrics as they are reported, kept in files, and shown in a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def check(metrics: Any) -> dict[str, Any]:
    """Reported metrics, where arrays and tensors of one element are numbers.

    Raises TypeError for what is no dict of names, ValueError for larger tensors: files of a
    checkpoint are for those.
    """
    if not isinstance(metrics, Mapping):
        raise TypeError(
            f"report() takes a dict of metrics, report({{'loss': 0.5}}), not {metrics!r}"
        )
    for name in metrics:
        if not isinstance(name, str):
            raise TypeError(f"report(): the names of metrics are texts, not {name!r}")
    return {name: _number(name, value) for name, value in metrics.items()}


def _number(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _number(f"{name}/{key}", one) for key, one in value.items()}
    if not (hasattr(value, "item") and hasattr(value, "shape") and hasattr(value, "dtype")):
        return value
    size = 1
    for each in value.shape:
        size *= int(each)
    if size == 1:
        return value.item()
    if type(value).__module__.partition(".")[0] == "torch":
        raise ValueError(
            f"report(): {name!r} is a tensor of shape {tuple(value.shape)}: report numbers or "
            ".tolist(), and save tensors in the "
            "checkpoint"
        )
    return value


def plain(value: Any) -> Any:
    """The value as JSON has it; what JSON has not is its text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return plain(value.tolist()) if hasattr(value, "tolist") else repr(value)


def reports(
    lines: Iterable[Mapping[str, Any]], kept: Iterable[tuple[int, Mapping[str, Any]]]
) -> dict[int, dict[str, Any]]:
    """Number -> metrics of all reports of a run that count, in their order, of its lines and its
    checkpoints.

    What came after the checkpoint from which a restart went on does not count; a checkpoint whose
    line its writer did not come to write does.
    """
    found: dict[int, dict[str, Any]] = {}
    for line in lines:
        if "restarted_after" in line:
            found = {
                number: metrics
                for number, metrics in found.items()
                if number <= line["restarted_after"]
            }
        elif "report" in line:
            found[line["report"]] = line["metrics"]
    return dict(sorted({**{number: dict(metrics) for number, metrics in kept}, **found}.items()))
