"""A sweep whose engine, trials, nodes and head are killed again and again, at random moments; then
its journal is read.

In each round a cluster of a head and two nodes runs a sweep of classifiers of handwritten digits
(digits_sweep.py), under promotion ASHA or population based training, by a submitted engine or by a
program's `fit()` that is gone on with by `Tuner.restore`. Once trials have begun so many more
epochs, and a moment later, something gets SIGKILL: a trial, the engine, the head (which is started
again), or a node (another one joins); sometimes two things at once. Nobody is told. The sweep has
to come to its end; journal_checks.py says whether G1 to G6 hold, and whether its scheduler decides
the same again.

    python tests/sweeps/sweep_kills.py --rounds 10 [--seed 1] [--kills 6] [--output FILE]
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
import digits_sweep
import journal_checks
from e2e_conftest import TIMEOUT_S, Home, _home, eventually, running

from troupe.tune._core.trial import Phase
from troupe.tune._journal import view

KINDS = ("trial", "trial", "engine", "engine", "head", "node")
END_S = 6 * TIMEOUT_S
NODES, CPUS = 2, 2
TWO_AT_ONCE = 0.25
EPOCHS_BETWEEN_MAX, PAUSE_MAX_S = 6, 0.3


@dataclass
class Round:
    """A sweep under fire. `folder`: of its own; `kills`: the killed processes, in order."""

    home: Home
    folder: Path
    which: str
    how: str
    seed: int
    kills: list[str] = field(default_factory=list)
    head: dict[str, Any] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    program: subprocess.Popen | None = None
    made: int = 0

    def begin(self) -> None:
        """The cluster, and the sweep on it."""
        digits_sweep.write_digits(self.folder)
        self.draw = random.Random(self.seed)
        self.head = self.home.json("start", "--head", "--no-worker", "--port", "0")
        os.environ["TROUPE_ADDRESS"] = self.head["address"]
        self.token = self.home.token()
        for _ in range(NODES):
            self._add_node()
        self._run_program()
        if self.how == "submit":
            assert self.program is not None
            out, error = self.program.communicate(timeout=END_S)
            assert out == f"{digits_sweep.NAME}\n", error
            self.program = None

    @property
    def sweep(self) -> Path:
        """The sweep's folder."""
        return self.folder / digits_sweep.NAME

    def _add_node(self) -> None:
        self.made += 1
        name = f"n{self.made}"
        self.nodes[name] = self.home.json(
            "start",
            "--address",
            self.head["address"],
            "--token-file",
            self.token,
            "--node-name",
            name,
            "--num-cpus",
            str(CPUS),
            *(["--force-tcp"] if self.made % 2 else []),
        )["pid"]

    def _run_program(self) -> None:
        script = Path(__file__).with_name("digits_sweep.py")
        self.program = subprocess.Popen(
            [sys.executable, str(script), str(self.folder), self.which, self.how, str(self.seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def epochs(self) -> int:
        """How many trials have begun to report, so far."""
        return sum(path.read_bytes().count(b"reports") for path in (self.folder / "said").iterdir())

    def over(self) -> bool:
        """Return True if the sweep has come to its end, or its program has."""
        if self.program is not None:
            return self.program.poll() is not None
        return (self.sweep / "sweep.db").exists() and view.of(self.sweep).state == "finished"

    def kill_after_a_while(self) -> None:
        """Kill one process, or two, at a random moment; none if the sweep is over by then."""
        goal = self.epochs() + self.draw.randint(0, EPOCHS_BETWEEN_MAX)
        eventually(
            lambda: self.epochs() >= goal or self.over(),
            timeout=END_S,
            what=self.told(f"epoch {goal}"),
        )
        threading.Event().wait(
            self.draw.uniform(0, PAUSE_MAX_S)
        )  # lint-ok: the moment is random, within whatever trials and engine do
        kinds = (
            self.draw.sample(sorted(set(KINDS)), 2)
            if self.draw.random() < TWO_AT_ONCE
            else [self.draw.choice(KINDS)]
        )
        kinds.sort(
            key=lambda kind: kind != "head"
        )  # the head is started first: a node joins a running one
        if not self.over():
            mend = [
                done for kind in kinds if (done := getattr(self, f"_kill_{kind}")()) is not None
            ]
            for each in mend:
                each()

    def _killed(self, what: str, pid: int) -> bool:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.kills.append(what)
        return True

    def _kill_trial(self) -> None:
        if not (self.sweep / "sweep.db").exists():
            return
        there = [
            trial
            for trial in view.of(self.sweep).trials.values()
            if trial.phase is Phase.RUNNING and _lives(trial.where.get("pid"))
        ]
        if there:
            chosen = self.draw.choice(there)
            self._killed(f"trial {chosen.id}", chosen.where["pid"])

    def _kill_engine(self) -> Any:
        if self.program is not None:
            self._killed("engine", self.program.pid)
            self.program.communicate()
            return self._run_program
        held, engine = view.engine_of(self.sweep)
        if held:
            self._killed("engine", engine["pid"])
        return None

    def _kill_head(self) -> Any:
        self._killed("head", self.head["pid"])

        def again() -> None:
            eventually(lambda: not running(self.head["pid"]), what="the head's end")
            self.head = self.home.json("start", "--head", "--no-worker")

        return again

    def _kill_node(self) -> Any:
        name = self.draw.choice(sorted(self.nodes))
        self._killed("node", self.nodes.pop(name))
        return self._add_node

    def end(self) -> None:
        """Waits for the sweep's end. Raises AssertionError with where it stands."""
        eventually(self.over, timeout=END_S, what=self.told("the end of the sweep"))
        if self.program is not None:
            out, error = self.program.communicate()
            assert out == f"{digits_sweep.TRIALS[self.which]} 0\n", (
                f"{self.told('')}: the program ended with {self.program.returncode}\n{out}\n{error}"
            )

    def told(self, what: str) -> str:
        """In the words of an error."""
        return (
            f"{what} (seed {self.seed}, {self.which}, {self.how}, killed: {', '.join(self.kills)})"
        )

    def check(self) -> list[str]:
        """Return the violations."""
        wrong = journal_checks.violations(
            self.sweep, self.folder / "said", digits_sweep.TRIALS[self.which]
        )
        failed = collections.Counter(
            row["trial"]
            for row in journal_checks.rows_in(self.sweep)
            if row["kind"] == "fail" and row["counts"]
        )
        for trial, count in failed.items():
            if count > self.kills.count(f"trial {trial}"):
                wrong.append(
                    f"G3: {trial} has {count} failures that count, and was killed "
                    f"{self.kills.count(f'trial {trial}')} times"
                )
        return wrong


def _lives(pid: Any) -> bool:
    return pid is not None and running(pid)


def run_round(
    home: Home, folder: Path, which: str, how: str, seed: int, kills: int
) -> dict[str, Any]:
    """Run a round; return its kills and violations."""
    began = time.monotonic()
    one = Round(home, folder, which, how, seed)
    one.begin()
    try:
        for _ in range(kills):
            one.kill_after_a_while()
        one.end()
        wrong = one.check()
    finally:
        if one.program is not None and one.program.poll() is None:
            one.program.kill()
            one.program.communicate()
    return {
        "seed": seed,
        "scheduler": which,
        "engine": how,
        "kills": one.kills,
        "seconds": round(time.monotonic() - began, 1),
        "violations": wrong,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    rounds = []
    for seed in range(options.seed, options.seed + options.rounds):
        with tempfile.TemporaryDirectory(
            prefix="sweep-kills-", ignore_cleanup_errors=True
        ) as folder:
            os.environ.pop("TROUPE_ADDRESS", None)
            (Path(folder) / "sweeps").mkdir()
            try:
                with _home(Path(folder) / "home") as home:
                    one = run_round(
                        home,
                        Path(folder) / "sweeps",
                        ("promotion", "population")[seed % 2],
                        ("fit", "submit")[seed // 2 % 2],
                        seed,
                        options.kills,
                    )
            except AssertionError as error:
                one = {"seed": seed, "kills": [], "violations": [str(error)]}
        print(json.dumps(one), flush=True)
        rounds.append(one)
    killed = collections.Counter(each.partition(" ")[0] for one in rounds for each in one["kills"])
    result = {
        "rounds": len(rounds),
        "first_seed": options.seed,
        "kills": dict(sorted(killed.items())),
        "seconds": round(sum(one.get("seconds", 0.0) for one in rounds), 1),
        "violations": {one["seed"]: one["violations"] for one in rounds if one["violations"]},
    }
    print(json.dumps(result, indent=2))
    if options.output:
        options.output.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if result["violations"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
