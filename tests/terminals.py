"""Programs in a pseudo terminal, whose screen a small model of a terminal makes.

terminal = Terminal("print('hello')")
terminal.until(lambda text: "hello" in text)
text = terminal.end()
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
from collections.abc import Callable
from fcntl import ioctl
from termios import TIOCSCTTY, TIOCSWINSZ

COLUMNS, HEIGHT = 100, 24
LIMIT_S = 240.0  # for what is waited for: a program that starts a cluster on a busy machine


class Screen:
    """A terminal's screen: the steps, erasures and places that are used here; everything else is a
    fault."""

    def __init__(self) -> None:
        self.columns = COLUMNS
        self.rows, self.row, self.column, self.saved = (
            [[" "] * COLUMNS for _ in range(HEIGHT)],
            0,
            0,
            (0, 0),
        )
        self.gone: list[str] = []

    def text(self) -> str:
        """All lines, those that were scrolled away first."""
        return "\n".join([*self.gone, *("".join(row).rstrip() for row in self.rows)]).rstrip()

    def resize(self, columns: int) -> None:
        """As many from now on; what stands further to the right is gone."""
        self.columns = columns
        self.rows = [(row + [" "] * columns)[:columns] for row in self.rows]
        self.column = min(self.column, columns)

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
                self.rows.append([" "] * self.columns)
                self.row -= 1
        elif each == "\x1b7":
            self.saved = self.row, self.column
        elif each == "\x1b8":
            self.row, self.column = self.saved
        elif each in ("\x1b[K", "\x1b[J"):
            self.rows[self.row][self.column :] = [" "] * (self.columns - self.column)
            if each == "\x1b[J":
                self.rows[self.row + 1 :] = [
                    [" "] * self.columns for _ in range(HEIGHT - self.row - 1)
                ]
        elif each.endswith("A") and each.startswith("\x1b["):
            self.row = max(0, self.row - int(each[2:-1]))
        elif not each.endswith("m") or not each.startswith("\x1b"):
            assert each >= " ", each
            if self.column == self.columns:  # a long line goes on in the next row, as in a terminal
                self._obey("\n")
                self.column = 0
            self.rows[self.row][self.column] = each
            self.column += 1


class Terminal:
    """A program in a terminal, which is its own: what is typed there as Ctrl-C interrupts it, and
    all of its process group."""

    def __init__(self, code: str, **env: str) -> None:
        self.main, side = pty.openpty()
        ioctl(side, TIOCSWINSZ, struct.pack("HHHH", HEIGHT, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
            preexec_fn=lambda: ioctl(0, TIOCSCTTY, 0) and None,
            env={**os.environ, "TERM": "xterm", "CI": "", **env},
        )
        os.close(side)
        self.screen, self.written = Screen(), ""

    def type(self, keys: str) -> None:
        """As a person does; "\\x03" is Ctrl-C."""
        os.write(self.main, keys.encode())

    def resize(self, columns: int) -> None:
        """As a person does with the window's border."""
        ioctl(self.main, TIOCSWINSZ, struct.pack("HHHH", HEIGHT, columns, 0, 0))
        self.screen.resize(columns)

    def until(self, condition: Callable[[str], object]) -> str:
        """Reads until what is shown is so; "" of a program that ends first."""
        deadline = time.monotonic() + LIMIT_S
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
        """Return the screen at the end of the program, which must succeed."""
        self.until(lambda _: False)
        assert self.process.wait(LIMIT_S) == 0, self.screen.text()
        return self.screen.text()
