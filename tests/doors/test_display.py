"""A launch as a person sees it: a row while it waits, starts and has printed nothing, in a
terminal; lines elsewhere; nothing when quiet.

Method: programs in a pseudo terminal (tests/terminals.py) and with pipes; a launch of the test's
own holds all CPUs while a row is to be seen. The row's words: tests/bindings/test_phase.py.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from gate import Gate
from terminals import Terminal

import troupe
from troupe.launch import distributed

LIMIT_S = 4 * TIMEOUT_S
SAYS = """
from troupe.launch import distributed
@distributed(processes=2, remote=True{options})
def train(gate):
    import os, sys
    {body}
print(train.distributed({gate!r}))
"""
WAITS = 'open(gate, "rb", buffering=0).read(1); print("rank", os.environ["RANK"], "speaks")'
COLOURS = (
    'print(f"{chr(27)}[31mred", flush=True); print("still red", flush=True); '
    'print(f"{chr(27)}[0mplain", flush=True)\n'
    '    if os.environ["RANK"] == "1": sys.stderr.write("wide " * 60 + chr(10))'
)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    made = Gate(tmp_path / "gate")
    yield made
    made.close()


@pytest.fixture
def address(cluster: Home) -> str:
    return str(troupe.state._session.current().address)


@pytest.fixture
def held(cluster: Home, tmp_path: Path) -> Iterator[Any]:
    """A launch that has all CPUs until it is cancelled."""
    handle = distributed(processes=8, remote=True, quiet=True, stop_grace=0)(
        lambda: __import__("signal").pause()
    ).submit()
    handle.wait_state(lambda info: info["state"] == "running", LIMIT_S)
    yield handle
    handle.cancel()


def code(body: str, gate: str = "", options: str = "") -> str:
    return SAYS.format(body=body, gate=gate, options=options)


def rows_of(text: str) -> list[str]:
    """Rows of the display, which begin with the time that has passed."""
    return re.findall(r"^launch [0-9a-f]{4} · \d+:\d\d · .*$", text, re.M)


def test_a_row_says_what_is_waited_for_and_goes_when_ranks_print(
    held: Any, gate: Gate, address: str, tmp_path: Path
) -> None:
    end = Gate(tmp_path / "end")
    terminal = Terminal(
        code(f'{WAITS}; open({end.path!r}, "rb", buffering=0).read(1)', gate.path),
        TROUPE_ADDRESS=address,
    )
    assert terminal.until(
        lambda text: (
            rows_of(text) and "waiting · place 1 in the queue: 2 x {CPU: 1}" in rows_of(text)[0]
        )
    ), terminal.screen.text()
    terminal.resize(60)
    assert terminal.until(lambda text: rows_of(text) and len(rows_of(text)[0]) == 59), (
        terminal.screen.text()
    )
    terminal.resize(100)
    held.cancel()
    assert terminal.until(lambda text: rows_of(text) and "2 ranks running" in rows_of(text)[0]), (
        terminal.screen.text()
    )
    gate.open()
    assert terminal.until(lambda text: text.count("speaks") == 2 and not rows_of(text)), (
        terminal.screen.text()
    )
    end.open()
    shown = terminal.end().splitlines()
    end.close()
    assert not rows_of("\n".join(shown)), shown
    assert sorted(line for line in shown if "speaks" in line) == [
        "[0] rank 0 speaks",
        "[1] rank 1 speaks",
    ]
    assert [
        line.partition(" · ")[2]
        for line in shown
        if " · ready in " in line or " · succeeded " in line
    ][0].startswith("2 ranks on 1 node · ready in")
    assert "[None, None]" in shown


def test_logs_that_are_followed_say_what_is_waited_for(held: Any, gate: Gate, address: str) -> None:
    waits = distributed(processes=2, remote=True)(lambda: print("speaks", flush=True)).submit()
    terminal = Terminal(
        f"import sys; sys.argv = ['troupe', 'logs', {waits.id!r}, '--follow']\nfrom troupe.cli "
        "import main\nmain()",
        TROUPE_ADDRESS=address,
    )
    assert terminal.until(
        lambda text: (
            rows_of(text) and "waiting · place 1 in the queue: 2 x {CPU: 1}" in rows_of(text)[0]
        )
    ), terminal.screen.text()
    held.cancel()
    assert sorted(terminal.end().splitlines()) == ["[0] speaks", "[1] speaks"]


def test_many_rows_and_bars_fit_into_the_terminal() -> None:
    terminal = Terminal("""
from troupe._cluster import live_output
for number in range(40):
    live_output.row(number, lambda number=number: f"row {number}")
    live_output.show(number, "", [], [f"bar {number}"], is_error=False)
