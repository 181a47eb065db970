"""Records what a head keeps, so that later versions can be held to opening it: see README.md beside
this.

    PYTHONPATH=build/dev/python TROUPE_BIN_DIR=build/dev/bin python tests/e2e/recorded/record.py

makes the folder of its interpreter (`3.11`) anew. It runs as root, in a host name space of its own:
no name of the machine it runs on is in what it records, and no path of it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOST = "recorder"
NODE = "one"
HERE = Path(__file__).resolve().parent
KEPT = ("head/ca.key", "head/journal.db")
"""What is kept of a cluster's folder.

Not ca.crt: a head makes it anew from the key, so that its end is never near.
"""

DRIVER = '''
import json, sys
import troupe
from troupe.launch import distributed, ray_launch
from troupe.util import placement_group


class Refused(Exception):
    """Its `__init__` takes something else than its `args` are: loading it calls no `__init__`."""

    def __init__(self, code, path):
        super().__init__(f"{code} for {path}")
        self.code = code


class Rejected(Exception):
    """As most are: made again of its `args`, with its attributes."""


class Ledger:
    def __init__(self):
        self.entries = []

    def write(self, entry):
        self.entries.append(entry)
        return len(self.entries)


class Holder:
    """Holds what its constructor was given, which is in the journal as it was pickled."""

    def __init__(self, value, rejected, failed, ledger, gone, group, made):
        self.value, self.rejected, self.failed, self.ledger = value, rejected, failed, ledger
        self.gone, self.group, self.made = gone, group, made

    def given(self):
        """What each thing is, in words and plain values."""
        rejected, failed = self.rejected, self.failed
        return {"value": self.value, "rejected": [type(rejected).__name__, str(rejected), rejected.code, list(rejected.args)],
                "failed": [str(failed).splitlines()[0], list(failed.args), failed.code, type(failed.cause).__name__,
                           sorted({"TaskError", "Refused"} & {kind.__name__ for kind in type(failed).__mro__})],
                "ledger": type(self.ledger).__name__, "group": self.group.bundle_specs}

    def write(self, entry):
        """Asks the other actor, by the handle that was an argument."""
        import troupe

        return troupe.get(self.ledger.write.remote(entry))

    @troupe.method(num_returns=2)
    def halves(self, text):
        return text[:len(text) // 2], text[len(text) // 2:]

    def ask_the_gone(self):
        """What a call of an actor ends with that went with the process that made it."""
        import troupe

        try:
            return troupe.get(self.gone.write.remote(1))
        except troupe.exceptions.ActorDiedError as error:
            return type(error).__name__

    def run(self, number):
        """A task, an actor and a launch's function, each made by what was an argument."""
        import troupe

        function, actor_class, launched = self.made
        made = actor_class.remote()
        return [troupe.get(function.remote(number)), troupe.get(made.write.remote(number)), launched(number)]


def double(number):
    return 2 * number


def refuse(number):
    raise Refused(number, "/data")


def give(value):
    return value


def give_large():
    """More than travels with the marker, by a limit that is lowered here: its worker keeps it."""
    from troupe.launch import _large_result

    _large_result.INLINE_BYTES_MAX = 1 << 10
    return "kept " * 1000


troupe.init(sys.argv[1], namespace="recorded")
Remote = troupe.remote(Ledger).options(num_cpus=0)
ledger = Remote.options(name="ledger", lifetime="detached", max_restarts=-1).remote()
gone = Remote.remote()
group = placement_group([{"CPU": 1}, {"CPU": 1}], name="group", lifetime="detached")
assert group.wait(60)
try:
    troupe.get(troupe.remote(refuse).remote(4))
except Refused as error:
    failed = error
rejected = Rejected("/data")
rejected.code = 3
made = troupe.remote(double), Remote, distributed(processes=1, remote=True)(double)
holder = troupe.remote(Holder).options(name="holder", lifetime="detached", max_restarts=-1, max_task_retries=-1, num_cpus=1).remote(
    {"kept": [1, 2.5, "three"]}, rejected, failed, ledger, gone, group, made)
