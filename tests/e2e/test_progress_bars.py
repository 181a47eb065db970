"""Progress bars of ranks and actors: seen moving in a terminal, one line in a file, and whose each is.

Method: programs in a pseudo terminal, whose screen a small model of a terminal makes; a bar stops half way until a file says that it
was seen. The same programs with pipes.
"""
from __future__ import annotations

import os
import pty
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Any

import pytest
from conftest import TIMEOUT_S, Home
from gate import Gate

import troupe
from troupe.launch import distributed

COLUMNS, HEIGHT = 100, 24
BAR = """
def bar(steps, gate=None):
    import os, sys, time
    for i in range(steps + 1):
        if gate and i == steps // 2:
            open(gate, "rb", buffering=0).read(1)
        sys.stderr.write(f"\\r{i * 100 // steps}% of {os.environ.get('RANK', 'an actor')}")
        sys.stderr.flush()
"""
RANKS = BAR + """
from troupe.launch import distributed
import os
@distributed(processes=4)
def train(gate):
    bar(20, gate)
    print("rank", os.environ["RANK"], "is done")
train.distributed({gate!r})
print("own words")
"""
ACTOR = BAR + """
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
DRIVER = BAR + """
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


class Screen:
    """What a terminal shows: the steps, erasures and places that are used here; everything else is a fault."""

    def __init__(self) -> None:
        self.rows, self.row, self.column, self.saved = [[" "] * COLUMNS for _ in range(HEIGHT)], 0, 0, (0, 0)
        self.gone: list[str] = []

    def text(self) -> str:
        """All lines, those that were scrolled away first."""
        return "\n".join([*self.gone, *("".join(row).rstrip() for row in self.rows)]).rstrip()

    def feed(self, text: str) -> None:
        """Obeys."""
        for found in re.finditer(r"\x1b\[[0-9;]*[A-Za-z]|\x1b[78D]|.", text, re.DOTALL):
            self._obey(found[0])

    def _obey(self, each: str) -> None:
        if each == "\r":
            self.column = 0
        elif each in ("\n", "\x1bD"):
            self.row += 1
            if self.row == HEIGHT:
                self.gone.append("".join(self.rows.pop(0)).rstrip())
                self.rows.append([" "] * COLUMNS)
                self.row -= 1
        elif each == "\x1b7":
            self.saved = self.row, self.column
        elif each == "\x1b8":
            self.row, self.column = self.saved
        elif each in ("\x1b[K", "\x1b[J"):
            self.rows[self.row][self.column:] = [" "] * (COLUMNS - self.column)
            if each == "\x1b[J":
                self.rows[self.row + 1:] = [[" "] * COLUMNS for _ in range(HEIGHT - self.row - 1)]
        elif each.endswith("A") and each.startswith("\x1b["):
            self.row = max(0, self.row - int(each[2:-1]))
        elif not each.endswith("m") or not each.startswith("\x1b"):
            assert each >= " ", each
            if self.column == COLUMNS:  # a long line goes on in the next row, as in a terminal
                self._obey("\n")
                self.column = 0
            self.rows[self.row][self.column] = each
            self.column += 1


class Terminal:
    """A program in a terminal."""

    def __init__(self, code: str) -> None:
        self.main, side = pty.openpty()
        ioctl(side, TIOCSWINSZ, struct.pack("HHHH", HEIGHT, COLUMNS, 0, 0))
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=side, stdout=side, stderr=side,
                                        env={**os.environ, "TERM": "xterm"})
        os.close(side)
        self.screen, self.written = Screen(), ""

    def until(self, condition: Callable[[str], object]) -> str:
        """Reads until what is shown is so; "" of a program that ends first."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition(self.screen.text()):
            assert time.monotonic() < deadline, self.screen.text()
            if not select.select([self.main], [], [], 1)[0]:
                continue
            try:
                data = os.read(self.main, 65536).decode()
            except OSError:
                return ""
            self.written += data
            self.screen.feed(data)
        return self.screen.text()

    def end(self) -> str:
        """What is shown at the end of the program, which must succeed."""
        self.until(lambda _: False)
        assert self.process.wait(TIMEOUT_S) == 0, self.screen.text()
        return self.screen.text()


@pytest.fixture
def gate(home: Home, tmp_path: Path) -> Iterator[Gate]:
    """Where bars wait half way."""
    made = Gate(tmp_path / "gate")
    yield made
    made.close()


def started(text: str, kind: str) -> bool:
    """Whether all bars are seen half way."""
    if kind == "driver's actors":
        return len(re.findall(r"^\[0\] \(A [0-9a-f]{8}\) 45% of an actor$", text, re.M)) == 2
    wanted = [f"[{rank}] 45% of {rank}" for rank in range(4)] if kind == "ranks" else ["45% of an actor"]
    return all(each in text for each in wanted)


@pytest.mark.parametrize("kind, code", [("ranks", RANKS), ("actor", ACTOR), ("driver's actors", DRIVER)])
def test_in_a_terminal_bars_are_seen_moving(home: Home, gate: Gate, kind: str, code: str) -> None:
    terminal = Terminal(code.replace("{gate!r}", repr(gate.path)))
    assert terminal.until(lambda text: started(text, kind)), terminal.screen.text()
    gate.open()
    shown = terminal.end()
    assert "45%" not in shown and "own words" in shown.splitlines(), shown
    for rank in range(4) if kind == "ranks" else ():
        assert shown.splitlines().count(f"[{rank}] 100% of {rank}") == 1 and f"[{rank}] rank {rank} is done" in shown.splitlines()
    if kind != "ranks":
        assert len([line for line in shown.splitlines() if line.endswith(") 100% of an actor")]) == (1 if kind == "actor" else 2), shown
    if kind == "driver's actors":
        assert "[0] the driver is done" in shown.splitlines() and "[0]" not in [line.strip() for line in shown.splitlines()], shown


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
        handle = distributed(processes=1, remote=True, quiet=True)(lambda gate: bar(20, gate)).submit(gate.path)
        identity = handle.id
    terminal = Terminal(f"import sys; sys.argv = ['troupe', 'logs', {identity!r}, '--follow']\nfrom troupe.cli import main\nmain()")
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
    bars = [line for line in done.stderr.splitlines() if "%" in line]
    assert len(bars) == (4 if kind == "ranks" else 1) and all(") 100% of" in bar or "] 100% of" in bar for bar in bars), bars
    assert "\x1b" not in done.stdout + done.stderr and "\r" not in done.stdout + done.stderr
    assert "own words" in done.stdout.splitlines()


def test_bars_of_rich_are_readable_in_a_terminal(home: Home, gate: Gate) -> None:
    pytest.importorskip("rich")
    terminal = Terminal(RICH.replace("{gate!r}", repr(gate.path)).replace(
        "def train(gate):", "def train(gate):\n    import os\n    os.environ['FORCE_COLOR'] = '1'"))
    assert terminal.until(lambda text: all(re.search(rf"^\[{rank}\] training .* 50%", text, re.M) for rank in range(4)))
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
    assert len({line.partition(" 0] ")[0] for line in said}) == 2 and all(re.match(r"\[[0-9a-f]{4} 0\] begun [ab]$", line) for line in said), said
