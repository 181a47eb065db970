"""Ends of ranks and actors follow Python's order, forked or executed: nobody's last checkpoint is
cut off."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from conftest import Home, eventually

import troupe
from troupe.launch import distributed, ray_launch

BYTES = 1_000_000


def work(folder: str) -> None:
    """Everything that Python finishes, or waits for, at a program's end."""
    import concurrent.futures
    import logging
    import logging.handlers
    import multiprocessing
    import tempfile
    import threading
    import time
    import weakref

    def save(name: str) -> None:
        with open(f"{folder}/{name}.tmp", "wb") as file:
            for _ in range(10):
                file.write(b"x" * (BYTES // 10))
                file.flush()
                time.sleep(0.05)  # lint-ok: the pace of the work that goes on after the return
        os.rename(f"{folder}/{name}.tmp", f"{folder}/{name}")

    global kept, scratch, log
    threading.Thread(target=save, args=("thread",)).start()
    concurrent.futures.ThreadPoolExecutor(1).submit(save, "executor")
    multiprocessing.get_context("fork").Process(target=save, args=("child",)).start()
    log = open(f"{folder}/metrics.csv", "w")
    log.write("step,loss\n1,2\n")
    scratch = tempfile.TemporaryDirectory(dir=folder, prefix="scratch-")
    kept = type("Kept", (), {})()
    weakref.finalize(kept, Path(folder, "finalized").touch)
    target = logging.FileHandler(f"{folder}/run.log")
    logger = logging.getLogger("run")
    logger.addHandler(logging.handlers.MemoryHandler(100, target=target))
    logger.error("last line")


EXPECTED = {
    "thread": BYTES,
    "executor": BYTES,
    "child": BYTES,
    "metrics.csv": 14,
    "finalized": 0,
    "run.log": 10,
}


def left(folder: Path) -> dict[str, int]:
    found = {}
    for each in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # removed by now
            found[each.name] = each.stat().st_size
    return found


@pytest.mark.parametrize("fresh", [False, True], ids=["forked", "executed"])
@pytest.mark.parametrize("kind", [distributed, ray_launch], ids=["rank", "driver"])
def test_a_rank_s_work_after_its_return_is_done(
    idle: Home, tmp_path: Path, fresh: bool, kind
) -> None:
    variables = {"OMP_NUM_THREADS": "1"} if fresh else {}
    train = kind(processes=1, remote=True, runtime_env={"env_vars": variables})(work)
    assert train.submit(str(tmp_path)).result(60) == [None]
    eventually(lambda: left(tmp_path) == EXPECTED, what=f"all of it; there is {left(tmp_path)}")


def test_an_actor_that_ends_by_itself_finishes_its_work(idle: Home, tmp_path: Path) -> None:
    class Saver:
        def end(self, folder: str) -> None:
            work(folder)
            troupe.actor.exit_actor()

    saver = troupe.remote(num_cpus=0)(Saver).remote()
    with pytest.raises(troupe.exceptions.ActorDiedError):
        troupe.get(saver.end.remote(str(tmp_path)), timeout=60)
    eventually(
        lambda: {"thread", "executor", "child", "run.log"} <= set(left(tmp_path)),
        what=f"its work; there is {left(tmp_path)}",
    )
    assert left(tmp_path)["thread"] == BYTES


ARCHIVES = """
import gzip, io, tarfile, zipfile
from pathlib import Path

class Holder:
    def __init__(self, folder):
        self.folder = folder
        self.packed = gzip.open(f"{folder}/{type(self).__name__}.gz", "wt")
        self.packed.write("step,loss\\n")
        self.archive = zipfile.ZipFile(f"{folder}/{type(self).__name__}.zip", "w")
        self.archive.writestr("metrics.csv", "step,loss\\n")
        self.tar = tarfile.open(f"{folder}/{type(self).__name__}.tar.gz", "w:gz")
        self.tar.addfile(tarfile.TarInfo("empty"))
        self.log = open(f"{folder}/{type(self).__name__}.log", "w")
        self.log.write("step 1\\n")
        self.me = self  # a circle: no count of references ends it
    def __del__(self):
        Path(self.folder, f"{type(self).__name__}.deleted").touch()

class InModule(Holder):
    pass

held = None

def hold(folder):
    global held
    held = InModule(folder)
"""


def whole(folder: Path, name: str) -> bool:
    """Return True if all that a Holder of that class writes can be read to its end."""
    import gzip
    import tarfile
    import zipfile

    try:
        with (
            gzip.open(folder / f"{name}.gz", "rt") as packed,
            zipfile.ZipFile(folder / f"{name}.zip") as archive,
            tarfile.open(folder / f"{name}.tar.gz") as tar,
        ):
            read = (
                packed.read(),
                archive.read("metrics.csv"),
                tar.getnames(),
                (folder / f"{name}.log").read_text(),
            )
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.ReadError):
        return False
    return (
        read == ("step,loss\n", b"step,loss\n", ["empty"], "step 1\n")
        and (folder / f"{name}.deleted").exists()
    )


def test_what_a_module_or_an_actor_holds_is_let_go_of_and_archives_are_whole(
    idle: Home, tmp_path: Path
) -> None:
    code, out = tmp_path / "code", tmp_path / "out"
    code.mkdir()
    out.mkdir()
    (code / "archives_of_a_program.py").write_text(ARCHIVES)

    @distributed(processes=1, remote=True, runtime_env={"working_dir": str(code)})
    def train(folder: str) -> None:
        import archives_of_a_program

        archives_of_a_program.hold(folder)

    assert train.submit(str(out)).result(60) == [None]
    eventually(lambda: whole(out, "InModule"), what=f"what the module held, in {out},")

    class OfActor:
        def hold(self, folder: str) -> None:
            import archives_of_a_program

            class Mine(archives_of_a_program.Holder):
                pass

            self.held = Mine(folder)

        def leave(self) -> None:
            troupe.actor.exit_actor()

    actor = troupe.remote(num_cpus=0, runtime_env={"working_dir": str(code)})(OfActor).remote()
    troupe.get(actor.hold.remote(str(out)), timeout=60)
    with pytest.raises(troupe.exceptions.ActorDiedError):
        troupe.get(actor.leave.remote(), timeout=60)
    eventually(lambda: whole(out, "Mine"), what=f"what the actor held, in {out},")


def test_one_that_does_not_end_says_what_it_waits_for(idle: Home, tmp_path: Path) -> None:
    @distributed(processes=1, remote=True, exit_grace=1)
    def train() -> int:
        import threading

        threading.Thread(target=threading.Event().wait, name="uploader").start()
        return 7

    handle = train.submit()
    assert handle.result(60) == [7]
    words = "it did not end within 1 s (exit_grace=): it waited for the threads uploader"
    eventually(lambda: any(words in line for line in handle.logs(0)), what="its word")


def test_an_actor_that_does_not_end_within_its_exit_grace_is_ended(
    idle: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    class Uploads:
        def leave(self) -> None:
            import threading

            threading.Thread(target=threading.Event().wait, name="uploader").start()
            troupe.actor.exit_actor()

    uploads = troupe.remote(num_cpus=1, exit_grace=1)(Uploads).remote()
    with pytest.raises(troupe.exceptions.ActorDiedError):
        troupe.get(uploads.leave.remote(), timeout=60)
    said: list[str] = []

    def told() -> bool:
        said.append(capfd.readouterr().err)
        return (
            "it did not end within 1 s (exit_grace=): it waited for the threads uploader"
            in "".join(said)
        )

    eventually(told, what="its word")


@pytest.mark.parametrize("wrong", [-1, "soon", True, 86_401])
def test_an_exit_grace_of_an_actor_that_is_none_is_refused(wrong: object) -> None:
    class Any_:
        pass

    with pytest.raises(ValueError, match="exit_grace must be 0 to 86400 seconds, not"):
        troupe.remote(exit_grace=wrong)(Any_)
