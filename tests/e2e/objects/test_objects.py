"""Large values in shared memory: where arrays come from, who may change them, when memory is used
again."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
from typing import Any

import pytest
from conftest import Home, eventually
from objects import all_released, arrays_of, differing, unaligned

import troupe
from troupe import exceptions
from troupe._base.bridge import native

np = pytest.importorskip("numpy")

MIB = 1 << 20


class Reader:
    """Looks at arrays, keeps some, makes some."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def look(self, array: Any) -> tuple:
        return (
            type(array).__name__,
            array.nbytes,
            int(array[0]),
            int(array[-1]),
            array.flags.writeable,
        )

    def keep(self, name: str, value: Any) -> None:
        self.kept[name] = value

    def drop(self, name: str) -> None:
        self.kept.pop(name, None)

    def sum_of(self, name: str) -> int:
        return int(self.kept[name].astype(np.uint64).sum())

    def make(self, value: int, size: int) -> Any:
        return np.full(size, value, dtype=np.uint8)

    def give(self, name: str) -> Any:
        return self.kept[name]

    def size_of(self, value: Any) -> int:
        return len(value)

    def sizes_of(self, *values: Any) -> list[int]:
        return [len(each) for each in values]

    def several(self, size: int) -> tuple:
        return (
            np.full(size, 1, dtype=np.uint8),
            "small",
            [troupe.put(np.full(size, 3, dtype=np.uint8))],
        )

    def stream(self, count: int, size: int) -> Any:
        for i in range(count):
            yield {"array": np.full(size, i, dtype=np.uint8), "ref": troupe.put(i)}

    def write(self, array: Any) -> str:
        array[0] = 1
        return "written"

    def scale(self, tensor: Any) -> float:
        tensor.mul_(2)
        return float(tensor.sum())

    def unaligned(self, *values: Any) -> list[str]:
        return unaligned(values)

    def figures(self) -> dict:
        return native._object_figures()

    def pid(self) -> int:
        return os.getpid()


def start() -> Any:
    made = troupe.remote(Reader).remote()
    troupe.get(made.pid.remote(), timeout=20)
    return made


def test_what_a_call_was_given_is_let_go_of_though_nobody_wants_its_answer(idle: Home) -> None:
    made = start()
    made.size_of.remote(bytes(MIB))
    made.make.remote(1, MIB)
    assert troupe.get(made.size_of.remote(b""), timeout=20) == 0
    all_released(made)
    troupe.kill(made)


def test_arrays_arrive_read_only_and_are_not_copied(idle: Home) -> None:
    made = start()
    array = np.arange(3 * MIB, dtype=np.uint8)
    assert troupe.get(made.look.remote(array), timeout=20) == ("ndarray", 3 * MIB, 0, 255, False)
    ref = troupe.put(array)
    assert troupe.get(made.look.remote(ref), timeout=20) == ("ndarray", 3 * MIB, 0, 255, False)
    with pytest.raises(ValueError, match="read-only"):
        troupe.get(made.write.remote(ref), timeout=20)
    first, second = troupe.get(ref), troupe.get([ref])[0]
    assert (first == array).all() and not first.flags.writeable
    assert first.__array_interface__["data"][0] == second.__array_interface__["data"][0]
    array[:] = 7  # the caller's own is its own
    assert int(second[1]) == 1
    assert troupe.get(made.figures.remote(), timeout=20)["mapped"] in (1, 2)
    del ref, first, second
    all_released(made)
    troupe.kill(made)


def test_a_small_array_is_a_copy(idle: Home) -> None:
    made = start()
    assert troupe.get(made.write.remote(np.zeros(1000, dtype=np.uint8)), timeout=20) == "written"
    assert native._object_figures()["owned"] == 0
    troupe.kill(made)


def test_results_are_not_copied_and_outlive_their_actor(idle: Home) -> None:
    made = start()
    ref = made.make.remote(5, 4 * MIB)
    array = troupe.get(ref, timeout=20)
    assert array.nbytes == 4 * MIB and (array == 5).all() and not array.flags.writeable
    assert troupe.get(ref).__array_interface__["data"][0] == array.__array_interface__["data"][0]
    ready, _ = troupe.wait([other := made.make.remote(6, 20 * MIB)], timeout=20)
    assert ready == [other]
    os.kill(troupe.get(made.pid.remote(), timeout=20), signal.SIGKILL)
    with pytest.raises(exceptions.ActorError):
        troupe.get(made.pid.remote(), timeout=20)
    assert (troupe.get(other, timeout=20) == 6).all()
    assert (array == 5).all()
    reader = start()  # and can be handed on by its owner
    assert troupe.get(reader.look.remote(other), timeout=20) == ("ndarray", 20 * MIB, 6, 6, False)
    del ref, other, ready, array
    all_released(reader)
    eventually(lambda: native._object_figures()["mapped"] == 0, what="the end of the mappings")
    troupe.kill(reader)