print("own words", flush=True)
input()""")
    assert terminal.until(
        lambda text: (
            text.splitlines()[:3] == ["own words", "", "bar 0"]
            and len(re.findall(r"^\.\.\. and 31 more$", text, re.M)) == 2
        )
    ), terminal.screen.text()
    assert len(terminal.screen.text().splitlines()) < 24
    os.write(terminal.main, b"\n")
    assert terminal.end().split() == ["own", "words"]


def test_colours_and_wide_lines_of_ranks_are_their_own(cluster: Home, address: str) -> None:
    terminal = Terminal(code(COLOURS), TROUPE_ADDRESS=address)
    shown = terminal.end().splitlines()
    red = [
        line
        for line in terminal.written.splitlines()
        if "red" in line and not line.startswith("launch")
    ]
    assert sorted(red) == sorted(
        f"[{rank}] \x1b[31m{text}\x1b[0m" for rank in (0, 1) for text in ("red", "still red")
    ), red
    assert sorted(line for line in shown if line.endswith("plain")) == ["[0] plain", "[1] plain"]
    assert "".join(shown).count("wide") == 60, (
        "a line that is wider than the terminal is there whole"
    )


@pytest.mark.parametrize("place", ["pipe", "dumb terminal", "terminal of CI"])
def test_elsewhere_it_is_plain_lines(held: Any, gate: Gate, address: str, place: str) -> None:
    waits = code(WAITS, gate.path)
    gate.open()
    if place == "pipe":
        process = subprocess.Popen(
            [sys.executable, "-c", waits],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TROUPE_ADDRESS": address},
        )
        assert process.stdout is not None
        shown = process.stdout.readline()
        while "waiting" not in shown.splitlines()[-1]:
            shown += process.stdout.readline()
        held.cancel()
        shown += process.stdout.read()
        assert process.wait(TIMEOUT_S) == 0
    else:
        terminal = Terminal(
            waits,
            TROUPE_ADDRESS=address,
            **({"TERM": "dumb"} if place == "dumb terminal" else {"CI": "true"}),
        )
        assert terminal.until(lambda text: "waiting" in text), terminal.screen.text()
        held.cancel()
        terminal.end()
        shown = terminal.written.replace("\r\n", "\n")
    assert not re.search("[\x1b\r]", shown) and not rows_of(shown), shown
    said = [line.partition(" · ")[2] for line in shown.splitlines() if line.startswith("launch")]
    assert [
        re.match("variables|waiting · place 1|2 ranks on 1 node|succeeded", line) is not None
        for line in said
    ] == [True] * len(said), said
    assert sorted(
        line for line in shown.splitlines() if line.startswith("[0] ") or line.startswith("[1] ")
    ) == ["[0] rank 0 speaks", "[1] rank 1 speaks"]


def test_quiet_shows_the_output_and_no_word_of_ours(held: Any, gate: Gate, address: str) -> None:
    fails = 'print("its own", flush=True); raise KeyError("no")'
    caught = (
        code(fails, gate.path, ", quiet=True").replace("print(train", "try: print(train").rstrip()
        + "\nexcept KeyError: print('failed')\n"
    )
    terminal = Terminal(caught, TROUPE_ADDRESS=address)
    eventually(
        lambda: [each for each in troupe.state.list_launches() if each["state"] == "queued"],
        timeout=LIMIT_S,
        what="a launch that waits",
    )
    held.cancel()
    shown = terminal.end().splitlines()
    assert [line for line in shown if not re.fullmatch(r"\[[01]\] its own", line)] == [
        "failed"
    ] and len(shown) > 1, shown


def test_ctrl_c_in_a_terminal_stops_and_leaves_the_screen_clean(
    cluster: Home, gate: Gate, address: str
) -> None:
    body = (
        'try: print("begun", flush=True); open(gate, "rb", buffering=0).read(1)\n    except '
        'KeyboardInterrupt: print("last words", flush=True)'
    )
    caught = (
        code(body, gate.path).replace("print(train", "try: print(train").rstrip()
        + "\nexcept KeyboardInterrupt: print('interrupted')\n"
    )
    terminal = Terminal(caught, TROUPE_ADDRESS=address)
    assert terminal.until(lambda text: text.count("] begun") == 2), terminal.screen.text()
    terminal.process.send_signal(signal.SIGINT)
    shown = terminal.end()
    assert (
        "stopping, 10 s; Ctrl-C again ends it now" in shown
        and shown.count("] last words") == 2
        and "interrupted" in shown.splitlines()
    ), shown
    assert not rows_of(shown), shown
