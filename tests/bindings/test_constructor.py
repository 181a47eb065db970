"""What an actor's process does with the refs inside its constructor's arguments, as its maker brings them; without a cluster."""
from __future__ import annotations

import pytest

from troupe import exceptions
from troupe._actors import constructor


def test_what_is_brought_is_loaded_in_the_call_that_brings_it() -> None:
    held: list[str] = []
    brought = constructor.Brought(lambda: (*held,))
    held.append("the refs")
    with pytest.raises(exceptions.ActorExit):
        brought.take(b"")
    held.clear()
    with pytest.raises(exceptions.ActorExit):
        brought.take(b"")  # sent again
    assert brought.given() == ("the refs",)


def test_what_cannot_be_loaded_is_the_constructors_error() -> None:
    brought = constructor.Brought(lambda: (1 / 0,))
    with pytest.raises(exceptions.ActorExit):
        brought.take(b"")
    with pytest.raises(ZeroDivisionError):
        brought.given()


def test_a_maker_that_does_not_come_is_named() -> None:
    brought = constructor.Brought(lambda: ())
    with pytest.raises(exceptions.OwnerDiedError, match="did not come within 60 s from the process that made the actor"):
        brought.given()