def test_what_is_kept_is_never_rewritten(idle: Home) -> None:
    made = start()
    size = 2 * MIB
    troupe.get(made.keep.remote("a", np.full(size, 3, dtype=np.uint8)), timeout=20)
    made_before = native._object_figures()["pool_made"]
    for i in range(30):
        assert (
            troupe.get(made.look.remote(np.full(size, 100 + i, dtype=np.uint8)), timeout=20)[2]
            == 100 + i
        )
        eventually(
            lambda: native._object_figures()["pool_in_use"] == 1, what="the release of the argument"
        )
    assert troupe.get(made.sum_of.remote("a"), timeout=20) == 3 * size
    assert native._object_figures()["pool_made"] <= made_before + 3  # reuses its memory
    troupe.get(made.drop.remote("a"), timeout=20)
    all_released(made)
    troupe.kill(made)


def test_large_arguments_of_the_first_calls(idle: Home) -> None:
    made = troupe.remote(Reader).remote()
    refs = [made.look.remote(np.full(size, 9, dtype=np.uint8)) for size in (MIB, 3 * MIB, 40 * MIB)]
    assert [each[1:3] for each in troupe.get(refs, timeout=30)] == [
        (MIB, 9),
        (3 * MIB, 9),
        (40 * MIB, 9),
    ]
    early = troupe.remote(Reader).remote()  # the fits into the frame, the other does not
    assert (
        troupe.get(early.sizes_of.remote(b"x" * (12 * MIB), b"y" * (12 * MIB)), timeout=30)
        == [12 * MIB] * 2
    )
    troupe.kill(early)
    assert troupe.get(made.size_of.remote(b"x" * (30 * MIB)), timeout=20) == 30 * MIB
    assert troupe.get(made.size_of.remote("y" * (20 * MIB)), timeout=20) == 20 * MIB
    assert troupe.get(made.size_of.remote(list(range(200_000))), timeout=20) == 200_000
    all_released(made)
    troupe.kill(made)


def test_values_of_many_arrays(idle: Home) -> None:
    made = start()
    rng = np.random.default_rng(1)
    value = {
        "a": rng.random((300, 400)),
        "b": [np.asfortranarray(rng.random((200, 500))), "text"],
        "c": np.arange(10),
        "d": np.zeros((0, 3)),
        "e": rng.random((600, 600))[::2],
    }
    troupe.get(made.keep.remote("v", value), timeout=20)
    for got in (troupe.get(troupe.put(value)), troupe.get(made.give.remote("v"), timeout=20)):
        assert (got["a"] == value["a"]).all() and (got["b"][0] == value["b"][0]).all()
        assert got["b"][0].flags.f_contiguous and got["b"][1] == "text"
        assert (
            (got["c"] == value["c"]).all()
            and got["d"].shape == (0, 3)
            and (got["e"] == value["e"]).all()
        )
        assert got["a"].__array_interface__["data"][0] % 64 == 0
    troupe.get(made.drop.remote("v"), timeout=20)
    del got
    all_released(made)
    troupe.kill(made)


def same(value: Any) -> Any:
    return value


@pytest.mark.parametrize("size", [1 << 10, 4 << 10, 48 << 10, 100 << 10, MIB])
def test_arrays_start_on_64_bytes_whatever_way_they_came(idle: Home, size: int) -> None:
    pytest.importorskip("torch")
    made, arrays = start(), arrays_of(size)
    value = {"arrays": arrays, "list": [b"x", arrays_of(size)]}
    assert troupe.get(made.unaligned.remote(value, *arrays.values()), timeout=60) == []
    troupe.get(made.keep.remote("v", value), timeout=60)
    ways = {
        "put": troupe.put(value),
        "result": made.give.remote("v"),
        "task": troupe.remote(same).remote(value),
        "with code": troupe.remote(same).remote((value, lambda: 0)),
        "captured": troupe.remote(lambda: value).remote(),
    }
    ways.update({name: troupe.put(each) for name, each in arrays.items()})
    for way, got in zip(ways, troupe.get(list(ways.values()), timeout=120)):
        assert unaligned(got) == [], way
        assert (
            way in arrays
            or differing((got[0] if way == "with code" else got)["arrays"], arrays) == []
        ), way
        if way == "put":
            shared = {
                name
                for name, each in got["arrays"].items()
                if isinstance(each, np.ndarray) and not each.flags.writeable
            }
            copied = {
                "dates",
                "every other",
                "turned",
                "records",
            }  # numpy's pickles hold copies of these
            assert shared == (
                set() if size < 100 << 10 else {"float64", "bool", "fortran", "text", "structured"}
            )
            assert all(got["arrays"][name].flags.writeable for name in copied)
    del ways, got
    troupe.get(made.drop.remote("v"), timeout=20)
    all_released(made)
    troupe.kill(made)


