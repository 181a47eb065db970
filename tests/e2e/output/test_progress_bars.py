"""Progress bars of ranks and actors: seen moving in a terminal, lines in a pipe or a file, and
whose each is.

Method: programs in a pseudo terminal, whose screen a small model of a terminal makes; a bar stops
half way until a file says that it was seen. The same programs with pipes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import TIMEOUT_S, Home
from gate import Gate
from terminals import Terminal

import troupe
from troupe.launch import distributed

BAR = """
def bar(steps, gate=None):
    import os, sys, time
    for i in range(steps + 1):
        if gate and i == steps // 2:
            open(gate, "rb", buffering=0).read(1)
        sys.stderr.write(f"\\r{i * 100 // steps}% of {os.environ.get('RANK', 'an actor')}")
        sys.stderr.flush()
"""
RANKS = (
    BAR
    + """
from troupe.launch import distributed
import os
@distributed(processes=4)
def train(gate):
    bar(20, gate)
    print("rank", os.environ["RANK"], "is done")
train.distributed({gate!r})
print("own words")
"""
)
ACTOR = (
    BAR
    + """
import troupe as ray
with ray.init(num_cpus=1):
    @ray.remote
    class A:
        def train(self, gate):
            bar(20, gate)
    a = A.remote()
    ref = a.train.remote({gate!r})
    ray.get(ref)
    print("own words")
"""
)
DRIVER = (
    BAR
    + """
import troupe as ray
from troupe.launch import ray_launch
@ray_launch(processes=2)
def drive(gate):
    @ray.remote(num_cpus=0)
    class A:
        def train(self, gate):
            bar(20, gate)
    actors = [A.remote() for _ in range(2)]
    ray.get([each.train.remote(gate) for each in actors])
    print("the driver is done")
drive.distributed({gate!r})
print("own words")
"""
)
RICH = """
from troupe.launch import distributed
@distributed(processes=4)
def train(gate):
    from rich.progress import track
    for i in track(range(20), description="training"):
        if i == 10:
            open(gate, "rb", buffering=0).read(1)
