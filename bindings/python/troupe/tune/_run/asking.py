"""The searcher, where it is asked: by the engine's own thread, or elsewhere, with its answers among
what the engine waits for."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any

import troupe
from troupe._base import calls as _calls
from troupe._cluster import signals
from troupe.tune._core import events as ev
from troupe.tune._core.deciding import Proposal, Searcher, Where
from troupe.tune._journal import values
from troupe.tune._run.waits import Waits
from troupe.tune._search.apart import Apart


class Asked(ABC):
    """A searcher. Calls are made one at a time, in the order in which they came here."""

    @abstractmethod
    def ask(self, trial: str) -> ev.Proposed | None:
        """The answer, or None where it comes later, among what is waited for.

        Raises what the searcher's own code raises.
        """

    @abstractmethod
    def tell(self, call: ev.TellSearcher) -> None:
        """Send the searcher a call that has no answer."""

    @abstractmethod
    def finish(self, patience_s: float) -> int:
        """Make the last calls: what the searcher was told, then `Searcher.over`.

        Blocks.

        Returns how many calls were not made, since one of them took longer than `patience_s`; 0
        when the searcher has heard everything. Raises what the searcher's own code raises.
        """

    @abstractmethod
    def close(self) -> None:
        """No more calls come, and those that wait are dropped."""


class Here(Asked):
    """By the engine's thread."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def ask(self, trial: str) -> ev.Proposed | None:
        return _proposed(trial, self._searcher.propose(trial), self._searcher.finished())

    def tell(self, call: ev.TellSearcher) -> None:
        getattr(self._searcher, call.call)(*call.arguments)

    def finish(self, patience_s: float) -> int:
        self._searcher.over()
        return 0

    def close(self) -> None:
        return


class Elsewhere(Asked):
    """By a thread of its own, in a process of its own perhaps; what a call raises comes out of the
    engine's next wait."""

    def __init__(self, searcher: Searcher, waits: Waits) -> None:
        self._waits = waits
        self._promises: dict[str, _calls.Promise] = {}
        self._answers: dict[str, tuple[Proposal | None, bool]] = {}
        self._failed: list[Exception] = []
        self._failure = _calls.Promise()
        waits.add(self._failure.ref, self._raise)
        self._apart = Apart(searcher, self._on_answer, self._on_failure)

    def ask(self, trial: str) -> ev.Proposed | None:
        promise = self._promises[trial] = _calls.Promise()
        self._waits.add(promise.ref, lambda ref: _proposed(trial, *self._answers.pop(trial)))
        self._apart.propose(trial)
        return None

    def tell(self, call: ev.TellSearcher) -> None:
        getattr(self._apart, call.call)(*call.arguments)

    def finish(self, patience_s: float) -> int:
        self._apart.finish()
        made, deadline = self._apart.made, time.monotonic() + patience_s
        while not self._apart.wait_for_end(signals.at_most(max(0.0, deadline - time.monotonic()))):
            if self._apart.made != made:
                made, deadline = self._apart.made, time.monotonic() + patience_s
            elif time.monotonic() >= deadline:
                return self._apart.waiting() + 1
        if self._failed:
            raise self._failed[0]
        return 0

    def close(self) -> None:
        self._waits.drop(self._failure.ref)
        self._apart.close()

    def _on_answer(self, trial: str, proposal: Proposal | None, finished: bool) -> None:
        self._answers[trial] = proposal, finished
        self._promises.pop(trial).set_value(None)

    def _on_failure(self, error: Exception) -> None:
        self._failed.append(error)
        self._failure.set_value(None)

    def _raise(self, ref: Any) -> None:
        troupe.get(ref)
        raise self._failed[0]


def _proposed(trial: str, proposal: Proposal | None, finished: bool) -> ev.Proposed:
    """The answer, with numbers of numpy as Python's own."""
    if proposal is not None:
        proposal = Proposal(values.plain_scalars(proposal.config), proposal.extra)
    return ev.Proposed(trial, proposal, finished)


def asked(searcher: Searcher, waits: Waits) -> Asked:
    """Return the adapter for the place where the searcher is to be asked."""
    return Here(searcher) if searcher.where is Where.HERE else Elsewhere(searcher, waits)
