"""Fates of a training group after a fault in one of its ranks: every way to fail, for plain Gloo
with the guard and for the backend `troupe`.

Four ranks of a launch with `on_rank_death="shrink"`, in all-reduces of 1 MB. The rank that fails
says when, just before; the others say when they were out of what they waited in, and when an
all-reduce of the next group was done. Each cell is the slowest survivor's, median over rounds.
NCCL's rows are those of `train/train_groups.cc` over the fake NCCL of three versions, where this
build has that program. The table is text:

    python benchmarks/groups/failure_matrix.py [--rounds 3] [--only WORD] [--keep]
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from report import RESULTS, machine, settle  # noqa: E402

RANKS, VICTIM, SECOND, FLOATS = 4, 2, 1, 1 << 18
LIMIT_S, SLOW_S = 240, 6
BACKENDS = {"gloo": "Gloo, guarded", "troupe": "backend troupe"}
PROGRAM = pathlib.Path("build/dev/bin/train_groups")


@dataclass(frozen=True)
class Way:
    """A way to fail.

    `where` the victim is; `dead`: who is not there in the next group; `fails`: what the launch's
    error must say, "" where it must not fail.
    """

    where: str
    dead: tuple[int, ...] = (VICTIM,)
    fails: str = ""
    options: tuple = ()


WAYS = {
    "killed in an all-reduce": Way("in"),
    "killed between two all-reduces": Way("between"),
    "killed before the group was ever formed": Way("forming"),
    "rank 0 killed in an all-reduce": Way("in", dead=(0,)),
    "two killed at once": Way("in", dead=(VICTIM, 3)),
    "another killed while the next group is formed": Way("again", dead=(VICTIM, SECOND)),
    "ends with exit code 3 in an all-reduce": Way("exits"),
    "more are dead than min_processes allows": Way(
        "in",
        dead=(VICTIM, 3),
        fails="was killed by SIGKILL",
        options=(("min_processes", RANKS - 1),),
    ),
    "raises KeyError": Way("raises", fails="KeyError"),
    "stopped (SIGSTOP), with hang_timeout=5": Way("stopped", options=(("hang_timeout", 5),)),
    "comes late, by 6 s": Way("slow", dead=()),
    "the head is killed, and a rank; the head is started again": Way("headless"),
}
NODE_WAYS = {
    "its worker is killed, with the ranks of the node": Way("node killed", dead=(2, 3)),
    "its node falls silent, as if cut off": Way("silent", dead=(2, 3)),
}
OUTSIDE = ("headless", "node killed", "silent")


def say(folder: str, name: str) -> None:
    """This moment, in a file that is whole or not there."""
    path = pathlib.Path(folder, name)
    path.with_suffix(path.suffix + ".new").write_text(json.dumps(time.time()))
    path.with_suffix(path.suffix + ".new").rename(path)


def said(folder: str, name: str) -> list[float]:
    return [
        json.loads(each.read_text())
        for each in pathlib.Path(folder).glob(name)
        if each.suffix != ".new"
    ]


def fail(folder: str, way: Way, rank: int) -> None:
    """Apply the fault to this rank, if it is one of the victims."""
    if way.where == "slow" and rank == VICTIM:
        say(folder, "fault.0")
        time.sleep(SLOW_S)  # lint-ok: it is the slow one
    if rank not in way.dead or way.where in OUTSIDE or (way.where == "again" and rank == SECOND):
        return
    if way.where == "raises":
        say(folder, f"fault.{rank}")
        raise KeyError("lr")
    say(folder, f"fault.{rank}")
    if way.where == "exits":
        os._exit(3)
    os.kill(os.getpid(), signal.SIGSTOP if way.where == "stopped" else signal.SIGKILL)


def rank_of(folder: str, backend: str, way: Way) -> int:
    """A rank: all-reduces until somebody fails, then one of the next group.

    Returns its rank in the launch.
    """
    import torch
    import torch.distributed as dist

    from troupe import train
    from troupe.launch import current

    torch.set_num_threads(1)
    mine, values = current().launch_rank, torch.ones(FLOATS)
    if way.where == "forming":
        fail(folder, way, mine)
    for attempt in train.attempts(backend):
        with attempt:
            for _ in range(10):
                dist.all_reduce(values)
            if attempt.number > 1 or way.where == "forming":
                break
            dist.barrier()
            pathlib.Path(folder, f"pid.{mine}").write_text(str(os.getpid()))
            say(folder, f"ready.{mine}")
            if way.where == "between":
                fail(folder, way, mine)
                awaited(folder, "fault.*", 1)
            else:
                fail(folder, way, mine)
            try:
                for _ in range(10 if way.where == "slow" else 1 << 40):
                    dist.all_reduce(values)
                    values.fill_(1)
            except RuntimeError as error:
                say(folder, f"out.{mine}")
                pathlib.Path(folder, f"words.{mine}").write_text(str(error))
                if way.where == "again" and mine == SECOND:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise
    say(folder, f"next.{mine}")
    dist.destroy_process_group()
    return mine


def awaited(folder: str, name: str, count: int) -> list[float]:
    deadline = time.monotonic() + LIMIT_S
    while len(found := said(folder, name)) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{len(found)} of {count} files {name} were there {LIMIT_S} s after they were "
                "first looked for"
            )
        time.sleep(0.002)  # lint-ok: a look at what other processes have written
    return found


class Cluster:
    """A head and its nodes, in a home of their own, for this process and its ranks; ended with the
    statement."""

    def __init__(self, cpus: list[int]) -> None:
        self._cpus = cpus
        self._home = tempfile.TemporaryDirectory()
        self._environment = {**os.environ, "TROUPE_HOME": self._home.name}
        self.head = 0
        self.workers: dict[str, int] = {}

    def __enter__(self) -> "Cluster":
        import troupe

        started = self._run("start", "--head", "--no-worker", "--port", "0")
        self.head = started["pid"]
        token = pathlib.Path(self._home.name, "token")
        token.touch(mode=0o600)
        token.write_text(self._run("token", "create")["token"])
        for number, cpus in enumerate(self._cpus):
            joined = self._run(
                "start",
                "--address",
                started["address"],
                "--token-file",
                str(token),
                "--node-name",
                f"node-{number}",
                "--num-cpus",
                str(cpus),
            )
            self.workers[f"node-{number}"] = joined["pid"]
        os.environ["TROUPE_HOME"] = self._home.name
        troupe.init(started["address"])
        return self

    def __exit__(self, *_: object) -> None:
        import troupe

        for pid in [*self.workers.values()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        troupe.shutdown()
        self._run("stop", "--all", json=False)
        self._home.cleanup()

    def restart_head(self) -> None:
        self.head = self._run("start", "--head", "--no-worker")["pid"]

    def _run(self, *line: str, **options: bool) -> dict:
        json_too = ["--json"] if options.get("json", True) else []
        done = subprocess.run(
            [sys.executable, "-m", "troupe", *line, *json_too],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"troupe {' '.join(line)} ended with {done.returncode}\n{done.stderr}"
            )
        return json.loads(done.stdout) if json_too else {}


def from_outside(way: Way, cluster: Cluster, handle: object, folder: str) -> None:
    """Apply a fault to the launch from outside, once all ranks are in the loop."""
    awaited(folder, "ready.*", RANKS)
    infos = handle.status()["rank_infos"]  # type: ignore[attr-defined]
    pids = [int(pathlib.Path(folder, f"pid.{rank}").read_text()) for rank in range(RANKS)]
    if way.where == "headless":
        os.kill(cluster.head, signal.SIGKILL)
        say(folder, "fault.0")
        os.kill(pids[VICTIM], signal.SIGKILL)
        cluster.restart_head()
        return
    node = infos[RANKS - 1]["node"]
    say(folder, "fault.0")
    for pid in [
        cluster.workers[node],
        *(pids[each["rank"]] for each in infos if each["node"] == node),
    ]:
        os.kill(pid, signal.SIGKILL if way.where == "node killed" else signal.SIGSTOP)


@dataclass(frozen=True)
class Seen:
    """The results of one run: seconds from the fault to the slowest survivor's error, and to its
    first all-reduce of the next group; how it ended."""

    out: float | None
    next: float | None
    outcome: str


def run(way: Way, backend: str, cluster: Cluster) -> Seen:
    from troupe import exceptions, train
    from troupe.launch import distributed

    with tempfile.TemporaryDirectory() as folder:
        handle = distributed(
            processes=RANKS, remote=True, quiet=True, on_rank_death="shrink", **dict(way.options)
        )(rank_of).submit(folder, backend, way)
        try:
            if way.where in OUTSIDE:
                from_outside(way, cluster, handle, folder)
            results = handle.result(LIMIT_S)
        except (exceptions.TroupeError, KeyError) as error:
            outcome = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            if not way.fails or way.fails not in outcome:
                raise
        else:
            lost = tuple(
                rank for rank, each in enumerate(results) if isinstance(each, train.RankLost)
            )
            outcome = (
                "nobody fails"
                if not lost
                else f"the others go on without {' and '.join(map(str, lost))}"
            )
            assert not way.fails and lost == tuple(sorted(way.dead)), (
                f"lost are {lost}, and {way.dead} were to be"
            )
        begin = max(said(folder, "fault.*"))
        last = [
            max((at - begin for at in said(folder, f"{name}.*")), default=None)
            for name in ("out", "next")
        ]
        return Seen(*last, outcome)


def cell(seen: list[Seen]) -> str:
    """Both times in milliseconds and the outcome, of some rounds."""
    times = []
    for name in ("out", "next"):
        found = [getattr(each, name) for each in seen if getattr(each, name) is not None]
        times.append(f"{statistics.median(found) * 1e3:8.0f}" if found else f"{'-':>8}")
    outcomes = sorted({each.outcome for each in seen})
    return f"{times[0]} {times[1]}  {' | '.join(outcomes)}"


def table(ways: dict[str, Way], rounds: int, cluster: Cluster) -> Iterator[str]:
    for name, way in ways.items():
        for backend, column in BACKENDS.items():
            seen = []
            for _ in range(rounds):
                settle()
                seen.append(run(way, backend, cluster))
            yield f"{name:58} {column:16} {cell(seen)}"


def rows(rounds: int, only: str) -> Iterator[str]:
    yield (
        f"{'':58} {'':16} {'raised':>8} {'next':>8}  outcome; ms since the fault, slowest "
        f"survivor, median of {rounds}"
    )
    if ways := {name: way for name, way in WAYS.items() if only in name}:
        with Cluster([RANKS]) as cluster:
            run(WAYS["killed in an all-reduce"], "troupe", cluster)  # built and imported once
            yield from table(ways, rounds, cluster)
    for (
        name,
        way,
    ) in NODE_WAYS.items():  # on two nodes of two ranks each, of which one is never seen again
        for backend, column in BACKENDS.items():
            if only in name:
                with Cluster([RANKS // 2] * 2) as cluster:
                    yield f"{name:58} {column:16} {cell([run(way, backend, cluster)])}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", default="", help="of the ways to fail, those with this in their name"
    )
    parser.add_argument(
        "--keep", action="store_true", help="write benchmarks/results/failure_matrix.txt"
    )
    options = parser.parse_args()
    os.environ.pop("TROUPE_ADDRESS", None)
    lines = [f"# benchmarks/groups/failure_matrix.py on {machine()}"]
    for line in rows(options.rounds, options.only):
        print(line, flush=True)
        lines.append(line)
    if PROGRAM.exists() and not options.only:
        done = subprocess.run(
            [PROGRAM, str(options.rounds)], capture_output=True, text=True, check=True, timeout=1800
        ).stdout
        print(done)
        lines += ["", "C++ over the fake NCCL:", done]
    if options.keep:
        (RESULTS / "failure_matrix.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
