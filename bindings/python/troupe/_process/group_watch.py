"""Says which rank the others wait for, when a collective of torch takes much longer than operations
of its group usually do.

Each rank counts what it has begun (torch's own sequence numbers of a group: of Gloo and NCCL). One
that has waited for long asks all others by the group's store; those whose count stands still, for
whatever reason, answer there with where their main thread is (`group_questions`); and the one that
asked says who is late (`late_ranks`). Nothing is ended by it, unless the launch has a
`hang_timeout`: a rank that has waited for so long asks anew, and tells the head whom it waits for;
the head asks those, and has them ended that do not answer, or have come no further
(head/core/launched/gang/hang.h).

A thread without Python's object for it: it looks once a second, for neither torch nor the store has
an event for what does not happen. It begins with the first group of this process and ends with the
last. In a group in which no rank waits for long, nothing is written to the store. Ranks of a
pipeline, which send and receive in pairs, count unlike each other: what is said of them is where
each one is, and only perhaps who is late.
"""

from __future__ import annotations

import _thread
import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from troupe._base.after_import import replace
from troupe._process import group_epochs, group_names, torch_backend
from troupe._process.group_questions import Questions
from troupe._process.late_ranks import Pace, accused, late, there, told
from troupe._process.returned import group_counts, returned_parts, returned_peers
from troupe._process.returned.watch_store import WatchStore
from troupe.launch import _parts

PATIENCE_VARIABLE = "TROUPE_LATE_RANK_S"
LOOK_S, ASKING_S = 1.0, 5.0
"""How often a rank looks at itself, and how often, while its count stands still, whether somebody
asks."""
ANSWERS_S = 3.0
"""So many of those stretches the others have for an answer."""
_KEY, _HANG_KEY = "troupe/late", "troupe/hang"
_WAITS = ("torch/distributed/", "torch/autograd/graph.py")
_TIMERS = "torch/distributed/elastic/"
"""Threads there sleep in torch's own code, and wait for no rank."""
_DISTRIBUTED = "torch/distributed/"
_lock = threading.Lock()
_running = False
_watching = 0
"""The thread that watches groups, which is in torch's code now and then"""
_module: Any = None
_late: dict[str, tuple[int, int]] = {}
"""By process group as it is shown: (the ranks' epoch, the first rank of the launch that was found
to keep this process waiting), while it does."""


def wrap(module: Any) -> None:
    """Groups that are made from now on are watched.

    `module`: torch.distributed.distributed_c10d, once it was imported.
    """
    global _module
    _module = module
    _parts.find_verdict = returned_parts.find_verdict

    def watching(make: Any) -> Any:
        noted = returned_peers.wrap_making(make, "init_process_group")

        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            _begin(module)
            made = noted(*args, **kwargs)
            _begin(module)  # the module may have ended meanwhile: there was no group
            return made

        return init_process_group

    replace("init_process_group", watching, module, sys.modules.get("torch.distributed"))
    replace(
        "new_group",
        lambda make: returned_peers.wrap_making(make, "new_group"),
        module,
        sys.modules.get("torch.distributed"),
    )


def _begin(module: Any) -> None:
    global _running
    with _lock:
        if _running:
            return
        _running = True
    try:
        _thread.start_new_thread(_run, (module,))
    except RuntimeError:  # no thread to be had: then nobody watches
        _running = False


def _run(module: Any) -> None:
    global _running, _watching
    _watching = threading.get_ident()
    never = _thread.allocate_lock()
    never.acquire()
    watched: dict[str, Watched] = {}
    patience = os.environ.get(PATIENCE_VARIABLE, "")
    fixed_s = float(patience) if patience.replace(".", "", 1).isdigit() else None
    look_s = min(
        LOOK_S, LOOK_S if fixed_s is None else fixed_s / 4, group_epochs.hang_s() / 16 or LOOK_S
    )
    peers, parts, stores = returned_peers.Peers(), returned_parts.Parts(), WatchStore()
    try:
        while True:
            never.acquire(timeout=look_s)
            with _lock:
                if not module.is_initialized() and not returned_peers.is_making():
                    _running = False
                    return
            peers.look(module, time.monotonic(), op_here)
            try:
                parts.look(module, stores, time.monotonic(), op_here)
            except RuntimeError:  # raised for a store that is gone
                stores.forget()
            if module.is_initialized():
                _look(module, watched, stores, fixed_s)
    # a torch that is otherwise, or a store that is gone: a watch that ends is no failure of the
    # program's
    except Exception:
        _running = False


