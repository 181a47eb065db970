"""Command jobs on nodes that are as other hosts: what travels, where processes meet, what is
brought back.

Method: two workers by --force-tcp, which take no path of this host for theirs.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from azure_jobs import folder_of, ran, run

from troupe import exceptions
from troupe.azure import Input, MLClient, Output, command, load_job as azure_file


def test_c1_code_and_inputs_travel_to_each_node(hosts: dict[str, str], tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "src", **{"a.txt": "code"})
    data = folder_of(tmp_path / "data", **{"b.txt": "folder", "c.csv": "file"})
    inputs = {
        "folder": Input(type="uri_folder", path=str(data)),
        "file": Input(type="uri_file", path=str(data / "c.csv")),
    }
    line = (
        "echo $RANK $NODE_RANK $LOCAL_RANK $(cat a.txt ${{inputs.folder}}/b.txt ${{inputs.file}})"
    )
    lines = ran(
        code=str(folder),
        command=line,
        inputs=inputs,
        instance_count=2,
        distribution={"type": "PyTorch", "process_count_per_instance": 2},
    )
    assert lines == [
        "0 0 0 codefolderfile",
        "1 0 1 codefolderfile",
        "2 1 0 codefolderfile",
        "3 1 1 codefolderfile",
    ]


def test_c2_one_process_of_each_node_meets_the_others_at_a_port_of_the_jobs_own(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    """Rank 0's program listens at MASTER_PORT, whatever it is."""
    folder = folder_of(
        tmp_path / "src",
        **{
            "meet.py": """
import os, socket
rank, at = int(os.environ["NODE_RANK"]), (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    print(socket.create_server(at).accept()[0].recv(9).decode(), os.environ["WORLD_SIZE"])
else:
    while True:
        try:
            socket.create_connection(at).sendall(b"met")
            break
        except ConnectionRefusedError:
            pass
"""
        },
    )
    assert ran(code=str(folder), command="python meet.py", instance_count=2) == ["met 2"]


def test_c6_outputs_of_all_nodes_come_to_where_the_job_says(
    hosts: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = (
        "echo $RANK > ${{outputs.model}}/of-$RANK; echo of $RANK > ${{outputs.model}}/both; "
        "echo $RANK > outputs/$RANK"
    )
    jobs = MLClient().jobs
    job = jobs.create_or_update(
        command(
            command=line, instance_count=2, outputs={"model": Output(path=str(tmp_path / "made"))}
        )
    )
    jobs.stream(job.name)
    assert {each.name: each.read_text() for each in (tmp_path / "made").iterdir()} == {
        "of-0": "0\n",
        "of-1": "1\n",
        "both": "of 0\n",
    }
    assert (
        "outputs/model/both of node b is left there: a node before it has written another one"
        in capfd.readouterr().err
    )
    jobs.download(job.name, download_path=tmp_path / "d")
    assert sorted(each.name for each in (tmp_path / "d" / "artifacts" / "outputs").iterdir()) == [
        "0",
        "1",
    ]


def test_an_input_too_large_to_travel_is_refused_with_what_to_do(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    big = folder_of(tmp_path / "data", x="x") / "big.bin"
    with open(big, "wb") as file:
        file.truncate(5 << 30)
    for given in (
        Input(type="uri_folder", path=str(big.parent)),
        Input(type="uri_file", path=str(big)),
    ):
        with pytest.raises(
            exceptions.TooLargeError,
            match=r"(?s)inputs: data: .*big\.bin.*put it where all nodes read it, and give file:///PATH",
        ):
            MLClient().jobs.create_or_update(command(command="true", inputs={"data": given}))
    assert ran(
        command="stat -L -c %s ${{inputs.data}}",
        inputs={"data": Input(type="uri_file", path=big.as_uri())},
    ) == [str(5 << 30)]


def test_more_instances_than_nodes_is_refused(hosts: dict[str, str]) -> None:
    with pytest.raises(exceptions.PlacementError):
        MLClient().jobs.create_or_update(command(command="true", instance_count=3))


def test_a_process_that_fails_ends_those_of_the_other_node(hosts: dict[str, str]) -> None:
    with pytest.raises(exceptions.LaunchError) as failed:
        run(
            command="test $NODE_RANK = 0 || { echo why >&2; exit 9; }; exec sleep 1000",
            instance_count=2,
        )
    assert failed.value.exit_code == 9 and "why" in str(failed.value)


PIPELINE = """
type: pipeline
outputs: {all: {}}
jobs:
  write:
    command: echo $RANK > ${{outputs.made}}/$RANK
    outputs: {made: {}, none: {}}
    resources: {instance_count: 2}
  read:
    command: cat ${{inputs.made}}/* > ${{outputs.all}}/ranks && ls ${{inputs.none}}
    inputs: {made: "${{parent.jobs.write.outputs.made}}", none: "${{parent.jobs.write.outputs.none}}"}
    outputs: {all: "${{parent.outputs.all}}"}
    resources: {instance_count: 2}
"""


def test_a_pipelines_steps_read_what_all_nodes_wrote(
    hosts: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    jobs = MLClient().jobs
    made = jobs.create_or_update(
        azure_file(folder_of(tmp_path / "p", **{"p.yml": PIPELINE}) / "p.yml")
    )
    jobs.stream(made.name)
    jobs.download(made.name, download_path=tmp_path / "got", output_name="all")
    assert (tmp_path / "got/named-outputs/all/ranks").read_text() == "0\n1\n"
