"""Is a history of concurrent operations on values and markers one that a single head could have
given?

Values: every key is a register with a version. The checker looks for an order of all operations
that keeps real time (what ended before another began comes before it) and in which every answer is
right: the method of Wing and Gong with Lowe's memory of states already tried. An operation whose
outcome is not known may have happened at any time after it began, or not at all. Keys are checked
apart.

Markers: write-once. Everybody who learns of a launch's end must have learnt the same one.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

UNKNOWN = object()
Register = tuple[Any, int] | None  # (value, version), or None while there is none


@dataclass
class Operation:
    """A call: what was asked, from when to when, and the answer."""

    key: str
    kind: str  # put, create, erase, get
    value: Any
    began: float
    ended: float = float("inf")
    answer: Any = UNKNOWN


@dataclass
class Recorder:
    """Collects operations; methods may be called from any thread."""

    operations: list[Operation] = field(default_factory=list)
    outcomes: dict[str, set] = field(default_factory=lambda: defaultdict(set))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, key: str, kind: str, value: Any = None) -> Operation:
        operation = Operation(key, kind, value, time.monotonic())
        with self._lock:
            self.operations.append(operation)
        return operation

    @staticmethod
    def end(operation: Operation, answer: Any) -> None:
        operation.ended, operation.answer = time.monotonic(), answer

    def outcome(self, launch: str, outcome: Any) -> None:
        """Somebody was told how a launch ended."""
        with self._lock:
            self.outcomes[launch].add(outcome)


def step(state: Register, operation: Operation) -> tuple[Any, Register]:
    """Return the answer of a register in `state`, and its state after."""
    if operation.kind == "get":
        return state, state
    if operation.kind == "erase":
        return ("ok", None) if state is not None else ("missing", None)
    if operation.kind == "create" and state is not None:
        return "exists", state
    return "ok", (operation.value, 1 if state is None else state[1] + 1)


def linearizable(operations: list[Operation]) -> bool:
    """Return True if the operations of one key have such an order.

    Iterative; memory grows with concurrency alone.
    """
    pending = sorted(operations, key=lambda each: each.began)
    must = frozenset(i for i, each in enumerate(pending) if each.answer is not UNKNOWN)
    tried: set[tuple[frozenset, int, Register]] = set()
    stack: list[tuple[int, frozenset, Register]] = [(0, frozenset(), None)]
    while stack:
        first, done, state = stack.pop()
        while first in done:
            done, first = done - {first}, first + 1
        if all(i < first or i in done for i in must):
            return True
        if (done, first, state) in tried:
            continue
        tried.add((done, first, state))
        horizon = min(
            pending[i].ended
            for i in itertools.chain(i for i in range(first, len(pending)) if i not in done)
        )
        for i in range(first, len(pending)):
            each = pending[i]
            if each.began > horizon:
                break
            if i in done:
                continue
            answer, after = step(state, each)
            if each.answer is UNKNOWN or answer == each.answer:
                stack.append((first, done | {i}, after))
            if each.answer is UNKNOWN:  # never happened
                stack.append((first, done | {i}, state))
    return False


def violations(recorder: Recorder) -> list[str]:
    """Return the answers that no single head could have given; empty when all is well."""
    by_key: dict[str, list[Operation]] = defaultdict(list)
    for operation in recorder.operations:
        by_key[operation.key].append(operation)
    found = [
        f"the history of {key!r} has no order:\n" + "\n".join(f"    {each}" for each in operations)
        for key, operations in sorted(by_key.items())
        if not linearizable(operations)
    ]
    found += [
        f"launch {launch} ended in more than one way: {sorted(map(str, outcomes))}"
        for launch, outcomes in recorder.outcomes.items()
        if len(outcomes) > 1
    ]
    return found