def _look(
    module: Any, watched: dict[str, Watched], stores: WatchStore, fixed_s: float | None
) -> None:
    """Once. Groups are held for its duration only: one that the program destroys is to be gone."""
    groups = _groups(module)
    for name in watched.keys() - {name for name, _, _ in groups}:
        del watched[name]
        _late.pop(group_names.shown(name), None)
    for name, group, store in groups:
        if name not in watched:
            watched[name] = Watched(
                name, group, dict(module._world.pg_group_ranks.get(group, {})), fixed_s
            )
        if not watched[name].over:
            watched[name].look_safely(
                group, functools.partial(stores.beside, store), time.monotonic()
            )


def _groups(module: Any) -> list[tuple[str, Any, Any]]:
    """(name, group, store) of those that count."""
    found = []
    for group, (_, store) in list(module._world.pg_map.items()):
        if group is module.GroupMember.NON_GROUP_MEMBER or store is None:
            continue
        if _begun(group) is not None:
            found.append((module._world.pg_names.get(group, ""), group, store))
    return found


def _begun(group: Any) -> Any:
    """How many operations this rank has begun in it; None of one that does not count."""
    try:
        return group._get_sequence_number_for_group()
    except RuntimeError:  # raised by a backend that is not torch's own
        return torch_backend.begun(group)


