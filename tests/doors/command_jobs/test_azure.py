"""Command jobs on one node: what processes have, inputs and outputs, how jobs end, what is refused
before anything starts.

Method: real jobs of shell lines on a cluster of 8 CPUs that this process is connected to; what they
say is compared.
"""

from __future__ import annotations

import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure_jobs import LIMIT_S, folder_of, ran, run
from e2e_conftest import Home, eventually

from troupe import exceptions
from troupe._base import job as _job
from troupe.azure import Data, Input, MLClient, Output, command
from troupe.azure.constants import ListViewType

PAIR = {"type": "PyTorch", "process_count_per_instance": 2}


def test_c2_a_process_on_each_node_by_default_and_as_many_as_asked(idle: Home) -> None:
    line = (
        'echo "$RANK $LOCAL_RANK $WORLD_SIZE $NODE_RANK ${MASTER_ADDR:+address} '
        '${MASTER_PORT:+port}"'
    )
    assert ran(command=line) == ["0 0 1 0 address port"]
    assert ran(command=line, distribution={"type": "pytorch"}) == ["0 0 1 0 address port"]
    assert ran(command=line, distribution={**PAIR, "process_count_per_instance": 3}) == [
        f"{rank} {rank} 3 0 address port" for rank in range(3)
    ]


def test_c2_torch_meets_by_the_variables_without_torchrun(idle: Home, tmp_path: Path) -> None:
    """Without GPUs NCCL is Gloo in what the command starts, which rank 0 says."""
    folder = folder_of(
        tmp_path / "src",
        **{
            "train.py": """
import torch
import torch.distributed as dist
dist.init_process_group("nccl")
total = torch.ones(1)
dist.all_reduce(total)
print("sum", total.item(), dist.get_backend())
dist.destroy_process_group()
"""
        },
    )
    # torch warns where no name is known
    line = "set -o pipefail; python train.py 2>&1 | grep -E '^(sum|troupe)'"
    assert ran(code=str(folder), command=line, distribution=PAIR) == [
        "sum 2.0 gloo",
        "sum 2.0 gloo",
        "troupe: torch.distributed backend 'nccl' is 'gloo' on these ranks, which have no GPUs",
    ]


def test_the_master_port_is_the_programs_own_to_listen_at(idle: Home, tmp_path: Path) -> None:
    """So a launcher that the command runs can serve there, as torchrun does."""
    folder = folder_of(
        tmp_path / "src",
        **{
            "meet.py": """
import os, socket
rank, at = int(os.environ["RANK"]), (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server = socket.create_server(at)
    open("listens", "w").close()
    print(server.accept()[0].recv(9).decode())
else:
    while not os.path.exists("listens"):
        pass
    socket.create_connection(at).sendall(b"met")
"""
        },
    )
    assert ran(code=str(folder), command="python meet.py", distribution=PAIR) == ["met"]


def test_c1_the_code_is_a_copy_of_the_jobs_own_and_its_directory(
    idle: Home, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path / "src", parts__data="of the folder")
    line = (
        'cat parts/data; ls -d logs outputs; test -e mine && echo "of another job"; echo x > '
        "mine; echo changed > parts/data"
    )
    for _ in range(2):  # the second has the same code, by its content
        assert ran(code=str(folder), command=line) == ["of the folderlogs", "outputs"]
    (folder / "parts" / "data").write_text("edited")
    assert ran(code=str(folder / "parts" / "data"), command="cat data") == ["edited"]
    assert sorted(os.listdir(folder)) == ["parts"], "nothing is written into the source"
    assert ran(command="ls") == ["logs", "outputs"]


def test_what_an_ignore_file_names_stays_here(idle: Home, tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "src",
        **{
            ".amlignore": "*.big\n/secret/\n",
            "a.py": "",
            "sub/b.big": "",
            "secret/key": "",
            "sub/c": "",
        },
    )
    with open(folder / "data.big", "wb") as file:
        file.truncate(5 << 30)
    assert ran(code=str(folder), command="find . -type f | sort | tr '\\n' ' '") == [
        "./.amlignore ./a.py ./sub/c "
    ]


