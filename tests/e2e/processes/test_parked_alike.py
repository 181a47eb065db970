"""A parked process is what a freshly forked one is: two ranks of one launch, each looks at
itself."""

from __future__ import annotations

import os
from pathlib import Path

from conftest import Home, eventually, parked

import troupe
from troupe.launch import distributed

PARKED = 3


def traits() -> dict:
    """Return the traits of a process, as far as it can see them; run in ranks."""
    import gc
    import random
    import resource
    import signal as signals
    import subprocess
    import sys
    import threading

    status = dict(
        line.split(":\t", 1)
        for line in Path("/proc/self/status").read_text().splitlines()
        if ":\t" in line
    )
    links = {}
    for each in Path("/proc/self/fd").iterdir():
        try:
            links[each.name] = os.readlink(each)
        except FileNotFoundError:
            continue  # the one that lists the folder
    code = "import os; print(os.environ['TROUPE_PROCESS_ID'], os.getsid(0))"
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    print("to out", flush=True)
    print("to err", file=sys.stderr, flush=True)
    here = os.getpid()
    torch = sys.modules.get("torch")
    own = {
        "pid": here,
        "environment": dict(os.environ),
        "drawn": random.random(),
        "child": child,
        "drawn by torch": torch.rand(1).item() if torch else random.random(),
        "out": links["1"],
        "err": links["2"],
        "title": Path("/proc/self/cmdline").read_text().strip("\0"),
    }
    same = {
        "names": sorted(os.environ),
        "directory": os.getcwd(),
        "path": list(sys.path),
        "argv": list(sys.argv),
        "session": os.getsid(0) == here,
        "group": os.getpgrp() == here,
        "stdin": links["0"],
        "kinds of descriptors": sorted(
            link.split(":")[0] for name, link in links.items() if int(name) > 2
        ),
        "signals": {key: status[key] for key in ("SigBlk", "SigIgn", "SigCgt")},
        "python's signals": {
            number: getattr(
                signals.getsignal(number), "__qualname__", str(signals.getsignal(number))
            )
            for number in signals.valid_signals()
        },
        "cpus": sorted(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads() if torch else 1,
        "threads alive": sorted(thread.name for thread in threading.enumerate()),
        "tasks": status["Threads"],
        "limits": [
            resource.getrlimit(each) for each in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)
        ],
        "mask": status["Umask"],
        "gc": (gc.isenabled(), gc.get_threshold()),
        "streams": [
            (each.line_buffering, each.errors, each.encoding) for each in (sys.stdout, sys.stderr)
        ],
        "modules": sorted(name for name in sys.modules if name.startswith("troupe")),
    }
    return {"own": own, "same": same}


def test_a_parked_process_is_what_a_fresh_fork_is(home: Home) -> None:
    """Two ranks of one launch, on a node that parks and on one that does not."""
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    token = home.token()
    for name, count in (("parks", str(PARKED)), ("forks", "0")):
        home.run(
            "start",
            "--address",
            head["address"],
            "--token-file",
            token,
            "--num-cpus",
            "1",
            "--node-name",
            name,
            env={"TROUPE_PARKED_PROCESSES": count},
        )
    with troupe.init(head["address"]):
        eventually(
            lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()),
            what="the zygotes",
        )
        eventually(lambda: len(parked(home)) == PARKED, what="the parked processes")
        before = parked(home)
        os.environ["WANDB_TRAVELS"] = "yes"
        handle = distributed(processes=2, remote=True, runtime_env={"env_vars": {"MINE": "1"}})(
            traits
        ).submit()
        results = handle.result(timeout=60)
        first, second = sorted(results, key=lambda each: each["own"]["pid"] not in before)
        assert first["own"]["pid"] in before and second["own"]["pid"] not in before
        for name, value in second["same"].items():
            if name == "names":
                value = [each for each in value if each != "TROUPE_PARKED_PROCESSES"]
                first["same"][name] = [
                    each for each in first["same"][name] if each != "TROUPE_PARKED_PROCESSES"
                ]
            assert first["same"][name] == value, name
        for each in (first["own"], second["own"]):
            environment, rank = each["environment"], each["environment"]["RANK"]
            assert environment["MINE"] == "1" and environment["WANDB_TRAVELS"] == "yes"
            assert each["child"] == [environment["TROUPE_PROCESS_ID"], str(each["pid"])]
            assert each["out"].endswith(f"rank-{rank}.out") and each["err"].endswith(
                f"rank-{rank}.err"
            )
            assert each["title"].startswith(f"troupe: rank {rank} of ")
            assert {"to out", "to err"} <= {str(line).strip() for line in handle.logs(int(rank))}
        assert first["own"]["drawn"] != second["own"]["drawn"]
        assert first["own"]["drawn by torch"] != second["own"]["drawn by torch"]
