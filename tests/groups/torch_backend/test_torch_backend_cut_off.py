"""The backend `troupe` over hosts that share nothing but a network: they meet at the launch's
interface, and a host that is cut off ends by the verdict.

Method: head and two nodes on network namespaces; TROUPE_TEST_LIMITS shortens the 60 s of the fence
and the 75 s after which a node that is not heard is lost. Skipped, with the reason, where
namespaces cannot be made.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import Home, eventually

import troupe
from troupe import train
from troupe._process.torch_backend import build
from troupe.launch import distributed

sys.path.append(str(Path(__file__).resolve().parents[2] / "e2e"))
from namespaces import Hosts, why_not  # noqa: E402

REASON = why_not()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)
TROUPE = [sys.executable, "-m", "troupe"]
FENCE_S, RECREATE_S = 10, 30
LIMIT_S = 240


@pytest.fixture
def hosts(home: Home) -> Iterator[Hosts]:
    """Hosts `head`, `a` and `b`, with a worker of 2 CPUs on the latter two; this process is
    connected."""
    build.ensure()
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    env = {"TROUPE_TEST_LIMITS": f"fence_after={FENCE_S},recreate_after={RECREATE_S}"}
    with Hosts("head", "a", "b") as made:
        listen = ["--listen", made["head"].address, "--port", "0"]
        head = made["head"].run(
            [*TROUPE, "start", "--head", "--no-worker", *listen, "--json"], env=env
        )
        address = json.loads(head.stdout)["address"]
        for name in ("a", "b"):
            made[name].run(
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
                    "2",
                    "--force-tcp",
                ],
                env=env,
            )
        troupe.init(address)
        try:
            yield made
        finally:
            made.heal()
            troupe.shutdown()
            home.run("stop", "--all")


def outlives(folder: str) -> dict[str, Any]:
    """Reduces until a rank is lost, then once more with those that are left: what ended the first
    attempt, and what came of the second."""
    import os
    import pathlib

    import torch
    import torch.distributed as dist

    from troupe import train
    from troupe.launch import current

    said = ""
    for attempt in train.attempts("troupe"):
        with attempt:
            one = torch.ones(1 << 20)
            dist.all_reduce(one)
            result = {
                "rank": current().launch_rank,
                "size": attempt.world_size,
                "sum": one[-1].item(),
                "said": said,
                "interface": os.environ["GLOO_SOCKET_IFNAME"],
            }
            if attempt.number == 1:
                pathlib.Path(folder, str(attempt.rank)).touch()
                try:
                    while True:
                        dist.all_reduce(torch.ones(1 << 20))
                except RuntimeError as error:
                    said = str(error)
                    raise
    return result


def test_a_host_that_is_cut_off_ends_by_the_verdict_and_the_other_goes_on(
    hosts: Hosts, tmp_path: Path
) -> None:
    ranks = tmp_path / "ranks"
    ranks.mkdir()
    made = distributed(
        processes=2, remote=True, quiet=True, strategy="SPREAD", on_rank_death="shrink"
    )(outlives)
    handle = made.submit(str(ranks))
    eventually(
        lambda: len(list(ranks.iterdir())) == 2, timeout=LIMIT_S, what="the loop of both ranks"
    )
    nodes = [each["node"] for each in handle.status()["rank_infos"]]
    lost = nodes.index("b")
    hosts.isolate("b")
    results = handle.result(LIMIT_S)
    left = results[1 - lost]
    assert isinstance(results[lost], train.RankLost), results
    assert (left["size"], left["sum"], left["interface"]) == (1, 1.0, "eth0")
    assert left["said"].startswith(
        f"group 0, epoch 1, rank {1 - lost} of 2: stopped: rank {lost} on "
    ), left
    assert "node b is lost: not heard of for " in left["said"], left
