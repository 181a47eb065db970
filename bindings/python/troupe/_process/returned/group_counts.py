"""Counts of the operations that this process has begun in each process group of torch, and the
operation that its main thread waits in.

A rank that waits for one that has returned tells the head an operation's number, and that rank's
process is asked for its own (head/core/launched/gang/returned.h). So the counts of a group outlive
it. Three kinds are counted, each under keys that all members of the group form alike:

- collectives, by group and backend. torch counts them itself; Gloo's number counts messages too,
  which are taken off.
- messages from one member to another (`message_counts`).
- the making of the group itself, which is begun once.

Which of them have not ended is for torch's flight recorder to say (`torch_records`).
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from typing import Any

from troupe import _native as native
from troupe._process import torch_backend
from troupe._process.returned import message_counts

_GLOO = "gloo"
_POOL = "concurrent/futures/thread.py"
_DISTRIBUTED = "torch/distributed/"


_making: dict[str, None] = {}  # names of groups whose making was begun, in that order
_over: dict[str, int] = {}  # key -> collectives of a group that was destroyed
_waiting: dict[int, Any] = {}  # thread -> the torch.distributed.Work that it waits for
_originals: dict[tuple[Any, str], Any] = {}  # methods of torch's classes that are wrapped here
_module: Any = None


def wrap(module: Any) -> None:
    """Counts what groups begin from now on.

    `module`: torch.distributed.distributed_c10d, once it was imported.
    """
    global _module
    _module = module
    group, work = getattr(module, "ProcessGroup", None), getattr(module, "Work", None)
    if group is None or work is None:  # a torch without groups
        return
    message_counts.wrap(group, _wrap_method)
    _wrap_method(work, "wait", lambda wait: native.noted_wait(wait, _waiting))


def _wrap_method(cls: Any, name: str, made_of: Callable[[Any], Any]) -> None:
    original = getattr(cls, name, None)
    if original is not None and (cls, name) not in _originals:
        _originals[cls, name] = original
        setattr(cls, name, made_of(original))


def note_making(name: str) -> None:
    """This process has begun to make the group of that name."""
    _making[name] = None


def note_ending(group: Any) -> None:
    """This group is about to be destroyed; None: all groups are."""
    with contextlib.suppress(Exception):  # there is none
        whole = group is None or group is _module.group.WORLD
        for each in list(_module._world.pg_map) if whole else [group]:
            name = _module._world.pg_names.get(each, "")
            for kind, count in counted(each):
                _over[collective_key(name, kind)] = count


def collective_key(name: str, backend: str) -> str:
    """Return the key under which the collectives of one backend of a group are counted."""
    return f"{name} {backend}"


def message_key(name: str, receives: bool, mine: int, peer: int | None) -> str:
    """Return the key under which the messages that member `mine` of a group sends to, or receives
    from, `peer` are counted."""
    return f"{name} {'recv' if receives else 'send'} {mine} {'any' if peer is None else peer}"


def sent_to_key(name: str, peer: int) -> str:
    """Return the key under which a group's messages to process `peer` are counted, whichever member
    it is."""
    return f"{name} sent {peer}"


def making_key(name: str) -> str:
    """Return the key under which the making of a group is counted."""
    return f"{name} made"


def counted(group: Any) -> list[tuple[str, int]]:
    """(backend, collectives that this process has begun) of each backend of the group that counts
    them."""
    devices: dict[str, list[Any]] = {}
    for device in getattr(group, "_device_types", []):
        with contextlib.suppress(RuntimeError):  # raised where there is no backend for this device
            devices.setdefault(group._get_backend(device).name(), []).append(device)
    name, found = _module._world.pg_names.get(group, ""), []
    for kind, those in devices.items():
        with contextlib.suppress(RuntimeError, AttributeError):  # a backend that does not count
            count = (
                torch_backend.begun(group)
                if kind == torch_backend.NAME
                else group._get_backend(those[0])._get_sequence_number_for_group()
            )
            if count is not None:
                found.append(
                    (
                        kind,
                        count
                        - (
                            message_counts.on_devices(name, [each.type for each in those])
                            if kind == _GLOO
                            else 0
                        ),
                    )
                )
    return found


def begun(key: str) -> tuple[int, bool]:
    """(how many of the operations that the key names this process has begun, whether it may begin
    more). Of a process whose program has returned."""
    parts = key.split(" ")
    more = program_goes_on()
    if len(parts) == 2 and parts[1] == "made":
        return int(parts[0] in _making), more
    if len(parts) == 4:
        receives, mine = parts[1] == "recv", int(parts[2])
        count = message_counts.with_member(
            parts[0], receives, mine, None if parts[3] == "any" else int(parts[3])
        )
        count += message_counts.with_member(parts[0], True, mine, None) if receives else 0
        return count, more or parts[0] not in _making
    if len(parts) == 3:
        return message_counts.sent_to(parts[0], int(parts[2])), more or parts[0] not in _making
    if len(parts) != 2 or not message_counts.is_clear(parts[0]):
        return 0, True
    collectives = _collectives(*parts)
    return (
        (0, True) if collectives is None else (collectives, more)
    )  # this process was never in that group: it replaces another one


def _collectives(name: str, backend: str) -> int | None:
    if _module is not None and _module.is_initialized():
        for group in list(_module._world.pg_map):
            if _module._world.pg_names.get(group, "") != name:
                continue
            for kind, count in counted(group):
                if kind == backend:
                    return count
    return _over.get(collective_key(name, backend))


def snapshot() -> dict[str, int]:
    """Return all that this process has begun, by key.

    Of groups whose collectives cannot be told from batches of messages there are none.
    """
    found = {making_key(name): 1 for name in list(_making)}
    found.update(_over)
    for group in (
        list(_module._world.pg_map) if _module is not None and _module.is_initialized() else []
    ):
        name = _module._world.pg_names.get(group, "")
        found.update(
            {
                collective_key(name, kind): count
                for kind, count in counted(group)
                if message_counts.is_clear(name)
            }
        )
    for (name, receives, mine, peer), count in message_counts.totals().items():
        found[message_key(name, receives, mine, peer)] = count
        if not receives and peer is not None:
            found[sent_to_key(name, peer)] = count
    return found


def program_goes_on() -> bool:
    """Return True if a thread beside the main one may still begin operations: one that the process
    waits for at its end, or any that is in torch.distributed."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if (
            thread is threading.main_thread()
            or thread is threading.current_thread()
            or frame is None
        ):
            continue
        if (
            not thread.daemon and _POOL not in frame.f_code.co_filename
        ):  # a pool's thread that has nothing to do is in the pool's code
            return True
        while frame is not None:
            if _DISTRIBUTED in frame.f_code.co_filename:
                return True
            frame = frame.f_back
    return False


def waited_for(thread: int | None) -> Any:
    """The Work that this thread waits for; None: it waits for none."""
    return _waiting.get(thread or 0)
