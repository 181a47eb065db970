"""Time that a working directory of 2,000 files and 100 MB, unchanged since the last launch, adds to
a launch on another host.

The node is a host of its own (--force-tcp): the directory has to travel. A launch of one rank that
returns at once, on a warm cluster, by turns without a working directory, with one that is as it
was, and with one of whose files one line has changed. Beside the time: what the caller and the
rank's process take of a processor, which a busy machine changes less. `floor`: what looking at each
file costs alone, at the caller and again at the node (os.scandir and stat; lstat).

    python benchmarks/doors/working_directory.py [--rounds 15] [--files 2000] [--mb 100] [--keep]
"""

import argparse
import os
import pathlib
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from contender import start_head, troupe_command  # noqa: E402
from report import await_rest, keep, settle, summary  # noqa: E402


def fill(folder: pathlib.Path, files: int, megabytes: int) -> None:
    """Folders of 50 files each, of contents that do not compress, and a `.gitignore` that leaves
    none of them out."""
    (folder / ".gitignore").write_text(
        "*.log\n*.py[cod]\n/data/\nwandb/\n!keep.log\n*.egg-info/\nbuild/\n"
    )
    numbers = random.Random(0)
    size = megabytes * 1_000_000 // files
    for number in range(files):
        path = folder / f"part{number // 50}" / f"file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(numbers.randbytes(size))


def look(folder: str) -> None:
    """The floor: every file, once as a caller has to and once as a node has to."""
    paths = []
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    entry.stat()
                    paths.append(entry.path)
    for path in paths:
        os.lstat(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument(
        "--keep", action="store_true", help="write benchmarks/results/working_directory.json"
    )
    options = parser.parse_args()
    os.environ.pop("TROUPE_ADDRESS", None)
    with (
        tempfile.TemporaryDirectory(prefix="troupe-bench-") as home,
        tempfile.TemporaryDirectory(prefix="troupe-bench-") as folder,
    ):
        os.environ["TROUPE_HOME"] = home
        os.chmod(home, 0o700)
        fill(pathlib.Path(folder), options.files, options.mb)
        address, token = start_head(home, "--no-worker")
        troupe_command(
            home,
            "start",
            "--address",
            address,
            "--token-file",
            token,
            "--num-cpus",
            "4",
            "--force-tcp",
        )
        try:
            times = measured(address, folder, options.rounds)
        finally:
            troupe_command(home, "stop", "--all")
    rows = {
        name: {
            **summary([each.wall_s for each in taken]),
            "caller_cpu_ms": best_ms(each.caller_s for each in taken),
            "rank_cpu_ms": best_ms(each.rank_s for each in taken),
        }
        for name, taken in times.items()
    }
    for name in ("unchanged", "one file changed", "first"):
        for key in ("median_ms", "best_ms", "caller_cpu_ms", "rank_cpu_ms"):
            rows[name][f"added_{key}"] = round(rows[name][key] - rows["without"][key], 2)
    keep("working_directory", rows, options.keep)


CHANGED_ROUNDS = 3  # each makes one more directory at the node


class Taken(NamedTuple):
    """The cost of one launch: its time, and its processor time."""

    wall_s: float
    caller_s: float
    rank_s: float


def best_ms(seconds: Iterable[float]) -> float:
    return round(min(seconds) * 1e3, 2)


def measured(address: str, folder: str, rounds: int) -> dict[str, list[Taken]]:
    """Each launch from its call to its result; `first` has one round."""
    import troupe
    from troupe.launch import distributed

    def nothing() -> float:
        import time

        return time.process_time()

    without = distributed(processes=1, remote=True, quiet=True)(nothing)
    launch = distributed(processes=1, remote=True, quiet=True, runtime_env={"working_dir": folder})(
        nothing
    )
    changing = pathlib.Path(folder, "part0", "file0.py")

    def edited() -> None:
        changing.write_bytes(os.urandom(1000) + changing.read_bytes()[1000:])

    times: dict[str, list[Taken]] = {
        "without": [],
        "unchanged": [],
        "one file changed": [],
        "first": [],
        "floor": [],
    }

    def timed(name: str, call) -> None:
        begin, cpu = time.perf_counter(), time.process_time()
        result = call()
        times[name].append(
            Taken(
                time.perf_counter() - begin, time.process_time() - cpu, result[0] if result else 0.0
            )
        )

    with troupe.init(address):
        without.distributed()
        await_rest()
        timed("first", launch.distributed)
        for number in range(rounds):
            if number < CHANGED_ROUNDS:
                edited()
                settle()
                timed("one file changed", launch.distributed)
                launch.distributed()  # files written just now are read again, once
            for name, call in (
                ("without", without.distributed),
                ("unchanged", launch.distributed),
                ("floor", lambda: look(folder)),
            ):
                settle()
                timed(name, call)
    return times


if __name__ == "__main__":
    main()
