"""Shares of a launch that ranks use while the driver runs a function on them: leased, and given
back after.

A rank process holds nothing of the launch's resources while it waits, so that the driver's actors
may use them. While `current().run` runs, they are the ranks'. The head decides: what is held is a
group of its own.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from troupe import exceptions
from troupe._base.identity import new_id
from troupe._cluster import resources, session as _session, status_lines

NOTICE_AFTER_S = 2.0


class ShareHold:
    """The shares that a run holds.

    `parts`: refs of what runs on other ranks, which may outlast the run's timeout.
    """

    def __init__(self, session: _session.Session) -> None:
        self.session = session
        self.group = new_id()
        self.parts: list[Any] = []

    def end(self) -> None:
        """Gives the share back, once no part uses it any more."""
        unfinished = [part for part in self.parts if not part.done()]
        if unfinished:
            threading.Thread(
                target=self._end_after, args=(unfinished,), name="troupe-share", daemon=True
            ).start()
        else:
            self._give_back()

    def _end_after(self, unfinished: list[Any]) -> None:
        from troupe._base import calls as _calls

        while unfinished:
            unfinished = _calls.wait(unfinished, 1)[1]
        self._give_back()

    def _give_back(self) -> None:
        # The worker carries the request to the head also when that is away for longer than the wait
        # here.
        with contextlib.suppress(exceptions.TroupeError):
            self.session.request("RemoveGroup", {"group": self.group})
        self.session.board.forget("group", self.group)


@contextlib.contextmanager
def leased(context: Any, rank: int | None, timeout: float | None) -> Iterator[ShareHold]:
    """Holds the share of `rank`, of all ranks for None, for the length of the block.

    Waits until it is free, and says on stderr whom it waits for. Raises GetTimeoutError naming the
    holders after `timeout` seconds.
    """
    hold = ShareHold(_session.current())
    if not context.resources_per_rank:
        yield hold
        return
    try:
        _wait(hold.session, context, hold.group, rank, timeout)
        yield hold
    finally:
        hold.end()


def _wait(
    session: _session.Session, context: Any, group: str, rank: int | None, timeout: float | None
) -> None:
    started = time.monotonic()
    fields = {"group": group, "shares": True, "share_rank": -1 if rank is None else rank}
    info = _ask(session, "CreateGroup", fields, started, timeout)
    session.board.post_reply("group", group, info)
    noticed = False
    while True:
        left = None if timeout is None else max(0.0, started + timeout - time.monotonic())
        patience = (
            left if noticed else min(NOTICE_AFTER_S, NOTICE_AFTER_S if left is None else left)
        )
        try:
            state = session.board.wait("group", group, _settled, patience)[0]
        except TimeoutError:
            why = _ask(session, "GetGroup", {"group": group}, started, None)["reason"]
            if timeout is not None and time.monotonic() >= started + timeout:
                raise exceptions.GetTimeoutError(
                    f"{_what(rank)} waited {timeout:g} s for {_whose(rank, context)}: "
                    f"{why or 'no node answered'}\n"
                    "  end the actors or remove the placement group that hold it, or give them less"
                ) from None
            noticed = True
            status_lines.say(f"troupe: {_what(rank)} waits for {_whose(rank, context)}: {why}")
            continue
        if state["state"] == "created":
            return
        raise exceptions.TroupeError(f"{_what(rank)}: {state['reason'] or 'the launch is over'}")


def _settled(info: dict[str, Any]) -> bool:
    return info["state"] in ("created", "removed", "infeasible")


def _ask(
    session: _session.Session,
    kind: str,
    fields: dict[str, Any],
    started: float,
    timeout: float | None,
) -> dict[str, Any]:
    """The GroupInfo of an answer.

    A head that is away is waited for: what runs goes on without it.
    """
    while True:
        try:
            found: dict[str, Any] = session.request(kind, fields)[1]["info"]
            return found
        except exceptions.GetTimeoutError:
            if timeout is not None and time.monotonic() >= started + timeout:
                raise


def _what(rank: int | None) -> str:
    return "current().run" if rank is None else f"a run on rank {rank}"


def _whose(rank: int | None, context: Any) -> str:
    amounts = resources.describe(context.resources_per_rank)
    return (
        f"the ranks' share of the launch, {context.world_size} x {amounts}"
        if rank is None
        else f"its share of the launch, {amounts}"
    )
