"""Clusters by address: start, join with a token, status, stop; two at once; what is refused."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually, running


def nodes(home: Home, *args: str) -> dict[str, bool]:
    """Name -> alive."""
    return {node["name"]: node["alive"] for node in home.json("status", *args)["nodes"]}


def test_a_cluster_by_address(home: Home) -> None:
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    assert set(head) >= {"address", "pid", "cluster_id"} and head["address"].startswith(
        "127.0.0.1:"
    )
    token = home.token()
    for name in ("a", "b"):
        home.run(
            "start",
            "--address",
            head["address"],
            "--token-file",
            token,
            "--num-cpus",
            "2",
            "--num-gpus",
            "1",
            "--memory",
            "3GiB",
            "--resources",
            '{"license": 3}',
            "--labels",
            "zone=x",
            "--node-name",
            name,
        )
    status = home.json("status")
    assert {node["name"]: node["alive"] for node in status["nodes"]} == {"a": True, "b": True}
    for node in status["nodes"]:
        assert (
            node["resources"] == {"CPU": 2, "GPU": 1, "license": 3, "memory": 3 << 30}
            and node["labels"]["zone"] == "x"
        )
    assert (
        "memory 0 GiB/3 GiB" in home.run("status").stdout
        and "b" in home.run("list", "nodes").stdout
    )
    home.run("stop")
    assert not home.processes()


def test_a_driver_joins_by_address_with_a_token(home: Home) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "2")
    token = home.token("--role", "client")
    code = f"""
import troupe
from troupe.launch import distributed
with troupe.init({head["address"]!r}, token_file={token!r}) as context:
    assert troupe.is_initialized() and context["address"] == {head["address"]!r}
    print(distributed(processes=2, remote=True)(lambda x: x + 1).submit(1).result(30))
    print(distributed(processes=1, remote=True)(lambda: bytes(300000)).submit().result(30)[0][:1])
