"""Promises of the decorators' and init's options, each once through real processes: GPUs,
environment, logs, detach."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Home, eventually

import troupe
from troupe import exceptions
from troupe.launch import distributed, ray_launch
from troupe.util import accelerators


@pytest.fixture(scope="module")
def gpus(shared_home: Home) -> Iterator[Home]:
    """A head and two nodes of two logical GPUs each, of different types, this process connected."""
    started = shared_home.json(
        "start",
        "--head",
        "--port",
        "0",
        "--num-cpus",
        "4",
        "--num-gpus",
        "2",
        "--labels",
        "gpu_type=H100",
        "--node-name",
        "one",
    )
    token = shared_home.token()
    shared_home.run(
        "start",
        "--address",
        started["address"],
        "--token-file",
        token,
        "--num-cpus",
        "4",
        "--num-gpus",
        "2",
        "--labels",
        "gpu_type=A10",
        "--node-name",
        "two",
    )
    troupe.init(started["address"])
    eventually(
        lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()), what="the zygotes"
    )
    yield shared_home
    troupe.shutdown()


def seen() -> tuple:
    """Return the devices that a rank sees."""
    return os.environ["NODE_RANK"], os.environ["LOCAL_RANK"], os.environ["CUDA_VISIBLE_DEVICES"]


def test_all_ranks_of_a_node_see_the_launchs_devices(gpus: Home) -> None:
    """Decision 4: one mask per node, LOCAL_RANK indexes into it."""
    ranks = distributed(gpus=4, remote=True)(seen).distributed()
    assert [(node, local) for node, local, _ in ranks] == [
        ("0", "0"),
        ("0", "1"),
        ("1", "0"),
        ("1", "1"),
    ]
    for _, _, mask in ranks:
        assert sorted(mask.split(",")) == ["0", "1"]
    assert ranks[0][2] == ranks[1][2] and ranks[2][2] == ranks[3][2]


def test_a_type_of_gpu_chooses_the_node(gpus: Home) -> None:
    @distributed(gpus=2, gpu_type="a10", remote=True)
    def where() -> str:
        import troupe

        return troupe.get_runtime_context().get_node_name()

    assert where.distributed() == ["two", "two"]
    with pytest.raises(exceptions.PlacementError) as caught:
        distributed(gpus=3, gpu_type="A10", remote=True)(seen).submit()
    assert "one" in str(caught.value) and "two" in str(caught.value)


def test_a_type_of_gpu_chooses_the_node_of_actors_and_tasks(gpus: Home) -> None:
    def where() -> str:
        return troupe.get_runtime_context().get_node_name()

    class Where:
        def name(self) -> str:
            return troupe.get_runtime_context().get_node_name()

    actor = troupe.remote(num_gpus=1, accelerator_type="H100")(Where)
    actors = [
        actor.remote(),
        actor.options(accelerator_type="A10").remote(),
        actor.options(num_gpus=0, accelerator_type="a10").remote(),
    ]
    assert troupe.get([each.name.remote() for each in actors], timeout=60) == ["one", "two", "two"]
    task = troupe.remote(num_cpus=0.5, accelerator_type="A10")(where)
    assert troupe.get(
        [task.remote(), task.options(accelerator_type="H100").remote()], timeout=60
    ) == ["two", "one"]
    with pytest.raises(exceptions.PlacementError, match="B200"):
        troupe.get(
            actor.options(accelerator_type=accelerators.NVIDIA_B200).remote().name.remote(),
            timeout=60,
        )
    for each in actors:
        troupe.kill(each)


def test_a_lone_actor_sees_its_own_gpu_only(gpus: Home) -> None:
    class Sees:
        def mask(self) -> str:
            return os.environ["CUDA_VISIBLE_DEVICES"]

    actors = [troupe.remote(num_gpus=1)(Sees).remote() for _ in range(4)]
    masks = troupe.get([actor.mask.remote() for actor in actors], timeout=60)
    assert sorted(masks) == ["0", "0", "1", "1"]
    for actor in actors:
        troupe.kill(actor)


def test_ranks_wait_holding_nothing_and_a_run_holds_a_gpu_each(gpus: Home) -> None:
    @ray_launch(gpus=4, remote=True)
    def drive() -> list:
        from troupe.launch import current

        def free() -> float:
            return troupe.available_resources().get("GPU", 0) if current().rank == 0 else 0

        return [free(), current().run(free)[0], free()]

    assert drive.distributed()[0] == [4, 0, 4]


def test_what_travels_of_the_environment(
    gpus: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "WARN")
    monkeypatch.setenv("MINE", "1")
    monkeypatch.setenv("HOME", "/elsewhere")
    (tmp_path / "data.txt").write_text("here")

    @distributed(
        processes=1,
        remote=True,
        inherit_env=["MINE"],
        runtime_env={"env_vars": {"SET": "3"}, "working_dir": str(tmp_path)},
    )
    def look() -> tuple:
        with open("data.txt") as file:
            return (
                [os.environ.get(name) for name in ("NCCL_DEBUG", "MINE", "SET")],
                file.read(),
                os.getcwd(),
            )

    handle = look.submit()
    assert handle.result(60) == [(["WARN", "1", "3"], "here", str(tmp_path))]
    assert {"NCCL_DEBUG", "MINE"} <= set(handle.status()["inherited_env"])
    assert (
        "HOME" in handle.status()["not_inherited_env"]
        and "HOME" not in handle.status()["inherited_env"]
    )


def test_logs_followed_and_printed(
    gpus: Home, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    os.mkfifo(tmp_path / "go")

    @distributed(processes=1, remote=True)
    def speak(path: str) -> None:
        print("before", flush=True)
        with open(path) as gate:
            gate.read()  # or who writes to it finds nobody
            print("after")

    handle = speak.submit(str(tmp_path / "go"))
    lines = handle.logs(rank=0, follow=True)
    assert next(lines) == "before"  # while it runs
    (tmp_path / "go").write_text("now")
    assert list(lines) == ["after"]
    handle.result(60)
    handle.print_logs()
    assert capsys.readouterr().out == "[0] before\n[0] after\n"


def test_a_detached_launch_outlives_its_caller(gpus: Home, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    address = troupe.init(ignore_reinit_error=True).address
    code = f"""
import troupe
from troupe.launch import distributed
troupe.init({address!r})
def wait(path):
    with open(path) as file:
        return file.read()
print(distributed(processes=1, remote=True, name="detached")(wait).options(detach=True).submit({str(tmp_path / "go")!r}).id)
"""
    done = gpus.python(code)
    assert done.returncode == 0, done.stderr
    (tmp_path / "go").write_text("now")
    mine = eventually(
        lambda: [
            each
            for each in troupe.state.list_launches()
            if each["name"] == "detached" and each["state"] == "succeeded"
        ],
        what="its end",
    )
    assert [each["outcome"] for each in mine] == ["succeeded"] and mine[0][
        "id"
    ] == done.stdout.strip()


def test_output_can_be_kept_out_of_the_driver(gpus: Home) -> None:
    address = troupe.init(ignore_reinit_error=True).address
    code = f"""
import troupe
from troupe.launch import distributed
troupe.init({address!r}, log_to_driver=False)
distributed(processes=1, remote=True)(lambda: print("a rank's line")).distributed()
"""
    done = gpus.python(code)
    assert (
        done.returncode == 0
        and "a rank's line" not in done.stdout
        and done.stdout == ""
        and "succeeded" in done.stderr
    ), done.stderr


def test_the_plain_call_runs_here() -> None:
    assert distributed(processes=4)(lambda: os.getpid())() == os.getpid()
