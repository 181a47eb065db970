# Method: the checks in this process, of facts that are written down; then `troupe doctor` in a
#     process of its own, on a cluster of two workers, and under a limit that is too low.
from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from e2e_conftest import TIMEOUT_S, Home

from troupe.cli.operation import _cluster_checks, _machine_checks
from troupe.cli.operation._cluster_checks import HERE, NodeReport
from troupe.cli.operation._machine_checks import Level
from troupe.cli.operation._machine_facts import MachineFacts, Space

GOOD = MachineFacts(
    "m",
    uid=1000,
    cpus=64,
    versions={"Python": "3.11.2", "troupe": "1.0", "torch": "2.11.0", "NCCL": "2.28.9"},
    open_files_max=65536,
    user_processes_max=30000,
    shared_memory=Space(32 << 30, 30 << 30),
    home="/h",
    home_space=Space(1 << 40, 1 << 39),
    clock_synchronized=True,
    dynamic_ports=(32768, 60999),
    gpu_devices=8,
    gpu_driver="580.65.06",
    driver_cuda=13000,
    torch_cuda="13.0",
    interfaces=("lo", "eth0", "ib0"),
    rdma_active=("mlx5_0:1",),
    nccl_variables={"NCCL_SOCKET_IFNAME": "eth"},
)
WRONG = {
    "python": ({"python": (3, 14)}, Level.ERROR, "3.14"),
    "programs": ({"missing_programs": ("troupe-head",)}, Level.ERROR, "troupe-head"),
    "open_files": ({"open_files_max": 1024}, Level.WARNING, "may need 2304"),
    "user_processes": ({"user_processes": 29900}, Level.WARNING, "29900 are there"),
    "group_processes": (
        {"group_processes_max": 100, "group_processes": 90},
        Level.ERROR,
        "control group may have 100",
    ),
    "shared_memory": ({"shared_memory": Space(64 << 20, 64 << 20)}, Level.WARNING, "has 64 MiB"),
    "home": ({"home_error": "no\n  do this"}, Level.ERROR, "no"),
    "clock": ({"clock_synchronized": False}, Level.WARNING, "nothing keeps the clock right"),
    "port": ({"dynamic_ports": (1024, 65535)}, Level.WARNING, "1024 to 65535"),
    "gpus": ({"driver_cuda": 0}, Level.ERROR, "libcuda.so.1 cannot be loaded"),
    "cuda": ({"driver_cuda": 12040}, Level.ERROR, "runs CUDA 12.4 at most"),
    "interface": (
        {"nccl_variables": {"NCCL_SOCKET_IFNAME": "=eth"}},
        Level.ERROR,
        "names no interface",
    ),
    "rdma": ({"locked_memory_max": 8 << 20}, Level.ERROR, "lock 8 MiB"),
}


def test_a_machine_that_is_as_it_should_be_has_no_findings() -> None:
    assert _machine_checks.check_machine(GOOD) == []
    assert WRONG.keys() == _machine_checks.CHECKS.keys(), "each check is tried"


@pytest.mark.parametrize("check", sorted(WRONG))
def test_each_check_finds_its_fault_and_has_a_remedy(check: str) -> None:
    facts, level, said = WRONG[check]
    (found,) = _machine_checks.check_machine(replace(GOOD, **facts))
    assert (found.check, found.level, found.where) == (check, level, "m")
    assert said in found.what and found.remedy


@pytest.mark.parametrize(
    "facts",
    [
        {"open_files_max": None, "user_processes_max": None},
        {"uid": 0, "user_processes_max": 10},
        {"clock_synchronized": None, "dynamic_ports": None},
        {"nccl_variables": {"NCCL_SOCKET_IFNAME": "^docker0", "GLOO_SOCKET_IFNAME": "ib0"}},
        {"gpu_devices": 0, "gpu_driver": "", "driver_cuda": 0},
    ],
    ids=range(5),
)
def test_what_is_unlimited_unknown_or_not_there_is_no_finding(facts: dict) -> None:
    assert _machine_checks.check_machine(replace(GOOD, **facts)) == []