given = troupe.get(holder.given.remote())
assert troupe.get([ledger.write.remote("first"), holder.write.remote("second")]) == [1, 2]
assert troupe.get(holder.run.remote(4)) == [8, 1, 8]


def ended(launch):
    try:
        launch.result(60)
    except Refused:
        pass
    return launch.id


distribute = distributed(processes=1, remote=True)
drive = ray_launch(processes=1, remote=True)
launches = {"value": ended(distribute(give).submit([ledger, rejected, group])),
            "failed": ended(distribute(refuse).submit(6)), "kept": ended(drive(give_large).submit())}
print("recorded", json.dumps({"given": given, "launches": launches}), flush=True)
'''


def troupe(*args: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "troupe", *args], check=True, capture_output=True, text=True
    ).stdout


def kill(pid: int) -> None:
    """Ends a process that is no child of this one, without a last word."""
    descriptor = os.pidfd_open(pid)
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    while (
        not Path(f"/proc/{pid}/stat").exists()
        or Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    ):
        if not Path(f"/proc/{pid}").exists():
            return
        time.sleep(0.01)  # lint-ok: until another's process is gone


def record() -> dict:
    """Runs a cluster, kills it, and leaves what it kept under TROUPE_HOME; what is to be found
    there again."""
    head = json.loads(
        troupe("start", "--head", "--port", "0", "--num-cpus", "8", "--node-name", NODE, "--json")
    )
    state = Path(head["state"])
    worker = json.loads((state / "nodes" / NODE / "node.json").read_text())["pid"]
    try:
        driver = subprocess.run(
            [sys.executable, "-P", "-c", DRIVER, head["address"]],
            cwd="/",
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    finally:
        kill(worker)
        while any(node["alive"] for node in json.loads(troupe("status", "--json"))["nodes"]):
            # Until the head knows of the node's end: its actors wait for another one.
            time.sleep(0.05)  # lint-ok: it offers no event for that
        kill(head["pid"])
    said = next(line for line in driver.stdout.splitlines() if line.startswith("recorded "))
    with sqlite3.connect(state / "head/journal.db") as journal:  # its log becomes a part of it
        journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return {
        "cluster": state.name,
        "at_s": int(time.time()),
        "python": sys.version.split()[0],
        **json.loads(said.removeprefix("recorded ")),
    }


def main() -> None:
    if "--alone" not in sys.argv:
        script = f'hostname {HOST} && exec "$0" "$@"'
        os.execvp(
            "unshare", ["unshare", "--uts", "sh", "-c", script, sys.executable, __file__, "--alone"]
        )
    into = HERE / f"{sys.version_info.major}.{sys.version_info.minor}"
    with tempfile.TemporaryDirectory(prefix="troupe-", dir="/tmp") as folder:
        for name in [
            each
            for each in os.environ
            if each.startswith(("NCCL_", "OMP_", "HF_", "MLFLOW_", "WANDB_", "TORCH_", "CUDA_"))
        ]:
            del os.environ[name]
        os.environ.update(TROUPE_HOME=folder, XDG_RUNTIME_DIR=folder)
        said = record()
        shutil.rmtree(into, ignore_errors=True)
        state = Path(folder, "clusters", said["cluster"])
        for path in (found for pattern in KEPT for found in state.glob(pattern)):
            target = into / "cluster" / path.relative_to(state)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    contact = {"cluster_id": said["cluster"], "address": "127.0.0.1:6400", "pid": 0, "socket": ""}
    (into / "cluster/head.json").write_text(json.dumps(contact) + "\n")
    (into / "recorded.json").write_text(json.dumps(said, indent=1) + "\n")
    print(
        *(
            f"{path.stat().st_size:9} {path.relative_to(HERE)}"
            for path in sorted(into.rglob("*"))
            if path.is_file()
        ),
        sep="\n",
    )


if __name__ == "__main__":
    main()
