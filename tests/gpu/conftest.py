"""The fixtures of tests/e2e, and what tests of GPUs need: a card, a cluster that has found it, and
its memory free again afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import card
import pytest
from e2e_conftest import *  # noqa: F403

FAILED = pytest.StashKey[bool]()
LEFT_MIB_MOST = 64  # memory of a card by which its driver's own use may differ


@pytest.fixture(autouse=True)
def a_card(request: pytest.FixtureRequest) -> Iterator[None]:
    """Skips where there is no card; asserts that the test has left nothing on it."""
    if request.node.get_closest_marker("gpu") is None:
        yield
        return
    if why := card.missing():
        pytest.skip(why)
    before = card.used_mib()
    yield
    card.free_again(before + LEFT_MIB_MOST)


@pytest.fixture(scope="module")
def node(shared_home: _shared.Home) -> Iterator[_shared.Home]:
    """A head and one worker that offers the GPUs that it finds, this process connected to it."""
    import troupe

    if why := card.missing():
        pytest.skip(why)
    started = shared_home.json(
        "start", "--head", "--port", "0", "--num-cpus", "8", "--node-name", "one"
    )
    troupe.init(started["address"])
    _shared.eventually(
        lambda: all(each["zygote_ready"] for each in troupe.state.list_nodes()), what="the zygote"
    )
    yield shared_home
    troupe.shutdown()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """Lets a fixture know that the test has failed."""
    report = yield
    item.stash.setdefault(FAILED, False)
    item.stash[FAILED] = item.stash[FAILED] or report.failed
    return report


@pytest.fixture
def idle(node: _shared.Home, request: pytest.FixtureRequest) -> Iterator[_shared.Home]:
    """The node; asserts that all that it has is free again after the test.

    What a test that failed still holds is ended: there is but one GPU for those that follow.
    """
    yield node
    if request.node.stash.get(FAILED, False):
        _end_all()
    _shared.all_returned(timeout=_shared.TIMEOUT_S)


def _end_all() -> None:
    import troupe
    from troupe._cluster import session as _session

    session = _session.started()
    for actor in troupe.state.list_actors(tasks=True):
        if actor["state"] != "dead":
            session.request("KillActor", {"actor": actor["actor_id"]})
    for launch in troupe.state.list_launches():
        if launch["state"] not in ("succeeded", "failed", "cancelled"):
            session.request(
                "CancelLaunch",
                {"launch": launch["id"], "hard": True, "reason": "its test failed", "grace_ms": 0},
            )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says which card the tests have run on."""
    if not card.missing():
        for line in card.described():
            terminalreporter.write_line(line)
