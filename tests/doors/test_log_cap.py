"""Output that is read more slowly than it is written, in files that lose their older half: what is
shown is whole lines, the rest is counted.

Method: a cluster of its own whose log files have 1 MiB. A rank writes 8 MiB at a time and waits
until its file was cut; nobody reads the caller's stdout until the launch has ended. Every byte is
shown or counted.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

from e2e_conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe.launch import attach

LIMIT_S = 4 * TIMEOUT_S
TIMES, LINES = 4, 80_000  # lines of 100 bytes
PROGRAM = f"""
from troupe.launch import distributed

@distributed(processes=1, remote=True, name="capped")
def write():
    import os, sys, time
    for each in range({TIMES}):
        sys.stdout.write("".join(f"{{number}} ".ljust(99, "x") + "\\n" for number in range(each * {LINES}, (each + 1) * {LINES})))
        sys.stdout.flush()
        while os.fstat(1).st_size > 1 << 20:
            time.sleep(0.05)  # lint-ok: the worker cuts the file at a tick

write.distributed()
"""
CAPPED = re.compile(r"\[0\] \.\.\. (\d+) bytes of output were dropped here \(size cap\) \.\.\.$")
LEFT_OUT = re.compile(r"\[0\] \.\.\. [\d,]+ lines \(([\d,]+) characters\) of output left out here")


def test_every_byte_is_shown_or_counted(home: Home) -> None:
    address = home.json("start", "--head", "--port", "0", "--num-cpus", "1", "--log-file-mib", "1")[
        "address"
    ]
    with troupe.init(address):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TROUPE_ADDRESS": address},
        )
        launch = str(
            eventually(
                lambda: [each["id"] for each in troupe.state.list_launches()],
                timeout=LIMIT_S,
                what="the launch",
            )[0]
        )  # type: ignore[index]
        attach(launch).result(LIMIT_S)
        out, errors = process.communicate(timeout=LIMIT_S)
        kept = list(attach(launch).logs(0))
    home.run("stop")
    assert process.returncode == 0, errors
    numbers, other, counted = [], [], 0
    for line in out.splitlines():
        if found := CAPPED.match(line) or LEFT_OUT.match(line):
            counted += int(found[1].replace(",", ""))
        elif re.fullmatch(r"\[0\] \d+ x+", line) and len(line) == 103:
            numbers.append(int(line.split()[1]))
        else:
            other.append(line)
    # Before a gap may stand the beginning of a line whose rest is in the gap.
    cut_off = sum(len(line) - len("[0] ") for line in other)
    assert numbers == sorted(set(numbers)) and len(other) <= TIMES, other
    assert 100 * len(numbers) + cut_off + counted == 100 * TIMES * LINES and counted > 0
    assert numbers[-1] == TIMES * LINES - 1, "the end is shown"
    assert re.fullmatch(
        r"\.\.\. \d+ bytes of output were dropped here \(size cap\) \.\.\.", kept[0]
    ) and kept[-1].startswith(f"{TIMES * LINES - 1} ")
