"""torch's backend `troupe`: groups of tensors on CPUs over the memory that the ranks of a node
share, and TCP between nodes.

`register` makes `init_process_group("troupe")` work in this process. The library that is built
against torch is loaded by the first group, and built then if this machine has none for this torch
(`build`).
"""

from __future__ import annotations

import hmac
from datetime import timedelta
from typing import Any

from troupe._base.bridge import native
from troupe._base.identity import boot_id

NAME = "troupe"
VERDICT_S = 2.0  # how long an operation that lost a peer waits for the word of what killed it
# the secret that the ranks of this process's launch have from their head; empty: it is no rank of
# one
_of_launch = b""


def enter_rank(secret: bytes) -> None:
    """This process is a rank, and so has the secret of its launch: torch's groups here are of ranks
    that have it too."""
    global _of_launch
    _of_launch = secret


def register(module: Any) -> None:
    """`module`: torch.distributed.distributed_c10d, once it was imported."""
    if hasattr(module, "Backend"):  # a torch with groups
        module.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])


def make_default(module: Any) -> None:
    """Groups that name no backend are of this one, where their tensors are on CPUs."""
    module.Backend.default_device_backend_map["cpu"] = NAME


def stop_all(reason: str) -> int:
    """Ends what runs in all such groups of this process with a RuntimeError that says the reason,
    from any thread, at once. How many there are."""
    found: int = native.stop_groups(reason)
    return found


def begun(group: Any) -> int | None:
    """How many collectives this rank has begun in that process group of torch's, whose CPU tensors
    this backend moves; None for any other group.

    torch itself gives the number for its own backends alone.
    """
    from troupe._process.torch_backend import build

    library = build.loaded()
    if library is None:
        return None
    import torch

    try:
        found: int | None = library.begun(group._get_backend(torch.device("cpu")))
        return found
    except (
        RuntimeError,
        TypeError,
    ):  # a group without a backend for the CPU, or one written in Python
        return None


def _create(options: Any, _: Any) -> Any:
    """The backend of one group: torch calls it on all of its ranks."""
    name = options.group_id or "default"
    secret = hmac.digest(_of_launch, f"group {name}".encode(), "sha256") if _of_launch else None
    return make(
        options.store, options.group_rank, options.group_size, name, options.timeout, secret
    )


def make(
    store: Any, rank: int, size: int, name: str, timeout: timedelta, secret: bytes | None = None
) -> Any:
    """This process's part of a group whose ranks meet in `store`, under keys of theirs alone: a
    torch.distributed.Backend. Blocks until all are there.

    `secret`: the group's, where all its ranks have it from elsewhere; None: they tell it by the
    store, which then must be read by nobody else. `timeout`: of the making and of each operation.
    Raises RuntimeError with who did not come, or what keeps the library from being built.
    """
    from troupe._process.torch_backend import build
    from troupe._process.torch_backend.meeting import meet

    library = build.load()
    door = native.GroupDoor(boot_id())
    secret, cards = meet(store, rank, size, door, secret)
    timeout_s = timeout.total_seconds()
    group = native.form_group(door, name, rank, secret, cards, timeout_s, VERDICT_S)
    return library.create(native.group_api(), group, rank, size, int(timeout_s * 1000))
