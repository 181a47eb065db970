"""Handles of placement groups, as `troupe.util.placement_group` gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from troupe import _pickled, exceptions
from troupe._base.identity import HexID
from troupe._cluster import session as _session


class PlacementGroup:
    """A handle of a group; can be passed to other processes of the cluster."""

    def __init__(self, identity: str, bundles: Sequence[Mapping[str, float]]) -> None:
        self.id = HexID(identity)
        self._bundles = [dict(bundle) for bundle in bundles]
        self.used = True  # somebody else may know it, or something be in it

    def __repr__(self) -> str:
        return f"<placement group {self.id[:8]}, {self.bundle_count} bundles>"

    def __reduce__(self) -> tuple[Any, ...]:
        self.used = True
        return PlacementGroup, (str(self.id), self._bundles)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlacementGroup) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def bundle_specs(self) -> list[dict[str, float]]:
        """The bundles as they were asked for."""
        return [dict(bundle) for bundle in self._bundles]

    @property
    def bundle_count(self) -> int:
        """How many bundles there are."""
        return len(self._bundles)

    @property
    def is_empty(self) -> bool:
        """True if the handle names no group."""
        return not self.id

    def ready(self) -> Any:
        """A ref of the group itself, there when all bundles are reserved.

        `get` raises TaskPlacementGroupRemoved once the group is removed, PlacementError when it can
        no longer be placed.
        """
        from troupe._base import calls as _calls

        promise = _calls.Promise()
        session = _session.current()

        def news(info: dict[str, Any], _: bytes) -> None:
            if info["state"] == "created":
                promise.set_value(self)
            elif info["state"] == "removed":
                promise.set_error(exceptions.TaskPlacementGroupRemoved(f"{self!r} was removed"))
            elif info["state"] == "infeasible":
                promise.set_error(exceptions.PlacementError(info["reason"]))

        _watch(session, self.id)
        session.board.subscribe("group", self.id, news, promise.set_error)
        return promise.ref

    def wait(self, timeout_seconds: float = 30) -> bool:
        """Return True if all bundles are reserved, blocking for up to `timeout_seconds`."""
        session = _session.current()
        _watch(session, self.id)
        try:
            info, _ = session.board.wait("group", self.id, _is_decided, timeout_seconds)
        except TimeoutError:
            return False
        return bool(info["state"] == "created")


def _is_decided(info: dict[str, Any]) -> bool:
    return info["state"] in ("created", "removed", "infeasible")


def _watch(session: _session.Session, identity: str) -> None:
    """Asks to be told of a group somebody else created; of this session's own the head tells
    anyway."""
    if session.board.get("group", identity) is None and not session.board.follows(
        "group", identity
    ):
        _, update, _ = session.request("GetGroup", {"group": identity, "watch": True})
        session.board.post_reply("group", identity, update["info"])


_pickled.named_in("troupe.util.placement_group", PlacementGroup)