def test_a_code_folder_that_is_too_large_is_refused_with_its_largest_file(
    idle: Home, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path / "src", a="x")
    with open(folder / "weights.bin", "wb") as file:
        file.truncate(5 << 30)
    with pytest.raises(
        exceptions.TooLargeError,
        match=r"(?s)code: .*weights\.bin \(.*\n  name what is not needed in \.amlignore",
    ):
        MLClient().jobs.create_or_update(command(command="true", code=str(folder)))


def test_c6_inputs_are_literals_files_and_folders(idle: Home, tmp_path: Path) -> None:
    data = folder_of(tmp_path / "some data", **{"a.txt": "A", "b.csv": "B"})
    line = (
        "echo ${{inputs.n}} ${{inputs.flag}} ${{inputs.word}} $(cat ${{inputs.folder}}/a.txt "
        "${{inputs.file}} ${{inputs.there}}) ${{inputs.as_is}}; "
        "basename ${{inputs.file}}; echo $OF_INPUT"
    )
    inputs = {
        "n": 3,
        "flag": True,
        "word": "a b",
        "folder": Input(type="uri_folder", path=str(data)),
        "file": Data(name="b", type="uri_file", path=str(data / "b.csv")),
        "there": {"type": "uri_file", "path": (data / "a.txt").as_uri()},
        "as_is": Input(type="uri_folder", path="abfss://x/y", mode="direct"),
    }
    assert ran(
        command=line, inputs=inputs, environment_variables={"OF_INPUT": "n=${{inputs.n}}"}
    ) == ["3 True a b ABA abfss://x/y", "b.csv", "n=3"]


def test_c6_outputs_are_where_the_job_says_and_what_stays_is_downloaded(
    idle: Home, tmp_path: Path
) -> None:
    line = (
        "echo $RANK > ${{outputs.model}}/$RANK.txt; echo kept > ${{outputs.kept}}/k.txt; test "
        "$RANK = 1 || { echo f > ${{outputs.file}}; echo o > outputs/o.txt; }; echo said"
    )
    job, _ = run(
        command=line,
        distribution=PAIR,
        outputs={
            "model": Output(type="uri_folder", path=str(tmp_path / "made" / "model")),
            "kept": None,
            "file": Output(type="uri_file", path=str(tmp_path / "f.txt")),
        },
    )
    assert {each.name: each.read_text() for each in (tmp_path / "made" / "model").iterdir()} == {
        "0.txt": "0\n",
        "1.txt": "1\n",
    }
    assert (tmp_path / "f.txt").read_text() == "f\n"
    jobs = MLClient().jobs
    jobs.download(job.name, download_path=tmp_path / "d", all=True)
    files = {
        str(each.relative_to(tmp_path / "d")): each.read_text()
        for each in (tmp_path / "d").rglob("*")
        if each.is_file()
    }
    assert files == {
        "artifacts/outputs/o.txt": "o\n",
        "artifacts/user_logs/std_log_process_00.txt": "said\n",
        "artifacts/user_logs/std_log_process_01.txt": "said\n",
        "named-outputs/model/0.txt": "0\n",
        "named-outputs/model/1.txt": "1\n",
        "named-outputs/kept/k.txt": "kept\n",
        "named-outputs/file/file": "f\n",
    }
    jobs.download(job.name, download_path=tmp_path / "one", output_name="kept")
    assert [
        str(each.relative_to(tmp_path / "one")) for each in (tmp_path / "one").rglob("*.*")
    ] == ["named-outputs/kept/k.txt"]
    with pytest.raises(ValueError, match="has no output 'modle': did you mean 'model'"):
        jobs.download(job.name, output_name="modle")