assert not troupe.is_initialized()
"""
    done = home.python(code, env={"TROUPE_HOME": str(home.path / "elsewhere")})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[2, 2]", "b'\\x00'"]


def test_two_clusters_at_once(home: Home) -> None:
    first = home.json("start", "--head", "--port", "0", "--num-cpus", "1", "--node-name", "one")
    second = home.json(
        "start", "--head", "--new", "--port", "0", "--num-cpus", "1", "--node-name", "two"
    )
    assert first["cluster_id"] != second["cluster_id"]
    assert nodes(home, "--address", first["address"]) == {"one": True}
    assert nodes(home, "--address", second["address"]) == {"two": True}
    unclear = home.run("status", ok=False)
    assert unclear.returncode == 2 and first["cluster_id"][:8] in unclear.stderr
    assert home.run("stop", ok=False).returncode == 2
    home.run("stop", "--cluster", first["cluster_id"])
    assert nodes(home) == {"two": True}


def test_start_resumes_the_cluster_that_stopped(home: Home) -> None:
    first = home.json("start", "--head", "--port", "0", "--num-cpus", "1", "--node-name", "here")
    home.run("stop", "--all")
    again = home.json("start", "--head", "--port", "0", "--num-cpus", "1", "--node-name", "here")
    assert again["cluster_id"] == first["cluster_id"] and again["resumed"]
    assert again["node"]["node_id"] == first["node"]["node_id"] and nodes(home) == {"here": True}
    home.run("stop", "--all")
    other = home.json("start", "--head", "--no-worker", "--port", "0", "--new")
    assert other["cluster_id"] != first["cluster_id"]


def test_block_ends_cleanly_at_sigterm(home: Home) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "troupe",
            "start",
            "--head",
            "--port",
            "0",
            "--num-cpus",
            "1",
            "--block",
            "--json",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    shown = json.loads(process.stdout.readline())
    assert shown["address"] and len(home.processes()) >= 3
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 0
    process.stdout.close()
    eventually(lambda: not home.processes(), what="the end of head and worker")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_a_node_that_joined_in_the_foreground_ends_with_its_command(
    home: Home, number: signal.Signals
) -> None:
    """However that ends: the end of a terminal, of whoever started it, kill -9."""
    address = home.json("start", "--head", "--no-worker", "--port", "0")["address"]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "troupe",
            "start",
            "--address",
            address,
            "--token-file",
            home.token(),
            "--num-cpus",
            "1",
            "--block",
            "--json",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    worker = json.loads(process.stdout.readline())["pid"]
    assert worker in home.processes()
    process.send_signal(number)
    assert process.wait(TIMEOUT_S) == (0 if number == signal.SIGHUP else -number)
    process.stdout.close()
    eventually(lambda: worker not in home.processes(), what="the end of the node's worker")


def test_a_killed_worker_is_reported_dead(home: Home) -> None:
    home.json("start", "--head", "--no-worker", "--port", "0")
    head = home.json("status")
    joined = home.json(
        "start",
        "--address",
        head["address"],
        "--token-file",
        home.token(),
        "--num-cpus",
        "1",
        "--node-name",
        "gone",
    )
    os.kill(joined["pid"], signal.SIGKILL)
    eventually(lambda: nodes(home).get("gone") is not True, timeout=20, what="the node's death")


def refused(home: Home, *args: str) -> str:
    """Runs a command that must fail with 1 and one screen of text; the text."""
    done = home.run(*args, ok=False)
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert 0 < len(done.stderr.splitlines()) < 20 and "Traceback" not in done.stderr
    return done.stderr


def test_nobody_listens(home: Home, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    home.json("start", "--head", "--no-worker", "--port", "0")
    token = home.token()
    text = refused(home, "start", "--address", address, "--token-file", token)
    assert address in text and text.startswith("ConnectionError")
    done = home.python(f"import troupe; troupe.init({address!r}, token_file={token!r})")
    assert done.returncode != 0 and address in done.stderr


def test_tokens_that_are_refused(home: Home, tmp_path: Path) -> None:
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    token = home.token()
    wrong = tmp_path / "wrong"
    wrong.write_text("no token at all\n")
    wrong.chmod(0o600)
    assert "token" in refused(
        home, "start", "--address", head["address"], "--token-file", str(wrong)
    )
    short = home.token("--ttl", "1s")
    listed = home.json("token", "list")
    revoked = home.json("token", "create")
    home.run("token", "revoke", revoked["id"])
    (tmp_path / "revoked").write_text(revoked["token"])
    (tmp_path / "revoked").chmod(0o600)
    text = refused(
        home, "start", "--address", head["address"], "--token-file", str(tmp_path / "revoked")
    )
    assert "revoked" in text and revoked["token"] not in text
    eventually(
        lambda: any(each["state"] == "expired" for each in home.json("token", "list")),
        what="expiry",
    )
    assert "expired" in refused(home, "start", "--address", head["address"], "--token-file", short)
    assert len(listed) >= 2 and token
    other = home.json("start", "--head", "--new", "--no-worker", "--port", "0")
    text = refused(home, "start", "--address", other["address"], "--token-file", token)
    assert "JoinError" in text and other["address"] in text
    assert nodes(home, "--address", head["address"]) == {}


def test_a_port_that_is_taken(home: Home) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        text = refused(home, "start", "--head", "--port", str(port))
    assert str(port) in text
    assert not home.processes()


def test_usage_errors_exit_with_2(home: Home) -> None:
    for args in (
        ["start"],
        ["start", "--head", "--address", "a:1"],
        ["start", "--head", "--resources", "{"],
        ["start", "--head", "--labels", "x"],
        ["token", "create", "--ttl", "soon"],
        ["nonsense"],
    ):
        done = home.run(*args, ok=False)
        assert done.returncode == 2 and done.stderr, args
    assert not home.processes()


def test_a_head_that_was_killed_comes_back_where_it_was(home: Home) -> None:
    first = home.json("start", "--head", "--port", "0", "--num-cpus", "1", "--node-name", "here")
    os.kill(first["pid"], signal.SIGKILL)
    eventually(lambda: not running(first["pid"]), what="the head's end")
    again = home.json("start", "--head", "--no-worker")
    assert again["resumed"] and again["address"] == first["address"]
    eventually(lambda: nodes(home) == {"here": True}, what="the node's return to its head")