class Tagged(np.ndarray):
    """An array that pickles itself, with its tag."""

    def __reduce__(self) -> tuple:
        kind, given, state = super().__reduce__()
        return kind, given, (*state, self.tag)

    def __setstate__(self, state: tuple) -> None:
        super().__setstate__(state[:-1])
        self.tag = state[-1]


def test_arrays_that_somebody_else_pickles_stay_as_they_are(idle: Home) -> None:
    tagged = np.arange(1000.0).view(Tagged)
    tagged.tag = "mine"
    got = troupe.get(
        troupe.put([tagged, np.array([{}] * 1000), np.ma.masked_less(np.arange(1000), 5)])
    )
    assert type(got[0]) is Tagged and got[0].tag == "mine" and (got[0] == tagged).all()
    assert got[1].dtype == object and got[2].mask.sum() == 5
    troupe.util.register_serializer(np.ndarray, serializer=len, deserializer=str)
    try:
        assert troupe.get(troupe.put(np.arange(1000.0))) == "1000"
        assert troupe.get(troupe.put([np.arange(1000.0), lambda: 0]))[0] == "1000"
    finally:
        troupe.util.deregister_serializer(np.ndarray)
    assert troupe.get(troupe.put(np.arange(1000.0))).sum() == 499500


def test_several_results_and_streamed_ones_are_not_copied(idle: Home) -> None:
    made = start()
    first, second, third = made.several.options(num_returns=3).remote(
        20 * MIB
    )  # more than a frame takes
    array = troupe.get(first, timeout=30)
    assert array.nbytes == 20 * MIB and not array.flags.writeable and (array == 1).all()
    assert troupe.get(first).__array_interface__["data"][0] == array.__array_interface__["data"][0]
    assert troupe.get(second, timeout=30) == "small"
    assert int(troupe.get(troupe.get(third, timeout=30)[0], timeout=30)[-1]) == 3
    other = start()
    assert troupe.get(other.look.remote(first), timeout=30) == ("ndarray", 20 * MIB, 1, 1, False)
    del first, second, third, array
    for i, ref in enumerate(made.stream.options(num_returns="streaming").remote(12, 20 * MIB)):
        got = troupe.get(ref, timeout=30)
        assert (
            got["array"].nbytes == 20 * MIB
            and int(got["array"][-1]) == i
            and troupe.get(got["ref"], timeout=30) == i
        )
    del ref, got
    all_released(made, other)
    assert troupe.get(made.figures.remote(), timeout=20)["pool_made"] < 12, (
        "it waits for who takes them"
    )
    begun = made.stream.options(num_returns="streaming").remote(6, MIB)
    troupe.get(next(begun), timeout=30)
    del begun  # untaken results are given back
    all_released(made)
    troupe.kill(made)
    troupe.kill(other)


def test_tensors_are_private_views(idle: Home) -> None:
    torch = pytest.importorskip("torch")
    made = start()
    tensor = torch.ones(1 << 18)
    ref = troupe.put(
        {"weights": tensor, "tied": tensor, "bf16": torch.ones(1 << 17, dtype=torch.bfloat16)}
    )
    first, second = troupe.get(ref), troupe.get(ref)
    first["weights"].mul_(3)
    assert float(first["tied"][5]) == 3.0, "what shared its memory does"
    assert float(second["weights"][5]) == 1.0 and first["bf16"].dtype is torch.bfloat16
    assert troupe.get(made.scale.remote(tensor), timeout=20) == 2.0 * (1 << 18)
    assert float(tensor.sum()) == 1 << 18
    grad = torch.nn.Parameter(torch.ones(1 << 18))
    assert troupe.get(troupe.put(grad)).requires_grad
    del ref, first, second
    all_released(made)
    troupe.kill(made)


