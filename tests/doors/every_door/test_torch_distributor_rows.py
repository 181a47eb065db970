"""Rows of docs/coming/torch_distributor.md: behaviour of pyspark's TorchDistributor that needs a
cluster of several hosts, and for each of all rows the tests that hold it.

Method: two nodes that are as other hosts; ranks without GPUs say what they have.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from submits import project, torchrun_in

from troupe.spark import DeepspeedTorchDistributor, TorchDistributor

cloudpickle.register_pickle_by_value(sys.modules[__name__])
DOORS = Path(__file__).resolve().parents[1]
NAMES = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
)

# Each row of what pyspark does -> the tests that hold what is done here: FILE::TEST, below
# tests/doors.
ALL, GPUS, ALONE, HERE = (
    "test_torch_distributor.py",
    "test_torch_distributor_gpus.py",
    "test_torch_distributor_alone.py",
    "every_door/test_torch_distributor_rows.py",
)
ROWS = {
    "tasks and GPUs": [
        f"{GPUS}::test_b3_a_gpu_for_each_rank_over_the_nodes",
        f"{ALONE}::test_b3_gpus_of_this_machine",
        f"{ALONE}::test_use_gpu_without_gpus_names_the_machine_and_what_to_do",
        f"{GPUS}::test_more_gpus_than_the_cluster_has_are_refused",
    ],
    "arguments": [
        f"{ALL}::test_num_processes_that_are_none_are_a_value_error",
        f"{ALL}::test_num_processes_that_are_no_number_are_a_type_error",
    ],
    "encryption": [f"{HERE}::test_row_encryption"],
    "file mode": [
        f"{ALL}::test_b2_a_file_runs_as_torchrun_starts_it",
        f"{ALL}::test_a_file_takes_no_keywords_and_may_be_a_path",
        f"{HERE}::test_row_ranks",
    ],
    "function mode": [
        f"{ALL}::test_b1_a_function_returns_rank_0s_output",
        f"{ALL}::test_the_functions_processes_have_no_arguments_of_the_program",
    ],
    "output": [
        f"{ALL}::test_the_output_is_rank_0s_and_not_the_last_writers",
        f"{HERE}::test_row_output",
    ],
    "its way": [
        f"{ALL}::test_outputs_of_any_size_and_callables_of_any_kind",
        f"{HERE}::test_row_output",
    ],
    "an output that cannot be pickled, or that is missing": [
        f"{ALL}::test_an_output_that_cannot_travel",
        f"{ALL}::test_a_rank_that_ends_without_an_output",
    ],
    "ranks": [
        f"{HERE}::test_row_ranks",
        f"{GPUS}::test_b6_deepspeed_has_as_many_ranks_on_each_node",
    ],
    "address and port": [f"{HERE}::test_row_address_and_port"],
    "whose GPU": [f"{GPUS}::test_b3_what_one_run_has_no_other_is_given"],
    "CPUs": [f"{GPUS}::test_more_ranks_than_the_machine_has_cpus_share_them"],
    "backend": [f"{ALL}::test_b1_a_function_returns_rank_0s_output"],
    "NCCL's interface": [
        "networks/test_interface_words.py::test_b5_nccl_names_hosts_interfaces_and_the_remedy"
    ],
    "logs": [f"{HERE}::test_row_logs"],
    "errors": [
        f"{ALL}::test_b2_a_failure_has_the_last_100_lines",
        f"{ALL}::test_a_functions_exception_is_a_runtime_error_and_its_own_type",
    ],
    "the caller dies": [
        f"{ALONE}::test_a_caller_that_is_killed_takes_its_ranks_along",
        f"{ALONE}::test_a_caller_that_is_killed_takes_its_ranks_of_a_cluster_along",
    ],
    "a node is lost": ["every_door/test_torch_distributor_lost_node.py::test_row_a_node_is_lost"],
    "Ctrl-C": [f"{ALONE}::test_ctrl_c_stops_the_ranks"],
    "`useGpu=False` of DeepSpeed": [
        f"{ALL}::test_b6_deepspeeds_options_in_function_mode",
        f"{ALL}::test_b6_deepspeeds_options_in_file_mode",
    ],
    "`_train_on_dataframe` (private)": [f"{ALL}::test_a_dataframe_is_refused_with_what_to_use"],
}
WITHOUT = {"Spark Connect, restarts, `spark.*`"}  # there is nothing to hold


def test_each_row_of_the_page_has_its_tests() -> None:
    """The page's table and this one have the same rows, and each test that is named is there."""
    page = (DOORS.parents[1] / "docs/coming/torch_distributor.md").read_text()
    table = page[page.index("## What differs, row by row") :].split("\n\n")[1]
    assert {line.split("|")[1].strip() for line in table.splitlines()[2:]} - WITHOUT == set(ROWS)
    for tests in ROWS.values():
        for file, _, name in (each.partition("::") for each in tests):
            assert re.search(rf"^def {name}\(", (DOORS / file).read_text(), re.MULTILINE), (
                file,
                name,
            )


