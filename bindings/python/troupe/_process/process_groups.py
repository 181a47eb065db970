"""Process groups of torch that are made, destroyed and made again: the store's keys of each are its
own.

torch names its groups by a counter that destroying the default group sets back to 0, and finds the
other ranks' addresses in the store under that name. The store outlives the group here, as under
torchrun: a group made anew would read the addresses of the former one, and connect to ports that
nobody listens at. So the counter goes on from a number that no group before has had. All ranks of
an epoch destroy the same groups, so they count alike; another epoch has a store of its own. A group
that its own ranks alone make (`use_local_synchronization`) is named by a hash of them: when there
was one of that name before, it gets a number as well.

And a group that was destroyed while a DistributedDataParallel module lives is not let go of by that
module's Reducer, in C++ and with the GIL: the group's destructor joins a thread that may wait for
the GIL (pytorch#56297), and a rank that returned would never leave.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections import Counter
from typing import Any

from troupe import stand_ins
from troupe._base import checks as _checks, rendezvous as _rendezvous
from troupe._base.after_import import after_import, replace
from troupe._process import gloo_for_nccl, gloo_sockets, group_names, group_watch, torch_backend
from troupe._process.returned import group_counts, returned_peers
from troupe.launch import _cpu_ranks

_MODULE = "torch.distributed.distributed_c10d"
_PARALLEL = "torch.nn.parallel.distributed"
_epoch = 0  # epoch of the ranks' group; 0: the gang as it began
_worlds = 0  # default groups that were destroyed in it
_named: Counter[str] = Counter()  # name that is a hash of ranks -> how many groups have had it


def prepare() -> None:
    """Changes torch's modules as said above, and where its groups meet (`_base.rendezvous`), now or
    when they are imported. Once a process.

    On a CPU rank, NCCL is Gloo in every Python that the process starts or becomes, too.
    """
    if _cpu_ranks.asked_for():
        os.environ[gloo_for_nccl.BELOW] = "1"
    stand_ins.run_start_hook_below()
    after_import(
        {_MODULE: _wrap_groups, _PARALLEL: _wrap_parallel, _rendezvous.MODULE: _rendezvous.wrap}
    )


def begin_epoch(group_epoch: int) -> None:
    """The groups of this epoch of the ranks' group are named alike by all ranks of it: one that has
    taken a dead one's place has destroyed none before."""
    global _epoch, _worlds
    _epoch, _worlds = group_epoch, 0
    _named.clear()
    sys.modules[_MODULE]._world.group_count = group_names.first_of(_epoch, _worlds)


def _wrap_groups(module: Any) -> None:
    if _cpu_ranks.asked_for():
        gloo_for_nccl.wrap(module)
    gloo_sockets.note(module)
    group_counts.wrap(module)
    group_watch.wrap(module)
    torch_backend.register(module)
    if os.environ.get(_checks.TORCH_BACKEND) == torch_backend.NAME:
        torch_backend.make_default(module)
    _wrap(module)


def _wrap(module: Any) -> None:
    def counting(destroy: Any) -> Any:
        def destroy_process_group(group: Any = None) -> Any:
            global _worlds
            there = module.is_initialized()
            group_counts.note_ending(group)
            done = destroy(group)
            if there and not module.is_initialized():
                _worlds += 1
                module._world.group_count = group_names.first_of(_epoch, _worlds)
            return done

        return destroy_process_group

    if not hasattr(module.destroy_process_group, "_troupe_original"):
        _name_once(module)
    replace("destroy_process_group", counting, module, sys.modules.get("torch.distributed"))


def _name_once(module: Any) -> None:
    name_of = getattr(module, "_process_group_name", None)
    if name_of is None:  # torch before it had such names
        return

    def process_group_name(ranks: Any, use_hashed_name: bool) -> str:
        name = name_of(ranks, use_hashed_name)
        if (
            use_hashed_name and name not in module._world.pg_names.values()
        ):  # else the counter tells them apart; or it is taken just now, and torch says so
            _named[name] += 1
            name = name if _named[name] == 1 else type(name)(f"{name}_{_named[name]}")
        returned_peers.name_making(name)
        found: str = name
        return found

    module._process_group_name = process_group_name


def _wrap_parallel(module: Any) -> None:
    cls = module.DistributedDataParallel
    make = cls._ddp_init_helper
    if hasattr(make, "_troupe_original"):
        return

    def _ddp_init_helper(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        # A callback of the Reducer's end, which runs after its destructor, holds the group: Python
        # is the last to release it.
        weakref.finalize(self.reducer, _let_go, self.process_group).atexit = False

    _ddp_init_helper._troupe_original = make  # type: ignore[attr-defined]
    cls._ddp_init_helper = _ddp_init_helper


def _let_go(group: Any) -> None:
    """The Reducer is gone."""