def test_the_owner_of_a_kept_argument_is_killed(idle: Home) -> None:
    class Owner:
        def pass_on(self, reader: Any) -> None:
            troupe.get(
                reader.keep.remote("theirs", np.full(8 * MIB, 4, dtype=np.uint8)), timeout=20
            )

        def pid(self) -> int:
            return os.getpid()

    reader, owner = start(), troupe.remote(Owner).remote()
    troupe.get(owner.pass_on.remote(reader), timeout=20)
    os.kill(troupe.get(owner.pid.remote(), timeout=20), signal.SIGKILL)
    with pytest.raises(exceptions.ActorError):
        troupe.get(owner.pid.remote(), timeout=20)
    assert troupe.get(reader.sum_of.remote("theirs"), timeout=20) == 4 * 8 * MIB
    troupe.get(reader.drop.remote("theirs"), timeout=20)
    all_released(reader)
    eventually(
        lambda: troupe.get(reader.figures.remote(), timeout=20)["mapped"] == 0,
        what="the end of the mappings",
    )
    troupe.kill(reader)


def test_a_killed_reader_leaves_nothing(idle: Home) -> None:
    made = start()
    ref = troupe.put(np.full(8 * MIB, 8, dtype=np.uint8))
    troupe.get(made.keep.remote("it", ref), timeout=20)
    before = native._object_figures()["pool_segments"]
    os.kill(troupe.get(made.pid.remote(), timeout=20), signal.SIGKILL)
    with pytest.raises(exceptions.ActorError):
        troupe.get(made.pid.remote(), timeout=20)
    assert (troupe.get(ref) == 8).all()
    del ref
    all_released()
    # A dead reader may have forked: its memory is given up, not used again.
    eventually(
        lambda: native._object_figures()["pool_segments"] == before - 1,
        what="the end of the segment",
    )


def test_a_forked_child_reads_on(idle: Home) -> None:
    ref = troupe.put(np.full(2 * MIB, 2, dtype=np.uint8))
    array = troupe.get(ref)
    go_read, go_write = os.pipe()
    done_read, done_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(go_read, 1)
        os.write(done_write, b"good" if int(array.astype(np.uint64).sum()) == 4 * MIB else b"bad!")
        os._exit(0)
    del array, ref
    for i in range(20):  # would be written where it was, were there no child
        troupe.put(np.full(2 * MIB, 50 + i, dtype=np.uint8))
    os.write(go_write, b"x")
    assert os.read(done_read, 4) == b"good"
    os.waitpid(child, 0)
    for fd in (go_read, go_write, done_read, done_write):
        os.close(fd)
    all_released()


def object_socket() -> bytes:
    """The abstract socket at which other processes reach this one's objects."""
    inodes = {
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.lexists(f"/proc/self/fd/{fd}")
    }
    with open("/proc/net/unix") as lines:
        for line in lines:
            words = line.split()
            if (
                len(words) == 8
                and words[7].startswith("@troupe-objects-")
                and f"socket:[{words[6]}]" in inodes
            ):
                return b"\0" + words[7][1:].encode()
    raise AssertionError("this process listens for no objects")


def test_hostile_links_harm_nobody(idle: Home) -> None:
    made = start()
    ref = troupe.put(np.full(MIB, 1, dtype=np.uint8))
    hello = struct.pack("<HBBHHII", 0x5254, 1, 5, 1, 0, 48, 0) + os.urandom(48)
    attacks = [
        b"",
        b"x" * 100,
        os.urandom(65536),
        hello,
        hello[:30],
        hello + hello,
        struct.pack("<HBBHHII", 0x5254, 2, 4, 1, 0, 0xFFFFFFF8, 0) + bytes(16),
        hello[:4] + b"\3\0" + hello[6:],
    ]
    for attack in attacks:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(20)
            link.connect(object_socket())
            link.sendall(attack)
            link.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while link.recv(65536):
                    pass
    with socket.socket(socket.AF_UNIX) as link:  # descriptors that nobody asked for
        link.settimeout(20)
        link.connect(object_socket())
        with open("/dev/null") as null, contextlib.suppress(ConnectionError):
            for _ in range(100):
                socket.send_fds(link, [hello[:1]], [null.fileno()])
            while link.recv(65536):
                pass
    assert troupe.get(made.look.remote(ref), timeout=20)[2] == 1
    del ref
    all_released(made)
    troupe.kill(made)
