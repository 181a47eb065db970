"""Large values and refs of tasks that run on another host than their caller.

Method: two workers of this machine that are as two hosts (--force-tcp), tasks pinned to them, this
process as the driver: a third host. Counters of this process's object store say what is held.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import objects
import pytest
import tcp_cuts
from conftest import eventually
from objects import all_released
from tcp_cuts import cut_tcp, port_of

import troupe
from troupe import exceptions
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

np = pytest.importorskip("numpy")
for module in (sys.modules[__name__], objects, tcp_cuts):
    cloudpickle.register_pickle_by_value(module)  # another host would not have these files

MIB = 1 << 20


def task(function: Callable[..., Any], node: str, **options: Any) -> Any:
    return troupe.remote(function).options(
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False), **options
    )


def total(*values: Any) -> int:
    return sum(int(value.astype(np.uint64).sum()) for value in values)


def filled(value: int, size: int) -> Any:
    return np.full(size, value, dtype=np.uint8)


def test_arguments_and_results_of_every_size(hosts: dict[str, str]) -> None:
    sizes = (10, 99 << 10, 150 << 10, 3 * MIB, 40 * MIB)
    for size in sizes:
        array = np.arange(size, dtype=np.uint8)
        assert troupe.get(
            task(total, hosts["a"]).remote(array, troupe.put(array), array[:5]), timeout=60
        ) == (2 * total(array) + total(array[:5]))
        made = troupe.get(task(filled, hosts["b"]).remote(7, size), timeout=60)
        assert made.nbytes == size and (made == 7).all()
    many = [
        task(total, hosts["a"]).remote(*[filled(i, 2 * MIB) for i in range(8)]) for _ in range(4)
    ]
    assert troupe.get(many, timeout=60) == [sum(range(8)) * 2 * MIB] * 4
    del array, made, many
    all_released()


def test_a_result_goes_to_the_next_task_wherever_it_runs(hosts: dict[str, str]) -> None:
    def doubled(array: Any) -> Any:
        return array * 2

    first = task(filled, hosts["a"]).remote(3, 5 * MIB)
    second = task(doubled, hosts["b"]).remote(first)
    third = task(doubled, hosts["a"]).remote(second)
    assert troupe.get(task(total, hosts["b"]).remote(third), timeout=60) == 12 * 5 * MIB
    del first, second, third
    all_released()


def test_refs_inside_values(hosts: dict[str, str]) -> None:
    def sums(held: dict) -> list:
        return [total(troupe.get(ref, timeout=60)) for ref in held["refs"]]

    def makes(size: int) -> dict:
        return {"large": troupe.put(filled(5, size)), "small": troupe.put("small"), "plain": 1}

    refs = [troupe.put(filled(i, size)) for i, size in enumerate((10, 200 << 10, 5 * MIB))]
    expected = [0, 200 << 10, 10 * MIB]
    assert troupe.get(task(sums, hosts["a"]).remote({"refs": refs}), timeout=60) == expected
    assert (
        troupe.get(
            task(sums, hosts["b"]).remote(troupe.put({"refs": refs, "bulk": filled(1, 2 * MIB)})),
            timeout=60,
        )
        == expected
    )
    later = task(filled, hosts["b"]).remote(9, 2 * MIB)
    assert troupe.get(task(sums, hosts["a"]).remote({"refs": [later]}), timeout=60) == [9 * 2 * MIB]
    made = troupe.get(task(makes, hosts["a"]).remote(4 * MIB), timeout=60)
    assert (
        troupe.get(made["small"], timeout=60) == "small"
        and total(troupe.get(made["large"], timeout=60)) == 20 * MIB
    )
    assert troupe.get(task(sums, hosts["b"]).remote({"refs": [made["large"]]}), timeout=60) == [
        20 * MIB
    ], "handed on"
    del refs, later, made
    all_released()


def test_a_function_that_captures_refs(hosts: dict[str, str]) -> None:
    weights = troupe.put(filled(2, 3 * MIB))
    table = troupe.put({"a": 1})

    def uses(key: str) -> tuple:
        return total(troupe.get(weights, timeout=60)), troupe.get(table, timeout=60)[key]

    for node in ("a", "b"):
        assert troupe.get(task(uses, hosts[node]).remote("a"), timeout=60) == (6 * MIB, 1)
    assert troupe.get(troupe.remote(uses).remote("a"), timeout=60) == (6 * MIB, 1)


def test_several_results_and_streams(hosts: dict[str, str]) -> None:
    def pair(size: int) -> tuple:
        return filled(1, size), [troupe.put(filled(2, size))]

    def stream(count: int, size: int) -> Iterator:
        for i in range(count):
            yield filled(i, size)

    one, other = task(pair, hosts["a"], num_returns=2).remote(3 * MIB)
    assert total(troupe.get(one, timeout=60)) == 3 * MIB
    assert total(troupe.get(troupe.get(other, timeout=60)[0], timeout=60)) == 6 * MIB
    items = [
        total(troupe.get(ref, timeout=60)) for ref in task(stream, hosts["b"]).remote(20, 2 * MIB)
    ]
    assert items == [i * 2 * MIB for i in range(20)]
    del one, other
    all_released()


def test_what_a_task_made_outlives_it_while_others_hold_it(hosts: dict[str, str]) -> None:
    def makes() -> list:
        return [troupe.put(filled(4, 2 * MIB)), os.getpid()]

    ref, pid = troupe.get(task(makes, hosts["a"]).remote(), timeout=60)
    assert troupe.get([task(os.getpid, hosts["a"]).remote() for _ in range(20)], timeout=60)
    assert total(troupe.get(ref, timeout=60)) == 8 * MIB
    del ref
    all_released()


def test_a_task_whose_process_is_killed_while_its_result_comes_runs_again(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    def large(folder: str) -> Any:
        with open(os.path.join(folder, "pids"), "a") as file:
            file.write(f"{os.getpid()}\n")
        return filled(6, 300 * MIB)

    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        result = task(large, hosts["a"], max_retries=5).remote(str(folder))
        eventually(
            lambda: (folder / "pids").exists() and (folder / "pids").read_text(), what="the task"
        )
        troupe.wait([result], timeout=0.15 + 0.1 * attempt)
        os.kill(int((folder / "pids").read_text().split()[0]), signal.SIGKILL)
        assert total(troupe.get(result, timeout=120)) == 1800 * MIB
        del result
    lone = task(large, hosts["a"], max_retries=0).remote(str(tmp_path))
    eventually(
        lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text(), what="the task"
    )
    os.kill(int((tmp_path / "pids").read_text()), signal.SIGKILL)
    with pytest.raises((exceptions.ObjectLostError, exceptions.WorkerCrashedError)):
        troupe.get(lone, timeout=60)
    del lone
    all_released()


def test_connections_that_are_cut(hosts: dict[str, str]) -> None:
    port = port_of(hosts["a"])
    array = filled(1, 30 * MIB)
    cuts = 0
    for i in range(4):
        refs = [task(lambda value: value + 1, hosts["a"]).remote(array) for _ in range(2)]
        for _ in range(3):
            troupe.wait(refs, num_returns=2, timeout=0.04 * i)
            cuts += cut_tcp({port})
        assert [total(value) for value in troupe.get(refs, timeout=90)] == [60 * MIB] * 2
    assert cuts != 0
    del refs
    all_released()


def test_a_result_that_nobody_waits_for_is_let_go_of(hosts: dict[str, str]) -> None:
    for _ in range(5):
        task(filled, hosts["a"]).remote(1, 5 * MIB)
    assert troupe.get(task(os.getpid, hosts["a"]).remote(), timeout=60)
    all_released()
