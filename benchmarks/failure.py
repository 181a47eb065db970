"""A rank is killed (SIGKILL): who is told what, when, and what is left.

Troupe, torchrun and Ray alternately.

Four ranks, each in work that does not notice a lost peer (as an NCCL kernel would not); rank 2 is
killed. Measured from the kill: until the caller is told, until the last other rank has ended, and
the processes of the job that are alive one second after it. Ray keeps its actors: its row says so.

    python benchmarks/failure.py [--rounds 5] [--ray /path/to/python] [--keep]

`--blame N`, `--ends N`: whom the error names, and whether launches in which nothing fails end well
(failure_blame.py).
"""

import argparse
import concurrent.futures
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import failure_blame  # noqa: E402
from report import keep, summary  # noqa: E402

RANKS, VICTIM, LIMIT_S = 4, 2, 60.0

# Each rank writes its pid to a file, then works without looking at its peers.
RANK = """
import os, time
def work(folder, rank):
    path = os.path.join(folder, f"rank-{rank}")
    with open(path + ".new", "w") as file: file.write(str(os.getpid()))
    os.rename(path + ".new", path)
    time.sleep(600)  # lint-ok: work that does not notice a lost peer
"""

CALLERS = {
    "troupe": RANK
    + """
import sys
from troupe.launch import distributed
@distributed(processes=4)
def job(folder): work(folder, int(os.environ["RANK"]))
print("up", flush=True)
for line in sys.stdin:
    try: job.distributed(line.strip())
    except Exception as error: print("told", time.monotonic(), str(error).splitlines()[0], flush=True)
""",
    "torchrun": RANK
    + """
import sys
work(sys.argv[1], int(os.environ["RANK"]))
""",
    "ray": RANK
    + """
import sys, ray
ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False)
@ray.remote
class Rank:
    def work(self, folder, rank): work(folder, rank)
print("up", flush=True)
for line in sys.stdin:
    actors = [Rank.remote() for _ in range(4)]
    try: ray.get([each.work.remote(line.strip(), rank) for rank, each in enumerate(actors)])
    except Exception as error: print("told", time.monotonic(), str(error).splitlines()[0], flush=True)
""",
}


