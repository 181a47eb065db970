"""Objects that memory has no room for: where they go, that they are read as before, that nothing is
left of them.

Method: processes that may hold 64 MiB of objects in memory, and a folder of the test's for the
rest. Counters of each process's object store say how much lies where.
"""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Home, eventually

import troupe

pytest.importorskip("numpy")
MIB = 1 << 20
LIMIT = 64 * MIB

# Common beginning of every driver here.
HEAD = """
import os, sys, numpy as np, troupe
from troupe._base.bridge import native
sys.path.append(os.environ["TESTS"])
from conftest import eventually
MIB, FOLDER, figures = 1 << 20, os.environ["FOLDER"], native._object_figures

def filled(value, mib):
    return np.full(mib * MIB, value, dtype=np.uint8)

class Holder:
    def make(self, count):
        return [troupe.put(filled(i, 20)) for i in range(count)]
    def large(self, value):
        return filled(value, 60)
    def totals(self, refs):
        self.kept = [troupe.get(ref) for ref in refs]
        return [int(array.sum(dtype=np.uint64)) // MIB for array in self.kept]
    def drop(self):
        del self.kept
    def figures(self):
        return native._object_figures()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder on a disk; nothing may be left in it."""
    for place in ("/var/tmp", "/tmp"):
        system = subprocess.run(
            ["stat", "-f", "-c", "%T", place], capture_output=True, text=True, check=True
        ).stdout.strip()
        if system not in ("tmpfs", "ramfs"):
            break
    else:
        pytest.skip("neither /var/tmp nor /tmp lies on a disk")
    made = Path(place) / f"troupe-spill-test-{uuid.uuid4().hex[:8]}"
    made.mkdir()
    yield made
    made.rmdir()


def driver(home: Home, folder: Path, body: str, **environment: str) -> subprocess.CompletedProcess:
    """A process of its own, whose store is made with what `body` says."""
    return home.python(
        HEAD + body,
        timeout=120,
        env={"FOLDER": str(folder), "TESTS": str(Path(__file__).parents[1]), **environment},
    )


def held(done: subprocess.CompletedProcess) -> str:
    """Return the driver's output; its own assertions must hold."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_a_driver_and_an_actor_hold_over_their_limit_goes_to_disk(
    home: Home, folder: Path
) -> None:
    done = driver(
        home,
        folder,
        """
troupe.init(num_cpus=2, object_store_memory=64 * MIB, object_spilling_directory=FOLDER)
refs = [troupe.put(filled(i, 20)) for i in range(10)]
here = figures()
assert here["pool_bytes"] <= 64 * MIB and here["disk_bytes"] >= 100 * MIB, here
holder = troupe.remote(Holder).remote()
assert troupe.get(holder.totals.remote(refs)) == [i * 20 for i in range(10)]
troupe.get(holder.drop.remote())
made = troupe.get(holder.make.remote(10))
there = troupe.get(holder.figures.remote())
assert there["pool_bytes"] <= 64 * MIB and there["disk_bytes"] >= 100 * MIB, there
arrays = troupe.get(made)
assert [int(array[-1]) for array in arrays] == list(range(10))
assert not arrays[9].flags.writeable
last = arrays[9]
del refs, made, arrays
eventually(lambda: figures()["disk_bytes"] == 0)
eventually(lambda: troupe.get(holder.figures.remote())["pool_in_use"] == 1)
assert last.sum(dtype=np.uint64) == 9 * 20 * MIB, "an array keeps its bytes"
del last
eventually(lambda: troupe.get(holder.figures.remote())["disk_bytes"] == 0)
""",
    )
    held(done)
    assert "objects of this process go to disk" in done.stderr, done.stderr
    assert "of 64 MiB it may" in done.stderr, "it says why"


def test_what_is_free_again_in_memory_is_used_first(home: Home, folder: Path) -> None:
    held(
        driver(
            home,
            folder,
            """
troupe.init(num_cpus=1, object_store_memory=64 * MIB, object_spilling_directory=FOLDER)
kept = [troupe.put(filled(i, 20)) for i in range(4)]
assert figures()["disk_bytes"] > 0
del kept
eventually(lambda: figures()["disk_bytes"] == 0)
again = [troupe.put(filled(i, 20)) for i in range(2)]
assert figures()["disk_bytes"] == 0
""",
        )
    )


def test_a_process_that_is_killed_leaves_nothing_on_the_disk(home: Home, folder: Path) -> None:
    def free() -> int:
        system = os.statvfs(folder)
        return system.f_bavail * system.f_frsize

    before = free()
    done = driver(
        home,
        folder,
        """