class Watched:
    """A process group, as this rank sees it. Used by the watching thread only."""

    def __init__(self, name: str, group: Any, ranks: dict[int, int], fixed_s: float | None) -> None:
        self._name, self._fixed_s, self._hang_s = (
            group_names.shown(name),
            fixed_s,
            group_epochs.hang_s(),
        )
        rank, self._size = group.rank(), group.size()
        self._launch_rank = {mine: everywhere for everywhere, mine in ranks.items()} or {
            each: each for each in range(self._size)
        }
        self._on_gpu = "nccl" in group.name().lower()
        self._asking_s = min(
            ASKING_S if fixed_s is None else fixed_s / 2, self._hang_s / 8 or ASKING_S
        )
        self._pace = Pace()
        self._begun, self._since = _begun(group), time.monotonic()
        self._next_s = (
            self._asking_s
        )  # time of standing still after which it looks again whether somebody asks
        self._of_late, self._of_hang = (
            Questions(f"{key}/{name}", rank, self._size) for key in (_KEY, _HANG_KEY)
        )
        self._question, self._asked_at = (
            0,
            0.0,
        )  # true if this rank has asked about the operation that it waits in
        self._said, self._least_s = False, 0.0
        self._turn = 0  # how often it has waited for hang_timeout in it
        self._accuses, self._accuses_at = 0, 0.0  # the question before the word to the head
        self.over = False

    def look_safely(self, group: Any, connect: Callable[[], Any], now: float) -> None:
        """Once a second or so.

        A store that is gone is the end of this watch, and of no other group's.
        """
        try:
            self.look(group, connect, now)
        except Exception:
            self.over = True

    def look(self, group: Any, connect: Callable[[], Any], now: float) -> None:
        """Once.

        `connect` returns the watching thread's connection to the store, which this rank needs once
        it stands still. Raises what the store raises.
        """
        begun = _begun(group)
        if begun != self._begun:
            self._go_on(begun, now)
            return
        still_s = now - self._since
        patience_s = max(
            self._least_s, self._pace.patience_s() if self._fixed_s is None else self._fixed_s
        )
        if (
            self._question
            and not self._said
            and still_s >= patience_s
            and now - self._asked_at >= ANSWERS_S * self._asking_s
        ):
            self._tell(connect(), still_s)
        if (
            self._accuses
            and now - self._accuses_at >= ANSWERS_S * self._asking_s
            and still_s >= self._hang_s
        ):
            self._accuse(connect(), begun, still_s)
        if still_s < self._next_s:
            return
        self._next_s = still_s + self._asking_s
        store, waits = connect(), self._waits()
        if waits and not self._question and still_s >= patience_s - ANSWERS_S * self._asking_s:
            self._question, self._asked_at = self._of_late.ask_first(store, begun), now
        if waits and self._hang_s and not self._accuses:
            turn = int((still_s + ANSWERS_S * self._asking_s) // self._hang_s)
            if turn > self._turn:
                self._turn, self._accuses, self._accuses_at = (
                    turn,
                    self._of_hang.ask_first(store, begun, turn),
                    now,
                )
        self._of_late.answer(store, begun, waits, still_s)
        if self._hang_s:
            self._of_hang.answer(store, begun, waits_here(), still_s)

    def _go_on(self, begun: int, now: float) -> None:
        if self._begun:
            self._pace.add(begun - self._begun, now - self._since)
        # A long wait that was no hang, such as an evaluation by one rank, is reported again only
        # where it takes twice as long
        if self._said:
            say(f"process group {self._name} goes on, after {now - self._since:.0f} s")
            self._least_s = 2 * (now - self._since)
        self._begun, self._since, self._next_s, self._question, self._said = (
            begun,
            now,
            self._asking_s,
            0,
            False,
        )
        self._turn = self._accuses = 0
        _late.pop(self._name, None)

    def _waits(self) -> bool:
        """For others, as far as can be told: a GPU is waited for in any line of the program."""
        return self._on_gpu or waits_here()

    def _tell(self, store: Any, still_s: float) -> None:
        if not self._waits():
            return
        answers = self._of_late.answers(store, self._question)
        self._said = True
        if ranks := late(answers):
            _late[self._name] = (group_epochs.epoch(), self._launch_rank[ranks[0]])
            say(told(answers, ranks, self._name, still_s, self._launch_rank, self._hang_s))

    def _accuse(self, store: Any, begun: int, still_s: float) -> None:
        """To the head, which asks those that are named."""
        question, self._accuses = self._accuses, 0
        if not self._waits():
            return
        answers = self._of_hang.answers(store, question)
        named: list[dict[str, Any]] = []
        for rank in accused(answers, begun, self._hang_s / 2):
            of = answers[rank]
            named.append(
                {
                    "rank": self._launch_rank[rank],
                    "host": of.host if of else "",
                    "pid": of.pid if of else 0,
                    "where": of.where if of else "",
                }
            )
        if named:
            _late[self._name] = (group_epochs.epoch(), named[0]["rank"])
            group_epochs.say_late(
                {
                    "torch_group": self._name,
                    "operation": begun,
                    "op": op_here(),
                    "waited_ms": int(still_s * 1000),
                    "late": named,
                    "waiting": [self._launch_rank[rank] for rank in there(answers, begun)],
                }
            )


def how_far(name: str) -> tuple[int, bool]:
    """(how many operations of the group of that name this process has begun, whether a thread of it
    waits in torch's code). From any thread."""
    begun = 0
    if _module is not None and _module.is_initialized():
        begun = max(
            (
                _begun(group)
                for each, group, _ in _groups(_module)
                if group_names.shown(each) == name
            ),
            default=0,
        )
    return begun, waits_here()


def begun_in(group: Any) -> int:
    """How many operations this process has begun in that process group, None: the default one; 0
    where that cannot be told. From any thread."""
    with contextlib.suppress(
        Exception
    ):  # raised by a backend that does not count, or a group that is gone
        chosen = group if group is not None else _module.group.WORLD
        return int(_begun(chosen) or 0)
    return 0


def late_rank() -> int | None:
    """The rank of the launch that others were found to wait for when this process last looked; None
    where nobody was. From any thread."""
    return min(
        (rank for epoch, rank in list(_late.values()) if epoch == group_epochs.epoch()),
        default=None,
    )


def waits_here() -> bool:
    """Return whether a thread of the program is in torch's code that waits for others."""
    return waiting_thread() is not None


def waiting_thread() -> int | None:
    """Return the thread that waits for others in torch's code, the program's before any other one;
    None: none does.

    The innermost frame of such a thread is torch.distributed's, or the backward pass's.
    """
    frames, first = sys._current_frames(), _parts.thread()
    for thread in (first, *(each for each in frames if each != first)):
        if group_counts.waited_for(thread) is not None:
            return thread
        file = frames[thread].f_code.co_filename if thread in frames and thread != _watching else ""
        if any(each in file for each in _WAITS) and _TIMERS not in file:
            return thread
    return None


def op_here() -> str:
    """Return the operation of torch's in which a thread of the program waits: `all_reduce`,
    `backward`; "" where none does."""
    frame = sys._current_frames().get(waiting_thread() or _parts.thread())
    op = ""
    while frame is not None and any(
        each in frame.f_code.co_filename
        for each in (*_WAITS, "torch/autograd/", "torch/_tensor.py")
    ):
        if _DISTRIBUTED not in frame.f_code.co_filename:
            op = "backward"
        elif frame.f_code.co_name != "wrapper":
            op = frame.f_code.co_name
        frame = frame.f_back
    return op


def say(text: str) -> None:
    """Print a message where the person who started the launch reads it."""
    with contextlib.suppress(OSError, ValueError):
        print(f"troupe: {text}", file=sys.stderr, flush=True)
