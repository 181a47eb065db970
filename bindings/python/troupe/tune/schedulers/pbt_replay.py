"""The changes that a trial of population based training has gone through, made again with one
trial."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from troupe.tune._core.deciding import (
    Action,
    Choice,
    End,
    Exploit,
    Report,
    ReportError,
    Resume,
    Scheduler,
)


def line(
    trial: str,
    donor: str,
    trial_iteration: int,
    donor_iteration: int,
    donor_config: Mapping[str, Any],
    config: Mapping[str, Any],
) -> str:
    """Return the line of an exploit in a policy file, `pbt_policy_TRIAL.txt`: the file has those of
    the donor first, then those of the trial."""
    return json.dumps(
        [trial, donor, trial_iteration, donor_iteration, dict(donor_config), dict(config)],
        default=repr,
    )


def changes(text: str, file: str) -> tuple[dict[str, Any] | None, list[tuple[int, dict[str, Any]]]]:
    """The first configuration of a policy file, and what it became from which iteration on.

    Raises ValueError for what is no such file.

    A copy has the past of its donor: of what a trial went through before it became one, nothing
    counts.
    """
    rows = []
    for number, row in enumerate(text.splitlines(), 1):
        try:
            trial, donor, _, iteration, donor_config, config = json.loads(row)
        except (ValueError, TypeError):
            raise ValueError(
                f"{file}, line {number}, is no line of a policy of population based training: "
                f"{row[:200]!r}"
            ) from None
        rows.append((trial, donor, iteration, donor_config, config))
    first, found, whose = None, [], None
    for trial, donor, iteration, donor_config, config in reversed(rows):
        if whose is not None and trial != whose:
            break
        whose, first = donor, donor_config
        found.append((iteration, config))
    return first, found[::-1]


class PopulationBasedTrainingReplay(Scheduler):
    """Trains one trial with the configurations that a trial of PopulationBasedTraining had in the
    end, each from the same iteration on.

    `policy_file`: the trial's `pbt_policy_*.txt`. The first configuration is the file's, whatever
    `param_space` says; a change goes on from the trial's own checkpoint of that iteration, so it
    must report one there. Raises ValueError where there is no such file.

        policy = "~/troupe_results/digits/pbt_policy_3.txt"
        TuneConfig(scheduler=PopulationBasedTrainingReplay(policy))
    """

    needs_checkpoints = True

    def __init__(self, policy_file: str) -> None:
        self._file = os.path.expanduser(os.fspath(policy_file))
        try:
            with open(self._file, encoding="utf-8") as file:
                self._first, self._changes = changes(file.read(), self._file)
        except OSError as error:
            raise ValueError(
                f"the policy file {self._file} cannot be read: {error.strerror}"
            ) from error
        self._next = 0
        self._trial: str | None = None
        self._waits = False

    def completed(self, space: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._first is None:
            return space
        if space:
            warnings.warn(
                f"param_space is passed over: the first configuration is that of {self._file}",
                stacklevel=2,
            )
        return self._first

    def added(self, trial: str, config: Mapping[str, Any]) -> None:
        if self._trial is not None:
            raise ValueError(
                "PopulationBasedTrainingReplay trains one trial, and there are more: "
                "num_samples=1, and no grid"
            )
        self._trial = trial

    def reported(self, report: Report) -> Sequence[Action]:
        iteration = report.metrics.get("training_iteration", report.number)
        due = [
            number
            for number in range(self._next, len(self._changes))
            if iteration >= self._changes[number][0]
        ]
        if not due:
            return ()
        at, config = self._changes[due[-1]]
        if not report.checkpoint:
            if len(due) > 1:
                raise ReportError(
                    "PopulationBasedTrainingReplay changes the configuration at "
                    f"training_iteration {self._changes[due[0]][0]} and {at} "
                    "and goes on from a checkpoint of there, and none was reported since the first"
                )
            return ()
        self._next, self._waits = due[-1] + 1, True
        return (
            Exploit(
                report.trial,
                report.trial,
                report.number,
                config,
                f"the policy changes it at training_iteration {at}",
            ),
        )

    def resumed(self, trial: str, config: Mapping[str, Any]) -> None:
        self._waits = False

    def ended(self, trial: str, end: End) -> Sequence[Action]:
        self._waits = False
        return ()

    def went_back(self, trial: str, number: int) -> None:
        self._waits = False

    def choose(self, can_add: bool) -> Resume | Choice:
        if self._waits and self._trial is not None:
            return Resume(self._trial)
        return super().choose(can_add)
