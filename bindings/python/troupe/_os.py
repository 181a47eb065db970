"""Small calls to the kernel that the standard library lacks, made without importing ctypes early."""
from __future__ import annotations

import os

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_SIGKILL = 9


def die_with_parent() -> None:
    """Makes the kernel kill this process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def _prctl(option: int, argument: object) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(option, argument, 0, 0, 0) != 0:
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
