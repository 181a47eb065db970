"""The server of this actor's tensors, on a thread of its own: it answers while the actor is busy in
a method.

It serves at the process's second call socket (`runtime/net/handover.h`), as calls are served:
processes of this host come by the Unix socket, those of others over TLS, and what is large goes as
every large result goes. The socket and the thread are there once the first tensor is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from troupe._actors.tensors import kept
from troupe._base import callbacks as _callbacks, calls as _calls
from troupe._base.context import ActorContext
from troupe._cluster import session as _session

TAKE = "take;returns=2"
"""The call by which others ask: the tensors, and then, when these were copied, why they may not be
used, or None."""
CHECK = "check"
"""By which they ask for the latter again, once they have copied what was only opened."""
GONE, CHANGED = "gone", "changed"
HOST, IPC = "host", "ipc"
_lock = threading.Lock()
_table: kept.TensorTable | None = None


def table() -> kept.TensorTable:
    """This actor's; others can ask for what is in it from the first call on.

    Raises what listening does.
    """
    global _table
    with _lock:
        if _table is None:
            made = kept.TensorTable(kept.bytes_max())
            assert ActorContext.current is not None
            _begin(made, ActorContext.current.socket_path)
            _table = made
        return _table


def table_or_none() -> kept.TensorTable | None:
    """Return the tensor table, or None if this process has kept no tensor."""
    return _table


def _begin(made: kept.TensorTable, unix_path: str) -> None:
    server = _calls.listen_aside(unix_path, _session.current().control)
    giver = Giver(made)

    def find(name: str) -> Callable[..., Any]:
        if name not in ("take", CHECK):
            raise AttributeError(f"no call {name!r} is served here: only tensors are given")
        found: Callable[..., Any] = getattr(giver, name)
        return found

    threading.Thread(
        target=_callbacks.run,
        args=("giving tensors to other processes", lambda: _calls.serve(server, giver, find=find)),
        name="troupe-tensors",
        daemon=True,
    ).start()


class Giver:
    """Gives tensors by the key of their value."""

    def __init__(self, made: kept.TensorTable) -> None:
        self._table = made

    def take(self, key: str, here: bool, devices: list[str]) -> Iterator[Any]:
        """The tensors of a value: those of one of `devices`, by their UUIDs, to be opened there, by
        a process of this host; others by way of the host's memory. Then why they may not be used:
        it is looked at before and after they are copied."""
        refused, value = self.check(key), self._table.find(key)
        if value is None or refused is not None:
            yield None
            yield refused
            return
        yield [_given(each, devices if here else []) for each in value.tensors]
        yield self.check(key)

    def check(self, key: str) -> tuple[Any, ...] | None:
        """Why the tensors of a value may not be used; None: they may."""
        value = self._table.find(key)
        if value is None:
            return (GONE,)
        found = kept.changed(value)
        return None if found is None else (CHANGED, *found)


def _given(each: kept.Kept, devices: list[str]) -> tuple[str, Any]:
    tensor = each.tensor.detach()
    if tensor.device.type == "cpu":
        return HOST, _dense(tensor)
    import torch

    torch.cuda.current_stream(tensor.device).wait_event(each.written)
    device = str(torch.cuda.get_device_properties(tensor.device).uuid)
    if device not in devices:
        return HOST, _dense(tensor.cpu())
    from torch.multiprocessing.reductions import reduce_tensor

    return IPC, (device, reduce_tensor(tensor)[1])


def _dense(tensor: Any) -> Any:
    """Return a contiguous copy whose storage holds only this tensor, so that it is sent beside the
    pickle (`_code/tensors.py`)."""
    tensor = tensor.resolve_conj().resolve_neg().contiguous()
    return tensor if tensor.untyped_storage().nbytes() == tensor.nbytes else tensor.clone()
