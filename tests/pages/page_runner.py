"""Runs the code blocks of a documentation page, one after the other, as a reader would.

* A block whose first line is `# NAME.EXT` is written to that file.
* Any other Python block is run. What stands behind a `print(...)` as a comment must be printed.
* Lines after a prompt are run by bash: `$ command`, or `node-a$ command` on a host of that name,
  which is a TROUPE_HOME of its own. Lines without a prompt must be in what the command prints, in
  that order; `...` stands for any text, a number with a point for any such number.
* `sh` blocks are run whole, and must end with 0.

The test changes three things: a head takes a free port, it has 8 CPUs whatever the machine has, and
10.0.0.1 is this machine.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/site"))
import blocks  # noqa: E402

ADDRESS, PORT = "10.0.0.1", "6400"
TIMEOUT_S = 180
_ANY = re.compile(r"\.\.\.|\d+\.\d+|\b[0-9a-f]{8,32}\b")


def free_port() -> str:
    """Return a port that was free when this was called."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def pattern_of(line: str) -> re.Pattern[str]:
    """Return the pattern that a printed line must match to be this line of a page."""
    kinds = {"...": ".*"}
    parts, end = [], 0
    line = " ".join(line.split())
    for found in _ANY.finditer(line):
        any_number = r"\d+\.\d+" if "." in found[0] else "[0-9a-f]+"
        parts += [re.escape(line[end : found.start()]), kinds.get(found[0], any_number)]
        end = found.end()
    return re.compile("".join([*parts, re.escape(line[end:])]) + r"\s*$")


def missing_line(expected: list[str], printed: str) -> str | None:
    """Return the first expected line that is not printed, in order; None if all are."""
    lines = iter([" ".join(each.split()) for each in printed.splitlines()])
    for each in expected:
        if each.strip() and each.strip() != "...":
            pattern = pattern_of(each)
            if not any(pattern.match(line) for line in lines):
                return each
    return None


def commands(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield host, command and expected lines of a block with prompts."""
    host, command, expected = "", "", []
    for line in text.splitlines():
        found = blocks.PROMPT.match(line)
        if found:
            if command:
                yield host, command, expected
            host, command, expected = found["host"] or "", found["command"], []
        elif command.endswith("\\"):
            command += "\n" + line
        else:
            expected.append(line)
    if command:
        yield host, command, expected


class PageRunner:
    """The folder, the hosts and the port of one page that is run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder / "work", free_port()
        self.homes = folder / "homes"
        self.folder.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        for name, line in {"troupe": "-m troupe", "python": ""}.items():
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {line} "$@"\n')
            program.chmod(0o755)
        self.path = f"{programs}:{os.environ['PATH']}"

    def environment(self, host: str) -> dict[str, str]:
        """Return the variables of a command on a host of the page."""
        home = self.homes / (host or "this")
        home.mkdir(parents=True, exist_ok=True)
        dropped = ("TROUPE_ADDRESS", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        return {
            **kept,
            "PATH": self.path,
            "HOME": str(home),
            "TROUPE_HOME": str(home / ".troupe"),
            "COLUMNS": "120",
        }

    def here(self, text: str) -> str:
        """Return a page's text with the address and the port that it has in the test."""
        text = re.sub(r"troupe start --head\b", f"troupe start --head --port {self.port}", text)
        text = re.sub(r"(--head --port \d+)(?!.*--num-cpus)", r"\1 --num-cpus 8", text)
        return text.replace(f"{ADDRESS}:{PORT}", f"127.0.0.1:{self.port}").replace(
            ADDRESS, "127.0.0.1"
        )

    def execute(self, line: list[str], host: str = "") -> tuple[int, str]:
        """Run a command and return its exit code and what it printed."""
        done = subprocess.run(
            line,
            cwd=self.folder,
            env=self.environment(host),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return done.returncode, done.stdout

    def run(self, block: blocks.Block) -> str | None:
        """Run a block and return what is wrong, or None."""
        if block.file:
            (self.folder / block.file).write_text(self.here(block.text))
        elif block.language == "python":
            (self.folder / "block.py").write_text(self.here(block.text))
            code, printed = self.execute(["python", "block.py"])
            expected = re.findall(r"^\s*print\(.*\)  # (.+)$", block.text, re.M)
            lost = missing_line(expected, printed)
            if code or lost:
                return f"line {block.line}: exit code {code}, {lost!r} not in:\n{printed}"
        elif block.language in ("sh", "bash"):
            code, printed = self.execute(["bash", "-ec", self.here(block.text)])
            if code:
                return f"line {block.line}: exit code {code}:\n{printed}"
        elif block.is_code:
            return self._session(block)
        return None

    def _session(self, block: blocks.Block) -> str | None:
        """Run the commands of a block with prompts."""
        for host, command, expected in commands(block.text):
            code, printed = self.execute(["bash", "-c", self.here(command)], host)
            printed = printed.replace(f"127.0.0.1:{self.port}", f"{ADDRESS}:{PORT}")
            lost = missing_line(expected, printed)
            if lost or (code and not expected):
                return (
                    f"line {block.line}: {command}: exit code {code}, {lost!r} not in:\n{printed}"
                )
        return None

    def stop(self) -> None:
        """Stop the clusters that the page has left running."""
        for home in self.homes.glob("*"):
            self.execute(["troupe", "stop", "--all"], home.name)


def run_page(page: str, folder: Path) -> None:
    """Run all code of a page; AssertionError names the first block that fails."""
    runner = PageRunner(folder)
    try:
        for block in blocks.blocks(page):
            if not block.note.startswith(("run by ", "not run:")):
                wrong = runner.run(block)
                assert wrong is None, f"docs/{page}, {wrong}"
    finally:
        runner.stop()
