"""The searcher, where it is asked: by the engine's own thread, by one of its own, or in a process of its own."""
from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from queue import SimpleQueue
from typing import Any

import troupe
from troupe import _calls, _pickled, exceptions
from troupe.tune._core import events as ev
from troupe.tune._core.deciding import Proposal, Searcher, Where
from troupe.tune._journal import values
from troupe.tune._run.waits import Waits


def answer_of(searcher: Searcher, trial: str) -> tuple[Proposal | None, bool]:
    """A proposal, with numbers of numpy as Python's own, and whether it was the last."""
    proposal = searcher.propose(trial)
    if proposal is not None:
        proposal = Proposal(values.plain_scalars(proposal.config), proposal.extra)
    return proposal, searcher.finished()


class Asked(ABC):
    """A searcher. Calls are made one at a time, in the order in which they came here."""

    @abstractmethod
    def ask(self, trial: str) -> ev.Proposed | None:
        """The answer, or None where it comes later, among what is waited for. Raises what the searcher's own code raises."""

    @abstractmethod
    def tell(self, call: ev.TellSearcher) -> None:
        """One of its calls that have no answer."""

    def close(self) -> None:
        """No more calls come."""


class Here(Asked):
    """By the engine's thread."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def ask(self, trial: str) -> ev.Proposed | None:
        return ev.Proposed(trial, *answer_of(self._searcher, trial))

    def tell(self, call: ev.TellSearcher) -> None:
        getattr(self._searcher, call.call)(*call.arguments)


class OnThread(Asked):
    """By a thread of its own; what a call without an answer raises comes out with the next answer."""

    def __init__(self, searcher: Searcher, waits: Waits) -> None:
        self._searcher, self._waits = searcher, waits
        self._calls: SimpleQueue[tuple] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="troupe-searcher", daemon=True)
        self._thread.start()

    def ask(self, trial: str) -> ev.Proposed | None:
        promise = _calls.Promise()
        answer: list[Any] = []
        self._calls.put((trial, promise, answer))

        def heard(ref: Any) -> ev.Event | None:
            troupe.get(ref)
            if isinstance(answer[0], BaseException):
                raise answer[0]
            return ev.Proposed(trial, *answer[0])

        self._waits.add(promise.ref, heard)
        return None

    def tell(self, call: ev.TellSearcher) -> None:
        self._calls.put((call,))

    def close(self) -> None:
        self._calls.put(())

    def _run(self) -> None:
        failed: BaseException | None = None
        while call := self._calls.get():
            if len(call) == 1:
                try:
                    getattr(self._searcher, call[0].call)(*call[0].arguments)
                except BaseException as error:
                    failed = failed or error
                continue
            trial, promise, answer = call
            try:
                answer.append(failed or answer_of(self._searcher, trial))
            except BaseException as error:
                answer.append(error)
            promise.set_value(None)


class SearchHost:
    """The process of a searcher."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def __repr__(self) -> str:
        return type(self._searcher).__name__

    def ask(self, trial: str) -> tuple[Proposal | None, bool]:
        """See answer_of."""
        return answer_of(self._searcher, trial)

    def tell(self, call: str, arguments: tuple) -> None:
        """See Asked.tell."""
        getattr(self._searcher, call)(*arguments)


class InProcess(Asked):
    """In an actor, which holds no resources; what a call without an answer raises ends the sweep as the next answer would."""

    def __init__(self, searcher: Searcher, waits: Waits) -> None:
        self._waits = waits
        self._actor = troupe.remote(SearchHost).options(num_cpus=0).remote(searcher)

    def ask(self, trial: str) -> ev.Proposed | None:
        self._waits.add(self._actor.ask.remote(trial), lambda ref: ev.Proposed(trial, *troupe.get(ref)))
        return None

    def tell(self, call: ev.TellSearcher) -> None:
        self._waits.add(self._actor.tell.remote(call.call, call.arguments), lambda ref: troupe.get(ref))

    def close(self) -> None:
        try:
            troupe.kill(self._actor)
        except exceptions.TroupeError:
            return


def asked(searcher: Searcher, waits: Waits) -> Asked:
    """Where it says that it is to be asked."""
    if searcher.where is Where.HERE:
        return Here(searcher)
    return OnThread(searcher, waits) if searcher.where is Where.THREAD else InProcess(searcher, waits)


_pickled.named_in("troupe._pickled", SearchHost)
