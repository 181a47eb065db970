"""Launches of every front door are launches like any other: `troupe list launches` and `status`
show each with the door that it came by, and its output is in `troupe logs`.

Method: one launch by each door on one cluster; what the commands and `troupe.state` say of them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from e2e_conftest import Home, eventually
from submits import LIMIT_S, printed, project, troupe_in

import troupe
from troupe.azure import MLClient, command
from troupe.launch import distributed, ray_launch, submit_command
from troupe.spark import TorchDistributor


def says() -> int:
    print("said", flush=True)
    return 1


def by_serverless_gpu(name: str) -> None:
    from troupe import serverless_gpu

    serverless_gpu.distributed(gpus=1, remote=True)(says).options(name=name).distributed()


def by_torch_distributor(name: str) -> None:
    TorchDistributor(1, local_mode=False, use_gpu=False).run(says)


def by_azure(name: str) -> None:
    jobs = MLClient().jobs
    jobs.stream(jobs.create_or_update(command(name=name, command="echo said")).name)


DOORS = {
    "launch": lambda name: distributed(processes=1, remote=True, name=name)(says).distributed(),
    "driver": lambda name: ray_launch(processes=1, remote=True, name=name)(says).distributed(),
    "serverless_gpu": by_serverless_gpu,
    "spark": by_torch_distributor,
    "azure": by_azure,
    "submit": lambda name: submit_command(
        ["--", sys.executable, "-c", "print('said')"], processes=1, remote=True, name=name
    ).result(LIMIT_S),
}
OTHERS = {"driver": "launch"}


@pytest.mark.parametrize("by", DOORS)
def test_a_launch_says_by_which_door_it_came(
    cluster: Home, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TROUPE_CPU_RANKS", "1")
    name = "says" if by == "spark" else f"by-{by}"
    DOORS[by](name)
    (about,) = [each for each in troupe.state.list_launches() if each["name"] == name]
    assert about["door"] == OTHERS.get(by, by) and about["outcome"] == "succeeded"
    shown = next(
        line for line in cluster.run("list", "launches").stdout.splitlines() if name in line
    ).split()
    assert shown[0] == about["id"][:4] and shown[1:3] == [name, about["door"]], shown
    assert "said" in cluster.run("logs", about["id"]).stdout
    assert not [each for each in about["inherited_env"] if "door" in each], "it is no variable"


def test_the_commands_say_it_too_while_they_run(cluster: Home, tmp_path: Path) -> None:
    folder = project(
        tmp_path, train="print('said')", waits=f"import os\nopen({str(tmp_path / 'go')!r}).read()"
    )
    os.mkfifo(tmp_path / "go")
    address = {"TROUPE_ADDRESS": troupe.get_runtime_context().gcs_address}
    for words, door in (
        (("submit", "--name", "one"), "submit"),
        (("torchrun", "--nproc-per-node", "1"), "torchrun"),
    ):
        printed(troupe_in(folder, *words, "train.py", env=address))
        about = troupe.state.list_launches()
        assert about and {
            each["door"] for each in about if each["name"] in ("one", "train.py")
        } >= {door}
    detached = troupe_in(
        folder, "submit", "--name", "waits", "--detach", "waits.py", env=address
    ).stdout.strip()
    running = eventually(
        lambda: [
            line
            for line in cluster.run("status").stdout.splitlines()
            if "waits" in line and "running" in line
        ],
        timeout=LIMIT_S,
        what="its row in status",
    )
    assert "submit" in str(running)
    (tmp_path / "go").write_text("")
    eventually(
        lambda: troupe.launch.attach(detached).status()["outcome"] == "succeeded",
        timeout=LIMIT_S,
        what="its end",
    )
