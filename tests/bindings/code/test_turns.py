"""Turns: who wants one again at once comes after those that wait."""

from __future__ import annotations

import threading

from troupe._cluster.turns import Turns


def test_who_waits_has_it_before_who_gives_it_back() -> None:
    turns, order = Turns(1), []

    def wait() -> None:
        with turns:
            order.append("who waits")

    waits = threading.Thread(target=wait)
    with turns:
        waits.start()
        while not turns.waiting:
            pass
    with turns:
        order.append("who gave it back")
    waits.join()
    assert order == ["who waits", "who gave it back"]


def test_so_many_at_once() -> None:
    turns = Turns(2)
    with turns, turns:
        waits = threading.Thread(target=lambda: turns.__enter__())
        waits.start()
        while not turns.waiting:
            pass
    waits.join()
    with turns:
        assert turns.waiting == 0
