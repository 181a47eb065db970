"""Invariants of a sweep's journal, its folder, and its trials' notes after whatever was killed: G1
to G6 of troupe/tune/_core/sweep.py.

Method: a model of its own, of plain dicts, that takes the rows one after the other; the engine's
own ledger takes them once more for what its scheduler decides. Nothing of what is wrong ends the
check: all of it is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from troupe.tune._core.deciding import Action, Exploit, Mode, Pause, Resume, Stop
from troupe.tune._core.ledger import Ledger
from troupe.tune._core.rules import Conditions, Rules
from troupe.tune._journal import values, view
from troupe.tune._journal.journal import FILE, WITH_CONFIG, rows_of

KEY = tuple[str, str]
"""Of a checkpoint: whose it is, and its name."""


def rows_in(folder: Path) -> list[dict[str, Any]]:
    """All rows; that none is missing or changed is checked by reading them."""
    found = []
    with view.snapshot(folder) as db:
        for _, row in rows_of(db, folder / FILE):
            if row["kind"] in WITH_CONFIG:
                row["config"] = values.decoded(row["config"], lambda key: key)
            found.append(row)
    return found


@dataclass
class Seen:
    """A trial, as the rows have it.

    `counts`: (number, token) of the reports that count; `base`: what it goes on from, with its
    number.
    """

    runs: bool = False
    ended: bool = False
    attempt: int = 0
    sequence: int = 0
    number: int = 0
    counts: list[tuple[int, str]] = field(default_factory=list)
    base: tuple[KEY, int] | None = None
    failures: int = 0


class Checker:
    """A checker of one journal. `wrong`: violations."""

    def __init__(self) -> None:
        self.trials: dict[str, Seen] = {}
        self.epoch = 0
        self.tokens: Counter[str] = Counter()
        self.there: dict[KEY, tuple[int, str]] = {}
        """Checkpoints that were reported and not dropped, with number and token of their report."""
        self.wrong: list[str] = []

    def take(self, row: dict[str, Any]) -> None:
        """The next row."""
        name = row.get("trial")
        if name is not None and row["kind"] not in ("trial", "drop") and self.trials[name].ended:
            self._say("G2", f"{row} after the end of its trial")
        if (found := getattr(self, f"_{row['kind']}", None)) is not None:
            found(row, self.trials.get(name))

    def _say(self, guarantee: str, what: str) -> None:
        self.wrong.append(f"{guarantee}: {what}")

    def _begin(self, row: dict, trial: Any) -> None:
        if row["epoch"] != self.epoch + 1:
            self._say("G4", f"engine of epoch {row['epoch']} after {self.epoch}")
        self.epoch = row["epoch"]

    def _trial(self, row: dict, trial: Seen | None) -> None:
        if trial is not None:
            self._say("G3", f"{row['trial']} is proposed twice")
        self.trials[row["trial"]] = Seen()

    def _start(self, row: dict, trial: Seen) -> None:
        if trial.runs or row["attempt"] != trial.attempt + 1:
            self._say(
                "G3",
                f"attempt {row['attempt']} of {row['trial']} starts while attempt {trial.attempt} "
                f"{'runs' if trial.runs else 'was the last'}",
            )
        base, number = trial.base if trial.base is not None else (None, 0)
        if row["number"] != number or (tuple(row["base"]) if row["base"] else None) != base:
            self._say(
                "G3",
                f"{row} does not go on from {base}, report {number}: it loses more than what came "
                "after its latest checkpoint",
            )
        if base is not None and base not in self.there:
            self._say("G6", f"{row['trial']} starts from {base}, which was dropped")
        trial.runs, trial.attempt, trial.sequence, trial.number = True, row["attempt"], 0, number

    def _report(self, row: dict, trial: Seen) -> None:
        name, token = row["trial"], row["metrics"]["token"]
        if not trial.runs or (row["attempt"], row["sequence"], row["number"]) != (
            trial.attempt,
            trial.sequence + 1,
            trial.number + 1,
        ):
            self._say(
                "G1",
                f"{name}: report {row['number']} ({row['attempt']}, {row['sequence']}) after "
                f"{trial.number} ({trial.attempt}, {trial.sequence})",
            )
        if (
            row["metrics"]["training_iteration"] != row["number"]
            or row["metrics"]["epoch"] != row["number"]
        ):
            self._say(
                "G1",
                f"{name}: report {row['number']} is iteration "
                f"{row['metrics']['training_iteration']}, epoch {row['metrics']['epoch']}",
            )
        trial.sequence, trial.number = row["sequence"], row["number"]
        trial.counts.append((row["number"], token))
        self.tokens[token] += 1
        if row["checkpoint"]:
            key = (name, row["checkpoint"])
            if key in self.there:
                self._say("G5", f"{key} is reported twice")
            self.there[key] = (row["number"], token)
            trial.base = (key, row["number"])

    def _leave_off(self, trial: Seen) -> None:
        """An attempt is over: what it reported after its base counts no more."""
        trial.runs, trial.number = False, trial.base[1] if trial.base is not None else 0
        trial.counts = [each for each in trial.counts if each[0] <= trial.number]

    def _pause(self, row: dict, trial: Seen) -> None:
        self._leave_off(trial)

    _interrupt = _pause

    def _fail(self, row: dict, trial: Seen) -> None:
        trial.failures += row["counts"]
        self._leave_off(trial)

    def _exploit(self, row: dict, trial: Seen) -> None:
        donor = (row["donor"], row["checkpoint"])
        if donor not in self.there or self.there[donor][0] != row["number"]:
            self._say(
                "G6",
                f"{row['trial']} is to go on from {donor}, report {row['number']}, and there is "
                f"{self.there.get(donor)}",
            )
        trial.base = (donor, row["number"])
        self._leave_off(trial)

    def _drop(self, row: dict, trial: Seen) -> None:
        key = (row["trial"], row["checkpoint"])
        if key not in self.there:
            self._say("G6", f"{key} is dropped, and was not there")
        self.there.pop(key, None)
        needs = [
            name
            for name, each in self.trials.items()
            if not each.ended and each.base is not None and each.base[0] == key
        ]
        if needs:
            self._say("G6", f"{key} is dropped, from which {', '.join(needs)} would go on")

    def _end(self, row: dict, trial: Seen) -> None:
        trial.runs, trial.ended = False, True


def of_rows(rows: Sequence[dict[str, Any]], planned: int) -> tuple[Checker, list[str]]:
    """G1 to G6 of the rows of a sweep that has come to its end, and the number of its trials."""
    checker = Checker()
    for row in rows:
        checker.take(row)
    wrong = list(checker.wrong)
    if len(checker.trials) != planned:
        wrong.append(f"G3: {len(checker.trials)} trials, and {planned} were asked for")
    wrong += [f"G3: {name} has no end" for name, trial in checker.trials.items() if not trial.ended]
    wrong += [
        f"G1: the report {token} is counted {count} times"
        for token, count in checker.tokens.items()
        if count > 1
    ]
    return checker, wrong


def of_folder(folder: Path, checker: Checker, trial_name: str) -> list[str]:
    """G5 and G6 of the files: what the journal has is there, whole, with the state of its report,
    and nothing else is."""
    import numpy

    wrong = []
    for (trial, name), (number, token) in checker.there.items():
        path = folder / f"{trial_name}_{trial}" / name / "state.npz"
        try:
            state = numpy.load(path)
            found = (int(state["epoch"]), str(state["token"]))
        except Exception as error:  # not there, or half of it, for which there are many words
            wrong.append(f"G6: {path} cannot be read: {type(error).__name__}: {error}")
            continue
        if found != (number, token):
            wrong.append(f"G5: {path} is of {found}, and was reported with {number}, {token}")
    for path in folder.glob(f"{trial_name}_*/*"):
        if (path.parent.name.removeprefix(f"{trial_name}_"), path.name) not in checker.there:
            wrong.append(f"G6: {path} is there, and the journal does not have it")
    return wrong


def of_witnesses(said: Path, checker: Checker) -> list[str]:
    """G1 and G2, by what trials wrote down: what was answered was counted, and what was counted was
    reported by who it says."""
    wrong = []
    reported: set[str] = set()
    for path in said.iterdir():
        for line in path.read_text().splitlines():
            what, token, epoch = line.split()
            if what == "reports":
                reported.add(token)
            elif not checker.tokens[token]:
                wrong.append(
                    f"G1: {path.name} was answered for its epoch {epoch}, {token}, and the journal "
                    "does not have that"
                )
    wrong += [
        f"G1: the journal has {token}, which nobody reported"
        for token in checker.tokens
        if token not in reported
    ]
    return wrong


def of_decisions(folder: Path, rows: Sequence[dict[str, Any]]) -> list[str]:
    """G10: a scheduler made anew that is told what the journal has decides what the journal has."""
    from troupe.tune._run import deciders
    from troupe.tune._tuner import Tuner

    kept = Tuner.restore(folder, print)
    decide = deciders.of(kept._tune, kept._space, None)
    ledger = Ledger(
        Rules(metric=decide.metric, mode=decide.mode or Mode.MAX),
        decide.scheduler,
        Conditions(),
        lambda told: None,
    )
    wrong: list[str] = []
    expected: list[Action] = []
    for place, row in enumerate(rows):
        if row["kind"] in ("start", "report", "trial", "begin") and expected:
            wrong.append(
                f"G10: before row {place + 1}, {row['kind']}, these were decided and did not come: "
                f"{expected}"
            )
            expected = []
        left = [each for each in expected if not _is_done_by(each, row)]
        if row["kind"] in ("pause", "exploit") and len(left) == len(expected):
            wrong.append(f"G10: row {place + 1} was not decided: {row}")
        expected = left
        if row["kind"] == "want" and not any(
            isinstance(choice := decide.scheduler.choose(can), Resume)
            and choice.trial == row["trial"]
            for can in (True, False)
        ):
            wrong.append(
                f"G10: row {place + 1} wants {row['trial']} again, and the scheduler does not"
            )
        came = ledger.apply(row)
        expected += [each for each in came.actions if not ledger.trials[each.trial].end]
    return wrong


def _is_done_by(action: Action, row: dict[str, Any]) -> bool:
    """Return True if the row is the result of the action."""
    if row.get("trial") != action.trial:
        return False
    if isinstance(action, Stop):
        return row["kind"] == "end"
    if isinstance(action, Pause):
        return row["kind"] in ("pause", "end")
    return (
        isinstance(action, Exploit)
        and row["kind"] == "exploit"
        and (row["donor"], row["number"], row["config"], row["why"])
        == (action.donor, action.donor_report, dict(action.config), action.why)
    )


def violations(folder: Path, said: Path, planned: int) -> list[str]:
    """All that does not hold of the sweep in that folder, whose trials wrote into `said`; it is
    over."""
    rows = rows_in(folder)
    checker, wrong = of_rows(rows, planned)
    trial_name = view.about_of(folder)["trial_name"]
    return (
        wrong
        + of_folder(folder, checker, trial_name)
        + of_witnesses(said, checker)
        + of_decisions(folder, rows)
    )
