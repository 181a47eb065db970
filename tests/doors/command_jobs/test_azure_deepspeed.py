"""C5: jobs whose command starts DeepSpeed's own launcher: a hostfile of the job's nodes, and `pdsh`
    and `ssh` that reach them without ssh.

Method: two workers by --force-tcp; commands that call `pdsh` and `ssh` as the launcher does, and a
`deepspeed` of the test's own that says how it was called. The installed DeepSpeed, and what its
autotuning starts: tests/frameworks/test_deepspeed_launcher.py.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from azure_jobs import LIMIT_S, folder_of, ran, run
from e2e_conftest import Home, eventually

from troupe import exceptions
from troupe.azure import Input, MLClient, PyTorchDistribution, _deepspeed, _plan, _remote, command
from troupe.azure._instances import Kind

TWO: dict[str, Any] = {
    "instance_count": 2,
    "distribution": PyTorchDistribution(process_count_per_instance=2, launcher="deepspeed"),
}


def world(of: dict[str, list[int]]) -> str:
    return base64.urlsafe_b64encode(json.dumps(of).encode()).decode()


def test_c5_hostfile_and_what_another_node_runs() -> None:
    assert _deepspeed.hostfile(["a", "b"], 8) == "a slots=8\nb slots=8\n"
    text = (
        "cd /cache/job-1-a/code; python -m deepspeed.launcher.launch --world_info={} "
        "--node_rank=1 train.py"
    )
    both = {"a": [0, 1], "b": [0, 1]}
    made = _deepspeed.text_for(
        text.format(world(both)), "/cache/job-1-a", "/other/job-1-b", "b", ["4", "6"]
    )
    assert made == text.replace("/cache/job-1-a", "/other/job-1-b").format(
        world({"a": [0, 1], "b": [4, 6]})
    ), "the devices that the job has there"
    for same in (
        text.format(world({"a": [7]})),
        text.format("none"),
        text.format(world({"b": [5]})),
        "pkill -f name",
    ):
        assert _deepspeed.text_for(same, "/x", "/y", "b", ["4", "6"]) == same
    assert _deepspeed.text_for(text.format(world(both)), "/x", "/y", "b", []) == text.format(
        world(both)
    ), "without GPUs all stays"


def test_the_words_of_pdsh_and_ssh_that_launchers_say() -> None:
    assert _remote.pdsh_words(
        ["-S", "-f", "1024", "-w", "a,b", "export X=1; ", "cd /x;", "python", "--node_rank=%n"]
    ) == (["a", "b"], "export X=1;  cd /x; python --node_rank=%n", True, True)
    assert _remote.pdsh_words(["-N", "-wa", "pkill", "-f", "x"]) == (
        ["a"],
        "pkill -f x",
        False,
        False,
    )
    assert _remote.ssh_words(["-p", "22", "b", "hostname"]) == (["b"], "hostname")
    for words, said in (
        (["-w", "a"], "there is no command"),
        (["x"], "-w says on which hosts"),
        (["-w"], "-w has no value"),
        (["-z", "x"], "-z is not known here"),
    ):
        with pytest.raises(ValueError, match=said):
            _remote.pdsh_words(words)
    with pytest.raises(ValueError, match="no terminal"):
        _remote.ssh_words(["-p", "22", "b"])


@pytest.mark.parametrize(
    ("gpus", "given", "slots"),
    [
        (8, {}, 8),
        (8, {"process_count_per_instance": 4}, 4),
        (0, {}, 1),
        (0, {"process_count_per_instance": 2}, 2),
    ],
)
def test_as_many_processes_as_asked_else_as_gpus(gpus: int, given: dict, slots: int) -> None:
    job = command(
        command="deepspeed train.py",
        instance_count=2,
        distribution={"type": "pytorch", "launcher": "deepspeed", **given},
    )
    plan = _plan.of(job, [{"CPU": 64.0, "GPU": float(gpus)}] * 2, Kind())
    assert (plan.kind, plan.nodes, plan.ranks, plan.processes, plan.gpus) == (
        "deepspeed",
        2,
        2,
        slots,
        min(gpus, slots),
    )
    with pytest.raises(
        ValueError,
        match="distribution: launcher is 'deepsped', which is none: did you mean 'deepspeed'",
    ):
        PyTorchDistribution(launcher="deepsped")


def test_c5_the_command_runs_once_and_reaches_all_nodes(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    folder = folder_of(tmp_path / "src", **{"a.txt": "code"})
    data = folder_of(tmp_path / "data", **{"b.txt": "input"})
    line = (
        "cat $TROUPE_HOSTFILE; echo $AZ_BATCH_HOST_LIST ${MASTER_PORT:+port}; "
        "pdsh -S -f 1024 -w b,a 'echo %n %h $(cat a.txt) ${RANK:-none} $SAID; echo err >&2; exit "
        "%n'; echo code $?; "
        "ssh -o PasswordAuthentication=no b 'pwd; cat ${{inputs.data}}/b.txt' | grep -c code; pdsh "
        "-w a,b false; echo code $?; "
        "ssh b hostname -I; ssh c true; echo code $?; pdsh -w a; echo code $?"
    )
    job, lines = run(
        code=str(folder),
        command=line,
        inputs={"data": Input(path=str(data))},
        environment_variables={"SAID": "said"},
        **TWO,
    )
    said = [each.partition("] ")[2] for each in lines]
    assert all(each.startswith("[0]") for each in lines), lines
    for each in (
        "a slots=2",
        "b slots=2",
        "a,b port",
        "b: 0 b code none said",
        "a: 1 a code none said",
        "b: err",
        "a: err",
        "code 255",
        "code 2",
        "troupe: there is no node 'c' in this job; it has a, b",
        "troupe: pdsh: there is no command",
    ):
        assert each in said, (each, said)
    assert said.count("code 1") == 1 and said.count("code 0") == 1, (
        "with -S the largest code, without it none"
    )
    assert "1" in said and "127.0.0.1" in said, said


def test_c5_many_at_once_each_have_their_output(hosts: dict[str, str]) -> None:
    """As experiments of an autotuning begin and end beside each other."""
    line = (
        'for i in $(seq 24); do pdsh -S -w a,b "echo $i; test %n = 1 || sleep 0.$((i % 5))" & '
        "pdsh -w b true & test $((i % 4)) != 0 || wait; done; wait"
    )
    assert ran(command=line, **TWO) == sorted(
        f"{host}: {number}" for host in ("a", "b") for number in range(1, 25)
    )


DEEPSPEED = """#!/bin/bash
echo "called $*"
while [ "$1" != -- ]; do [ "$1" = --hostfile ] && hosts=$(cut -d' ' -f1 $2 | paste -sd,); shift; done
shift
exec pdsh -S -w $hosts "cd $PWD; exec deepspeed.launcher.launch $*"
"""
LAUNCH = "#!/bin/bash\ntest -e a.txt && echo on $PWD $*\n{}\nexec sleep 1000\n"


def bin_folder(path: Path, launch: str) -> dict[str, str]:
    """Variables of an environment with a `deepspeed`, which starts `deepspeed.launcher.launch` on
    each node as the real one does."""
    for name, text in (
        ("deepspeed", DEEPSPEED),
        ("deepspeed.launcher.launch", LAUNCH.format(launch)),
    ):
        folder_of(path, **{name: text})
        (path / name).chmod(0o755)
    return {"PATH": f"{path}:/usr/bin:/bin"}


def test_c5_deepspeed_is_called_with_the_hostfile_and_the_port(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    variables = bin_folder(tmp_path / "bin", "exit 0")
    lines = ran(
        code=str(folder_of(tmp_path / "src", **{"a.txt": ""})),
        command="deepspeed --num_nodes 2 -- x",
        environment_variables=variables,
        **TWO,
    )
    called = next(each for each in lines if each.startswith("called"))
    words = called.split()
    assert words[1::2][:2] == ["--hostfile", "--master_port"] and words[5:] == [
        "--force_multi",
        "--num_nodes",
        "2",
        "--",
        "x",
    ], called
    assert sorted(each.split()[0] for each in lines if " on " in each) == ["a:", "b:"], lines
    assert len({each.split()[2] for each in lines if " on " in each}) == 2, (
        "each in the job's directory of its own node"
    )


def test_c5_processes_that_fail_on_one_node_end_those_of_the_other(
    hosts: dict[str, str], shared_home: Home, tmp_path: Path
) -> None:
    variables = bin_folder(
        tmp_path / "bin", f"case $PWD in *{hosts['b']}*) echo why >&2; exit 7;; esac"
    )
    with pytest.raises(exceptions.LaunchError) as failed:
        run(
            code=str(folder_of(tmp_path / "src", **{"a.txt": ""})),
            command="deepspeed -- x",
            environment_variables=variables,
            **TWO,
        )
    assert (
        failed.value.exit_code == 7
        and "the command ended" in str(failed.value)
        and "b: why" in str(failed.value)
    ), failed.value
    eventually(
        lambda: not [each for each in shared_home.processes().values() if "sleep 1000" in each],
        what="the end of all processes",
    )


def test_c5_a_cancelled_job_leaves_nothing(hosts: dict[str, str], shared_home: Home) -> None:
    jobs = MLClient().jobs
    job = jobs.create_or_update(
        command(command="pdsh -w a,b 'echo begins; sleep 1000'; true", **TWO)
    )
    handle = jobs.handle(jobs.info(job.name))
    eventually(
        lambda: sum("begins" in each for each in handle.logs()) == 2,
        what="both processes",
        timeout=LIMIT_S,
    )
    jobs.cancel(job.name)
    assert jobs.get(job.name).status == "Canceled"
    eventually(
        lambda: not [each for each in shared_home.processes().values() if "sleep 1000" in each],
        what="their end",
    )


def test_c5_what_is_ended_here_ends_there(hosts: dict[str, str], shared_home: Home) -> None:
    """As where the launcher ends its `pdsh`; the nodes serve on."""
    line = (
        "pdsh -w a,b 'echo begins; exec sleep 1000' > out & until [ $(grep -c begins out) = 2 ]; "
        "do :; done; kill -KILL $!; "
        "exec pdsh -w b 'echo still; exec sleep 2000'"
    )
    jobs = MLClient().jobs
    job = jobs.create_or_update(command(command=line, **TWO))
    handle = jobs.handle(jobs.info(job.name))
    eventually(
        lambda: any("b: still" in each for each in handle.logs()),
        what="another command",
        timeout=LIMIT_S,
    )
    eventually(
        lambda: not [each for each in shared_home.processes().values() if "sleep 1000" in each],
        what="the end of what was ended",
    )
    assert [each for each in shared_home.processes().values() if "sleep 2000" in each] and jobs.get(
        job.name
    ).status == "Running"
    jobs.cancel(job.name)


def test_c5_without_deepspeed_the_error_says_where_to_install_it(hosts: dict[str, str]) -> None:
    with pytest.raises(
        exceptions.LaunchError,
        match=r"there is no deepspeed on .*: pip install deepspeed there, for the interpreter",
    ):
        run(command="deepspeed train.py", environment_variables={"PATH": "/usr/bin:/bin"}, **TWO)
