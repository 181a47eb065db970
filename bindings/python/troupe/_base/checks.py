"""Checks of options that several things have: their names, grace periods, modules imported ahead,
idempotency keys. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

_NONE_MEANT: Mapping[str, str] = MappingProxyType({})

EXIT_GRACE_S = 60.0
"""How long a rank's or an actor's end may take, where nobody says so."""
GRACE_MAX_S = 86_400.0
TORCH_BACKEND = "TROUPE_TORCH_BACKEND"
"""The variable that tells ranks which backend torch's groups have that name none."""


def check_grace(what: str, seconds: object) -> None:
    """Raises ValueError, which calls these seconds `what`, where they are no grace."""
    is_flag = isinstance(seconds, bool)
    if is_flag or not isinstance(seconds, (int, float)) or not 0 <= seconds <= GRACE_MAX_S:
        raise ValueError(f"{what} must be 0 to {GRACE_MAX_S:.0f} seconds, not {seconds!r}")


def check_preimport(modules: Iterable[str]) -> tuple[str, ...]:
    """The names of modules that are to be imported ahead.

    Raises TypeError or ValueError for what is no list of such names.
    """
    if isinstance(modules, str):
        raise TypeError(
            f"preimport must be a list of modules' names, not a text: preimport=[{modules!r}]"
        )
    names = tuple(modules)
    for name in names:
        if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".")):
            raise ValueError(f"preimport: {name!r} is no name of a module")
    return names


IDEMPOTENCY_KEY_CHARACTERS_MAX = 64


def check_idempotency_key(key: object) -> str:
    """Return the key, a text of printable ASCII characters without spaces; "" for None.

    Raises TypeError or ValueError.
    """
    if key is None:
        return ""
    if not isinstance(key, str):
        raise TypeError(f"idempotency_key must be a string, not {key!r}")
    if not 0 < len(key) <= IDEMPOTENCY_KEY_CHARACTERS_MAX or not all(
        "!" <= each <= "~" for each in key
    ):
        raise ValueError(
            f"idempotency_key is {key!r}; it must be 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX} "
            "printable ASCII characters without spaces"
        )
    return key


def or_nearest(name: object, names: Iterable[object]) -> str:
    """Return `: did you mean 'inputs'?` for the nearest of `names`, in any case, or all of them: `;
    it has code, inputs`."""
    import difflib  # not for ranks, which load this module too

    by_lower = {each.lower(): each for each in names if isinstance(each, str)}
    near = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.6)
    if near:
        return f": did you mean {by_lower[near[0]]!r}?"
    return f"; it has {', '.join(sorted(by_lower.values()))}" if by_lower else ": it has none"


def refuse_unknown(
    called: str,
    given: Iterable[str],
    known: Iterable[str],
    *,
    meant: Mapping[str, str] = _NONE_MEANT,
    error: type[Exception] = TypeError,
) -> None:
    """Raise an error for the first option that has an unknown name, with what may be meant by it.

    Args:
        called: what the options were given to, such as `@distributed`.
        given: names of the options.
        known: names of the options that there are.
        meant: what to write instead, by names that other libraries use.
        error: the class of the error.
    """
    known = tuple(known)
    for name in given:
        if name not in known:
            hint = f": {meant[name]}" if name in meant else or_nearest(name, known)
            raise error(f"{called} has no {name}={hint}")
