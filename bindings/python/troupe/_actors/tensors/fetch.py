"""Tensors of another process, as whoever gets a value takes them.

Blocks, in the thread that loads the value.

On the same host a CPU's tensor comes as a private view of shared memory and a GPU's is opened by
torch's own reductions and cloned; between hosts, and where the process has not that GPU, it comes
by way of the host's memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from troupe import exceptions
from troupe._actors import handle
from troupe._actors.method_options import Traits
from troupe._actors.tensors import kept, server
from troupe._base import calls as _calls
from troupe._base.identity import boot_id
from troupe._cluster import session as _session
from troupe._typed.per_session import PerSession

CHANNELS_MAX = 64
LEAST_S = 60.0
SLOWEST_BYTES_S = 8 << 20
VERDICT_S = 10.0
_opening = threading.Lock()


def tensors(place: kept.Place, key: str, method: str, specs: Sequence[kept.Spec]) -> list[Any]:
    """Return the tensors of a value: the originals in the process that keeps them, copies
    elsewhere.

    Raises OwnerDiedError where that is gone, TensorChangedError where one was changed since it was
    returned, ObjectFetchTimedOutError, ObjectLostError.
    """
    if place.is_here():
        return _own(place, key, method)
    here = place.boot_id == boot_id()
    limit_s = LEAST_S + sum(_bytes_of(each) for each in specs) / SLOWEST_BYTES_S
    try:
        given, refused = _asked(
            place, server.TAKE, (key, here, _devices(specs) if here else []), limit_s
        )
        made = (
            [] if refused else [_made(each, spec) for each, spec in zip(given, specs, strict=True)]
        )
        if not refused and any(how == server.IPC for how, _ in given):
            _wait_for_copies(made)
            refused = _asked(place, server.CHECK, (key,), limit_s)
    except exceptions.GetTimeoutError:
        raise exceptions.ObjectFetchTimedOutError(
            f"{_names(method, specs, place)} did not come within {limit_s:.0f} s, counted from "
            "when they were asked for: its process does not "
            "answer\n  `troupe stack` shows where it is"
        ) from None
    except (exceptions.ActorError, exceptions.ObjectLostError) as error:
        raise exceptions.OwnerDiedError(
            f"{_names(method, specs, place)} are lost: {_cause(place, error)}\n"
            "  tensors live with the actor that returned them: call the method again, or without "
            "tensor_transport"
        ) from error
    if refused is not None:
        raise _refusal(refused, place, method, specs)
    return made


def _asked(place: kept.Place, what: str, given: tuple[Any, ...], limit_s: float) -> Any:
    """Return the answer of the process at `place` to a call.

    A connection that was there before may have been lost since, and the process live: then over a
    new one.
    """
    channel, is_new = _channel(place)
    try:
        return _calls.get(channel.method(what)(*given), limit_s)
    except (exceptions.ActorError, exceptions.ObjectLostError):
        _forget(place, channel)
        if is_new:
            raise
    channel, _ = _channel(place)
    return _calls.get(channel.method(what)(*given), limit_s)


def _own(place: kept.Place, key: str, method: str) -> list[Any]:
    table = server.table_or_none()
    value = None if table is None else table.find(key)
    if value is None:
        raise exceptions.ObjectLostError(
            f"the tensors that {method}() of {place} returned are not kept any more: nobody held a "
            "ref of them"
        )
    return [each.tensor for each in value.tensors]


def _bytes_of(spec: kept.Spec) -> int:
    import math

    import torch

    found: int = math.prod(spec[0]) * getattr(torch, spec[1]).itemsize
    return found


def _devices(specs: Sequence[kept.Spec]) -> list[str]:
    """The UUIDs of this process's GPUs, where a tensor is on one."""
    return [] if all(spec[2] == "cpu" for spec in specs) else _gpus()


def _gpus() -> list[str]:
    """Return the UUIDs of this process's GPUs, by number. Asking creates a CUDA context, as having
    a tensor there does."""
    import torch

    return [
        str(torch.cuda.get_device_properties(each).uuid)
        for each in range(torch.cuda.device_count())
    ]


