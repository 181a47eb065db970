"""Cuts between the head and its nodes: who gives up what, and when (decision 19 of the design).

Method: head and two nodes on hosts of their own, this process a driver through the head's Unix
socket, which no cut concerns. The files and processes of the hosts are this machine's, so a test
sees what a node that is cut off does. TROUPE_TEST_LIMITS shortens the fence of 60 s and the 75 s
after which the head re-creates. Skipped, with the reason, where namespaces cannot be made.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import gangs
import pytest
from conftest import Home, eventually, running, stand_still
from gangs import Gang, live
from namespaces import Hosts, why_not

import troupe
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

REASON = why_not()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)
TROUPE = [sys.executable, "-m", "troupe"]
FENCE_S, RECREATE_S = 10, 30


@pytest.fixture(scope="module")
def hosts(shared_home: Home) -> Iterator[Hosts]:
    """Hosts `head`, `a` and `b`, with a worker of 2 CPUs on the latter two; this process is
    connected."""
    env = {"TROUPE_TEST_LIMITS": f"fence_after={FENCE_S},recreate_after={RECREATE_S}"}
    with Hosts("head", "a", "b") as made:
        listen = ["--listen", made["head"].address, "--port", "0"]
        started = made["head"].run(
            [*TROUPE, "start", "--head", "--no-worker", *listen, "--json"], env=env
        )
        address = json.loads(started.stdout)["address"]
        for name in ("a", "b"):
            made[name].run(
                [
                    *TROUPE,
                    "start",
                    "--address",
                    address,
                    "--token-file",
                    shared_home.token(),
                    "--node-name",
                    name,
                    "--num-cpus",
                    "2",
                    "--force-tcp",
                ],
                env=env,
            )
        troupe.init(address)
        modules = [
            gangs,
            sys.modules[__name__],
        ]  # for other hosts than this one they are no modules
        for module in modules:
            cloudpickle.register_pickle_by_value(module)
        try:
            eventually(
                lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()),
                what="the zygotes",
            )
            yield made
        finally:
            made.heal()
            for module in modules:
                cloudpickle.unregister_pickle_by_value(module)
            troupe.shutdown()
            shared_home.run("stop", "--all")


@pytest.fixture
def healed(hosts: Hosts) -> Iterator[Hosts]:
    """The hosts; in the end healed, both nodes back, and nothing of a launch or actor left."""
    yield hosts
    hosts.heal()
    eventually(lambda: [seen(name)["state"] for name in "ab"] == ["alive"] * 2, what="both nodes")
    eventually(
        lambda: troupe.available_resources() == troupe.cluster_resources(),
        what="the return of all resources",
    )


def seen(name: str) -> dict:
    return next(node for node in troupe.state.list_nodes() if node["name"] == name)


def spread(folder: Path, **options: object) -> tuple[Gang, int]:
    """A rank on each node, and which of them is on b."""
    gang = Gang(folder / "gang", 2, strategy="SPREAD", **options)
    assert sorted(gang.nodes) == ["a", "b"]
    return gang, gang.nodes.index("b")


def test_a_node_that_is_cut_off_is_lost_and_the_next_attempt_runs_elsewhere(
    healed: Hosts, tmp_path: Path
) -> None:
    gang, there = spread(tmp_path, max_attempts=2)
    old = list(gang.pids)
    healed.isolate("b")
    gang.begun(2)
    assert gang.nodes == ["a", "a"]
    assert running(old[there])  # nobody can tell it; it starts nothing and ends nothing
    for rank in (0, 1):
        gang.tell(rank, "os.environ['TROUPE_EPOCH']")
    assert gang.handle.result(60) == ["2", "2"]
    healed.heal()
    eventually(lambda: not running(old[there]), what="the end of the old epoch's rank")
    assert gang.handle.status()["epoch"] == 2


@pytest.mark.parametrize(
    "cut",
    [
        lambda hosts: hosts.cut("b", "head"),
        lambda hosts: hosts.cut_one_way("head", "b"),
        lambda hosts: hosts.cut_one_way("b", "head"),
    ],
    ids=["both ways", "the node hears nothing", "the node is not heard"],
)
def test_a_node_that_still_answers_its_peers_costs_nothing(
    healed: Hosts, tmp_path: Path, cut
) -> None:
    """Only the way between it and the head is cut: node a is asked, and it answers a."""
    gang, there = spread(tmp_path)
    cut(healed)
    eventually(lambda: seen("b")["heard_s"] > 8, what="a silence longer than a lease")
    assert seen("b")["state"] == "suspect"
    gang.tell(there, "'while nobody heard it'")
    healed.heal()
    gang.tell(1 - there, "'beside it'")
    results = gang.handle.result(60)
    assert (results[there], results[1 - there]) == ("while nobody heard it", "beside it")
    assert gang.handle.status()["epoch"] == 1


def test_an_outage_of_the_head_alone_costs_nothing(healed: Hosts, tmp_path: Path) -> None:
    gang, there = spread(tmp_path)
    healed.isolate("head")
    gang.tell(1 - there, "'while the head was away'")
    eventually(
        lambda: all(seen(name)["heard_s"] > 6 for name in "ab"),
        what="a silence longer than a lease",
    )
    assert [seen(name)["state"] for name in "ab"] == ["suspect"] * 2
    healed.heal()
    eventually(lambda: all(seen(name)["state"] == "alive" for name in "ab"), what="both nodes")
    assert not gang.handle.done(), gang.handle.status()["cause"]
    gang.tell(there, "'and after'")
    results = gang.handle.result(60)
    assert results[there] == "and after" and results[1 - there] == "while the head was away"
    assert gang.handle.status()["epoch"] == 1


class Teller:
    """Tells its process by a file that appears when it begins."""

    def __init__(self, folder: str) -> None:
        from pathlib import Path

        Path(folder).mkdir(exist_ok=True)
        Path(folder, str(os.getpid())).touch()

    def pid(self) -> int:
        return os.getpid()


def shown(actor: troupe.ActorHandle) -> dict:
    return next(each for each in troupe.state.list_actors() if each["actor_id"] == actor._actor_id)


def told(folder: Path) -> set[int]:
    return {int(file.name) for file in folder.iterdir()} if folder.exists() else set()


def take_a_name_twice(folder: str) -> int:
    """A rank's life: makes an actor on the node that it is told; told again, it kills that one and
    makes another of its name."""
    made = troupe.remote(Teller).options(
        name="one", scheduling_strategy=On(live(folder), soft=True)
    )
    first = made.remote(f"{folder}/one")
    Path(folder, f"{os.environ['TROUPE_EPOCH']}-{os.environ['RANK']}.word").read_text()
    troupe.kill(first)
    return troupe.get(made.remote(f"{folder}/one").pid.remote(), timeout=180)


def test_an_actor_that_is_made_elsewhere_has_ended_before(healed: Hosts, tmp_path: Path) -> None:
    """The named one may be re-created: its node kills it at the fence.

    The other one runs until its node is told.

    AN-4: in a launch that goes on without the node, too, another actor of a name starts when the
    one before has ended.
    """
    gang, there = spread(tmp_path, function=take_a_name_twice, on_rank_death="shrink")
    gang.tell(1 - there, repr(seen("b")["node_id"]))
    [inside] = eventually(lambda: told(tmp_path / "gang" / "one"), what="the launch's actor")
    b = On(seen("b")["node_id"], soft=True)
    made = troupe.remote(Teller)
    named = made.options(name="teller", max_restarts=-1, scheduling_strategy=b).remote(
        str(tmp_path / "named")
    )
    plain = made.options(scheduling_strategy=b).remote(str(tmp_path / "plain"))
    first, other = (
        eventually(lambda: told(tmp_path / name), what="an actor").copy().pop()
        for name in ("named", "plain")
    )
    eventually(
        lambda: (
            [actor["node"] for actor in troupe.state.list_actors() if actor["state"] == "alive"]
            == ["b"] * 3
        ),
        what="all actors",
    )
    healed.isolate("b")
    gang.tell(1 - there, "once more")
    eventually(lambda: told(tmp_path / "named") - {first}, what="the actor's next life")
    assert not running(first) and running(other)
    after = gang.handle.result(180)[1 - there]
    assert told(tmp_path / "gang" / "one") == {inside, after} and not running(inside)
    with pytest.raises(
        troupe.exceptions.ActorDiedError, match="not heard of for .* and has not come back"
    ):
        troupe.get(plain.pid.remote(), timeout=60)
    healed.heal()
    eventually(lambda: not running(other), what="the end of the other one")
    troupe.kill(named)


def test_an_actor_whose_node_is_lost_is_out_of_reach_and_goes_on_when_it_is_back(
    healed: Hosts, tmp_path: Path
) -> None:
    """The actor reserved nothing: its node may keep it.

    Calls meanwhile fail at once, and say that it may be back.
    """
    actor = (
        troupe.remote(Teller)
        .options(scheduling_strategy=On(seen("b")["node_id"], soft=True))
        .remote(str(tmp_path / "it"))
    )
    [pid] = eventually(lambda: told(tmp_path / "it"), what="the actor")
    eventually(lambda: shown(actor)["state"] == "alive", what="its address")
    healed.isolate("b")
    eventually(lambda: shown(actor)["state"] == "unavailable", what="the loss of its node")
    with pytest.raises(
        troupe.exceptions.ActorUnavailableError,
        match="out of reach: node b is lost: not heard of for",
    ) as caught:
        troupe.get(actor.pid.remote(), timeout=60)
    assert not isinstance(caught.value, troupe.exceptions.ActorDiedError)
    assert running(pid)
    healed.heal()
    eventually(lambda: shown(actor)["state"] == "alive", what="its node's return")
    assert running(pid)
    troupe.kill(actor)
    eventually(lambda: not running(pid), what="its end")


def test_an_actor_fences_itself_when_its_worker_stands_still(healed: Hosts, tmp_path: Path) -> None:
    """Nobody else could: the worker that should kill it is stopped, and it may be made anew
    elsewhere.

    AN-4: so may the one that is killed meanwhile, as another actor of its name, which waits for
    that.
    """
    b = On(seen("b")["node_id"], soft=True)
    made = troupe.remote(Teller)
    named = made.options(name="teller", max_restarts=-1, scheduling_strategy=b).remote(
        str(tmp_path / "named")
    )
    plain = made.options(scheduling_strategy=b).remote(str(tmp_path / "plain"))
    killed = made.options(name="one", lifetime="detached", scheduling_strategy=b).remote(
        str(tmp_path / "one")
    )
    first, other, before = (
        eventually(lambda: told(tmp_path / name), what="an actor").copy().pop()
        for name in ("named", "plain", "one")
    )
    eventually(
        lambda: (
            [(shown(actor)["state"], shown(actor)["node"]) for actor in (named, plain, killed)]
            == [("alive", "b")] * 3
        ),
        what="the actors",
    )
    stand_still(seen("b")["pid"])
    try:
        troupe.kill(killed)
        after = made.options(name="one", lifetime="detached", get_if_exists=True).remote(
            str(tmp_path / "one")
        )
        assert troupe.get_actor("one") == after != killed
        assert shown(after)["state"] == "pending"
        eventually(
            lambda: re.fullmatch(
                "the former actor 'one' on node b, which .*: it is fenced in [0-9]+ s at the "
                "latest",
                shown(after)["waiting_for"],
            ),
            what="the reason why it waits",
        )
        eventually(
            lambda: not running(first) and not running(before),
            what="the end of those that may be made elsewhere",
        )
        assert running(other)
        assert told(tmp_path / "named") == {first}, "it has ended before its next life began"
        assert told(tmp_path / "one") == {before}, (
            "it has ended before the next one of its name began"
        )
    finally:
        os.kill(seen("b")["pid"], signal.SIGCONT)
    eventually(lambda: seen("b")["state"] == "alive", what="the node's return")
    eventually(lambda: len(told(tmp_path / "one")) == 2, what="the next one of its name")
    for actor in (named, plain, after):
        troupe.kill(actor)
