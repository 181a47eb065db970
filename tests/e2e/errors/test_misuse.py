"""Typing mistakes: every wrong input has one short error that says what to do, and leaves
nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe import exceptions
from troupe.launch import distributed, ray_launch


def told(home: Home, *args: str, code: int, env: dict[str, str] | None = None) -> str:
    """Runs a command that must fail with `code` and one screen of text; the text."""
    done = home.run(*args, ok=False, env=env)
    assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    assert 0 < len(done.stderr.splitlines()) < 20 and "Traceback" not in done.stderr, done.stderr
    return done.stderr


USAGE = [
    (["start", "--address", "127.0.0.1", "--token-file", "t"], "looks like 10.0.0.1:6400"),
    (["start", "--address", "127.0.0.1:99999", "--token-file", "t"], "ports go from 1 to 65535"),
    (["start", "--address", "--token-file", "t"], "'--token-file' is no address"),
    (["status", "--address", "nonsense"], "looks like 10.0.0.1:6400"),
    (["status", "--address", "ray://10.0.0.1:10001"], "leave out ray://"),
    (["start", "--head", "--num-cpus", "-1"], "--num-cpus must be a number from 0"),
    (["start", "--head", "--num-cpus", "nan"], "--num-cpus must be a number from 0"),
    (["start", "--head", "--num-gpus", "1.5"], "whole number"),
    (["start", "--head", "--resources", "license=2"], "--resources is no JSON"),
    (["start", "--head", "--resources", "[1]"], "object of numbers"),
    (["start", "--head", "--resources", '{"a": -1}'], "a must be a number from 0"),
    (["start", "--head", "--resources", '{"a": true}'], "a must be a number from 0"),
    (["start", "--head", "--resources", '{"CPU": 1}'], "give CPU as --num-cpus"),
    (["start", "--head", "--node-name", "../x"], "is no name of a node"),
    (["start", "--head", "--node-name", ""], "is no name of a node"),
    (["start", "--head", "--port", "-1"], "65535"),
    (["token", "create", "--ttl", "99999999999999999d"], "longer than a token may live"),
    (["token", "create", "--ttl", "-5m"], "no duration"),
    (["run", "--nodes", "0", "--", "true"], "--nodes"),
    (["run", "--nodes", "2", "--address", "127.0.0.1:1", "--", "true"], "--make-secret"),
    (["run", "--nodes", "2", "--secret-file", "s", "--", "true"], "where is node 0?"),
    (["run", "--nodes", "1"], "what is to be run?"),
]


@pytest.mark.parametrize("args, text", USAGE, ids=[" ".join(args) for args, _ in USAGE])
def test_usage(home: Home, args: list[str], text: str) -> None:
    assert text in told(home, *args, code=2)
    assert not home.processes()


def test_token_files(home: Home, tmp_path: Path) -> None:
    address = "127.0.0.1:1"
    assert "does not exist" in told(
        home, "start", "--address", address, "--token-file", str(tmp_path / "no"), code=1
    )
    assert "Is a directory" in told(
        home, "start", "--address", address, "--token-file", str(tmp_path), code=1
    )
    empty = tmp_path / "empty"
    empty.touch(mode=0o600)
    assert "it is empty" in told(
        home, "start", "--address", address, "--token-file", str(empty), code=1
    )
    home.json("start", "--head", "--no-worker", "--port", "0")
    read_by_all = Path(home.token())
    read_by_all.chmod(0o644)
    for args in (["start"], ["status"]):
        text = told(home, *args, "--address", address, "--token-file", str(read_by_all), code=1)
        assert f"chmod 600 {read_by_all}" in text and "rt1." not in text
    assert "needs a token" in told(home, "status", "--address", address, code=1)


def test_a_token_from_stdin(home: Home) -> None:
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    token = home.run("token", "create").stdout
    home.run(
        "start", "--address", head["address"], "--token-file", "-", "--num-cpus", "1", stdin=token
    )
    assert len(home.json("status")["nodes"]) == 1


def test_a_home_that_cannot_be_written(home: Home, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in ("/proc/nope", str(tmp_path / "file")):
        for args in (["status"], ["start", "--head"]):
            text = told(home, *args, code=1, env={"TROUPE_HOME": path})
            assert path in text and "set TROUPE_HOME to a folder" in text
    if os.geteuid() != 0:  # root may write everywhere
        (tmp_path / "sealed").mkdir(mode=0o500)
        text = told(home, "start", "--head", code=1, env={"TROUPE_HOME": str(tmp_path / "sealed")})
        assert "cannot be written to" in text


def test_without_a_cluster_and_stopping_twice(home: Home) -> None:
    for args in (["status"], ["list", "nodes"], ["logs", "abc"], ["token", "list"]):
        assert "troupe start --head" in told(home, *args, code=1)
    home.json("start", "--head", "--port", "0", "--num-cpus", "1")
    home.run("stop")
    assert "nothing" in home.run("stop").stdout and home.json("stop") == {"stopped": []}
    assert "no cluster with the id abc" in told(home, "stop", "--cluster", "abc", code=1)


def test_ids_that_are_none(home: Home) -> None:
    home.json("start", "--head", "--port", "0", "--num-cpus", "1")
    home.run("token", "create")
    for args in (["logs", "zz"], ["logs", ""], ["token", "revoke", "zz"], ["token", "revoke", ""]):
        assert "an id that starts with" in told(home, *args, code=2)
    assert home.json("token", "list")[-1]["state"] == "good"
    code = (
        "from troupe.launch import distributed; distributed(processes=1, "
        "remote=True)(len).submit([]).result(30)"
    )
    assert home.python("import troupe; troupe.init('auto'); " + code).returncode == 0
    launch = home.json("list", "launches")[0]["id"]
    assert "has ranks 0 to 0, not 7" in told(home, "logs", launch[:8], "--rank", "7", code=2)
    told(home, "logs", launch[:8], "--rank", "-1", code=2)


class Slow:
    """An actor that answers, or never does."""

    def answer(self) -> int:
        """1."""
        return 1

    def hang(self) -> None:
        """Does not return."""
        import threading

        threading.Event().wait()


def test_use_before_init_and_after_shutdown(home: Home) -> None:
    troupe.shutdown()  # without a session: no error
    with pytest.raises(exceptions.ConnectionError, match="call troupe.init"):
        troupe.remote(Slow).remote()
    with pytest.raises(exceptions.ConnectionError, match="call troupe.init"):
        troupe.nodes()
    context = troupe.init(num_cpus=2)
    with pytest.raises(RuntimeError, match="called before"):
        troupe.init()
    actor = troupe.remote(Slow).remote()
    assert troupe.get(actor.answer.remote(), timeout=60) == 1
    hanging = actor.hang.remote()
    launch = distributed(processes=1)(lambda: 1).submit()
    launch.result(60)
    troupe.shutdown()
    troupe.shutdown()
    context.disconnect()
    for ref in (hanging, actor.answer.remote()):
        with pytest.raises(exceptions.ActorUnavailableError, match="shutdown"):
            troupe.get(ref, timeout=60)
    for use in (
        launch.status,
        launch.cancel,
        lambda: list(launch.logs()),
        lambda: troupe.kill(actor),
    ):
        with pytest.raises(exceptions.ConnectionError, match="shutdown"):
            use()
    with troupe.init(num_cpus=1):
        with pytest.raises(exceptions.ActorUnavailableError, match="shutdown"):
            troupe.get(actor.answer.remote(), timeout=60)
    assert not troupe.is_initialized()


INTERRUPTED = """
import threading, sys, troupe
from troupe.launch import distributed
troupe.init({address!r})
class Hangs:
    def hang(self): threading.Event().wait()
