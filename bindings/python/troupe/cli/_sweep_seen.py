"""What `troupe sweep` shows: tables of sweeps and of trials, rows for other programs."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from troupe.cli import _common, _tables
from troupe.exceptions import TroupeError
from troupe.tune._core.deciding import Mode
from troupe.tune._core.trial import Trial
from troupe.tune._journal import history, view
from troupe.tune._results import flat
from troupe.tune._run import looking


def list_all(storage: str | None, *, as_json: bool) -> None:
    """See `troupe sweep list`."""
    seen, damaged = [], []
    for folder in looking.folders(storage):
        try:
            seen.append(view.of(folder))
        except (TroupeError, OSError) as error:
            damaged.append((folder.name, str(error).partition("\n")[0]))
    if as_json:
        _common.echo_json(
            [
                *(view.status_of(each) for each in seen),
                *({"name": name, "state": "unreadable", "why": why} for name, why in damaged),
            ]
        )
        return
    rows = [
        [each.name, each.state, _progress(each), _best(each), _when(each.began)] for each in seen
    ]
    _tables.show(
        ["SWEEP", "STATE", "TRIALS", "BEST", "BEGAN"],
        [*rows, *([name, "unreadable", "", why, ""] for name, why in damaged)],
    )


def _progress(seen: view.SweepView) -> str:
    """`12/64, 2 failed`."""
    counts = seen.counts()
    planned = seen.planned
    over = counts["completed"] + counts["stopped"] + counts["failed"]
    words = [
        f"{over}/{planned}"
        if planned
        else f"{over} of any number"
        if "trials" in seen.about
        else f"{over}"
    ]
    words += [f"{counts[each]} {each}" for each in ("running", "paused", "failed") if counts[each]]
    return ", ".join(words)


def _best(seen: view.SweepView) -> str:
    best = seen.best()
    return "" if best is None else f"{seen.metric}={seen.value_of(best):.6g} ({_number(best.id)})"


def _number(trial: str) -> str:
    """A trial as tables name it: the sweep's own part of its id is the same for all."""
    return trial.rpartition("_")[2] or trial


def _when(wall: float) -> str:
    return datetime.datetime.fromtimestamp(wall).strftime("%m-%d %H:%M") if wall else ""


def show(folder: Path, *, trials: int, as_json: bool) -> None:
    """See `troupe sweep show`."""
    seen = view.of(folder)
    chosen = _best_first(seen)[:trials]
    if as_json:
        _common.echo_json(
            {**view.status_of(seen), "trials_shown": [_as_json(seen, each) for each in chosen]}
        )
        return
    about = seen.about
    _common.echo_line(
        f"sweep {seen.name} · {_state(seen)} · {_progress(seen)}"
        + (f" · began {_when(seen.began)}" if seen.began else "")
    )
    _common.echo_line(
        f"{about.get('scheduler', '?')}, {about.get('searcher', '?')}"
        + (f" · {about.get('mode')} {seen.metric}" if seen.metric else " · no metric is compared")
        + f" · {folder}"
    )
    best = seen.best()
    if best is not None:
        _common.echo_line(
            f"best {seen.metric}={seen.value_of(best):.6g}: trial {_number(best.id)}: "
            f"{_words(best.config)}"
        )
    if chosen:
        names = [
            "TRIAL",
            "STATE",
            "REPORTS",
            (seen.metric or "METRICS").upper(),
            "CONFIG",
            "HOST",
            "WHY",
        ]
        _tables.show(names, [_row(seen, each) for each in chosen])
    if (left := len(seen.current()) - len(chosen)) and chosen:
        _common.echo_line(
            f"and {left} more: --trials {len(seen.current())}, or troupe sweep export {seen.name}"
        )


def _state(seen: view.SweepView) -> str:
    engine = f"pid {seen.engine.get('pid')} on {seen.engine.get('host')}"
    match seen.state:
        case "running":
            return (
                f"{'paused: what runs goes on, nothing is started' if seen.held else 'running'}, "
                f"{engine}"
            )
        case "finished":
            return f"finished: {seen.over}"
        case "stopped":
            return f"stopped; troupe sweep resume {seen.name} goes on with it"
    return (
        f"dead: its engine ({engine}) has ended without a word; troupe sweep resume {seen.name} "
        "goes on with it"
    )


def _best_first(seen: view.SweepView) -> list[Trial]:
    mode = Mode(seen.about.get("mode") or "max")
    return sorted(seen.current(), key=lambda each: -mode.score(seen.value_of(each)))


def _row(seen: view.SweepView, trial: Trial) -> list[str]:
    value = seen.value_of(trial)
    shown = (
        f"{value:.6g}"
        if value is not None
        else ""
        if seen.metric or trial.last is None
        else _words(_own(trial.last.metrics))
    )
    failed = f": {trial.failure.text.partition(chr(10))[0]}" if trial.failure is not None else ""
    return [
        _number(trial.id),
        trial.end.value if trial.end is not None else trial.phase.value,
        str(trial.number),
        shown,
        _words(trial.config),
        str(trial.where.get("hostname", "")),
        trial.why + failed,
    ]


_FILLED = {
    "training_iteration",
    "time_total_s",
    "time_this_iter_s",
    "timestamp",
    "trial_id",
    "iterations_since_restore",
    "time_since_restore",
    "done",
}


def _own(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metrics.items() if name not in _FILLED}


def _words(values: Mapping[str, Any]) -> str:
    return " ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in flat(values)
    )


def _as_json(seen: view.SweepView, trial: Trial) -> dict[str, Any]:
    failure = (
        None if trial.failure is None else {"kind": trial.failure.kind, "text": trial.failure.text}
    )
    return {
        "trial_id": trial.id,
        "name": seen.name_of(trial.id),
        "state": trial.end.value if trial.end is not None else trial.phase.value,
        "attempt": trial.attempt,
        "reports": trial.number,
        "config": dict(trial.config),
        "metrics": dict(trial.last.metrics) if trial.last else {},
        "why": trial.why,
        "error": failure,
        "where": dict(trial.where),
        "checkpoints": [each.name for each in trial.kept],
    }


def export(folder: Path, *, kind: str, reports: bool, output: Any) -> None:
    """See `troupe sweep export`."""
    seen = view.of(folder)
    rows = (
        list(_reports(folder, seen))
        if reports
        else [_as_json(seen, each) for each in seen.current()]
    )
    if kind == "json":
        json.dump(rows, output)
        output.write("\n")
        return
    flattened = [dict(_columns(each)) for each in rows]
    names = list(dict.fromkeys(name for each in flattened for name in each))
    writer = csv.DictWriter(output, names or ["trial_id"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(flattened)


def _reports(folder: Path, seen: view.SweepView) -> Iterator[dict[str, Any]]:
    counted = history.all_reports(folder)
    for trial in seen.current():
        for number, metrics in counted.get(trial.id, []):
            yield {
                "trial_id": trial.id,
                "report": number,
                "config": dict(trial.config),
                "metrics": metrics,
            }


def _columns(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Metrics by their own names, the configuration as `config/lr`, as a DataFrame of the results
    has them."""
    for name, value in row.items():
        if name == "metrics":
            yield from ((key, _cell(one)) for key, one in flat(value) if key != "trial_id")
        elif isinstance(value, Mapping):
            yield from ((f"{name}/{key}", _cell(one)) for key, one in flat(value))
        elif name != "where":
            yield name, _cell(value)


def _cell(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) or value is None else json.dumps(value)
