"""How the processes of a trial's job report: a socket in the job's directory on rank 0's node, and
a hook in each Python that the command starts.

View: rank 0 of the job, which runs the command beside itself.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import troupe
from troupe.azure import _door, _processes

FOLDER, METRIC = "TROUPE_SWEEP_REPORTS", "TROUPE_SWEEP_METRIC"
HOOK = os.fspath(Path(__file__).with_name("hook"))
INSIDE = "reports"
"""In the job's directory: the folder with the socket."""
_END_GRACE_S = 10.0
_doors: list[_door.Door] = []  # open until this process ends


def open_to(folder: Path, trial: Mapping[str, str]) -> None:
    """From now on reports of processes on this node go to the trial."""
    inside = folder / INSIDE
    inside.mkdir(mode=0o700, exist_ok=True)
    reports = troupe.get_actor(trial["reports"], trial["namespace"])

    def answer(request: dict[str, Any], asked: socket.socket) -> None:
        told = (
            reports.note_names.remote(request["names"])
            if "names" in request
            else reports.tell.remote(request["metrics"])
        )
        asked.sendall(json.dumps({"stop": troupe.get(told)}).encode() + b"\n")

    _doors.append(_door.Door(inside, answer).__enter__())


def variables(folder: Path, trial: Mapping[str, str]) -> dict[str, str]:
    """By which processes find the way, also those that a launcher has started; nothing on other
    nodes than rank 0's."""
    inside = folder / INSIDE
    if not inside.exists():
        return {}
    path = os.pathsep.join([HOOK, *filter(None, [os.environ.get("PYTHONPATH", "")])])
    return {FOLDER: os.fspath(inside), METRIC: trial["metric"], "PYTHONPATH": path}


def run(line: Sequence[str]) -> int:
    """Runs the command beside this process; its code, negative for a signal.

    Told to stop, it is told so too, with all that it has started.
    """
    child = subprocess.Popen(list(line), stdin=subprocess.DEVNULL)
    try:
        return child.wait()
    except BaseException:
        _processes.end(child, signal.SIGTERM, _END_GRACE_S)
        raise
