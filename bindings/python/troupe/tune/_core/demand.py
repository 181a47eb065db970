"""Pure.

What a sweep wants next: places for its trials, configurations for new ones, and which trial an idle
place is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from troupe.tune._core.deciding import Choice, Resume
from troupe.tune._core.ledger import Ledger
from troupe.tune._core.places import Place, Places, State
from troupe.tune._core.rules import Rules
from troupe.tune._core.trial import Phase, Trial


class Demand:
    """The demand of one engine for processes.

    `shape`: of all trials; None: each has its own. `asked`: trials for which the searcher has been
    asked.
    """

    def __init__(
        self,
        rules: Rules,
        ledger: Ledger,
        places: Places,
        name_of: Callable[[int], str],
        shape: str | None,
    ) -> None:
        self._rules, self._ledger, self._places = rules, ledger, places
        self._name_of, self._shape = name_of, shape
        self.asked: dict[str, int] = {}  # with how much the searcher had been told by then
        self.blocked = False
        """Whether the searcher proposes nothing before another trial has reported or ended."""
        self._told = 0

    def on_told(self) -> None:
        """A trial has reported or ended, of which the searcher is told: it may have something to
        propose now."""
        self._told += 1
        self.blocked = False

    def on_nothing_proposed(self, asked: int | None) -> None:
        """The searcher has nothing to propose now, to a question that was in `asked`.

        It is asked again at once if it was told of a trial since.
        """
        self.blocked = asked is None or asked == self._told

    def can_propose(self) -> int:
        """How many more trials the searcher may be asked for."""
        if self._ledger.exhausted or self.blocked:
            return 0
        ahead, most = self._rules.ahead, self._rules.trials_max
        return (
            ahead
            if most is None
            else max(0, min(ahead, most - self._ledger.proposed - len(self.asked)))
        )

    def can_add(self) -> bool:
        """Return True if there is a trial to be started for the first time, or to be proposed."""
        return (
            bool(self.asked)
            or self.can_propose() > 0
            or any(self._ledger.trials[name].is_new for name in self._ledger.waiting)
        )

    def free_name(self) -> str:
        """Return a name that no trial has yet."""
        number = len(self._ledger.trials)
        while (name := self._name_of(number)) in self.asked or name in self._ledger.trials:
            number += 1
        return name

    def names_to_ask(self) -> list[str]:
        """Trials for which the searcher is to be asked now; they count as asked from here on."""
        fresh = sum(self._ledger.trials[name].is_new for name in self._ledger.waiting)
        found = []
        for _ in range(min(self.can_propose(), self._wanted() - fresh - len(self.asked))):
            found.append(self.free_name())
            self.asked[found[-1]] = self._told
        return found

    def changes(self) -> tuple[list[str], list[Place]]:
        """Shapes of places to be asked for, and places, asked for or idle, that nothing is to
        have."""
        wanted = self._wanted()
        if self._shape is not None:
            surplus = self._places.count(State.IDLE) + self._places.count(State.ASKED) - wanted
            if surplus <= 0:
                return [self._shape] * -surplus, []
            return [], [] if self.asked else [*self._places.asked(), *self._places.idle()][:surplus]
        needed = self._shapes()[:wanted]
        missing, unused = Counter(needed), []
        for place in [*self._places.idle(), *self._places.asked()]:
            if missing[place.shape] > 0:
                missing[place.shape] -= 1
            else:
                unused.append(place)
        return list(
            missing.elements()
        ), [] if self.asked else unused  # the trial that is being proposed may hold as much

    def _wanted(self) -> int:
        """How many places without a trial there should be: no more than may be asked for before
        there is room."""
        ahead = self._rules.ahead
        if self._rules.concurrent_max is not None:
            ahead = min(
                ahead,
                self._rules.concurrent_max
                - self._places.count(State.BUSY)
                - self._places.count(State.LEAVING),
            )
        demand = (
            len(self._ledger.waiting)
            + len(self.asked)
            + self.can_propose()
            + len(self._ledger.paused)
        )
        return max(0, min(ahead, demand))

    def _shapes(self) -> list[str]:
        """Return the shapes of the trials that would get a place now, in their order.

        An idle place for none of them is in their way.
        """
        trials = self._ledger.trials
        choice = self._ledger.scheduler.choose(self.can_add())
        found = [
            trials[name].shape
            for name in self._ledger.waiting
            if choice is Choice.NEW or not trials[name].is_new
        ]
        return [trials[choice.trial].shape, *found] if isinstance(choice, Resume) else found

    def trial_for(self, place: Place, now: float) -> tuple[Trial | None, str]:
        """The trial that is to have this idle place, and, where it is a paused one, why it is
        wanted again."""
        fresh = None
        for name in self._ledger.waiting:
            trial = self._ledger.trials[name]
            if trial.shape != place.shape:
                continue
            if trial.is_new:
                fresh = fresh or trial
            elif trial.retry_at <= now:
                return trial, ""
        choice = self._ledger.scheduler.choose(self.can_add())
        if not isinstance(choice, Resume):
            return (fresh if choice is Choice.NEW else None), ""
        trial = self._ledger.trials[choice.trial]
        if trial.phase is not Phase.PAUSED:
            raise ValueError(
                f"{self._rules.scheduler_name} wants to go on with trial {trial.id}, which is "
                f"{trial.phase.value}, not paused"
            )
        return (trial, choice.why or "wanted") if trial.shape == place.shape else (None, "")

    def is_complete(self) -> bool:
        """Return True if all trials there will be have been proposed."""
        return self._ledger.exhausted or (
            self._rules.trials_max is not None and self._ledger.proposed >= self._rules.trials_max
        )
