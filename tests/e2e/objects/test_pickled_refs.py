"""Refs that a program pickles by itself: their objects stay, and whoever loads the bytes on the
same host has them.

Method: bytes go as text between programs, actors and tasks, past what the runtime knows of; then
whoever pickled them ends.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from conftest import Home, eventually, running
from objects import nothing_held

import troupe
from troupe import exceptions
from troupe._base.bridge import native
from troupe.launch import distributed

WITHIN_S = 30.0
MIB = 1 << 20


@troupe.remote(num_cpus=0)
class Keeper:
    """Pickles and loads for others."""

    def pid(self) -> int:
        return os.getpid()

    def pickled(self, value: Any) -> bytes:
        return pickle.dumps(troupe.put(value))

    def pickled_ref(self, held: list[Any]) -> bytes:
        return cloudpickle.dumps({"ref": held[0]})

    def slow(self, gate: str) -> str:
        eventually(lambda: Path(gate).exists(), what="the gate")
        return "late"

    def pickled_pending(self, other: Any, gate: str) -> bytes:
        return pickle.dumps(other.slow.remote(gate))

    def value_of(self, data: bytes) -> Any:
        return troupe.get(pickle.loads(data), timeout=WITHIN_S)


@pytest.fixture
def keepers(idle: Home) -> Any:
    made = [Keeper.remote(), Keeper.remote()]
    troupe.get([each.__ray_ready__.remote() for each in made], timeout=WITHIN_S)
    yield made
    for each in made:
        troupe.kill(each)
    native._let_go_of_pickled_refs()
    eventually(nothing_held(native._object_figures), what="the end of all objects")


def test_bytes_of_a_ref_keep_its_object_here(keepers: Any) -> None:
    ref = troupe.put(np.full(MIB, 7.0))
    data = [pickle.dumps(ref), cloudpickle.dumps([ref, ref])]
    del ref
    once, (again, third) = map(pickle.loads, data)
    assert once == again == third and len({once, again, third}) == 1
    assert float(troupe.get(once, timeout=WITHIN_S)[-1]) == 7.0


@pytest.mark.parametrize("value", [{"small": 1}, np.full(MIB, 3.0)], ids=["small", "large"])
def test_they_load_in_other_processes_of_the_host(keepers: Any, value: Any) -> None:
    maker, reader = keepers
    data = troupe.get(maker.pickled.remote(value), timeout=WITHIN_S)
    by_task = troupe.remote(lambda data: troupe.get(pickle.loads(data), timeout=WITHIN_S))
    for got in (
        troupe.get(pickle.loads(data), timeout=WITHIN_S),
        troupe.get(reader.value_of.remote(data), timeout=WITHIN_S),
        troupe.get(by_task.remote(data), timeout=WITHIN_S),
    ):
        assert np.array_equal(got, value)


def test_a_borrower_keeps_it_too_and_hands_it_on(keepers: Any) -> None:
    borrower, reader = keepers
    ref = troupe.put("kept")
    data = troupe.get(borrower.pickled_ref.remote([ref]), timeout=WITHIN_S)
    del ref
    loaded = pickle.loads(data)["ref"]
    assert troupe.get(reader.value_of.remote(pickle.dumps(loaded)), timeout=WITHIN_S) == "kept"
    assert troupe.get(loaded, timeout=WITHIN_S) == "kept"


def test_a_value_that_is_still_to_come(keepers: Any, tmp_path: Path) -> None:
    maker, reader = keepers
    data = troupe.get(
        maker.pickled_pending.remote(reader, str(tmp_path / "gate")), timeout=WITHIN_S
    )
    ref = pickle.loads(data)
    assert troupe.wait([ref], timeout=0.05) == ([], [ref])
    (tmp_path / "gate").touch()
    assert troupe.get(ref, timeout=WITHIN_S) == "late"


def test_who_pickled_them_is_killed(keepers: Any) -> None:
    maker, reader = keepers
    data = troupe.get(maker.pickled.remote("gone"), timeout=WITHIN_S)
    kept = troupe.get(maker.pickled.remote("kept"), timeout=WITHIN_S)
    loaded = pickle.loads(kept)
    assert troupe.get(loaded, timeout=WITHIN_S) == "kept"
    pid = troupe.get(maker.pid.remote(), timeout=WITHIN_S)
    troupe.kill(maker)
    eventually(lambda: not running(pid), what="the end of the maker")
    with pytest.raises(exceptions.OwnerDiedError):
        troupe.get(pickle.loads(data), timeout=WITHIN_S)
    assert troupe.get(loaded, timeout=WITHIN_S) == "kept", "what was read stays"
    with pytest.raises(exceptions.OwnerDiedError):
        troupe.get(reader.value_of.remote(data), timeout=2 * WITHIN_S)


def test_bytes_that_are_of_no_object_here(keepers: Any) -> None:
    function, (name, host) = troupe.put(1).__reduce__()
    for wrong, error, text in (
        (
            (name, host[:-2] + b"x]"),
            exceptions.ObjectLostError,
            "pickled by its program on another host",
        ),
        ((name[:-1], host), ValueError, "is damaged"),
        ((b"\0" * len(name), host), ValueError, "is damaged"),
    ):
        native._let_go_of_pickled_refs()
        with pytest.raises(error, match=text):
            function(*wrong)
    with pytest.raises(exceptions.ObjectLostError, match="let go of it"):
        function(name, host)
    with pytest.raises(TypeError):
        function("name", "host")


def test_what_a_launch_takes_and_gives_has_no_refs(idle: Home) -> None:
    @distributed(processes=1, remote=True)
    def given(value: Any) -> Any:
        return troupe.put(value)

    with pytest.raises(TypeError, match="a Ref travels only in a value"):
        given.distributed(troupe.put(1))
    with pytest.raises(
        TypeError, match="result of rank 0 .* cannot be pickled: a Ref travels only"
    ):
        given.distributed(1)


def test_shutdown_lets_go_of_them(home: Home) -> None:
    done = home.python("""
import pickle, numpy as np, troupe
from troupe._base.bridge import native
for round in range(2):
    with troupe.init(num_cpus=1):
        data = pickle.dumps(troupe.put(np.zeros(1 << 20)))
        assert native._object_figures()["owned"] == 1, native._object_figures()
        assert troupe.get(pickle.loads(data)).nbytes == 8 << 20
    assert native._object_figures()["owned"] == 0, native._object_figures()
""")
    assert done.returncode == 0, done.stderr
