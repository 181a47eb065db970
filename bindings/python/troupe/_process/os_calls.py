"""Small calls to the kernel that the standard library lacks, made without importing ctypes
early."""

from __future__ import annotations

import os
from collections.abc import Iterator

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_PTRACER = 0x59616D61
_SIGKILL = 9


def die_with_parent(whether: bool = True) -> None:
    """Makes the kernel kill this process when the thread that started it ends, or no longer."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL if whether else 0)


def let_read(reader: int) -> None:
    """Lets process `reader` and its descendants look into this one where Yama allows that to
    ancestors only."""
    try:
        _prctl(_PR_SET_PTRACER, reader)
    except OSError:
        return  # a kernel without Yama, which allows it to any process of the same user


def _prctl(option: int, argument: object) -> None:
    import ctypes

    value = ctypes.c_ulong(argument) if isinstance(argument, int) else argument
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def set_title(title: str) -> None:
    """Shows `title` in ps, in both its short and its long form; a failure changes nothing."""
    import ctypes

    name = title.encode(errors="replace")
    try:
        _prctl(_PR_SET_NAME, ctypes.c_char_p(name[:15]))
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start, arg_end
        room = end - start
        if room > 1 and start > 0:
            ctypes.memmove(start, name[: room - 1].ljust(room, b"\0"), room)
    except (OSError, ValueError, IndexError):
        return


def raise_oom_score(by: int) -> None:
    """Makes the kernel choose this process, and what it starts, before its parent when memory runs
    out: by `by` thousandths of it.

    Raising needs no privilege; one that is higher already stays. A failure changes nothing.
    """
    try:
        with open(f"/proc/{os.getppid()}/oom_score_adj", "rb", buffering=0) as file:
            score = min(int(file.read()) + by, 1000)
        with open("/proc/self/oom_score_adj", "r+b", buffering=0) as own:  # no codec is loaded
            if int(own.read()) < score:
                own.write(str(score).encode())
    except (OSError, ValueError):
        return


def thread_count() -> int:
    """Threads of this process, those no Python code knows of included."""
    return len(os.listdir("/proc/self/task"))


def close_all_but(keep: set[int]) -> None:
    """Closes every descriptor of this process except `keep`."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in keep:
            try:
                os.close(int(name))
            except OSError:
                continue  # the directory's own descriptor, already closed


_HUGE_BYTES = 2 << 20
_MADV_COLLAPSE = 25


def collapse_memory() -> Iterator[bool]:
    """Turns this process's private memory into huge pages, one per step; yields whether it could.

    A fork then copies one entry of the page table instead of 512: measured, 8 ms become 1.7 ms with
    torch loaded, and the child's end costs a third. A step takes up to 5 ms. A kernel that refuses
    (before 6.1) yields False each time.
    """
    import ctypes

    madvise = ctypes.CDLL(None, use_errno=True).madvise
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        rows = [line.split() for line in file]
    for row in rows:
        if row[1] != "rw-p" or row[4] != "0" or (len(row) > 5 and row[5] != "[heap]"):
            continue
        start, end = (int(part, 16) for part in row[0].split("-"))
        start = -(-start // _HUGE_BYTES) * _HUGE_BYTES
        for address in range(start, end - _HUGE_BYTES + 1, _HUGE_BYTES):
            done = (
                madvise(ctypes.c_void_p(address), ctypes.c_size_t(_HUGE_BYTES), _MADV_COLLAPSE) == 0
            )
            yield done


_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans(whether: bool = True) -> None:
    """Makes this process the parent of its descendants whose own parents have ended, or no
    longer."""
    _prctl(_PR_SET_CHILD_SUBREAPER, int(whether))


def kill_children(keep: set[int]) -> None:
    """Kills and reaps every child of this process but `keep`, and what thereby becomes a child of
    it."""
    while True:
        found = children() - keep
        if not found:
            return
        for child in found:
            try:
                os.kill(child, _SIGKILL)
                os.waitpid(child, 0)
            except (ProcessLookupError, ChildProcessError):
                continue


def children() -> set[int]:
    """Processes whose parent this one is."""
    here = os.getpid()
    return {pid for pid, parent in _parents().items() if parent == here}


def kill_below() -> None:
    """Kills all descendants of this process, and does not wait for their ends."""
    parents = _parents()
    below, found = {os.getpid()}, 1
    while found:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        found = len(more)
        below |= more
    for pid in below - {os.getpid()}:
        try:
            os.kill(pid, _SIGKILL)
        except ProcessLookupError:
            continue


def _parents() -> dict[int, int]:
    """Return the parent of each process."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                found[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
    return found