def _made(given: tuple[str, Any], spec: kept.Spec) -> Any:
    """The tensor of what came: on the device of its number, if there is one; else in the host's
    memory."""
    import torch

    how, what = given
    device, requires_grad, is_parameter = spec[2:]
    if how == server.IPC:
        tensor = _opened(*what)
    elif device == "cpu" or int(device.partition(":")[2] or 0) >= torch.cuda.device_count():
        tensor = what
    else:
        tensor = what.to(device)
    if is_parameter:
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


def _opened(device: str, arguments: tuple[Any, ...]) -> Any:
    """A copy of a tensor that another process of this host has on the GPU with that UUID, which may
    have another number here."""
    import inspect

    import torch
    from torch.multiprocessing import reductions

    names = inspect.signature(reductions.rebuild_cuda_tensor).parameters
    fields = {**dict(zip(names, arguments, strict=True)), "storage_device": _gpus().index(device)}
    with torch.cuda.device(fields["storage_device"]):
        return reductions.rebuild_cuda_tensor(**fields).clone()


def _wait_for_copies(made: Sequence[Any]) -> None:
    """Until what was opened has been copied."""
    import torch

    for device in {each.device for each in made if each.device.type == "cuda"}:
        torch.cuda.synchronize(device)


CHANNELS: PerSession[OrderedDict[kept.Place, Any]] = PerSession("channels of tensors")


def _channel(place: kept.Place) -> tuple[Any, bool]:
    """The way to the second call socket of that process, and whether it was made just now: a few of
    them are kept, the latest used."""
    session = _session.current()
    with _opening:
        channels = CHANNELS.of(session, OrderedDict)
        found = channels.get(place)
        is_new = found is None
        if is_new:
            found = channels[place] = _open(session, place)
            while len(channels) > CHANNELS_MAX:
                channels.popitem(last=False)
        channels.move_to_end(place)
        return found, is_new


def _open(session: Any, place: kept.Place) -> Any:
    if place.boot_id == boot_id():  # there the end of a connection is the end of its process
        return _calls.connect_aside(
            {"unix_path": place.unix_path, "boot_id": place.boot_id}, str(place), session.control
        )
    address = handle.watched(session, place.actor, place.class_name, Traits()).address()
    if address is None or address["incarnation"] != place.incarnation:
        raise exceptions.ActorDiedError(f"{place} is gone")
    return _calls.connect_aside(address, str(place), session.control)


def _forget(place: kept.Place, channel: Any) -> None:
    with _opening:
        channels = CHANNELS.of(_session.current(), OrderedDict)
        if channels.get(place) is channel:
            del channels[place]


def _cause(place: kept.Place, error: BaseException) -> str:
    """Why that process is gone, as the head says it; where it says nothing, as the connection
    did."""
    try:
        link = handle.watched(_session.current(), place.actor, place.class_name, Traits())
    except exceptions.TroupeError:
        return str(error)
    return link.end_of(place.incarnation, VERDICT_S) or str(error)


def _names(method: str, specs: Sequence[kept.Spec], place: kept.Place) -> str:
    more = f" and {len(specs) - 1} more" if len(specs) > 1 else ""
    return f"the tensors that {method}() of {place} returned ({kept.text_of(specs[0])}{more})"


def _refusal(
    refused: tuple[Any, ...], place: kept.Place, method: str, specs: Sequence[kept.Spec]
) -> exceptions.TroupeError:
    if refused[0] == server.CHANGED:
        _, spec, before, now = refused
        return exceptions.TensorChangedError(
            f"the tensor ({kept.text_of(spec)}) that {method}() of {place} returned was changed in "
            f"place there since: its version was {before} "
            f"then and is {now} now\n  return tensor.clone(), or do not change what was returned "
            "while refs of it are used"
        )
    return exceptions.ObjectLostError(f"{_names(method, specs, place)} are not kept there any more")
