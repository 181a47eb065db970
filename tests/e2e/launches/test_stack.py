"""`troupe stack`: real launches that hang in known places, looked at from outside."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import Home, eventually

import troupe
from troupe.launch import distributed


def test_the_rank_that_is_not_in_the_collective_is_named(idle: Home) -> None:
    pytest.importorskip("torch")

    @distributed(processes=3, remote=True)
    def hang() -> None:
        import threading

        import torch
        import torch.distributed as dist

        def forgotten_lock() -> None:
            threading.Event().wait()

        dist.init_process_group()
        if dist.get_rank() == 2:
            forgotten_lock()
        dist.all_reduce(torch.ones(2))

    handle = hang.submit()
    try:

        def stacks() -> str:
            done = idle.run("stack", handle.id, ok=False)
            return (
                done.stdout
                if "2 of 3 ranks wait in a collective; not there: rank 2" in done.stdout
                else ""
            )

        shown = str(eventually(stacks, what="two ranks in the collective and one elsewhere"))
        assert "all_reduce (a collective)" in shown and "forgotten_lock" in shown
        alone = idle.run("stack", handle.id, "--rank", "2", "--python-only").stdout
        assert "forgotten_lock" in alone and "all_reduce" not in alone
        assert "ranks 0 to 2, not 7" in idle.run("stack", handle.id, "--rank", "7", ok=False).stderr
    finally:
        handle.cancel()
    done = idle.run("stack", handle.id, ok=False)
    assert done.returncode == 2 and "has ended" in done.stderr


def read_in(home: Home, launch: str, function: str) -> list[dict]:
    """The ranks of a launch that are in that function, once there are any."""

    def found() -> list[dict]:
        return [
            each
            for each in home.json("stack", launch)
            if any(
                frame["name"].endswith(function)
                for thread in each.get("threads", ())
                for frame in thread["frames"]
            )
        ]

    return eventually(found, what="the frame of the function")


def test_a_rank_that_sleeps_with_the_gil_held_is_read_all_the_same(idle: Home) -> None:
    @distributed(processes=1, remote=True)
    def deaf() -> None:
        import ctypes

        print("going", flush=True)
        ctypes.PyDLL(None).sleep(600)

    handle = deaf.submit()
    try:
        assert next(handle.logs(0, follow=True)) == "going"
        rows = read_in(idle, handle.id, "deaf")
        frames = [
            frame for thread in rows[0]["threads"] if thread["main"] for frame in thread["frames"]
        ]
        assert any("sleep" in frame["name"] for frame in frames), "C's frames are there too"
    finally:
        handle.cancel()


def test_the_native_frames_of_ranks_that_wait_are_read(idle: Home) -> None:
    """Holds for a release too: .ci/run runs this file on one."""

    @distributed(processes=2, remote=True)
    def waits() -> None:
        import threading

        threading.Event().wait()

    handle = waits.submit()
    try:
        rows = read_in(idle, handle.id, "waits")
        for row in rows:
            assert "note" not in row, row["note"]
            frames = [frame for thread in row["threads"] for frame in thread["frames"]]
            assert any(frame["file"].endswith(".cc") for frame in frames), (
                "the runtime's own thread waits in C++"
            )
    finally:
        handle.cancel()


def test_an_actor_by_its_id(idle: Home) -> None:
    @troupe.remote
    class Idle:
        def ping(self) -> int:
            return os.getpid()

    actor = Idle.remote()
    pid = troupe.get(actor.ping.remote())
    row = next(each for each in idle.json("list", "actors") if each["pid"] == pid)
    assert f"pid {pid}" in idle.run("stack", row["actor_id"], "--python-only").stdout
    troupe.kill(actor)


def test_a_process_of_this_host_and_none(idle: Home) -> None:
    code = "import sys\ndef here():\n    print('x', flush=True); sys.stdin.read()\nhere()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == b"x\n"
        shown = eventually(
            lambda: "here" in idle.run("stack", "--pid", str(child.pid)).stdout, what="its function"
        )
        assert shown
        child.communicate(b"")
    done = idle.run("stack", "--pid", str(child.pid), ok=False)
    assert done.returncode == 2 and f"no process {child.pid}" in done.stderr
    assert idle.run("stack", "zz", ok=False).returncode == 2