troupe.init(num_cpus=1, object_store_memory=64 * MIB, object_spilling_directory=FOLDER)
refs = [troupe.put(filled(0, 50)) for _ in range(20)]
assert os.listdir(FOLDER) == []
system = os.statvfs(FOLDER)
print(system.f_bavail * system.f_frsize, flush=True)
os.kill(os.getpid(), 9)
""",
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert before - int(done.stdout) > 700 * MIB, "it had taken the room"
    eventually(lambda: before - free() < 300 * MIB, what="the disk's room being free again")


def test_between_hosts(hosts: dict[str, str], shared_home: Home, folder: Path) -> None:
    address = troupe.get_runtime_context().gcs_address
    shared_home.run(
        "start",
        "--address",
        address,
        "--token-file",
        shared_home.token(),
        "--node-name",
        "small",
        "--num-cpus",
        "2",
        "--force-tcp",
        "--object-store-memory",
        str(LIMIT),
        "--object-spilling-directory",
        str(folder),
    )
    held(
        driver(
            shared_home,
            folder,
            """
troupe.init(os.environ["ADDRESS"])
small = next(node["NodeID"] for node in troupe.nodes() if node["NodeName"] == "small" and node["Alive"])
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy
holder = troupe.remote(Holder).options(scheduling_strategy=NodeAffinitySchedulingStrategy(small, soft=False)).remote()
refs = [troupe.put(filled(i, 20)) for i in range(8)]
assert troupe.get(holder.totals.remote(refs), timeout=60) == [i * 20 for i in range(8)]
there = troupe.get(holder.figures.remote())
assert there["pool_bytes"] <= 64 * MIB and there["disk_bytes"] >= 60 * MIB, there
results = [holder.large.remote(i) for i in range(3)]
assert [int(troupe.get(ref, timeout=60).sum(dtype=np.uint64)) // MIB for ref in results] == [0, 60, 120]
del refs, results
troupe.get(holder.drop.remote())
eventually(lambda: troupe.get(holder.figures.remote())["disk_bytes"] == 0)
""",
            ADDRESS=address,
        )
    )


def test_without_a_folder_the_error_says_what_there_is(home: Home, folder: Path) -> None:
    said = held(
        driver(
            home,
            folder,
            """
troupe.init(num_cpus=1, object_store_memory=64 * MIB, object_spilling_directory="none")
kept = [troupe.put(filled(0, 20)) for _ in range(2)]
try:
    for _ in range(3):
        kept.append(troupe.put(filled(0, 20)))
except troupe.exceptions.TooLargeError as error:
    print(error)
assert figures()["disk_bytes"] == 0
""",
        )
    )
    assert "MiB of objects, of 64 MiB it may" in said
    assert "drop references to objects, or raise the limit (object_store_memory)" in said


def test_a_disk_without_room_is_an_error_and_no_signal(home: Home, folder: Path) -> None:
    said = held(
        driver(
            home,
            folder,
            """
import resource
troupe.init(num_cpus=1, object_store_memory=64 * MIB, object_spilling_directory=FOLDER)
resource.setrlimit(resource.RLIMIT_FSIZE, (30 * MIB, 30 * MIB))
kept = [troupe.put(filled(i, 20)) for i in range(6)]
try:
    troupe.put(filled(9, 40))
except troupe.exceptions.TooLargeError as error:
    print(error)
assert int(troupe.get(kept[5])[-1]) == 5
""",
        )
    )
    assert f"MiB in {folder}: File too large" in said


def test_what_is_no_limit_and_no_folder_is_refused_before_anything_starts(home: Home) -> None:
    for options, text in (
        ({"object_store_memory": 1000}, "at least 67108864"),
        ({"object_store_memory": "8G"}, "a number of bytes"),
        ({"object_spilling_directory": "/nowhere"}, "no folder that can be written to"),
    ):
        with pytest.raises(ValueError, match=text):
            troupe.init("local", num_cpus=1, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="object_store_memory describe a node"):
        troupe.init("127.0.0.1:1", object_store_memory=LIMIT)
    said = home.run("start", "--head", "--object-store-memory", "5", ok=False)
    assert (
        said.returncode == 2
        and "--object-store-memory is a number of bytes, at least" in said.stderr
    ), said.stderr
    assert not home.processes()
