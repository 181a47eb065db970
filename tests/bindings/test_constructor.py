"""Refs inside an actor's constructor arguments, as its maker brings them; without a cluster."""

from __future__ import annotations

import pickle

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
        brought.take(b"")  # a repeat
    assert brought.given() == ("the refs",)


def test_what_cannot_be_loaded_is_the_constructors_error() -> None:
    brought = constructor.Brought(lambda: (1 / 0,))
    with pytest.raises(exceptions.ActorExit):
        brought.take(b"")
    with pytest.raises(ZeroDivisionError):
        brought.given()


@pytest.mark.parametrize("lost", [True, False])
def test_a_maker_that_does_not_come_costs_what_needs_it(
    monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    def loaded(pickled: bytes, late: bytes) -> tuple:
        if lost:
            raise exceptions.ObjectLostError("its owner ended")
        return (Exception, (1,), {})

    monkeypatch.setattr(constructor, "_loaded", loaded)
    monkeypatch.setattr(constructor.native, "received_refs", lambda names, holder: None)
    payload = constructor._MARK + pickle.dumps(
        (b"holder", "another host", b"names", b"", b"pickled")
    )
    assert constructor.Brought(lambda: ()).given() is None
    if not lost:
        assert constructor.load(payload, lambda loaded: None) == (Exception, (1,), {})
        return
    with pytest.raises(
        exceptions.OwnerDiedError,
        match="did not come within 60 s from the process that made the actor.*its owner ended",
    ):
        constructor.load(payload, lambda loaded: None)