def _node(name: str, **fields: object) -> NodeReport:
    report = NodeReport(name, (f"10.0.0.{name}", 7), facts=GOOD)
    return replace(report, **fields)  # type: ignore[arg-type]


def test_nodes_that_reach_each_other_and_are_alike_have_no_findings() -> None:
    nodes = [_node("1", reached={"2": ""}), _node("2", reached={"1": ""}, clock_ahead_s=0.5)]
    assert _cluster_checks.check_cluster(nodes, GOOD, {"1": "", "2": ""}) == []


def test_what_differs_or_is_not_reached_is_found_with_the_way_that_works() -> None:
    other = replace(GOOD, versions={**GOOD.versions, "torch": "2.10.0"}, gpu_driver="570.1")
    nodes = [
        _node("1", reached={"2": "timed out", "3": ""}),
        _node("2", reached={"1": "", "3": ""}, facts=other),
        _node("3", reached={"1": "", "2": "timed out"}, clock_ahead_s=-9.0, clock_error_s=0.5),
        _node("4", state="suspect", why="silent", facts=None),
        _node("5", silence="no answer", facts=None),
        _node("6", clock_ahead_s=9.0, clock_error_s=8.0),
    ]
    found = _cluster_checks.check_cluster(nodes, GOOD, {"2": "No route to host"})
    seen = {(each.check, each.where): each for each in found}
    assert list(seen) == [
        ("node_state", "4"),
        ("node_answers", "5"),
        ("reachability", "2"),
        ("clocks", "3"),
        ("versions", "cluster"),
    ]
    said = [each.what for each in found]
    assert f"{HERE} cannot connect to 10.0.0.2:7: No route to host" in said
    assert "1, 3 cannot connect to 10.0.0.2:7: timed out; the other way works for 1, 3" in said, (
        said
    )
    assert "its clock is 9.0 s behind the one here" in said
    assert f"torch differs: 2.11.0: {HERE}, 1, 3, 6; 2.10.0: 2" in said
    assert sum("driver differs" in each for each in said) == 1
    assert all(each.remedy for each in found)


@pytest.mark.parametrize("count", [2, 17, 100])
def test_each_pair_that_is_tried_is_tried_both_ways(count: int) -> None:
    nodes = [(str(each), "h", 1) for each in range(count)]
    tried = {
        (number, int(name))
        for number in range(count)
        for name, *_ in _cluster_checks.targets_of(number, nodes)
    }
    assert {(there, here) for here, there in tried} == tried
    assert not any(here == there for here, there in tried)
    assert len(tried) == count * min(count - 1, 2 * _cluster_checks.NEIGHBOURS)


def test_doctor_asks_each_node_and_says_which_limit_is_low(
    shared_home: Home, hosts: dict[str, str]
) -> None:
    done = shared_home.run("doctor", "--json", ok=False, timeout=3 * TIMEOUT_S)
    told = json.loads(done.stdout)
    assert done.returncode == any(each["level"] == "error" for each in told["findings"])
    assert {each["name"]: each["reached"] for each in told["nodes"]} == {
        "a": {"b": ""},
        "b": {"a": ""},
    }
    for each in told["nodes"]:
        assert not each["silence"] and each["facts"]["host"] == told["here"]["host"]
        assert each["facts"]["versions"]["troupe"] == told["here"]["versions"]["troupe"]
    assert not {each["check"] for each in told["findings"]} & {"reachability", "clocks", "versions"}
    low = subprocess.run(
        ["sh", "-c", f'ulimit -n 200; exec "{sys.executable}" -m troupe doctor --local'],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert "may have 200 open files" in low.stdout and "ulimit -n 65536" in low.stdout, low.stderr
