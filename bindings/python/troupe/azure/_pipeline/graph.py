"""Decisions on a pipeline's graph: the order of its steps, which of them start, end or are left
out, and how the pipeline ends. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

NOT_STARTED, RUNNING, COMPLETED, FAILED, CANCELED = (
    "NotStarted",
    "Running",
    "Completed",
    "Failed",
    "Canceled",
)
TERMINAL = (COMPLETED, FAILED, CANCELED)
AT_ONCE_MAX = 64
"""Steps of one pipeline that are submitted at a time."""

Needs = Mapping[str, Collection[str]]
"""By the name of each step, the steps whose outputs it needs."""


class CycleError(ValueError):
    """Steps that wait for each other. `names`: the steps of one cycle, in their order."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        super().__init__(
            f"the steps wait for each other: {' -> '.join([*names, names[0]])}, where -> means "
            "'needs an output of'"
        )


def order(needs: Needs) -> list[str]:
    """Return the steps so that each stands behind all that it needs, else as they are given.

    Raises CycleError.
    """
    found: list[str] = []
    done: set[str] = set()
    for first in needs:
        path: list[str] = []  # from `first` on, each needs the next
        left: list[tuple[str, bool]] = [(first, False)]
        while left:
            name, is_left = left.pop()
            if is_left:
                path.pop()
                done.add(name)
                found.append(name)
            elif name in path:
                raise CycleError(path[path.index(name) :])
            elif name not in done:
                path.append(name)
                left += [(name, True), *((each, False) for each in reversed(list(needs[name])))]
    return found


@dataclass(frozen=True)
class Decision:
    """The next actions. `outcome`: how the pipeline has ended; None: it goes on."""

    start: tuple[str, ...] = ()
    cancel: tuple[str, ...] = ()
    outcome: str | None = None


def decide(
    needs: Needs, states: Mapping[str, str], *, continues: bool, is_cancelled: bool
) -> Decision:
    """Return what follows from the states of all steps.

    `continues`: after a failed step, steps that need none of its outputs still run. Without it the
    others that run are canceled, and no step starts.
    """
    running = [name for name, state in states.items() if state == RUNNING]
    has_failed = any(state == FAILED for state in states.values())
    if is_cancelled or has_failed and not continues:
        start: list[str] = []
        cancel = running
    else:
        cancel = []
        start = [
            name
            for name, state in states.items()
            if state == NOT_STARTED and all(states[each] == COMPLETED for each in needs[name])
        ]
        start = start[: max(0, AT_ONCE_MAX - len(running))]
    if running or start:
        return Decision(tuple(start), tuple(cancel))
    if all(state == COMPLETED for state in states.values()):
        return Decision(outcome=COMPLETED)
    return Decision(outcome=FAILED if has_failed else CANCELED)


def waits_for(needs: Needs, states: Mapping[str, str], name: str) -> list[str]:
    """Return the steps that `name` needs and that have not come to their end well."""
    return [each for each in needs[name] if states[each] != COMPLETED]
