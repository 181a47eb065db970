"""A pipeline as people see it: its steps as a tree, and what they are told at its end. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from troupe._cluster import status_lines
from troupe.azure._pipeline import graph
from troupe.azure._pipeline.graph import Needs
from troupe.azure._pipeline.record import State, StepState


def tree(needs: Needs, state: State) -> list[str]:
    """Return a line for each step, below the last of the steps that it needs, with its state."""
    order = graph.order(needs)
    below: dict[str, list[str]] = {}
    for name in order:
        above = max(needs[name], key=order.index, default="")
        below.setdefault(above, []).append(name)
    heads: list[tuple[str, str, str]] = []  # (text in front, name, step that it is below)
    left = [("", name, "", True) for name in reversed(below.get("", []))]
    while left:
        lead, name, above, is_first_level = left.pop()
        heads.append((lead, name, above))
        inner = below.get(name, [])
        rest = "" if is_first_level else f"{lead[:-3]}{'   ' if lead.endswith('└─ ') else '│  '}"
        left += [
            (f"{rest}{'└─ ' if each == inner[-1] else '├─ '}", each, name, False)
            for each in reversed(inner)
        ]
    width = max((len(lead) + len(name) for lead, name, _ in heads), default=0)
    return [
        f"{lead}{name}{' ' * (width - len(lead) - len(name))}  "
        f"{line(state.steps[name])}{_others(needs[name], above)}"
        for lead, name, above in heads
    ]


def _others(needs: Iterable[str], above: str) -> str:
    others = [each for each in needs if each != above]
    return f", after {', '.join(others)}" if others else ""


def line(step: StepState) -> str:
    """Return a step's state in a few words: `Completed in 3.2 s`."""
    if step.is_reused:
        return f"{step.status}, reused from {step.job}"
    return (
        f"{step.status} in {step.seconds:.1f} s"
        if step.status in graph.TERMINAL and step.started
        else step.status
    )


def changed(before: State, now: State) -> list[str]:
    """Return a line for each step that has another state now."""
    return [
        f"{name}: {line(each)}"
        for name, each in now.steps.items()
        if each.status != before.steps[name].status
    ]


def first_failed(state: State) -> str | None:
    """Return the step that failed first; None: none did."""
    failed = {
        name: each.started + each.seconds
        for name, each in state.steps.items()
        if each.status == graph.FAILED
    }
    return min(failed, key=lambda name: failed[name], default=None)


def failure(name: str, state: State) -> str:
    """Return how the pipeline `name` failed: the step, and what it failed of."""
    step = first_failed(state)
    if step is None:
        return f"pipeline {name} failed: {state.cause}"
    others = [
        each for each, about in state.steps.items() if about.status == graph.FAILED and each != step
    ]
    also = f"\n  failed too: {', '.join(others)}" if others else ""
    unfinished = [
        each
        for each, about in state.steps.items()
        if about.status in (graph.CANCELED, graph.NOT_STARTED)
    ]
    rest = f"\n  {_counted(state)}" if unfinished else ""
    return f"pipeline {name}: step {step} failed: {state.steps[step].cause}{also}{rest}"


def _counted(state: State) -> str:
    counts: dict[str, list[str]] = {}
    for name, each in state.steps.items():
        counts.setdefault(each.status, []).append(name)
    words = {
        graph.CANCELED: "canceled",
        graph.NOT_STARTED: "never started",
        graph.RUNNING: "left running",
    }
    return "; ".join(
        f"{words[status]}: {', '.join(names)}"
        for status, names in counts.items()
        if status in words
    )


def lost(name: str, state: State) -> str:
    """Return what is known of a pipeline whose driver's process was lost."""
    what = _counted(state)
    return (
        f"pipeline {name} has no driver any more: the process {state.pid or 'of it'} on "
        f"{state.host or 'its host'} was lost with its cluster"
        + (f"\n  {what}" if what else "")
        + "\n  submit it again: steps that have ended well are reused"
    )


def say(lines: Iterable[str]) -> None:
    """Print lines on stderr."""
    for each in lines:
        status_lines.say(each)