train.distributed({gate!r})
"""


@pytest.fixture
def gate(home: Home, tmp_path: Path) -> Iterator[Gate]:
    """A gate at which bars wait half way."""
    made = Gate(tmp_path / "gate")
    yield made
    made.close()


def started(text: str, kind: str) -> bool:
    """Return True if all bars are seen half way."""
    if kind == "driver's actors":
        return len(re.findall(r"^\[0\] \(A [0-9a-f]{8}\) 45% of an actor$", text, re.M)) == 2
    wanted = (
        [f"[{rank}] 45% of {rank}" for rank in range(4)] if kind == "ranks" else ["45% of an actor"]
    )
    return all(each in text for each in wanted)


@pytest.mark.parametrize(
    "kind, code", [("ranks", RANKS), ("actor", ACTOR), ("driver's actors", DRIVER)]
)
def test_in_a_terminal_bars_are_seen_moving(home: Home, gate: Gate, kind: str, code: str) -> None:
    terminal = Terminal(code.replace("{gate!r}", repr(gate.path)))
    assert terminal.until(lambda text: started(text, kind)), terminal.screen.text()
    gate.open()
    shown = terminal.end()
    assert "45%" not in shown and "own words" in shown.splitlines(), shown
    for rank in range(4) if kind == "ranks" else ():
        assert (
            shown.splitlines().count(f"[{rank}] 100% of {rank}") == 1
            and f"[{rank}] rank {rank} is done" in shown.splitlines()
        )
    if kind != "ranks":
        assert len(
            [line for line in shown.splitlines() if line.endswith(") 100% of an actor")]
        ) == (1 if kind == "actor" else 2), shown
    if kind == "driver's actors":
        assert "[0] the driver is done" in shown.splitlines() and "[0]" not in [
            line.strip() for line in shown.splitlines()
        ], shown


@pytest.mark.parametrize("kind", ["actor", "launch"])
def test_logs_that_are_followed_show_bars_moving(home: Home, gate: Gate, kind: str) -> None:
    troupe.init(home.json("start", "--head", "--port", "0", "--num-cpus", "4")["address"])
    space: dict[str, Any] = {}
    exec(BAR, space)  # noqa: S102  (as the programs have it)
    bar = space["bar"]
    if kind == "actor":
        actor = troupe.remote(type("A", (), {"train": lambda self, gate: bar(20, gate)})).remote()
        ref, identity = actor.train.remote(gate.path), actor._actor_id.hex()
    else:
        handle = distributed(processes=1, remote=True, quiet=True)(
            lambda gate: bar(20, gate)
        ).submit(gate.path)
        identity = handle.id
    terminal = Terminal(
        f"import sys; sys.argv = ['troupe', 'logs', {identity!r}, '--follow']\nfrom troupe.cli "
        "import main\nmain()"
    )
    words = "45% of an actor" if kind == "actor" else "[0] 45% of 0"
    assert terminal.until(lambda text: words in text), terminal.screen.text()
    gate.open()
    if kind == "actor":
        troupe.get(ref, timeout=TIMEOUT_S)
        troupe.kill(actor)
    else:
        handle.result(TIMEOUT_S)
    shown = terminal.end()
    assert shown.splitlines().count(words.replace("45", "100")) == 1 and "45%" not in shown, shown


@pytest.mark.parametrize("kind, code", [("ranks", RANKS), ("actor", ACTOR)])
def test_in_a_file_a_bar_is_one_line(home: Home, kind: str, code: str) -> None:
    done = home.python(code.replace("{gate!r}", "None"))
    assert done.returncode == 0, done.stderr
    bars = [line for line in done.stderr.splitlines() if "100%" in line]
    assert len(bars) == (4 if kind == "ranks" else 1) and all(
        ") 100% of" in bar or "] 100% of" in bar for bar in bars
    ), bars
    assert "\x1b" not in done.stdout + done.stderr and "\r" not in done.stdout + done.stderr
    assert "own words" in done.stdout.splitlines()


@pytest.mark.parametrize("kind, code", [("ranks", RANKS), ("actor", ACTOR)])
def test_in_a_pipe_a_bar_is_shown_before_it_is_finished(
    home: Home, gate: Gate, kind: str, code: str
) -> None:
    """The newest state is shown at each interval; the bar waits half way until that was read."""
    early = "from troupe._cluster import live_output\nlive_output.BAR_LINE_S = 0.1\n"
    with subprocess.Popen(
        [sys.executable, "-c", early + code.replace("{gate!r}", repr(gate.path))],
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stderr is not None
        seen = ""
        patience = threading.Timer(TIMEOUT_S, program.kill)
        patience.start()
        for line in program.stderr:
            seen += line
            if started(seen, kind) or kind == "actor" and ") 45% of an actor\n" in seen:
                break
        gate.open()
        rest = program.stderr.read()
        patience.cancel()
    assert program.returncode == 0 and "\r" not in seen + rest, seen + rest
    ends = {
        line for line in rest.splitlines() if "100% of" in line
    }  # a bar at its end may have had its interval before it was finished
    assert len(ends) == (4 if kind == "ranks" else 1), seen + rest


def test_bars_of_rich_are_readable_in_a_terminal(home: Home, gate: Gate) -> None:
    pytest.importorskip("rich")
    terminal = Terminal(
        RICH.replace("{gate!r}", repr(gate.path)).replace(
            "def train(gate):",
            "def train(gate):\n    import os\n    os.environ['FORCE_COLOR'] = '1'",
        )
    )
    assert terminal.until(
        lambda text: all(
            re.search(rf"^\[{rank}\] training .* 50%", text, re.M) for rank in range(4)
        )
    )
    gate.open()
    shown = terminal.end()
    for rank in range(4):
        assert len(re.findall(rf"^\[{rank}\] training", shown, re.M)) == 1, shown


def test_several_launches_at_once_say_which(home: Home) -> None:
    code = """
import threading, os
from troupe.launch import distributed
import troupe
with troupe.init(num_cpus=4):
    @distributed(processes=1, remote=True)
    def speak(mine, other):
        for name in sorted((mine, other)):  # both run now
            open(name, "r" if name == mine else "w").close()
        print("begun", mine, flush=True)
    os.mkfifo("a"), os.mkfifo("b")
    threads = [threading.Thread(target=speak.distributed, args=names) for names in (("a", "b"), ("b", "a"))]
    for each in threads: each.start()
    for each in threads: each.join()
"""
    done = home.python(code, cwd=home.path.parent)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len({line.partition(" 0] ")[0] for line in said}) == 2 and all(
        re.match(r"\[[0-9a-f]{4} 0\] begun [ab]$", line) for line in said
    ), said
