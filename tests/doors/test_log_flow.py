"""The way of ranks' output to the program that shows it: everything once and in order, past the
head, and no rank, no memory for a slow reader.

Method: programs of their own whose stdout is a file, or a pipe that nobody reads until the launch
has ended; a head that stands still while ranks write. The figures: benchmarks/doors/logs.py.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually, stand_still
from gate import Gate

import troupe
from troupe._cluster import logs
from troupe.launch import _logs, attach, distributed

RANKS, LINES = 4, 20_000
LIMIT_S = 4 * TIMEOUT_S
PROGRAM = """
import os, sys
from troupe.launch import distributed

@distributed(processes={ranks}, cpus_per_rank=1, remote=True, name={name!r})
def write():
    import os, sys
    rank = os.environ["RANK"]
    if {gate!r}:
        print("begins", flush=True)
        open({gate!r}, "rb", buffering=0).read(1)
    for begin in range(0, {lines}, 1000):
        sys.stdout.write("".join(f"{{rank}} {{each}} ".ljust(99, "x") + "\\n" for each in range(begin, begin + 1000)))
    return {lines}

peak = lambda: int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
write.distributed  # what a launch loads is not what its output takes
handle = write.submit()
before = peak()
{follow}
assert handle.result() == [{lines}] * {ranks}
print("grew", round(peak() - before), file=sys.stderr)
"""
LINE = re.compile(r"\[(\d)\] (\d) (\d+) x+$")
GAP = re.compile(
    r"\[(\d)\] \.\.\. ([\d,]+) lines \(([\d,]+) characters\) of output left out here, .* all of it: troupe logs [0-9a-f]+ \.\.\.$"
)


def program(
    name: str,
    *,
    lines: int = LINES,
    ranks: int = RANKS,
    gate: str = "",
    follow: str = "handle.watch()",
) -> str:
    return PROGRAM.format(name=name, lines=lines, ranks=ranks, gate=gate, follow=follow)


def started(code: str, stdout: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,  # type: ignore[call-overload]
        env={**os.environ, "TROUPE_ADDRESS": troupe.state._session.current().address},
    )


def numbers_of(lines: list[str], rank: int) -> list[int]:
    return [
        int(found[3])
        for line in lines
        if (found := LINE.match(line)) and int(found[1]) == rank == int(found[2])
    ]


def launch_named(name: str) -> dict:
    """The launch, once it is there."""
    found = eventually(
        lambda: [each for each in troupe.state.list_launches() if each["name"] == name],
        timeout=LIMIT_S,
        what="the launch",
    )
    return found[0]  # type: ignore[index]


def test_in_a_file_is_every_line_of_each_rank_once_and_in_order(
    cluster: Home, tmp_path: Path
) -> None:
    with open(tmp_path / "out", "w+") as file:
        process = started(program("file"), file)
        _, errors = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, errors
        file.seek(0)
        lines = file.read().splitlines()
    for rank in range(RANKS):
        assert numbers_of(lines, rank) == list(range(LINES))
    assert len(lines) == RANKS * LINES


def test_output_does_not_pass_the_head(cluster: Home, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    process = started(
        program("past the head", lines=1000, ranks=2, gate=gate.path), subprocess.PIPE
    )
    assert process.stdout is not None
    assert {process.stdout.readline(), process.stdout.readline()} == {
        "[0] begins\n",
        "[1] begins\n",
    }
    head = next(
        pid for pid, line in cluster.processes().items() if "troupe-head" in line.split()[0]
    )
    stand_still(head)
    try:
        gate.open()
        lines = [process.stdout.readline().rstrip("\n") for _ in range(2000)]
    finally:
        os.kill(head, signal.SIGCONT)
    assert numbers_of(lines, 0) == numbers_of(lines, 1) == list(range(1000))
    rest, errors = process.communicate(timeout=LIMIT_S)
    gate.close()
    assert process.returncode == 0 and rest == "", errors


@pytest.mark.parametrize(
    "follow",
    [
        "handle.watch()",
        pytest.param("for line in handle.logs(follow=True): print(line)", marks=pytest.mark.long),
    ],
    ids=["watch", "logs"],
)
def test_a_reader_that_reads_nothing_slows_no_rank_and_grows_no_memory(
    cluster: Home, follow: str
) -> None:
    lines, name = 150_000, f"slow {follow[:6]}"  # 60 MB of all ranks
    process = started(program(name, lines=lines, follow=follow), subprocess.PIPE)
    launch = launch_named(name)["id"]
    eventually(
        lambda: attach(launch).status()["outcome"] == "succeeded",
        timeout=LIMIT_S,
        what="the end of a launch whose output nobody reads",
    )
    assert process.poll() is None, "its output is not shown yet"
    out, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, errors
    shown = out.splitlines()
    gaps = {
        int(found[1]): int(found[2].replace(",", ""))
        for line in shown
        if (found := GAP.match(line))
    }
    for rank in range(RANKS):
        numbers = numbers_of(shown, rank)
        assert numbers == sorted(set(numbers)) and len(numbers) + gaps.get(rank, 0) == lines, (
            len(numbers),
            gaps,
            errors,
        )
        assert numbers[-1] == lines - 1, "the end is shown"
        assert sum(1 for _ in attach(launch).logs(rank)) == lines, "the file has all"
    grew = int(re.search(r"grew (\d+)", errors)[1])  # type: ignore[index]
    assert grew < 45, f"{grew} MiB for {RANKS * lines * 100 >> 20} MiB of output"


def test_more_streams_are_followed_than_a_worker_answers_at_once(
    cluster: Home, tmp_path: Path
) -> None:
    """Each has all of its lines, also those beyond the 256 questions that a worker takes from one
    connection."""
    gate = Gate(tmp_path / "gate")
    path = gate.path

    @distributed(processes=1, cpus_per_rank=1, remote=True, name="many streams")
    def write() -> None:
        print("begins", flush=True)
        open(path, "rb", buffering=0).read(1)
        print("ends")

    handle, streams = write.submit(), 300
    info = handle.wait_state(lambda info: bool(info["rank_infos"]) and info["state"] == "running")
    source = _logs.sources(info, info["rank_infos"])[0]
    seen: list[tuple[int, str]] = []
    for number, _, line in logs.Follower(
        handle.session, [source._replace(label=number) for number in range(streams)]
    ):
        seen.append((number, line))
        if len(seen) == streams:
            gate.open()
    assert sorted(seen) == [
        (number, line) for number in range(streams) for line in ("begins", "ends")
    ]
    assert handle.result(timeout=LIMIT_S) == [None]
    gate.close()


def test_a_reader_that_leaves_ends_nothing(cluster: Home) -> None:
    process = started(program("left", ranks=1), subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    assert LINE.match(process.stdout.readline().rstrip("\n"))
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(TIMEOUT_S) in (0, 120), (
        errors
    )  # 120: Python's own flush of stdout at its end
    assert "Traceback" not in errors and "succeeded" in errors and "grew" in errors, errors
