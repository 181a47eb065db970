"""Values that a session keeps for the modules that declare them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

Value = TypeVar("Value")
_lock = threading.RLock()


class PerSession(Generic[Value]):
    """A value that each session has once, declared at the top of the module that it belongs to.

    Example:
        _versions: PerSession[dict[str, str]] = PerSession("node versions")
        _versions.of(session, dict)["a"] = "1.0"
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"PerSession({self._name!r})"

    def of(self, session: Any, make: Callable[[], Value]) -> Value:
        """Return the session's value, which `make` makes at its first use. Any thread."""
        with _lock:
            if self not in session.kept:
                session.kept[self] = make()
            return cast(Value, session.kept[self])

    def known(self, session: Any) -> Value | None:
        """Return the session's value; None where there is none, or no session."""
        return None if session is None else cast("Value | None", session.kept.get(self))

    def set(self, session: Any, value: Value) -> None:
        """Keep this value in place of the one before."""
        session.kept[self] = value

    def take(self, session: Any) -> Value | None:
        """Return the session's value, which it keeps no longer."""
        return cast("Value | None", session.kept.pop(self, None))