def hang():
    print("begun", flush=True)
    threading.Event().wait()
try:
    if {what!r} == "distributed":
        distributed(processes=2, remote=True, name="interrupted")(hang).distributed()
    else:
        ref = troupe.remote(Hangs).remote().hang.remote()
        print("begun", flush=True)
        troupe.get(ref)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


@pytest.mark.parametrize("what", ["distributed", "get"])
def test_ctrl_c(cluster: Home, idle: Home, what: str) -> None:
    address = troupe.init(ignore_reinit_error=True).address
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(address=address, what=what)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "begun" in line:
            break
    process.send_signal(signal.SIGINT)
    assert "interrupted" in process.stdout.read() and process.wait(TIMEOUT_S) == 130
    process.stdout.close()
    if what == "distributed":
        eventually(
            lambda: [
                each
                for each in troupe.state.list_launches()
                if each["name"] == "interrupted"
                and each["outcome"] == "cancelled"
                and "Ctrl-C" in each["cause"]
            ],
            what="the cancellation",
        )


def test_arguments_the_function_does_not_take(idle: Home) -> None:
    with pytest.raises(TypeError, match=r"train\(epochs\): missing a required argument: 'epochs'"):

        @distributed(processes=2, remote=True)
        def train(epochs):  # type: ignore[no-untyped-def]
            return epochs

        train.distributed()
    with pytest.raises(ValueError, match="timeout must be more than 0"):
        distributed(processes=1, timeout="soon")(len)


def test_a_launch_inside_a_launch(idle: Home) -> None:
    @ray_launch(processes=2, remote=True)
    def drive() -> list[str]:
        import troupe as ray

        class Nested:
            def launch(self) -> str:
                try:
                    return str(distributed(processes=1)(len).distributed([]))
                except RuntimeError as error:
                    return str(error)

        return [Nested().launch(), ray.get(ray.remote(Nested).remote().launch.remote(), timeout=60)]

    rank, actor = drive.distributed()[0]
    assert "launch inside a launch" in rank and "this actor belongs to launch" in actor
