"""Parts shared by the tests of real Ray clusters: a driver that says when it is up and goes on
until it is ended, Ray's processes, and their remains."""

from __future__ import annotations

import importlib.util
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

from troupe.launch import LaunchHandle, ray_launch

LIMIT_S = 4 * TIMEOUT_S  # limit of a start: Ray's own takes seconds on each node
needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None,
    reason="needs a real Ray: ./test frameworks installs it",
)
without_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is not None, reason="is for nodes without Ray"
)
FOLDER = "troupe-raynode-"


@ray_launch(processes=2, strategy="SPREAD", remote=True, api="ray", quiet=True)
def lives(up: str) -> None:
    """Says in the file `up` where it is, and uses its cluster until it is ended."""
    import ray

    ray.init(log_to_driver=False)

    @ray.remote(num_cpus=0)
    def name() -> str:
        return str(ray.get_runtime_context().get_node_id())

    ray.get(name.remote())
    about = {"pid": os.getpid(), "address": os.environ["RAY_ADDRESS"], "nodes": len(ray.nodes())}
    Path(up + ".part").write_text(json.dumps(about))
    os.rename(up + ".part", up)
    while True:
        ray.get(name.remote())


@dataclass
class Up:
    """A launch whose driver is up.

    `pid`, `address`, `nodes`: as the driver says; `folders`: of its nodes of Ray, the head's first.
    """

    handle: LaunchHandle
    home: Home
    pid: int
    address: str
    nodes: int
    folders: list[str]

    def process(self, name: str, node: int = 0) -> int:
        """The process of Ray's with this word in its line, on a node."""
        found = [
            pid
            for pid, line in self.home.processes().items()
            if name in line and self.folders[node] in line
        ]
        assert len(found) == 1, (name, found)
        return found[0]

    def process_names(self) -> list[str]:
        """The lines of Ray's processes that live."""
        return [
            line
            for line in self.home.processes().values()
            if any(each in line for each in self.folders)
        ]

    def is_gone(self) -> bool:
        """Return True if neither a process nor a file of it is left."""
        return not self.process_names() and not any(Path(each).exists() for each in self.folders)


def up(home: Home, path: Path) -> Up:
    """A launch of `lives`, once its driver runs."""
    before = folders()
    file = path / "up"
    handle = lives.submit(str(file))

    def said() -> Any:
        if handle.done():
            handle.result()
        return json.loads(file.read_text()) if file.exists() else None

    about = eventually(said, timeout=LIMIT_S, what="the driver of a Ray cluster")
    mine = folders() - before
    heads = {
        each
        for line in home.processes().values()
        if "gcs_server" in line
        for each in mine
        if each in line
    }
    return Up(
        handle, home, folders=sorted(mine, key=lambda each: (each not in heads, each)), **about
    )


def folders() -> set[str]:
    """Return the folders of Ray nodes that exist now, of this module's cluster."""
    return {str(each) for each in Path(os.environ["TMPDIR"]).glob(FOLDER + "*")}
