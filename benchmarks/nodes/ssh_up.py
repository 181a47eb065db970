"""`troupe up` of hosts that are network namespaces of this machine, each with an sshd of its own.

    python benchmarks/nodes/ssh_up.py [--hosts 16] [--rounds 3] [--torch] [--keep]

Needs root, OpenSSH's sshd and iproute2. All hosts have the processors of this machine together, so
that a torch which each node imports behind its start would be most of the figure: without --torch
their Python has none.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests/e2e"), str(ROOT / "tests/e2e/nodes")]
import sshd  # noqa: E402
from namespaces import Host, Hosts, why_not  # noqa: E402
from report import await_rest, keep, summary  # noqa: E402

TROUPE = [sys.executable, "-m", "troupe"]
LIMIT_S = 300.0
PORT = 2222


def timed(host: Host, *args: str) -> float:
    """Run a command on a host; return how long it took."""
    began = time.perf_counter()
    host.run(args, timeout=LIMIT_S)
    return time.perf_counter() - began


def hide_torch(folder: pathlib.Path) -> None:
    """Let an import of torch fail in all processes that are started from here."""
    folder.mkdir()
    (folder / "torch.py").write_text("raise ImportError('left out of this measurement')\n")
    path = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{folder}{os.pathsep * bool(path)}{path}"


def ssh_alone(head: Host, site: sshd.Site) -> float:
    """Return how long `ssh HOST true` takes, at all hosts at once."""
    began = time.perf_counter()
    line = ["ssh", "-F", str(site.config), "-o", "BatchMode=yes", "-p", str(PORT)]
    clients = [
        subprocess.Popen(head.command([*line, each.address, "true"]))
        for each in site.hosts.values()
    ]
    codes = [each.wait(LIMIT_S) for each in clients]
    assert not any(codes), codes
    return time.perf_counter() - began


def measure(hosts: Hosts, folder: pathlib.Path, rounds: int) -> dict:
    """Return the rows of the result file."""
    head = hosts["head"]
    listen = ["--listen", head.address, "--port", "6400"]
    head.run([*TROUPE, "start", "--head", "--no-worker", *listen])
    site = sshd.Site(folder)
    times: dict[str, list[float]] = {name: [] for name in ("ssh", "up", "again", "down")}
    try:
        names = [name for name in hosts.names() if name != "head"]
        for name in names:
            host = hosts[name]
            site.add(name, address=host.address, port=PORT, prefix=host.command([]))
        file = folder / "hosts.yml"
        file.write_text(site.yaml())
        for _ in range(rounds):
            await_rest()
            times["ssh"].append(ssh_alone(head, site))
            await_rest()
            times["up"].append(timed(head, *TROUPE, "up", str(file)))
            await_rest()
            times["again"].append(timed(head, *TROUPE, "up", str(file)))
            times["down"].append(timed(head, *TROUPE, "down"))
    finally:
        subprocess.run(head.command([*TROUPE, "down"]), capture_output=True, timeout=LIMIT_S)
        site.close()
        head.run([*TROUPE, "stop"])
    count = len(names)
    return {
        f"floor: ssh true, {count} hosts at once": summary(times["ssh"]),
        f"troupe up, {count} hosts": {
            **summary(times["up"]),
            "must_ms": 10_000,
            "goal_ms": 5_000,
        },
        f"troupe up, all {count} are up": summary(times["again"]),
        f"troupe down, {count} hosts": summary(times["down"]),
    }


def main() -> None:
    """Measure and print; with --keep, write the result file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--torch", action="store_true", help="nodes import torch, as they do")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if reason := why_not() or sshd.why_not():
        raise SystemExit(f"no hosts here: {reason}")
    names = [f"h{number:02}" for number in range(1, options.hosts + 1)]
    with (
        Hosts("head", *names) as hosts,
        tempfile.TemporaryDirectory(prefix="ssh-") as folder,
    ):
        os.environ.update(TROUPE_HOME=f"{folder}/head", XDG_RUNTIME_DIR=folder)
        if not options.torch:
            hide_torch(pathlib.Path(folder, "without"))
        rows = measure(hosts, pathlib.Path(folder), options.rounds)
    keep("ssh_up", rows, options.keep)


if __name__ == "__main__":
    main()
