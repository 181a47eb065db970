"""A session's knowledge of launches, actors and groups: waiters wake, and stored entries do not
grow with its age."""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace

import pytest

from troupe import exceptions
from troupe._cluster import watched_state
from troupe._cluster.session import Session
from troupe.launch import LaunchHandle


def test_a_board_wakes_who_waits_and_forgets() -> None:
    board = watched_state.Board()
    seen: list[dict] = []
    board.subscribe("launch", "a", lambda info, _: seen.append(info))
    got: list[object] = []
    thread = threading.Thread(
        target=lambda: got.append(board.wait("launch", "a", lambda info: info["n"] == 2, 10))
    )
    thread.start()
    board.post("launch", "a", {"n": 1})
    board.post("launch", "a", {"n": 2}, b"x")
    thread.join(10)
    assert got == [({"n": 2}, b"x")] and [each["n"] for each in seen] == [1, 2]
    board.post_reply("launch", "a", {"n": 0})
    assert board.get("launch", "a") == ({"n": 2}, b"x")
    with pytest.raises(TimeoutError):
        board.wait("launch", "b", bool, 0.01)
    board.close()
    with pytest.raises(exceptions.ConnectionError):
        board.wait("launch", "b", bool)


class _Lock:
    """Once it is let go of for the first time, a push gets it before anybody else does."""

    def __init__(self, push: threading.Thread) -> None:
        self._lock, self._push = threading.Lock(), push

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()
        if self._push.ident is None:
            self._push.start()
            self._push.join(10)


def test_an_answer_does_not_replace_a_push_that_comes_while_it_is_taken() -> None:
    board = watched_state.Board()
    push = threading.Thread(target=lambda: board.post("actor", "a", {"state": "alive"}))
    board.subscribe("actor", "a", lambda *_: None)
    board._lock = _Lock(push)  # type: ignore[assignment]
    board.post_reply("actor", "a", {"state": "pending"})
    assert board.get("actor", "a") == ({"state": "alive"}, b"")


class _Control:
    """A connection whose pushes overtake the answers to requests."""

    def __init__(self, state: str, pushed: str) -> None:
        self.state, self.pushed = state, pushed
        self.session: Session | None = None

    def request(
        self, kind: str, fields: dict, attachment: bytes, timeout: float
    ) -> tuple[str, dict, bytes]:
        assert self.session is not None
        if self.pushed:
            self.session.push("GroupUpdate", {"info": {"group": "a", "state": self.pushed}}, b"")
        return "GroupUpdate", {"info": {"group": "a", "state": self.state}}, b""


@pytest.mark.parametrize("pushed, known", [("created", "created"), ("", "pending")])
def test_a_push_that_overtakes_the_answer_to_a_request_stays(pushed: str, known: str) -> None:
    """A group that was reserved at once was taken to wait without end."""
    control = _Control("pending", pushed)
    control.session = session = Session(control, in_process=True)
    session.ask("CreateGroup", {"group": "a"})
    assert session.board.get("group", "a") == ({"group": "a", "state": known}, b"")
    session.board.post("group", "a", {"group": "a", "state": "before the head came back"})
    session._watch_again("group", "a")
    assert session.board.get("group", "a") == ({"group": "a", "state": known}, b"")


def test_a_board_hears_of_an_end_once_and_keeps_it_current() -> None:
    board = watched_state.Board()
    seen: list[dict] = []
    board.subscribe("launch", "a", lambda info, _: seen.append(info))
    end = {"state": "terminal", "watchers": 2}
    board.post("launch", "a", end)
    board.post("launch", "a", {"state": "running", "watchers": 2})  # was overtaken
    board.post("launch", "a", {**end, "watchers": 1})
    assert (
        board.wait("launch", "a", lambda info: info["watchers"] == 1, 0.01)[0]["state"]
        == "terminal"
    )
    assert seen == [end]


def kept(board: watched_state.Board) -> int:
    return len(board._entries) + len(board._callbacks) + len(board._followed)


def test_news_of_an_actor_that_was_forgotten_are_not_kept() -> None:
    board = watched_state.Board()
    seen: list[dict] = []
    board.subscribe("actor", "a", lambda info, _: seen.append(info))
    board.post("actor", "a", {"state": "alive"})
    assert board.get("actor", "a") == ({"state": "alive"}, b"")
    board.forget("actor", "a")  # and then its process ends, of which the head tells who made it
    board.post("actor", "a", {"state": "alive", "node": "n"})
    board.post("actor", "a", {"state": "dead"})
    board.post_reply("actor", "a", {"state": "dead"})
    assert (kept(board), seen) == (0, [{"state": "alive"}])


def test_an_actor_whose_end_is_heard_before_the_answer_to_who_asked_for_it_is_known_to_be_dead() -> (
    None
):
    board = watched_state.Board()
    board.subscribe("actor", "a", lambda *_: None)
    board.post("actor", "a", {"state": "dead"})
    board.post_reply("actor", "a", {"state": "pending"})
    assert board.get("actor", "a") == ({"state": "dead"}, b"")


@pytest.mark.parametrize(
    ("noun", "end"), [("group", "removed"), ("group", "infeasible"), ("launch", "terminal")]
)
def test_of_what_ended_the_latest_are_kept(noun: str, end: str) -> None:
    board = watched_state.Board()
    for number in range(watched_state.ENDED_MAX + 10):
        if noun == "group":
            board.follow(noun, str(number))
        board.post(noun, str(number), {"state": end})
    assert board.get(noun, "9") is None and board.get(noun, "10") is not None
    assert kept(board) == watched_state.ENDED_MAX * (2 if noun == "group" else 1)


def test_a_launch_is_kept_while_its_handle_lives() -> None:
    board = watched_state.Board()
    session = SimpleNamespace(
        board=board, returns=0, follow=lambda noun, identity, returns: board.follow(noun, identity)
    )
    handle = LaunchHandle(session, "mine")
    for launch in ("mine", *map(str, range(watched_state.ENDED_MAX + 10))):
        board.post("launch", launch, {"state": "terminal"})
    assert handle.done()
    del handle
    gc.collect()
    board.post("launch", "another", {"state": "running"})
    assert board.get("launch", "mine") is None and not board.follows("launch", "mine")
