"""The field of a part that an error is about. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from troupe._code import field_checks
from troupe._code.yaml_files import Recorder
from troupe.azure import _schema

Place = tuple[str, ...]
AnyFaults = Recorder


def check_known(
    faults: AnyFaults, place: Place, fields: Mapping[Any, Any], what: str, names: tuple[str, ...]
) -> None:
    for name in fields:
        with faults.at(*place, name, key=True):
            if not isinstance(name, str):
                raise TypeError(f"{what}: a key must be a string, not {name!r}")
            field_checks.known(what, name, names)


def add_located(
    faults: AnyFaults,
    place: Place,
    given: Any,
    make: Callable[[Any], Any],
    what: str,
    *,
    names: tuple[str, ...] | None = None,
    kinds: Iterable[str] = (),
    needs: tuple[str, ...] = (),
) -> None:
    """Check a value by making its object, and record each error at the field that causes it.

    The cause is found by changing fields: it is the field without which the error is another one.
    `names`: the fields that there are, where they are known before. `kinds`: what its `type` may
    be. `needs`: fields that have to be there.
    """
    if not isinstance(given, Mapping):
        with faults.at(*place):
            make(given)
        return
    count = len(faults)
    if names is not None:
        check_known(faults, place, given, what, names)
    if "type" in given and kinds:
        with faults.at(*place, "type"):
            _schema.one_of(f"{what}: type", given["type"], kinds)
    missing = [name for name in needs if given.get(name) is None]
    if missing and len(faults) == count:
        faults.add(ValueError(f"{what} needs {' and '.join(missing)}"), *place)
    if missing or "type" in given and kinds and not _schema.is_one_of(given["type"], kinds):
        return
    left = {
        name: each
        for name, each in given.items()
        if isinstance(name, str) and (names is None or name in names)
    }
    while (error := _error(make, left)) is not None:
        others = [name for name in left if name != "type" or not kinds]
        culprit = next(
            (name for name in others if _causes(name, error, make, left, name in needs)), None
        )
        if culprit is None:
            # A field that is missing may have been left out for its own error
            if len(faults) == count:
                faults.add(error, *place)
            return
        faults.add(error, *place, culprit, key=names is None and _is_unknown(make, left, culprit))
        if culprit in needs:
            return
        del left[culprit]


def _is_unknown(make: Callable[[Any], Any], given: Mapping[str, Any], name: str) -> bool:
    """Return True if the field is refused whatever its value is: then its name is wrong, not the
    value."""
    errors = {str(_error(make, {**given, name: value})) for value in (None, 1, "1", given[name])}
    return len(errors) == 1


def _error(make: Callable[[Any], Any], given: Any) -> Exception | None:
    try:
        make(given)
    except (TypeError, ValueError, NotImplementedError) as error:
        return error
    return None


def _causes(
    name: str,
    error: Exception,
    make: Callable[[Any], Any],
    given: Mapping[str, Any],
    is_needed: bool,
) -> bool:
    """Return True if the error is another one, or none, without the field; of a field that has to
    be there, whenever it has another value."""
    without = {key: each for key, each in given.items() if key != name}
    changed = (
        [{**without, name: value} for value in (0, 1, "x", [1]) if value != given[name]]
        if is_needed
        else [without]
    )
    return all(str(_error(make, each)) != str(error) for each in changed)