class Caller:
    """A contender's caller, kept warm where it has something to keep (Troupe, Ray)."""

    def __init__(self, name: str, python: str, folder: pathlib.Path) -> None:
        self.name = name
        self._python = python
        self._script = folder / f"{name}_job.py"
        self._script.write_text(CALLERS[name])
        self._process: subprocess.Popen | None = None
        self._env = {
            **os.environ,
            "BENCH_JOB": uuid.uuid4().hex,
            "TROUPE_HOME": str(folder / "home"),
        }

    def _start(self, arguments: list[str]) -> subprocess.Popen:
        return subprocess.Popen(
            [self._python, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if self.name == "torchrun" else subprocess.DEVNULL,
            text=True,
            env=self._env,
        )

    def begin(self, folder: str) -> None:
        """Starts the four ranks."""
        if self.name == "torchrun":
            self._process = self._start(
                [
                    "-m",
                    "torch.distributed.run",
                    "--standalone",
                    f"--nproc-per-node={RANKS}",
                    str(self._script),
                    folder,
                ]
            )
            return
        if self._process is None:
            self._process = self._start([str(self._script)])
            assert self._process.stdout.readline().strip() == "up"
        self._process.stdin.write(folder + "\n")
        self._process.stdin.flush()

    def told(self) -> tuple[float, str]:
        """Waits until the caller knows; (monotonic seconds, what the user saw first)."""
        if self.name == "torchrun":
            _, text = self._process.communicate(timeout=LIMIT_S)
            saw = [line for line in text.splitlines() if "Signal" in line or "exitcode" in line]
            first = (saw or text.splitlines() or ["nothing"])[0].strip()
            return time.monotonic(), first.replace(sys.executable, "python")
        for line in self._process.stdout:
            if line.startswith("told "):
                _, at, text = line.split(" ", 2)
                return float(at), text.strip()
        raise SystemExit(f"{self.name} ended without a word about the killed rank")

    def close(self) -> None:
        """Ends it."""
        if self._process and self._process.poll() is None:
            self._process.stdin.close()
            self._process.wait(LIMIT_S)


def alive(pid: int) -> bool:
    try:
        return (
            pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        )
    except OSError:
        return False


def pids_of(folder: pathlib.Path) -> dict[int, int]:
    """Rank -> pid, once all are at work."""
    deadline = time.monotonic() + LIMIT_S
    while (
        len(found := {int(each.name[5:]): int(each.read_text()) for each in folder.glob("rank-?")})
        < RANKS
    ):
        assert time.monotonic() < deadline, f"the ranks did not start within {LIMIT_S:g} s"
        time.sleep(0.005)  # lint-ok: waiting for files of other processes, before the clock runs
    return found


def kill_one(caller: Caller, folder: pathlib.Path) -> tuple[float, float | None, int, str]:
    """(seconds to told, seconds to the last end or None, left one second after, what was seen)."""
    folder.mkdir()
    caller.begin(str(folder))
    pids = pids_of(folder)
    others = [os.pidfd_open(pid) for rank, pid in pids.items() if rank != VICTIM]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        begin = time.monotonic()
        os.kill(pids[VICTIM], signal.SIGKILL)
        ended = pool.submit(last_end, others, begin + 3)
        later = pool.submit(left_at, list(pids.values()), begin + 1)
        told_at, saw = caller.told()
    for pid in pids.values():
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    ended_at = ended.result()
    return told_at - begin, ended_at - begin if ended_at else None, later.result(), saw


def last_end(pidfds: list[int], deadline: float) -> float | None:
    """When the last of them ended, None if not by the deadline; closes them."""
    ended_at: float | None = time.monotonic()
    for descriptor in pidfds:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        ended_at = time.monotonic() if ready and ended_at else None
        os.close(descriptor)
    return ended_at


def left_at(pids: list[int], moment: float) -> int:
    """How many are alive at that moment."""
    select.select([], [], [], max(0.0, moment - time.monotonic()))
    return sum(alive(pid) for pid in pids)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ray", metavar="PYTHON", help="an interpreter that has Ray")
    parser.add_argument(
        "--blame",
        type=int,
        metavar="N",
        help="instead: N runs of each way in which a rank ends, and whom the error names",
    )
    parser.add_argument(
        "--torchrun-rounds",
        type=int,
        default=6,
        metavar="N",
        help="with --blame: of torchrun only so many of them",
    )
    parser.add_argument(
        "--ends",
        type=int,
        metavar="N",
        help="instead, or as well: N launches that end well, of each kind",
    )
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/failure.json")
    options = parser.parse_args()
    if options.blame or options.ends:
        rows = failure_blame.ends_rows(options.ends) if options.ends else {}
        if options.blame:
            with tempfile.TemporaryDirectory(prefix="troupe-bench-") as directory:
                rows |= failure_blame.blame_rows(
                    options.blame,
                    min(options.blame, options.torchrun_rounds),
                    pathlib.Path(directory),
                )
        keep("failure", rows, options.keep, part=True)
        return
    pythons = {"troupe": sys.executable, "torchrun": sys.executable}
    if options.ray:
        pythons["ray"] = options.ray
    with tempfile.TemporaryDirectory(prefix="troupe-bench-") as directory:
        folder = pathlib.Path(directory)
        callers = {name: Caller(name, python, folder) for name, python in pythons.items()}
        taken: dict[str, list] = {name: [] for name in callers}
        for turn in range(options.rounds):
            for name, caller in callers.items():
                taken[name].append(kill_one(caller, folder / f"{name}-{turn}"))
        for caller in callers.values():
            caller.close()
    rows = {}
    for name, results in taken.items():
        stopped = [each[1] for each in results if each[1] is not None]
        rows[name] = {
            "told": summary([each[0] for each in results]),
            "others_ended": summary(stopped) if len(stopped) == len(results) else "not within 3 s",
            "ranks_alive_after_1_s": max(each[2] for each in results),
            "the_user_saw": results[-1][3],
        }
    keep("failure", rows, options.keep)


if __name__ == "__main__":
    main()
