"""Rules by which a link follows the head's reports of its actor. Pure: states come in, orders go
out.

* LS-1 Word may be overtaken by later word: of an actor that is alive, what is not of a later life
  changes nothing.
* LS-2 A life that is over ends what is under way to it, once; the next one gets calls, once, when
  it is alive.
* LS-3 An actor that is dead is so for good: no word of it but the verdict itself changes anything.
* LS-4 Out of reach passes: calls end, and the first word of another kind begins anew.
* LS-5 While it is started again, calls that do not wait for that are refused.
* LS-6 A process that waits for what its constructor is given gets that once. Once it is alive and
  will not be made again, or is dead, nobody needs it any more.

Whose view: one link's, whose lock is held around all of it; the link (`link.py`) carries the orders
out, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator

# Orders.
FREE = "free"  # the constructor's arguments are not needed any more
END = "end"  # the actor is dead: all calls end, and the session forgets it
LOSE_SIGHT = "lose sight"  # nobody knows what runs there: calls end, until there is word of it
RENEW = "renew"  # there is: the next call takes another channel, with no error
BRING = "bring"  # the process that is starting waits for what its constructor is given
REFUSE = "refuse"  # the actor is being restarted
RETIRE = "retire"  # the life that was known is over: calls under way to it end
AIM = "aim"  # the actor is alive, and calls go there


class LinkState:
    """The state of an actor as its link knows it: `told` applies the head's reports, the other
    functions what the link itself has learnt."""

    __slots__ = (
        "_brought",
        "_brought_incarnation",
        "alive",
        "failed",
        "incarnation",
        "out_of_reach",
        "restarts",
    )

    def __init__(self) -> None:
        self.incarnation = 0  # number of the current or last life
        self.restarts = 0  # before it
        self.alive = False
        self.failed = False  # calls end with an error: it is dead, or nobody knows
        self.out_of_reach = False  # the error may pass: its node is lost without a verdict
        self._brought = ""  # the process that was last, and of which incarnation
        self._brought_incarnation = 0

    def told(
        self,
        state: str,
        *,
        incarnation: int,
        restarts: int,
        process: str,
        gives: bool,
        restartable: bool,
    ) -> tuple[str, ...]:
        """The head says that the actor is in `state`; returns what is to be done, in this order.
        `process`: the one that is starting, "" where there is none yet; `gives`: its constructor is
        given something from here; `restartable`: that may run again."""
        return tuple(self._orders(state, incarnation, restarts, process, gives, restartable))

    def _orders(
        self,
        state: str,
        incarnation: int,
        restarts: int,
        process: str,
        gives: bool,
        restartable: bool,
    ) -> Iterator[str]:
        if state == "dead" or (state == "alive" and not restartable):
            yield FREE
        if state == "dead":
            self.fail()
            self.out_of_reach = False
            yield END
        elif state == "unavailable":
            if not self.failed:
                self.fail()
                self.out_of_reach = True
                yield LOSE_SIGHT
        else:
            if self.out_of_reach:
                self.out_of_reach = self.failed = False
                yield RENEW
            if not self.failed:
                yield from self._lives(state, incarnation, restarts, process, gives)

    def _lives(
        self, state: str, incarnation: int, restarts: int, process: str, gives: bool
    ) -> Iterator[str]:
        if state == "starting" and gives and process and self._is_to_bring(process, incarnation):
            yield BRING
        later = incarnation > self.incarnation
        # The actor is being restarted; or a later report already said that it is alive
        if state != "alive":
            if restarts > self.restarts:
                yield REFUSE
            if self.alive and later:
                self.alive = False
                yield RETIRE
        elif later or not self.alive:
            if self.alive:
                yield RETIRE
            self.incarnation, self.restarts, self.alive = incarnation, restarts, True
            yield AIM

    def _is_to_bring(self, process: str, incarnation: int) -> bool:
        # A worker that was started anew begins the same incarnation again, in another process.
        if incarnation < self._brought_incarnation or process == self._brought:
            return False
        self._brought, self._brought_incarnation = process, incarnation
        return True

    def fail(self) -> None:
        """Calls end with an error from now on."""
        self.failed, self.alive = True, False

    def suspect(self) -> None:
        """Mark the actor as not alive after its process disappeared, until the head reports what
        happened."""
        self.alive = False
