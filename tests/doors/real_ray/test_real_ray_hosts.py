"""A real Ray cluster of a launch on hosts of their own: network namespaces joined by a bridge.

Method: head, two workers and the program that launches each on a host; what binds to loopback, or
takes the wrong interface, fails.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home
from real_rays import LIMIT_S, folders, needs_ray

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "e2e"))
from namespaces import Hosts, why_not  # noqa: E402

pytestmark = [needs_ray, pytest.mark.long]
TROUPE = [sys.executable, "-m", "troupe"]
PROGRAM = """
import json, os
from troupe.launch import ray_launch

@ray_launch(processes=2, strategy="STRICT_SPREAD", remote=True, api="ray", quiet=True, runtime_env={"working_dir": os.path.dirname(__file__)})
def drive():
    import ray
    ray.init(log_to_driver=False)

    @ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
    def number():
        import beside
        return beside.NUMBER

    return {"address": os.environ["RAY_ADDRESS"], "numbers": ray.get([number.remote() for _ in range(4)]),
            "nodes": {each["NodeName"]: each["NodeManagerAddress"] for each in ray.nodes()}}

print(json.dumps(drive.distributed()[0]))
"""


def test_a13_rays_nodes_meet_on_the_interface_of_the_launch(home: Home, tmp_path: Path) -> None:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    os.environ["TMPDIR"] = os.environ["XDG_RUNTIME_DIR"]  # the home's own
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "beside.py").write_text("NUMBER = 3\n")
    with Hosts("head", "a", "b", "driver") as hosts:
        head = hosts["head"].run(
            [
                *TROUPE,
                "start",
                "--head",
                "--no-worker",
                "--listen",
                hosts["head"].address,
                "--port",
                "0",
                "--json",
            ]
        )
        address = json.loads(head.stdout)["address"]
        for name in ("a", "b"):
            hosts[name].run(
                [
                    *TROUPE,
                    "start",
                    "--address",
                    address,
                    "--token-file",
                    home.token(),
                    "--node-name",
                    name,
                    "--num-cpus",
                    "1",
                    "--force-tcp",
                ]
            )
        done = hosts["driver"].run(
            [sys.executable, str(tmp_path / "program.py")],
            timeout=LIMIT_S,
            env={"TROUPE_ADDRESS": address, "TROUPE_TOKEN_FILE": home.token("--role", "client")},
        )
        found = json.loads(done.stdout.splitlines()[-1])
        assert (
            found["nodes"] == {name: hosts[name].address for name in ("a", "b")}
            and found["numbers"] == [3] * 4
        )
        assert found["address"].rpartition(":")[0] in found["nodes"].values()
        home.run("stop", "--all", timeout=TIMEOUT_S)
    assert not folders()