def spread(per_node: int = 2) -> DeepspeedTorchDistributor:
    """As many ranks on each of both nodes: what TorchDistributor has no argument for."""
    return DeepspeedTorchDistributor(numGpus=per_node, nnodes=2, localMode=False, useGpu=False)


def variables() -> list[dict[str, str]]:
    """Return the variables of all ranks, in order."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, {name: os.environ[name] for name in NAMES})
    return found


def test_row_encryption(hosts: dict[str, str]) -> None:
    """The setting is taken; nothing is refused, for Troupe's own connections between these nodes
    are TLS."""
    assert (
        TorchDistributor(2, False, False, _ssl_conf="pytorch.spark.distributor.ignoreSsl").run(
            lambda: os.environ["WORLD_SIZE"]
        )
        == "2"
    )


def test_row_address_and_port(hosts: dict[str, str]) -> None:
    """All ranks have the address of one store that is there before any of them."""
    found = spread().run(variables)
    assert len({(each["MASTER_ADDR"], each["MASTER_PORT"]) for each in found}) == 1 and {
        each["WORLD_SIZE"] for each in found
    } == {"4"}


@pytest.mark.long
def test_row_ranks(hosts: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    """Functions and files over two nodes get the numbers that torchrun over two nodes gives."""
    numbers = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")
    says = (
        "import json, os, sys\nsys.stdout.write(json.dumps([os.environ[name] for name in "
        f"{numbers!r}]) + '\\n')\n"
    )
    folder = project(tmp_path / "w", says=says)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with ThreadPoolExecutor(2) as agents:
        ends = list(
            agents.map(
                lambda node: torchrun_in(
                    folder,
                    "--nnodes=2",
                    f"--node_rank={node}",
                    "--nproc_per_node=2",
                    "--master_addr=127.0.0.1",
                    f"--master_port={port}",
                    "says.py",
                ),
                range(2),
            )
        )
    expected = sorted(json.loads(line) for done in ends for line in done.stdout.splitlines())
    assert len(expected) == 4, [done.stderr for done in ends]
    assert [[each[name] for name in numbers] for each in spread().run(variables)] == expected
    capfd.readouterr()
    spread().run(str(folder / "says.py"))
    assert (
        sorted(
            json.loads(line[4:])
            for line in capfd.readouterr().out.splitlines()
            if line.startswith("[")
        )
        == expected
    )


def test_row_output(hosts: dict[str, str]) -> None:
    """Rank 0's, from whichever host, however large; of the others nothing is pickled."""

    def train() -> Any:
        return "success" * 100_000 if os.environ["RANK"] == "0" else open(os.devnull)

    assert spread(1).run(train) == "success" * 100_000


def test_row_logs(hosts: dict[str, str], capfd: pytest.CaptureFixture) -> None:
    """All lines of all ranks, none cut, in their order, each stream to its own."""

    def train() -> None:
        for number in range(300):
            sys.stdout.write(f"line {number} {'x' * (10_000 if number == 7 else 1)}\n")
        sys.stderr.write("to stderr\n")

    capfd.readouterr()
    spread(1).run(train)
    out, err = capfd.readouterr()
    for rank in ("0", "1"):
        lines = [line for line in out.splitlines() if line.startswith(f"[{rank}] line ")]
        assert lines == [
            f"[{rank}] line {number} {'x' * (10_000 if number == 7 else 1)}"
            for number in range(300)
        ]
        assert f"[{rank}] to stderr" in err and "to stderr" not in out