def test_c6_no_write_of_a_job_reaches_the_source_of_an_input_but_by_rw_mount(
    idle: Home, tmp_path: Path
) -> None:
    """A command that removes and writes in each input, as a folder and as a file; programs see
    folders and no links."""
    sources = {
        mode: folder_of(tmp_path / mode, **{"a.txt": mode, "sub/b.txt": "b"})
        for mode in ("none", "ro_mount", "download", "rw_mount")
    }
    inputs: dict = {
        f"d_{mode}": Input(type="uri_folder", path=str(path), mode=None if mode == "none" else mode)
        for mode, path in sources.items()
    }
    inputs["f_ro"] = Input(type="uri_file", path=str(sources["none"] / "a.txt"))
    inputs["f_own"] = Input(type="uri_file", path=str(sources["none"] / "a.txt"), mode="download")
    each = "; ".join(
        f"echo {mode} $(find ${{{{inputs.d_{mode}}}}} -type f | wc -l) $(rm "
        f"${{{{inputs.d_{mode}}}}}/a.txt 2>/dev/null; "
        f"echo new > ${{{{inputs.d_{mode}}}}}/c.txt; cp -r ${{{{inputs.d_{mode}}}}} outputs/; ls "
        f"outputs/*{mode})"
        for mode in sources
    )
    line = (
        f"exec 2>/dev/null; {each}; echo x > ${{{{inputs.f_own}}}}; cat ${{{{inputs.f_own}}}} "
        f"${{{{inputs.f_ro}}}}; echo x > ${{{{inputs.f_ro}}}}"
    )
    jobs = MLClient().jobs
    job = jobs.create_or_update(command(command=f"{line}; true", inputs=inputs))
    handle = jobs.handle(jobs.info(job.name))
    handle.result(timeout=LIMIT_S)
    said = [line.partition("] ")[2] for line in handle.logs()]
    mounted = list((idle.path / "cache").glob(f"job-{job.id}-*/mounts")) != []
    assert said[2:] == ["download 2 c.txt sub", "rw_mount 2 c.txt sub", "x", "none"]
    assert said[:2] == (
        ["none 2 a.txt sub", "ro_mount 2 a.txt sub"]
        if mounted
        else ["none 2 c.txt sub", "ro_mount 2 c.txt sub"]
    )
    for mode, path in sources.items():
        files = {
            str(each.relative_to(path)): each.read_text()
            for each in path.rglob("*")
            if each.is_file()
        }
        assert files == (
            {"c.txt": "new\n", "sub/b.txt": "b"}
            if mode == "rw_mount"
            else {"a.txt": mode, "sub/b.txt": "b"}
        ), mode
    jobs.download(job.name, download_path=tmp_path / "got")
    assert (tmp_path / "got/artifacts/outputs/d_download/sub/b.txt").read_text() == "b"


