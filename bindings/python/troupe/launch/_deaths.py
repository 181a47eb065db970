"""Options about deaths of ranks: `on_rank_death`, `min_processes`, `reform_timeout`,
`hang_timeout`. Pure."""

from __future__ import annotations

from typing import Any

from troupe._base import checks as _checks

HANG_MIN_S = 1.0
_POLICIES = ("fail", "shrink", "replace")


def check(
    ranks: int,
    on_rank_death: str,
    least: int | None,
    reform_timeout: float,
    hang_timeout: float | None,
) -> None:
    """Raises TypeError or ValueError, which say what could be meant."""
    if on_rank_death not in _POLICIES:
        raise ValueError(
            "on_rank_death must be 'fail' (a rank's death is the launch's failure), 'shrink' (the "
            "others go on without it) or 'replace' (another "
            f"process takes its place), not {on_rank_death!r}"
        )
    if not _is_seconds(reform_timeout, 0) or not reform_timeout > 0:
        raise ValueError(
            f"reform_timeout must be more than 0 and at most {_checks.GRACE_MAX_S:.0f} seconds, "
            f"not {reform_timeout!r}"
        )
    if hang_timeout is not None and not _is_seconds(hang_timeout, HANG_MIN_S):
        raise ValueError(
            f"hang_timeout must be {HANG_MIN_S:g} to {_checks.GRACE_MAX_S:.0f} seconds, or None: "
            "who keeps others waiting is only warned of; "
            f"not {hang_timeout!r}"
        )
    if on_rank_death == "fail":
        if least is not None:
            raise TypeError(
                "min_processes= goes with on_rank_death='shrink' or 'replace': by default all "
                "ranks must live"
            )
        return
    if ranks < 2:
        raise ValueError(
            f"on_rank_death={on_rank_death!r} needs at least 2 ranks: of one, nobody is left to go "
            "on"
        )
    if least is None:
        return
    if isinstance(least, bool) or not isinstance(least, int) or least < 1:
        raise TypeError(f"min_processes must be a whole number of at least 1, not {least!r}")
    if least >= ranks:
        raise ValueError(
            f"min_processes must be 1 to {ranks - 1}, one less than the {ranks} ranks there are, "
            f"not {least}"
        )


def refuse_executed(name: str, fresh: bool, on_rank_death: str, hang_timeout: float | None) -> None:
    """Raises ValueError for what is executed in a rank's place, and hears nothing of the others."""
    asked = (
        f"on_rank_death={on_rank_death!r}"
        if on_rank_death != "fail"
        else f"hang_timeout={hang_timeout:g}"
        if hang_timeout
        else ""
    )
    if not asked:
        return
    why = (
        "which call troupe.train.attempts()"
        if on_rank_death != "fail"
        else "which say how far they are"
    )
    raise ValueError(
        f"{asked} is for scripts and modules, {why}: {name} is executed in the rank's place, and "
        "hears nothing of the others" + (": leave out fresh" if fresh else "")
    )


def _is_seconds(value: Any, least: float) -> bool:
    return (
        not isinstance(value, bool)
        and isinstance(value, (int, float))
        and least <= value <= _checks.GRACE_MAX_S
    )
