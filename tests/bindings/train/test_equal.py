"""Digests of tensors, and whose are not those of most."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from troupe import train  # noqa: E402
from troupe.train import _digest, _equal  # noqa: E402

MASK = (1 << 64) - 1


def plain(data: bytes, count: int) -> int:
    """As the digest is defined, one word after the other."""
    found = count
    data += bytes(-len(data) % 4)
    for place in range(len(data) // 4):
        word = int.from_bytes(data[4 * place : 4 * place + 4], "little", signed=True)
        word = (word + (place + 1) * 0x9E3779B97F4A7C15) & MASK
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
        found = (found + (word ^ (word >> 31))) & MASK
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "int64", "bool"])
def test_a_digest_is_as_defined_whatever_the_type_and_however_it_is_cut(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    for count in (0, 1, 3, 257):
        tensor = (torch.randn(count) * 50).to(getattr(torch, dtype))
        data = bytes(tensor.view(torch.uint8).tolist()) if count else b""
        for at_once in (1 << 22, 7):
            monkeypatch.setattr(_digest, "_AT_ONCE", at_once)
            assert int(_digest.of(tensor)) & MASK == plain(data, count)


def test_a_bit_and_two_values_that_changed_places_are_found() -> None:
    values = torch.arange(1000, dtype=torch.float32)
    other, swapped = values.clone(), values.clone()
    other.view(torch.int32)[77] ^= 1
    swapped[3], swapped[4] = 4.0, 3.0
    assert len({int(_digest.of(each)) for each in (values, other, swapped)}) == 3
    assert int(_digest.of(values.reshape(10, 100).t().contiguous().t())) == int(
        _digest.of(values)
    ), "memory's order is not looked at"


@pytest.mark.parametrize(
    ("digests", "ranks"),
    [
        ([5, 5, 5], []),
        ([5, 6, 5], [1]),
        ([6, 5, 5], [0]),
        ([5, 6], [1]),
        ([1, 2, 3, 3], [0, 1]),
        ([1, 2, 2, 1], [1, 2]),
    ],
)
def test_those_that_are_not_as_most_are_named(digests: list[int], ranks: list[int]) -> None:
    assert _equal.outliers(digests) == ranks


FAKE_CUDA = """
import time
import torch
from troupe import _native
from troupe.train import _digest

for count in (1, 3, 1000, 1_000_003):
    held = torch.arange(count, dtype=torch.int16).view(torch.uint8)[:count]
    sum = torch.full((), 5, dtype=torch.int64)
    _native.device_digest(sum.data_ptr(), held.data_ptr(), count, 0, 0)
    expected, deadline = int(_digest.by_torch(held, 5)), time.monotonic() + 60
    while int(sum) != expected:  # the fake's stream is a thread
        assert time.monotonic() < deadline, (count, int(sum), expected)
try:
    _native.device_digest(sum.data_ptr(), held.data_ptr() + 1, 4, 0, 0)
except Exception as error:
    print(type(error).__name__, error)
"""


def test_the_kernel_of_gpus_finds_what_torchs_operations_find() -> None:
    """The PTX is run by the fake CUDA of tests/fakes, whose devices' memory is the host's."""
    fake = Path(os.environ["TROUPE_BIN_DIR"]).parent / "tests/fakes/cuda/libcuda.so.1"
    assert fake.exists(), "ninja -C build/dev fakes"
    done = subprocess.run(
        [sys.executable, "-c", FAKE_CUDA],
        env={**os.environ, "TROUPE_CUDA_LIB": str(fake)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "a multiple of 4 bytes" in done.stdout


def test_a_machine_without_a_driver_is_said() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from troupe import _native\n_native.device_digest(8, 8, 8, 0, 0)"],
        env={**os.environ, "TROUPE_CUDA_LIB": "/nowhere/libcuda.so.1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1 and "comes with NVIDIA's driver" in done.stderr, done.stderr


def test_a_digest_is_of_bytes_in_the_order_of_elements() -> None:
    values = torch.arange(12, dtype=torch.float32)
    assert (
        train.digest(values)
        == train.digest(values.reshape(3, 4))
        == plain(bytes(values.view(torch.uint8).tolist()), 12)
    )
    assert train.digest(values.reshape(3, 4).t()) != train.digest(values)
    with pytest.raises(TypeError, match="takes a torch.Tensor, not list"):
        train.digest([1.0])  # type: ignore[arg-type]


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(RuntimeError, match="init_process_group"):
        _equal.check_equal(torch.nn.Linear(1, 1))