def test_c6_links_in_outputs_are_brought_whole_or_named(
    idle: Home, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = folder_of(tmp_path / "data", **{"a.txt": "A"})
    line = (
        "mkdir kept; echo k > kept/k; cd outputs; ln -s ../kept whole; ln -s ../kept/k file; ln -s "
        ". loop; ln -s /usr/share other; ln -s gone broken; "
        "ln -s ${{inputs.d}} input; ln -s ${{inputs.d}}/a.txt input_file; mkfifo pipe"
    )
    job, _ = run(command=line, inputs={"d": Input(type="uri_folder", path=str(data))})
    MLClient().jobs.download(job.name, download_path=tmp_path / "got")
    got = tmp_path / "got/artifacts/outputs"
    assert {
        str(each.relative_to(got)): each.read_text() for each in got.rglob("*") if each.is_file()
    } == {"whole/k": "k\n", "file": "k\n"}
    said = capfd.readouterr().err
    for name, why in {
        "loop": "a link to a folder that it lies in",
        "other": "a link to /usr/share, a folder outside of the job's directory",
        "broken": "a link to gone, which is not there",
        "pipe": "neither a file nor a folder",
    }.items():
        assert f"outputs/{name} of node one is left there: it is {why}" in said
    assert (
        "outputs/input of node one is left there: it is a link to /" in said
        and "outputs/input_file of node one" in said
    )


def test_what_is_lost_on_its_node_is_said(idle: Home, tmp_path: Path) -> None:
    job, _ = run(command="echo x > outputs/x")
    (folder,) = (idle.path / "cache").glob(f"job-{job.id}-*/")
    shutil.rmtree(folder)
    with pytest.raises(
        exceptions.ObjectLostError,
        match=f"what job {job.name} wrote is lost: it is not on one any more",
    ):
        MLClient().jobs.download(job.name, download_path=tmp_path)


MISSING = [
    (
        {"inputs": {"x": Input(type="uri_file", path="none.csv")}},
        FileNotFoundError,
        "inputs: x: there is no none.csv",
    ),
    (
        {"inputs": {"x": Input(type="uri_file", path="/usr")}},
        IsADirectoryError,
        "type='uri_folder'",
    ),
    (
        {"inputs": {"x": Input(type="uri_folder", path="/etc/passwd")}},
        NotADirectoryError,
        "type='uri_file'",
    ),
    (
        {"inputs": {"x": Input(type="uri_folder", path="azureml:titanic:1")}},
        ValueError,
        "in a storage or workspace that is not known here",
    ),
    (
        {"inputs": {"x": Input(type="uri_folder", path="https://h/folder")}},
        ValueError,
        "of an address only a file is fetched",
    ),
    (
        {"outputs": {"x": Output(path="wasbs://x@y/z")}},
        ValueError,
        "outputs: x: wasbs://x@y/z is in a storage",
    ),
    ({"code": "./none"}, FileNotFoundError, "there is no code folder ./none"),
    ({"instance_count": 3}, exceptions.PlacementError, ""),
]


@pytest.mark.parametrize(
    ("fields", "kind", "words"), MISSING, ids=[words or "nodes" for _, _, words in MISSING]
)
def test_what_is_not_there_is_refused_before_anything_starts(
    idle: Home, fields: dict, kind: type[Exception], words: str
) -> None:
    jobs = MLClient().jobs
    before = len(list(jobs.list()))
    with pytest.raises(kind) as refused:
        jobs.create_or_update(command(**{"command": "true", **fields}))
    assert words in str(refused.value)
    assert len(list(jobs.list())) == before


def test_more_nodes_than_there_are_is_refused_in_programs_for_ray_too(
    idle: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under run-as a task of Ray waits for a node that can hold it; a job is refused, as from a
    file."""
    monkeypatch.setattr(_job, "follows_ray", lambda: True)
    with pytest.raises(exceptions.PlacementError):
        MLClient().jobs.create_or_update(command(command="true", instance_count=3))


def test_an_input_that_a_node_has_not_is_the_jobs_failure_in_words(idle: Home) -> None:
    with pytest.raises(exceptions.LaunchError, match=r"inputs: x: there is no /nowhere/x on "):
        run(command="true", inputs={"x": Input(type="uri_folder", path="file:///nowhere/x")})


def test_a_jobs_life_by_its_name(
    idle: Home, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    jobs = MLClient(None, "subscription", "group", "workspace").jobs
    job = jobs.create_or_update(
        command(
            name="mine",
            command="echo begins ${{inputs.n}}; read x < <(sleep 1000)",
            environment="azureml:any@latest",
            display_name="Mine",
            description="long " * 100,
            tags={"team": "a=b"},
            experiment_name="trials",
            inputs={"n": 3, "f": Input(type="uri_file", path=__file__)},
            outputs={"o": None},
            environment_variables={"TOKEN": "secret"},
        )
    )
    assert (job.name, job.id) == ("mine", jobs.get("mine").id)
    known = jobs.get("mine")
    assert known.creation_context.created_at == job.creation_context.created_at
    assert datetime.now(UTC) - known.creation_context.created_at < timedelta(hours=1)
    assert (known.display_name, known.description, known.tags, known.experiment_name) == (
        "Mine",
        "long " * 100,
        {"team": "a=b"},
        "trials",
    )
    assert known.inputs.n == 3 and known.inputs.f.path == __file__
    assert known.outputs.o.type == "uri_folder" and known.log_files is None
    for each in (job, known):
        assert each.services["Studio"].endpoint == each.studio_url
    known.dump(tmp_path / "mine.yml")
    written = (tmp_path / "mine.yml").read_text()
    assert "display_name: Mine\n" in written and "secret" not in written
    eventually(lambda: jobs.get("mine").status == "Running", what="its beginning")
    with pytest.raises(ValueError, match="there is a job with the name 'mine' already"):
        jobs.create_or_update(command(name="mine", command="true"))
    with pytest.raises(
        ValueError, match="job mine is Running: what it writes is downloaded when it is Completed"
    ):
        jobs.download("mine")
    jobs.cancel("mine")
    assert jobs.get("mine").status == "Canceled" and next(jobs.list()).name == "mine"
    assert [job.name for job in jobs.list(max_results=1)] == ["mine"] and len(
        list(jobs.list(list_view_type="All"))
    ) > 0
    assert [
        *jobs.list(parent_job_name="mine"),
        *jobs.list(list_view_type=ListViewType.ARCHIVED_ONLY),
    ] == []
    for ask in (lambda: jobs.get("yours"), lambda: jobs.list(parent_job_name="yours")):
        with pytest.raises(exceptions.NotFoundError, match="there is no job with the name 'yours'"):
            ask()
    with pytest.raises(
        ValueError, match="list_view_type is 'Actve', which is none: did you mean 'ActiveOnly'"
    ):
        jobs.list(list_view_type="Actve")
    with pytest.raises(ValueError, match="max_results must be at least 1, not 0"):
        jobs.list(max_results=0)
    with pytest.raises(exceptions.LaunchCancelledError):
        jobs.stream("mine")
    assert (
        "environment 'azureml:any@latest' (what is installed on the nodes is what runs)"
        in capfd.readouterr().err
    )


def test_an_argument_that_no_method_knows_is_an_error_that_names_it() -> None:
    client, job = MLClient(cloud="AzureCloud", show_progress=False), command(command="true")
    for ask in (
        lambda: client.jobs.list(parent="sweep"),
        lambda: client.jobs.create_or_update(job, parent="x"),
        lambda: client.create_or_update(job, parent="x"),
        lambda: MLClient(parent="x"),
        lambda: MLClient.from_config(parent="x"),
        lambda: client.jobs.begin_cancel("x", parent="x"),
    ):
        with pytest.raises(TypeError, match="unexpected keyword argument 'parent'"):
            ask()


def test_what_a_submission_says_is_in_place_of_the_jobs_own(idle: Home) -> None:
    jobs, job = (
        MLClient().jobs,
        command(
            command="echo $AZUREML_EXPERIMENT_NAME",
            description="a",
            tags={"a": "b"},
            experiment_name="a",
        ),
    )
    made = jobs.create_or_update(
        job,
        description="d",
        tags={"t": "1"},
        experiment_name="e",
        compute="c",
        skip_validation=True,
    )
    handle = jobs.handle(jobs.info(made.name))
    handle.result(timeout=LIMIT_S)
    assert (made.description, made.tags, made.compute, list(handle.logs())) == (
        "d",
        {"t": "1"},
        "c",
        ["[0] e"],
    )


def test_stream_shows_what_is_said_and_raises_what_failed(
    idle: Home, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(
        both := tmp_path / "both"
    )  # rank 1 fails once rank 0 has spoken: it would be ended before
    jobs = MLClient().jobs
    job = jobs.create_or_update(
        command(
            command=f"echo out $RANK; echo why >&2; test $RANK = 0 || {{ read x <{both}; exit 7; "
            f"}}; echo x >{both}; exec sleep 1000",
            distribution=PAIR,
        )
    )
    with pytest.raises(exceptions.LaunchError) as failed:
        jobs.stream(job.name)
    assert (failed.value.exit_code, failed.value.rank) == (7, 1) and "why" in str(failed.value)
    said = capfd.readouterr().out
    assert "[0] out 0" in said and "[1] out 1" in said and jobs.get(job.name).status == "Failed"


def test_a_job_over_its_time_is_ended(idle: Home) -> None:
    jobs = MLClient().jobs
    job = jobs.create_or_update(command(command="exec sleep 1000", timeout=0.5))
    with pytest.raises(exceptions.GetTimeoutError, match=r"it runs a program: .*exec sleep 1000"):
        jobs.handle(jobs.info(job.name)).result(timeout=LIMIT_S)


def test_python_is_the_nodes_own(idle: Home) -> None:
    assert ran(command="python -c 'import sys; print(sys.prefix)'") == [sys.prefix]
