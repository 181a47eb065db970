"""Parts shared by benchmarks that measure programs beside each other: a contender's process, a
cluster of one's own, the options."""

import argparse
import json
import os
import pathlib
import subprocess
import sys


class Contender:
    """A process that runs a round for each line that it is told, and answers with a number."""

    def __init__(self, python: str, script: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [python, "-c", script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.line()

    def line(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a contender ended with {self.process.wait()}")
        return line.strip()

    def round(self, *told: object) -> float:
        """Send one line to the process and return its answer."""
        self.process.stdin.write(" ".join(map(str, told)) + "\n")
        self.process.stdin.flush()
        return float(self.line())

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def troupe_command(home: str, *args: str) -> str:
    """Runs `troupe ARGS` with that TROUPE_HOME; what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "troupe", *args],
        env={**os.environ, "TROUPE_HOME": home},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def start_head(home: str, *args: str) -> tuple[str, str]:
    """Starts a head with these options; its address, and a file with a token to join it by."""
    head = json.loads(troupe_command(home, "start", "--head", "--port", "0", "--json", *args))
    token = pathlib.Path(home) / "token"
    token.touch(mode=0o600)
    token.write_text(troupe_command(home, "token", "create"))
    return head["address"], str(token)


def options_of(doc: str | None) -> argparse.ArgumentParser:
    """--rounds, --ray and --keep."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ray", help="a Python interpreter that has Ray")
    parser.add_argument("--keep", action="store_true")
    return parser
