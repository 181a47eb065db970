"""`troupe.launch.get`, which is `attach`: the handle of a launch by its id."""

from __future__ import annotations

from typing import Any

from troupe import _pickled, exceptions
from troupe._cluster import connect, view
from troupe._code import travelled
from troupe.launch._handle import LaunchHandle, handle_of_known


def attach(launch: str) -> LaunchHandle[Any]:
    """The handle of a launch, running or ended, by its id or the beginning of it: of another
    program, of another handle, or one that was detached; or of a job, by the job's id.

    `troupe.launch.get` is another name for it. Looks in the cluster of `troupe.init()`, else in the
    one that is meant (docs/guides/which_cluster.md), and in those that launches of this program run
    in. Blocks for the answer of the head. The launch does not end with this handle or its program.
    Raises ValueError for an id that none has, or several; ConnectionError.

        troupe.launch.get("7f3a").watch()
    """
    if not isinstance(launch, str) or not launch:
        raise TypeError(
            f"launch.get takes the id of a launch, or the beginning of one, not {launch!r}"
        )
    found = []
    for session in connect.sessions_here():
        found += [(session, each) for each in _find_ids(session, launch)]
    if len(found) != 1:
        which = ", ".join(each for _, each in found[:5]) if found else "see: troupe list launches"
        raise ValueError(
            f"{'several launches have' if found else 'no launch has'} an id that starts with "
            f"{launch!r}: {which}"
        )
    session, identity = found[0]
    try:
        return handle_of_known(session, identity)
    except exceptions.NotFoundError as error:
        raise ValueError(f"no launch {identity}: {error}") from None


get = attach


def _find_ids(session: Any, given: str) -> list[str]:
    """Return the ids of a session's launches that `given` names."""
    return [each["launch"] for each in view.find_launches(session, given) if _is_meant(each, given)]


def _is_meant(info: dict[str, Any], given: str) -> bool:
    """Return True if a launch has this id or an id that begins so, or belongs to the job with this
    id."""
    return info["launch"].startswith(given.lower()) or travelled.about(info).get("id") == given


@_pickled.maker("launch_handle")
def _launch_handle(launch: str) -> LaunchHandle[Any]:
    """The handle of a launch, in the process where it is made."""
    return attach(launch)
