"""When processes for tasks are asked for and given back.

Pure: a clock's readings come in, orders go out.

* While tasks wait, processes are asked for: one for each task, but for quick ones no more than
  would still find work by the time they come (COMES_S). ASKED_MAX at a time; the cluster places
  them as it has room.
* One that has been idle for IDLE_S goes back; at once if tasks of another kind wait here, who may
  need its room; all but one after COMES_S if the head said within TURN_S that somebody else has
  begun to wait for such room.
* What was asked for and has no room yet is withdrawn when nothing waits any more, which is looked
  at when a process has nothing to do. One that starts is let come, and goes as an idle one does:
  where processes start slower than tasks come and go, none would ever be there otherwise.
* A task that waits for others lends them its CPU: as many processes as have room in it come for
  what waits.
* Where others of the cluster wait for what is held here although tasks wait here too, the process
  that was held longest, and for TURN_S at least, goes after the task that it runs, and what was
  asked for is asked for anew, behind them.
* One that takes no more tasks (its function's max_calls, a lost connection) goes once nothing is
  with it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

IDLE_S = 1.0
COMES_S = 0.02
ASKED_MAX = 8
LOOK_S = 1.0
TURN_S = 5.0


@dataclasses.dataclass(frozen=True)
class Lane:
    """A process that is there."""

    lane: int
    tasks: int
    open: bool
    since: float  # seconds: since it became idle, or since its last answer
    held: float = 0.0  # seconds
    wanted: bool = False  # true if others of the cluster want its room


@dataclasses.dataclass(frozen=True)
class View:
    """The known state of the tasks of one kind, and of the processes for them."""

    waiting: int
    work: float  # seconds that one process would take for what waits
    lanes: Sequence[Lane]
    asked: int  # processes that have not come, with those that start
    others_wait: bool  # tasks of another kind of this process wait
    strangers_wait: bool = False  # others of the cluster do
    may_borrow: int = 0  # processes that have room in what the task here, which waits, holds
    starting: int = 0  # requests of `asked` that have room, and start there


@dataclasses.dataclass(frozen=True)
class Orders:
    """The actions that the plan orders."""

    ask: int
    withdraw: bool  # withdraw requests that have no room yet
    give_back: tuple[int, ...]
    look_again: float | None  # seconds; None: not before something happens
    borrow: int = 0
    end: int | None = None  # a process that is to get no more tasks
    when_idle: bool = False  # look again when one more process has nothing to do


def decide(view: View) -> Orders:
    """See the module's text."""
    kept = max(
        (lane for lane in view.lanes if lane.open),
        key=lambda lane: (lane.tasks, -lane.since),
        default=None,
    )
    idle_most = {
        lane.lane: COMES_S if lane.wanted and lane is not kept else IDLE_S for lane in view.lanes
    }
    give_back = tuple(
        lane.lane
        for lane in view.lanes
        if lane.tasks == 0
        and (
            not lane.open
            or (view.waiting == 0 and (view.others_wait or lane.since >= idle_most[lane.lane]))
        )
    )
    unplaced = view.asked > view.starting
    if view.waiting == 0:
        left = [lane for lane in view.lanes if lane.lane not in give_back]
        return Orders(
            0,
            unplaced,
            give_back,
            _next_look(left, idle_most),
            when_idle=any(lane.wanted for lane in left),
        )
    borrow = min(view.waiting, view.may_borrow)
    if borrow:
        return Orders(0, False, give_back, COMES_S, borrow)
    moving = sum(lane.open and lane.since < COMES_S for lane in view.lanes)
    wanted = min(view.waiting, max(math.ceil(view.work / COMES_S) - moving, 0 if moving else 1))
    ask = max(0, min(wanted, ASKED_MAX) - view.asked)
    full = view.asked + ask >= ASKED_MAX
    oldest = max(
        (lane for lane in view.lanes if lane.open), key=lambda lane: lane.held, default=None
    )
    end = (
        oldest.lane
        if oldest is not None and view.strangers_wait and oldest.held >= TURN_S
        else None
    )
    if end is not None:
        return Orders(0, unplaced, give_back, LOOK_S, end=end)
    return Orders(ask, False, give_back, LOOK_S if full else COMES_S, when_idle=True)


def _next_look(left: Sequence[Lane], idle_most: Mapping[int, float]) -> float | None:
    if not left:
        return None
    idle = [
        max(idle_most[lane.lane] - lane.since, 0.001)
        for lane in left
        if lane.open and lane.tasks == 0
    ]
    return min(idle, default=LOOK_S)
