"""A large result that goes with its process, after that has answered and before the caller has read
it.

Method: a program whose call stops it (SIGSTOP) before it returns; the process that was called kills
itself once its serving thread waits for the next call, so that the answer has left; then the
program goes on.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Home, eventually

PROGRAM = """
import os, signal, sys, threading
import numpy as np
import troupe

SIZE = 1 << 20

def ends_with_its_answer(folder, driver):
    first = os.path.join(folder, "pid")
    if os.path.exists(first):
        return
    with open(first + ".new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(first + ".new", first)
    os.kill(driver, signal.SIGSTOP)
    pause = threading.Event()
    def state(of):
        with open(f"/proc/{of}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    while state(driver) != "T":
        pause.wait(0.001)
    def end():
        epolls = ("232", "281")  # epoll_wait, epoll_pwait
        while open(f"/proc/self/task/{os.getpid()}/syscall").read().split()[0] not in epolls:
            pause.wait(0.001)
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Thread(target=end, daemon=True).start()

def large(folder, driver):
    ends_with_its_answer(folder, driver)
    return np.full(SIZE, 7, dtype=np.uint8)

def two(folder, driver):
    return large(folder, driver), "small"

@troupe.remote(num_cpus=0, max_restarts=1)
class Maker:
    def large(self, folder, driver):
        return large(folder, driver)

    @troupe.method(num_returns=2)
    def two(self, folder, driver):
        return two(folder, driver)

def stream(folder, driver):
    yield "small"
    yield large(folder, driver)

troupe.init(sys.argv[1])
folder, what, retries = sys.argv[2], sys.argv[3], int(sys.argv[4])
maker = Maker.options(max_task_retries=retries).remote()
try:
    if what == "task":
        refs = [troupe.remote(large).options(max_retries=retries).remote(folder, os.getpid())]
    elif what == "task of two":
        task = troupe.remote(two).options(max_retries=retries, num_returns=2)
        refs = task.remote(folder, os.getpid())
    elif what == "task that yields":
        refs = list(troupe.remote(stream).options(max_retries=retries).remote(folder, os.getpid()))[::-1]
    elif what == "two":
        refs = maker.two.remote(folder, os.getpid())
    else:
        refs = [maker.large.remote(folder, os.getpid())]
    array = troupe.get(refs, timeout=60)[0]
    print(array.nbytes, int(array.min()), int(array.max()))
except (troupe.exceptions.ObjectLostError, troupe.exceptions.MaybeExecutedError) as error:
    print(type(error).__name__, error)
"""


def has_ended(pid: int) -> None:
    """Waits for it."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([descriptor], [], [], 30)[0], (
        "the process that answered did not end within 30 s"
    )
    os.close(descriptor)


def ran(home: Home, folder: Path, what: str, retries: int) -> str:
    """Run the program and return its output."""
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "4")
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, head["address"], str(folder), what, str(retries)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        eventually((folder / "pid").exists, what="the call")
        has_ended(int((folder / "pid").read_text()))
        program.send_signal(signal.SIGCONT)
        return program.communicate(timeout=60)[0].strip()
    finally:
        program.kill()
        program.wait()


@pytest.mark.parametrize("what", ["actor", "two", "task", "task of two", "task that yields"])
def test_the_call_is_made_again(home: Home, tmp_path: Path, what: str) -> None:
    assert ran(home, tmp_path, what, 3) == f"{1 << 20} 7 7"


def test_without_retries_its_loss_is_named(home: Home, tmp_path: Path) -> None:
    """The order of two messages decides: the process's last results, or its end."""
    said = ran(home, tmp_path, "actor", 0)
    lost = said.startswith("ResultLostError the result, of 1048") and said.endswith(
        "could not be read in the memory of its actor: its process has ended"
    )
    assert (
        lost or said.startswith("MaybeExecutedError actor Maker") and "its process is gone" in said
    ), said
