"""Says which rank the others wait for, when a collective of torch takes much longer than operations of its group usually do.

Each rank counts what it has begun (torch's own sequence numbers of a group: of Gloo and NCCL). One that has waited for long asks all others by the
group's store; those whose count stands still, for whatever reason, answer there with where their main thread is; and the one that asked says who
is late (`late_ranks`). Nothing is ended by it.

A thread without Python's object for it: it looks once a second, for neither torch nor the store has an event for what does not happen. It begins with the
first group of this process and ends with the last. In a group in which no rank waits for long, nothing is written to the store. Ranks of a pipeline, which
send and receive in pairs, count unlike each other: what is said of them is where each one is, and only perhaps who is late.
"""
from __future__ import annotations

import _thread
import contextlib
import json
import os
import socket
import sys
import threading
import time
from typing import Any

from troupe._after_import import replace
from troupe._code import failures
from troupe._process.late_ranks import Answer, Pace, late, told

PATIENCE_VARIABLE = "TROUPE_LATE_RANK_S"
LOOK_S, ASKING_S = 1.0, 5.0
"""How often a rank looks at itself, and how often, while its count stands still, whether somebody asks."""
_KEY = "troupe/late"
_WAITS = ("torch/distributed/", "torch/autograd/graph.py")
_lock = threading.Lock()
_running = False


def wrap(module: Any) -> None:
    """Groups that are made from now on are watched. `module`: torch.distributed.distributed_c10d, once it was imported."""
    def watching(make: Any) -> Any:
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            made = make(*args, **kwargs)
            _begin(module)
            return made

        return init_process_group

    replace("init_process_group", watching, module, sys.modules.get("torch.distributed"))


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
    global _running
    never = _thread.allocate_lock()
    never.acquire()
    watched: dict[str, Watched] = {}
    patience = os.environ.get(PATIENCE_VARIABLE, "")
    fixed_s = float(patience) if patience.replace(".", "", 1).isdigit() else None
    look_s = LOOK_S if fixed_s is None else min(LOOK_S, fixed_s / 4)
    try:
        while True:
            never.acquire(timeout=look_s)
            with _lock:
                if not module.is_initialized():
                    _running = False
                    return
            _look(module, watched, fixed_s)
    except Exception:  # a torch that is otherwise, or a store that is gone: a watch that ends is no failure of the program's
        _running = False


def _look(module: Any, watched: dict[str, Watched], fixed_s: float | None) -> None:
    """Once. Groups are held for its duration only: one that the program destroys is to be gone."""
    groups = _groups(module)
    for name in watched.keys() - {name for name, _, _ in groups}:
        del watched[name]
    for name, group, store in groups:
        if name not in watched:
            watched[name] = Watched(name, group, dict(module._world.pg_group_ranks.get(group, {})), fixed_s)
        watched[name].look(group, store, time.monotonic())


def _groups(module: Any) -> list[tuple[str, Any, Any]]:
    """(name, group, store) of those that count."""
    found = []
    for group, (_, store) in list(module._world.pg_map.items()):
        if group is module.GroupMember.NON_GROUP_MEMBER or store is None:
            continue
        with contextlib.suppress(RuntimeError):
            group._get_sequence_number_for_group()
            found.append((module._world.pg_names.get(group, ""), group, store))
    return found


class Watched:
    """One group, as this rank sees it. Of the watching thread."""

    def __init__(self, name: str, group: Any, ranks: dict[int, int], fixed_s: float | None) -> None:
        self._name, self._fixed_s = name, fixed_s
        self._rank, self._size = group.rank(), group.size()
        self._launch_rank = {mine: everywhere for everywhere, mine in ranks.items()} or {each: each for each in range(self._size)}
        self._on_gpu = "nccl" in group.name().lower()
        self._asking_s = ASKING_S if fixed_s is None else fixed_s / 2
        self._pace = Pace()
        self._begun, self._since = group._get_sequence_number_for_group(), time.monotonic()
        self._next_s = self._asking_s  # of standing still, when it is looked next whether somebody asks
        self._question = 0             # that this rank has asked for the operation that it waits in
        self._asked_at = 0.0
        self._said, self._least_s = False, 0.0
        self._answered: tuple[int, int, bool] | None = None

    def look(self, group: Any, store: Any, now: float) -> None:
        """Once a second or so."""
        begun = group._get_sequence_number_for_group()
        if begun != self._begun:
            if self._begun:
                self._pace.add(begun - self._begun, now - self._since)
            if self._said:  # what was no hang, an evaluation by one rank say, is told of again only where it takes twice as long
                say(f"process group {self._name or '0'} goes on, after {now - self._since:.0f} s")
                self._least_s = 2 * (now - self._since)
            self._begun, self._since, self._next_s, self._question, self._said = begun, now, self._asking_s, 0, False
            return
        still_s = now - self._since
        patience_s = max(self._least_s, self._pace.patience_s() if self._fixed_s is None else self._fixed_s)
        if self._question and not self._said and still_s >= patience_s and now - self._asked_at >= 3 * self._asking_s:
            self._tell(store, still_s)
        if still_s < self._next_s:
            return
        self._next_s = still_s + self._asking_s
        waits = self._waits()
        if waits and not self._question and still_s >= patience_s - 3 * self._asking_s and store.add(f"{_KEY}/{begun}", 1) == 1:
            self._question, self._asked_at = store.add(f"{_KEY}/asked", 1), now
        self._answer(store, begun, waits)

    def _waits(self) -> bool:
        """For others, as far as can be told: a GPU is waited for in any line of the program."""
        return self._on_gpu or waits_here()

    def _answer(self, store: Any, begun: int, waits: bool) -> None:
        question = store.add(f"{_KEY}/asked", 0)
        if question == 0 or self._answered == (question, begun, waits):
            return
        self._answered = (question, begun, waits)
        where = "" if waits else failures.where()
        store.set(self._key(question, self._rank), json.dumps([begun, waits, socket.gethostname(), os.getpid(), where]))

    def _key(self, question: int, rank: int) -> str:
        return f"{_KEY}/{question}/{rank}"

    def _tell(self, store: Any, still_s: float) -> None:
        if not self._waits():
            return
        answers: list[Answer | None] = []
        for rank in range(self._size):
            there = store.check([self._key(self._question, rank)])
            answers.append(Answer(*json.loads(store.get(self._key(self._question, rank)))) if there else None)
        self._said = True
        if ranks := late(answers):
            say(told(answers, ranks, self._name or "0", still_s, self._launch_rank))


def waits_here() -> bool:
    """Whether the main thread is in torch's code that waits for others: the innermost frames are torch.distributed's, or the backward pass's."""
    frame = sys._current_frames().get(threading.main_thread().ident)  # type: ignore[arg-type]
    return frame is not None and any(each in frame.f_code.co_filename for each in _WAITS)


def say(text: str) -> None:
    """Where whoever started the launch reads it."""
    with contextlib.suppress(OSError, ValueError):
        print(f"troupe: {text}", file=sys.stderr, flush=True)
