"""Command jobs with the MPI distribution: processes of a real mpirun on two nodes, without ssh.

Method: two workers by --force-tcp, so that mpirun's daemon on the second is started by the launch;
shell lines that say what they have.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from azure_jobs import LIMIT_S, folder_of, needs_mpirun, ran, run
from e2e_conftest import Home, eventually

from troupe import exceptions
from troupe.azure import Input, MLClient, MpiDistribution, _members, _mpi, command

TWO = {"instance_count": 2, "distribution": MpiDistribution(process_count_per_instance=2)}


def test_c3_mpiruns_words_and_the_variables_of_its_processes() -> None:
    words = _mpi.line("python agent.py", ["vm", "b"], 4, "eth1")
    assert (
        words[0] == "mpirun"
        and words[words.index("--host") + 1] == "vm:4,b:4"
        and words[words.index("-np") + 1] == "8"
    )
    assert (
        words[words.index("oob_tcp_if_include") + 1]
        == words[words.index("btl_tcp_if_include") + 1]
        == "eth1"
    )
    assert "oob_tcp_if_include" not in _mpi.line("a", ["vm"], 1, "")
    assert _members.host_names("vm", ["a", "vm", "b c", "b c"]) == ["vm", "vm-1", "b-c", "b-c-3"]
    now = {
        "RANK": "0",
        "MASTER_PORT": "1",
        "SLURM_PROCID": "0",
        "PMIX_RANK": "0",
        "OMPI_MCA_btl": "tcp",
        "HOME": "/h",
    }
    assert _mpi.environment(now, root=False, master="10.0.0.1:2") == {
        "OMPI_MCA_btl": "tcp",
        "HOME": "/h",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "2",
        "AZ_BATCH_MASTER_NODE": "10.0.0.1:2",
        "AZ_BATCHAI_MPI_MASTER_NODE": "10.0.0.1",
    }
    assert (
        _mpi.environment({}, root=True, master="[::1]:2")["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"
    )


@needs_mpirun
def test_c3_processes_of_mpirun_on_each_node(hosts: dict[str, str], tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "src", **{"a.txt": "code"})
    data = folder_of(tmp_path / "data", **{"b.txt": "input"})
    line = (
        "echo $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE "
        "$OMPI_COMM_WORLD_LOCAL_RANK/$OMPI_COMM_WORLD_LOCAL_SIZE "
        "$RANK $WORLD_SIZE $LOCAL_RANK ${MASTER_PORT:+port} $(cat a.txt ${{inputs.data}}/b.txt) "
        "$SAID $AZUREML_NODE_COUNT"
    )
    lines = ran(
        code=str(folder),
        command=line,
        inputs={"data": Input(path=str(data))},
        environment_variables={"SAID": "said"},
        **TWO,
    )
    assert lines == [
        f"{rank}/4 {rank % 2}/2 {rank} 4 {rank % 2} port codeinput said 2" for rank in range(4)
    ], lines


@needs_mpirun
@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
def test_c3_mpi4py_over_two_nodes(hosts: dict[str, str]) -> None:
    # A line in one write: mpirun passes on what each process writes as it comes, and print() writes
    # twice where PYTHONUNBUFFERED is set.
    line = (
        "python -c 'from mpi4py import MPI; import sys; "
        'sys.stdout.write(f"{MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank)}\\n")\''
    )
    assert ran(command=line, **TWO) == ["6"] * 4


@needs_mpirun
def test_c6_outputs_of_each_node_under_mpi(hosts: dict[str, str], tmp_path: Path) -> None:
    job, _ = run(
        command="echo $RANK > outputs/$RANK; echo $RANK > ${{outputs.o}}/$RANK",
        outputs={"o": None},
        **TWO,
    )
    MLClient().jobs.download(job.name, download_path=tmp_path, all=True)
    for folder in ("artifacts/outputs", "named-outputs/o"):
        assert sorted(each.name for each in (tmp_path / folder).iterdir()) == ["0", "1", "2", "3"]


@needs_mpirun
@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (
            "test $RANK != 3 || { echo why >&2; exit 7; }; exec sleep 1000",
            7,
            "rank 0 exited with code 7 on a after",
        ),
        (
            "test $RANK != 0 || kill -KILL $PPID; exec sleep 1000",
            137,
            "rank 0 was killed by SIGKILL on a after",
        ),
    ],
    ids=["a process", "mpirun"],
)
def test_c3_what_ends_badly_ends_all_with_its_code(
    hosts: dict[str, str], shared_home: Home, line: str, code: int, words: str
) -> None:
    jobs = MLClient().jobs
    job = jobs.create_or_update(command(command=line, **TWO))
    with pytest.raises(exceptions.LaunchError) as failed:
        jobs.handle(jobs.info(job.name)).result(timeout=LIMIT_S)
    assert (failed.value.exit_code, failed.value.signal or 0) == (code, max(code - 128, 0))
    assert words in str(failed.value) and "mpirun ended" in str(failed.value)
    eventually(
        lambda: not [each for each in shared_home.processes().values() if "sleep 1000" in each],
        what="the end of all processes",
    )


@needs_mpirun
def test_c3_a_cancelled_job_leaves_nothing(hosts: dict[str, str], shared_home: Home) -> None:
    jobs = MLClient().jobs
    job = jobs.create_or_update(command(command="echo begins; exec sleep 1000", **TWO))
    handle = jobs.handle(jobs.info(job.name))
    eventually(
        lambda: sum("begins" in each for each in handle.logs()) == 4,
        what="four processes",
        timeout=LIMIT_S,
    )
    jobs.cancel(job.name)
    assert jobs.get(job.name).status == "Canceled"
    eventually(
        lambda: (
            not [
                each
                for each in shared_home.processes().values()
                if "sleep 1000" in each or "orted" in each
            ]
        ),
        what="their end",
    )


def test_c3_a_node_without_mpirun_says_so(hosts: dict[str, str]) -> None:
    with pytest.raises(
        exceptions.LaunchError,
        match=r"there is no mpirun on .*: install Open MPI there \(Debian: openmpi-bin\)",
    ):
        run(
            command="true",
            distribution=MpiDistribution(),
            environment_variables={"PATH": "/nowhere"},
        )


@needs_mpirun
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_c3_a_torch_without_mpi_is_told_which_backend_to_take(hosts: dict[str, str]) -> None:
    import torch.distributed

    if torch.distributed.is_mpi_available():
        pytest.skip("this torch was built with MPI")
    with pytest.raises(
        exceptions.LaunchError,
        match=r"try: init_process_group\(\) without a backend, which takes nccl where there are GPUs and gloo",
    ):
        run(
            command="python -c 'import torch.distributed as d; d.init_process_group(\"mpi\")'",
            distribution=MpiDistribution(),
        )
