"""Output of `troupe sweep`: tables of sweeps and of trials, rows for other programs."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from troupe.cli import _common, _tables
from troupe.exceptions import TroupeError
from troupe.tune._core.trial import Trial
from troupe.tune._journal import history, table, view
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
        [each.name, each.state, table.progress(each), _best(each), _when(each.began)]
        for each in seen
    ]
    _tables.show(
        ["SWEEP", "STATE", "TRIALS", "BEST", "BEGAN"],
        [*rows, *([name, "unreadable", "", why, ""] for name, why in damaged)],
    )


def _best(seen: view.SweepView) -> str:
    best = seen.best()
    return (
        ""
        if best is None
        else f"{seen.metric}={seen.value_of(best):.6g} ({table.number_of(best.id)})"
    )


def _when(wall: float) -> str:
    return datetime.datetime.fromtimestamp(wall).strftime("%m-%d %H:%M") if wall else ""


def show(folder: Path, *, trials: int, as_json: bool) -> None:
    """See `troupe sweep show`."""
    seen = view.of(folder)
    chosen = table.best_first(seen)[:trials]
    if as_json:
        _common.echo_json(
            {**view.status_of(seen), "trials_shown": [_as_json(seen, each) for each in chosen]}
        )
        return
    about = seen.about
    _common.echo_line(
        f"sweep {seen.name} · {_state(seen)} · {table.progress(seen)}"
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
            f"best {seen.metric}={seen.value_of(best):.6g}: trial {table.number_of(best.id)}: "
            f"{table.words(best.config)}"
        )
    if chosen:
        rows = [table.row(each, seen.value_of(each), seen.metric) for each in chosen]
        _tables.show(table.head(seen.metric), rows)
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
