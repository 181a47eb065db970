"""Method: limits and lifetimes so short that what a cluster does over days happens within the test."""
from __future__ import annotations

from pathlib import Path

from conftest import Home, eventually

SAY = """
from troupe.launch import distributed
def say(text):
    print(text * 1000)
handle = distributed(processes=1, remote=True)(say).submit({text!r})
handle.result(60)
print(handle.id)
"""


def test_logs_of_what_has_ended_make_room_for_newer_ones(home: Home) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "1", "--node-name", "n", "--log-gib", "1e-6")
    folder = Path(head["state"], "nodes", "n", "logs")

    def launch(text: str) -> str:
        done = home.python(SAY.format(text=text), env={"TROUPE_ADDRESS": head["address"]})
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    first = launch("one")
    assert "oneone" in home.run("logs", first, "--rank", "0").stdout, "what ended last is kept, whatever its size"
    second = launch("two")
    eventually(lambda: [path.name for path in folder.iterdir()] == [second], what="the removal of the older logs")
    assert "twotwo" in home.run("logs", second, "--rank", "0").stdout
    refused = home.run("logs", first, "--rank", "0", ok=False)
    assert refused.returncode == 1 and "--log-gib" in refused.stderr and "Traceback" not in refused.stderr
    home.run("stop")
