"""The processes of trials: actors, asked for ahead of the room for them, and what is heard of
them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import troupe
from troupe import exceptions, state
from troupe._actors import classes
from troupe._cluster import session
from troupe._code import environment, failures
from troupe._wire import FailureKind
from troupe.tune import _resources
from troupe.tune._core import events as ev
from troupe.tune._errors import TrialFailedError
from troupe.tune._run.host import TrialHost
from troupe.tune._run.waits import Waits
from troupe.util import placement_group, remove_placement_group
from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy

FUNCTION_INLINE_BYTES_MAX = 64 << 10
_WITH_NODE = (
    FailureKind.NODE_LOST,
    FailureKind.NODE_UNREACHABLE,
    FailureKind.NODE_LEAVES,
)


@dataclass
class Held:
    """A place: its actor and, once its process is there, where that is."""

    actor: Any
    group: Any = None
    """The placement group of a trial that holds several bundles."""
    about: Mapping[str, Any] | None = None
    trial: str = ""
    attempt: int = 0


class TrialPlaces:
    """The places of one engine.

    `pickled`: the function, as it travels; `parameters`: what goes with it; `options`: of the
    actors, beside what they hold.
    """

    def __init__(
        self,
        name: str,
        pickled: bytes,
        parameters: Mapping[str, Any],
        waits: Waits,
        options: Mapping[str, Any],
    ) -> None:
        self._name = name
        self._pickled: Any = (
            pickled if len(pickled) <= FUNCTION_INLINE_BYTES_MAX else troupe.put(pickled)
        )
        self._parameters = {name: troupe.put(value) for name, value in parameters.items()}
        self._options: dict[str, Mapping[str, Any]] = {}
        self._given = options
        self._environment = environment.build(
            options.get("runtime_env"),
            session=session.current(),
            preimport=options.get("preimport") or (),
        )
        self._held: dict[int, Held] = {}
        self._waits = waits
        self._refs: dict[int, Any] = {}
        self._by_trial: dict[tuple[str, int], int] = {}

    def ask(self, place: int, shape: str) -> ev.Event | None:
        """Asks for a process; what happened at once, if it did."""
        options = self._options.get(shape)
        if options is None:
            options = self._options[shape] = (
                troupe.remote(TrialHost)
                .options(**_resources.options_of(shape, self._given))
                ._options
            )
        bundles, strategy = _resources.bundles_of(shape)
        group = None
        try:
            if strategy:
                group = placement_group(
                    bundles, strategy=strategy, **_resources.group_options(bundles, self._given)
                )
                options = {
                    **options,
                    "scheduling_strategy": PlacementGroupSchedulingStrategy(
                        group, 0, placement_group_capture_child_tasks=True
                    ),
                }
            actor = classes.create(
                TrialHost,
                (self._name, self._pickled, self._parameters),
                {},
                options,
                environment=self._environment,
            )
        except exceptions.PlacementError as error:
            return ev.PlaceLost(place, f"a trial can never be placed: {error}", fatal=True)
        self._held[place] = Held(actor, group)
        self._wait(place, actor.about.remote())
        return None

    def start(self, place: int, trial: str, attempt: int, *arguments: Any) -> None:
        """Runs the attempt in an idle place. `arguments`: of TrialHost.begin."""
        held = self._held[place]
        held.trial, held.attempt = trial, attempt
        self._by_trial[trial, attempt] = place
        self._wait(place, held.actor.begin.remote(*arguments))

    def answer(self, trial: str, attempt: int, words: str) -> None:
        """Lets the attempt's report return; with words, raise.

        Nothing where its process is given up.
        """
        place = self._by_trial.get((trial, attempt))
        if place is not None:
            self._wait(place, self._held[place].actor.next.remote(words))

    def give_up(self, place: int) -> None:
        """Ends the process, whatever it does."""
        held = self._held.pop(place, None)
        ref = self._refs.pop(place, None)
        if ref is not None:
            self._waits.drop(ref)
        if held is not None:
            self._by_trial.pop((held.trial, held.attempt), None)
            with contextlib.suppress(exceptions.TroupeError):
                troupe.kill(held.actor)
                if held.group is not None:
                    remove_placement_group(held.group)

    def close(self) -> None:
        """Ends them all."""
        for place in list(self._held):
            self.give_up(place)

    def _wait(self, place: int, ref: Any) -> None:
        self._refs[place] = ref
        self._waits.add(ref, lambda ref: self._event(place, ref))

    def _event(self, place: int, ref: Any) -> ev.Event:
        held = self._held[place]
        del self._refs[place]
        try:
            value = troupe.get(ref)
        except exceptions.TroupeError as error:
            return self._failed(place, held, error)
        if held.about is None:
            held.about = value
            return ev.Granted(place, value)
        trial, attempt = held.trial, held.attempt
        if isinstance(value, bool):
            self._left(held)
            return ev.Exited(trial, attempt, clean=value)
        sequence, metrics, checkpoint, seconds = value
        return ev.Reported(trial, attempt, sequence, metrics, checkpoint, seconds)

    def _failed(self, place: int, held: Held, error: exceptions.TroupeError) -> ev.Event:
        if not held.trial:
            return ev.PlaceLost(place, str(error))
        cause = (
            error.cause
            if isinstance(error, exceptions.TaskError) and isinstance(error.cause, BaseException)
            else error
        )
        lost = went_with_a_node(cause) or (cause is error and self._node_is_gone(held))
        # Nobody knows what became of the process; it is ended, and what it did with its connection
        # is not the trial's doing.
        counts = not lost and not (
            cause is error and isinstance(error, exceptions.ActorUnavailableError)
        )
        kind = type(cause).__name__
        trial, attempt = held.trial, held.attempt
        self._left(held)
        words = (
            cause
            if cause is error
            else "\n  ".join(
                [
                    failures.first_line(cause),
                    *getattr(error, "remote_traceback", "").rstrip().splitlines(),
                ]
            )
        )
        raised = exceptions.with_type_of(TrialFailedError, cause, f"trial {trial}: {words}")
        return ev.Exited(
            trial,
            attempt,
            ev.Failure("NodeLost" if lost else kind, str(words), counts=counts, raised=raised),
        )

    def _left(self, held: Held) -> None:
        del self._by_trial[held.trial, held.attempt]
        held.trial, held.attempt = "", 0

    def _node_is_gone(self, held: Held) -> bool:
        if held.about is None:
            return False
        with contextlib.suppress(exceptions.TroupeError):
            return not any(
                each["alive"] and each["state"] != "draining"
                for each in state.list_nodes()
                if each["node_id"] == held.about["node"]
            )
        return False


def went_with_a_node(error: BaseException) -> bool:
    """Return True if the process named in the error ended with its node: the trial's own, or
    another one of its gang."""
    return isinstance(error, exceptions.NodeDiedError) or (
        isinstance(error, exceptions.ActorError) and error.failure_kind in _WITH_NODE
    )
