"""Ray's `ray.util.debug`: a line of a log that is to come once.

if log_once("slow loader"): logger.warning("the loader is slower than the model")
"""

from __future__ import annotations

import time

_PERIOD_S = 60.0
_KEYS_MAX = 10_000  # from then on the oldest are forgotten, and come once more
_seen: dict[str, None] = {}
_disabled = _periodic = False
_last_s = 0.0


def log_once(key: str) -> bool:
    """Return True if this process asks for the first time with this key; see
    disable_log_once_globally, enable_periodic_logging."""
    global _last_s
    now = time.monotonic()
    if _disabled:
        return False
    if key in _seen:
        if _periodic and now - _last_s > _PERIOD_S:
            _seen.clear()  # from the next call on
            _last_s = now
        return False
    if len(_seen) >= _KEYS_MAX:
        del _seen[next(iter(_seen))]
    _seen[key] = None
    _last_s = now
    return True


def reset_log_once(key: str | None = None) -> None:
    """Forgets a key, or all of them."""
    if key is None:
        _seen.clear()
    else:
        _seen.pop(key, None)


def disable_log_once_globally() -> None:
    """From now on log_once() is False in this process."""
    global _disabled
    _disabled = True


def enable_periodic_logging() -> None:
    """From now on log_once() forgets its keys once a minute."""
    global _periodic
    _periodic = True


__all__ = ["disable_log_once_globally", "enable_periodic_logging", "log_once", "reset_log_once"]
