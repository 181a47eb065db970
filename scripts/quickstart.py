"""The main job, step by step, on a cluster of a head and two workers that join by address.

Every step prints a line and how long it took; the first that fails prints why and ends the run with
exit code 1. At the end no process, socket or shared memory of the cluster may be left.

    ./quickstart [--force-tcp]
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from rich.console import Console

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONSOLE = Console(highlight=False)
TROUPE = [sys.executable, "-m", "troupe"]


class StepFailed(Exception):
    """A step's command failed; the text is what it printed."""


class Steps:
    """Numbers the steps, shows progress while one runs, and times it."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.started = total, 0, time.monotonic()

    def run(self, what: str, action):
        """Runs action() under a spinner; returns its result. Blocks."""
        self.done += 1
        begin = time.monotonic()
        label = f"[{self.done}/{self.total}] {what}"
        with CONSOLE.status(label):
            result = action()
        CONSOLE.print(f"[green]✓[/green] {label} [dim]{time.monotonic() - begin:.2f} s[/dim]")
        return result


def command(*args: str, env: dict[str, str], show: bool = False) -> str:
    """Runs a command to its end and returns its standard output; StepFailed if it fails."""
    done = subprocess.run(
        [*args],
        env=env,
        text=True,
        cwd=ROOT,
        stdout=None if show else subprocess.PIPE,
        stderr=None if show else subprocess.PIPE,
    )
    if done.returncode != 0:
        said = "" if show else (done.stderr or done.stdout)
        raise StepFailed(f"{' '.join(args)} ended with exit code {done.returncode}\n{said}")
    return done.stdout or ""


def start_head(env: dict[str, str]) -> dict:
    return json.loads(
        command(*TROUPE, "start", "--head", "--no-worker", "--port", "0", "--json", env=env)
    )


def join(
    head: dict, token: pathlib.Path, name: str, extra: list[str], env: dict[str, str], cpus: int = 2
) -> None:
    command(
        *TROUPE,
        "start",
        "--address",
        head["address"],
        "--token-file",
        str(token),
        "--num-cpus",
        str(cpus),
        "--node-name",
        name,
        *extra,
        env=env,
    )


def leftovers(home: pathlib.Path) -> list[str]:
    """Processes that still carry this TROUPE_HOME in their environment, but for our own."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            environment = (process / "environ").read_bytes()
            if f"TROUPE_HOME={home}".encode() in environment.split(b"\0"):
                found.append(
                    f"{process.name} "
                    f"{(process / 'cmdline').read_bytes().decode().replace(chr(0), ' ')}"
                )
        except OSError:
            continue  # the process ended while we looked, or is another user's
    return found


def stop(home: pathlib.Path, env: dict[str, str]) -> None:
    command(*TROUPE, "stop", "--all", env=env)
    left = leftovers(home)
    if left:
        raise StepFailed("processes of the cluster are left:\n  " + "\n  ".join(left))


def alive_nodes(env: dict[str, str]) -> list[str]:
    status = json.loads(command(*TROUPE, "status", "--json", env=env))
    return [node["name"] for node in status["nodes"] if node["alive"]]


def main_job(steps: Steps, home: pathlib.Path, env: dict[str, str], extra: list[str]) -> None:
    head = steps.run("start a head", lambda: start_head(env))
    token = home / "token"
    text = steps.run("make a join token", lambda: command(*TROUPE, "token", "create", env=env))
    token.touch(mode=0o600)
    token.write_text(text)
    for name in ("node-a", "node-b"):
        steps.run(
            f"{name} joins {head['address']} over TLS", lambda: join(head, token, name, extra, env)
        )
    CONSOLE.print(f"  cluster {head['cluster_id'][:8]}: nodes {', '.join(alive_nodes(env))}")
    env["TROUPE_ADDRESS"] = head["address"]
    for example, what in (
        ("digits_ddp.py", "train a digit classifier with DDP on 4 ranks"),
        ("driver_on_rank0.py", "run a driver on rank 0 with actors on both nodes"),
    ):
        CONSOLE.print(f"[bold]    {what}[/bold] (examples/{example})")
        steps.run(what, lambda: command(sys.executable, f"examples/{example}", env=env, show=True))
    steps.run("node-c joins, with 8 CPUs", lambda: join(head, token, "node-c", extra, env, cpus=8))
    what, guide = (
        "run a serverless GPU program as it is, on 8 ranks",
        "tests/guides/serverless_gpu/mlp_cpu.py",
    )
    CONSOLE.print(f"[bold]    {what}[/bold] ({guide})")
    steps.run(
        what,
        lambda: command(*TROUPE, "run-as", guide, env={**env, "TROUPE_CPU_RANKS": "1"}, show=True),
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--force-tcp",
        action="store_true",
        help="the two workers talk over TLS, as on two hosts, instead of Unix sockets",
    )
    extra = ["--force-tcp"] if parser.parse_args().force_tcp else []
    home = pathlib.Path(tempfile.mkdtemp(prefix="troupe-quickstart-"))
    env = {**os.environ, "TROUPE_HOME": str(home)}
    env.pop("TROUPE_ADDRESS", None)
    steps = Steps(9)
    failed = None
    try:
        main_job(steps, home, env, extra)
    except (StepFailed, KeyboardInterrupt) as error:
        failed = error
    try:
        steps.run("stop the cluster; nothing is left", lambda: stop(home, env))
    except StepFailed as error:
        failed = failed or error
    if failed is not None:
        CONSOLE.print(f"[red]failed[/red] {str(failed) or 'interrupted'}", markup=True)
        CONSOLE.print(f"logs are kept in {home}")
        return 130 if isinstance(failed, KeyboardInterrupt) else 1
    shutil.rmtree(home, ignore_errors=True)
    CONSOLE.print(f"[bold green]done[/bold green] in {time.monotonic() - steps.started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
