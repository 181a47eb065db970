"""Two nodes on one machine that share its kernel and network, but no files, as containers do: they
are hosts of their own.

Method: each worker is started in a mount namespace in which the folder of its sockets is hidden by
another one. Nothing is said with --force-tcp. Skipped, with the reason, where such a namespace
cannot be made.
"""

from __future__ import annotations

import os
import subprocess
import sys

import cloudpickle
import pytest
from conftest import Home, eventually

import troupe
from troupe.launch import distributed
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

cloudpickle.register_pickle_by_value(sys.modules[__name__])
CONTAINED = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    'mount -t tmpfs tmpfs "$XDG_RUNTIME_DIR" && exec "$@"',
    "sh",
]


def why_not() -> str:
    """Why no such namespace can be made; empty: it can."""
    try:
        tried = subprocess.run(
            [*CONTAINED, "true"],
            capture_output=True,
            text=True,
            timeout=30,
            env={**os.environ, "XDG_RUNTIME_DIR": "/mnt"},
        )
    except OSError as error:
        return f"no mount namespaces: {error}"
    return "" if tried.returncode == 0 else f"no mount namespaces: {tried.stderr.strip()}"


REASON = why_not()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)


class Echo:
    def echo(self, value: object) -> object:
        return value

    def ask(self, other: object, value: object) -> object:
        return troupe.get(other.echo.remote(value), timeout=60)


def test_nodes_that_share_a_kernel_but_no_files_reach_each_other(home: Home) -> None:
    address = home.json("start", "--head", "--no-worker", "--port", "0")["address"]
    token = home.token()
    for name in ("a", "b"):
        subprocess.run(
            [
                *CONTAINED,
                sys.executable,
                "-m",
                "troupe",
                "start",
                "--address",
                address,
                "--token-file",
                token,
                "--node-name",
                name,
                "--num-cpus",
                "2",
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )
    with troupe.init(address):
        at = {node["NodeName"]: On(node["NodeID"], soft=False) for node in troupe.nodes()}
        first, second = (
            troupe.remote(Echo).options(scheduling_strategy=at[name]).remote()
            for name in ("a", "b")
        )
        assert troupe.get(first.echo.remote("of the driver"), timeout=60) == "of the driver"
        large = bytes(8 << 20)
        assert troupe.get(first.ask.remote(second, large), timeout=60) == large
        assert troupe.get(second.ask.remote(first, 1), timeout=60) == 1

        @distributed(processes=4, remote=True, strategy="SPREAD")
        def size(data: bytes) -> int:
            return len(data)

        assert size.distributed(large) == [len(large)] * 4  # a node gets the payload from the other
        eventually(
            lambda: troupe.available_resources() == troupe.cluster_resources(),
            what="the end of the launch",
        )
