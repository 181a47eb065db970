"""Spans of what this process does, in its ring (`runtime/obs/trace.h`).

A process of a worker makes its ring when it becomes a rank or an actor, a program when it connects
to a cluster. Without a ring nothing is recorded. A ring that cannot be made is no error of the
program's.
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
import stat
import sys
import time
from typing import Any

from troupe._base import callbacks as _callbacks

FOLDER_VARIABLE = "TROUPE_TRACE_DIR"
"""Variable of a worker's process: where its ring goes, named by its process id
(worker/core/environment.h)."""
CALLS_VARIABLE = "TROUPE_TRACE_CALLS"
"""Variable: one actor call in so many is recorded, at its caller and at its actor; unset: none."""
PROGRAMS_KEPT = 32
"""Rings of programs of this user that have ended, on this host."""
PROGRAM_KEPT_S = 3600.0
LABEL_AT, LABEL_BYTES_MAX, LABEL_BYTES_AT = 1024, 3072, 68
"""Where the file has the label (kTraceLabelAt), and its length (TraceHeader)."""
own_path = ""
"""Where this process has its ring; "": nowhere."""


class Kind(enum.IntEnum):
    """Kind of a span: SpanKind of runtime/obs/trace.h."""

    PHASE = 1
    TASK = 2
    TRANSFER = 3
    COLLECTIVE = 4
    TRIAL = 5
    CALL = 6
    RUN = 7


def now_ns() -> int:
    """Return the time as spans count it."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def add(kind: Kind, name: str, begin_ns: int, end_ns: int | None = None, value: int = 0) -> None:
    """Record a span that is over; `end_ns` None: now."""
    from troupe._base.bridge import native

    native.trace_add(int(kind), name, begin_ns, now_ns() if end_ns is None else end_ns, value)


class span:
    """Records what runs inside as one span, whatever ends it."""

    def __init__(self, kind: Kind, name: str) -> None:
        self._kind, self._name = kind, name

    def __enter__(self) -> None:
        self._begin_ns = now_ns()

    def __exit__(self, *_: object) -> None:
        add(self._kind, self._name, self._begin_ns)


def open_of_process(label: dict[str, Any]) -> None:
    """Make the ring of a worker's process. `label` says what the process is."""
    folder, process = os.environ.get(FOLDER_VARIABLE), os.environ.get("TROUPE_PROCESS_ID")
    if folder and process:
        _open(os.path.join(folder, process), label)


def open_of_program(cluster: str) -> None:
    """Make the ring of a program that has connected to a cluster, unless it has one where it is
    looked for; and remove those of programs that ended long ago."""
    name = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
    label = {"kind": "program", "name": name, "cluster": cluster}
    folder = programs_folder()
    if os.path.dirname(own_path) == folder and os.path.exists(own_path):
        _relabel(label)
        return
    try:
        if not (_is_private(os.path.dirname(folder)) and _is_private(folder)):
            return
        _sweep(folder)
    except OSError as error:
        _callbacks.report("the folder of rings of spans", error)
        return
    _open(os.path.join(folder, f"{os.getpid()}-{now_ns():x}"), label)


def programs_folder() -> str:
    """Return the folder for rings of this user's programs: beside those of workers
    (worker/options.cc)."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    base = f"{runtime}/troupe" if runtime.startswith("/") else f"/tmp/troupe-{os.geteuid()}"
    return f"{base}/rings"


def _open(path: str, label: dict[str, Any]) -> None:
    from troupe._base.bridge import native

    global own_path
    every = os.environ.get(CALLS_VARIABLE, "")
    # A ring that is not made is one that nobody reads: the program has nothing to do about it.
    if not native.trace_open(path, json.dumps(label), int(every) if every.isdecimal() else 0):
        own_path = path


def _relabel(label: dict[str, Any]) -> None:
    """Say anew what this program is: it has connected to another cluster."""
    text = json.dumps(label).encode()[:LABEL_BYTES_MAX]
    with contextlib.suppress(OSError):  # the file was removed: nobody reads it
        fd = os.open(own_path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.pwrite(fd, text, LABEL_AT)
            os.pwrite(fd, len(text).to_bytes(4, "little"), LABEL_BYTES_AT)
        finally:
            os.close(fd)


def _is_private(folder: str) -> bool:
    """Make the folder if need be; return True if it is this user's, and nobody else writes there.

    Raises OSError.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_own and not found.st_mode & 0o022


def _sweep(folder: str) -> None:
    """Remove rings of programs that have ended: those that are old, and the oldest of many."""
    ended = []
    for name in os.listdir(folder):
        pid, _, _ = name.partition("-")
        if pid.isdecimal() and not os.path.exists(f"/proc/{pid}"):
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):  # another program has removed it
                ended.append((os.stat(path).st_mtime, path))
    ended.sort(reverse=True)
    for place, (changed_s, path) in enumerate(ended):
        if place >= PROGRAMS_KEPT or changed_s < time.time() - PROGRAM_KEPT_S:
            with contextlib.suppress(OSError):
                os.unlink(path)
