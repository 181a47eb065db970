"""Revoking a client token: what it opened ends, at the head, at workers and at actors, and nothing
else does.

Method: a head and a worker that is as a host of its own (--force-tcp); drivers in processes of
their own that came by a token, one of which the test revokes while they work.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from conftest import TIMEOUT_S, Home, eventually

import troupe

DRIVER = """
import sys, time, troupe
from troupe.launch import ray_launch
troupe.init({address!r}, token_file={token!r})

@troupe.remote
class Counter:
    def __init__(self): self.value = 0
    def add(self): self.value += 1; return self.value
    def sleep(self): time.sleep(3600)  # lint-ok: until it is ended

counter = Counter.options(name={name!r}, lifetime={lifetime!r}).remote()
print(troupe.get(counter.add.remote()), flush=True)
for line in sys.stdin:
    try:
        print(troupe.get(counter.add.remote(), timeout=60), flush=True)
    except Exception as error:
        print("error", type(error).__name__, str(error).replace(chr(10), " "), flush=True)
"""


def _driver(
    address: str, token: str, name: str | None = None, lifetime: str | None = None
) -> subprocess.Popen:
    code = DRIVER.format(address=address, token=token, name=name, lifetime=lifetime)
    return subprocess.Popen(
        [sys.executable, "-u", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _ask(driver: subprocess.Popen) -> str:
    assert driver.stdin is not None and driver.stdout is not None
    driver.stdin.write("\n")
    driver.stdin.flush()
    return driver.stdout.readline().strip()


def _alive(home: Home) -> list[dict]:
    return [each for each in home.json("list", "actors") if each["state"] == "alive"]


def _token(home: Home, tmp_path: Path, name: str) -> tuple[str, str]:
    made = home.json("token", "create", "--role", "client")
    path = tmp_path / name
    path.write_text(made["token"])
    path.chmod(0o600)
    return str(path), made["id"]


def test_RT2_RT3_a_revoked_tokens_clients_and_actors_end_and_others_go_on(
    home: Home, tmp_path: Path
) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "4", "--force-tcp")
    mine, mine_id = _token(home, tmp_path, "mine")
    other, _ = _token(home, tmp_path, "other")
    drivers = [
        _driver(head["address"], mine, "kept", "detached"),
        _driver(head["address"], mine),
        _driver(head["address"], other),
    ]
    try:
        for driver in drivers:
            assert driver.stdout is not None and driver.stdout.readline().strip() == "1"
        assert len(_alive(home)) == 3
        said = home.json("token", "revoke", mine_id[:8])
        assert said["revoked"] == mine_id and said["cut_off"] == []
        assert _ask(drivers[2]) == "2", "another token's driver"
        for driver in drivers[:2]:
            eventually(
                lambda driver=driver: _ask(driver).startswith("error"),
                what="the end of the session, and of what it had",
            )
        eventually(lambda: len(_alive(home)) == 2, what="the end of what the token's client made")
        assert sorted(each["name"] for each in _alive(home)) == ["", "kept"]
        again = subprocess.run(
            [
                sys.executable,
                "-c",
                f"import troupe; troupe.init({head['address']!r}, token_file={mine!r})",
            ],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert again.returncode != 0 and "it was revoked" in again.stderr, again.stderr
    finally:
        for driver in drivers:
            driver.kill()
            driver.communicate()


def test_the_command_lists_what_goes_on(home: Home, tmp_path: Path) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "4")
    mine, mine_id = _token(home, tmp_path, "mine")
    code = f"""
import time, troupe
from troupe.launch import ray_launch
troupe.init({head["address"]!r}, token_file={mine!r})
@ray_launch(processes=1, remote=True)
def long():
    time.sleep(3600)  # lint-ok: until it is cancelled
print(long.options(detach=True).submit().id, flush=True)
"""
    launch = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    ).stdout.split()[-1]
    done = home.run("token", "revoke", mine_id[:8])
    assert "goes on, since it is detached" in done.stdout and launch[:8] in done.stdout, done.stdout
    ended = home.run("cancel", launch[:8], "--grace", "0")
    assert "cancelled" in ended.stdout, ended.stdout
    assert "already" in home.run("cancel", launch[:8]).stdout
    assert json.loads(home.run("cancel", launch[:8], "--json").stdout)["was_over"] is True


def test_no_local_clients(home: Home, tmp_path: Path) -> None:
    head = home.json("start", "--head", "--no-local-clients", "--port", "0", "--num-cpus", "2")
    token = tmp_path / "token"
    token.write_text(head["client_token"])
    token.chmod(0o600)
    refused = home.run("status", ok=False)
    assert (
        refused.returncode == 1
        and "--no-local-clients" in refused.stderr
        and "--token-file" in refused.stderr
    ), refused.stderr
    assert (
        "head"
        in home.run("status", "--address", head["address"], "--token-file", str(token)).stdout
    )
    troupe.init(head["address"], token_file=str(token))
    try:
        assert troupe.get(troupe.remote(lambda: 7).remote(), timeout=TIMEOUT_S) == 7
    finally:
        troupe.shutdown()
