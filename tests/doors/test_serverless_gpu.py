"""The serverless GPU API: its decorators, types, pools, ranks without GPUs, runtime helpers and
monitor.

Method: a real cluster of logical GPUs of two types, one node of them in a reserved pool, and one
node without; launches say where they ran. What is refused is looked at word by word. Variables are
set in this process, for they are read at each call.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe import exceptions, launch, serverless_gpu as sg
from troupe.serverless_gpu import _variables, runtime as rt
from troupe.serverless_gpu.compute import GPUType

cloudpickle.register_pickle_by_value(sys.modules[__name__])
VARIABLES = (*_variables.USE_POOL, *_variables.POOL_ID, _variables.CPU_RANKS)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def gpus(shared_home: Home) -> Iterator[Home]:
    """Three nodes of two GPUs: h (H100), p (H100, in the pool "team"), a (A10), all logical; this
    process is connected."""
    started = shared_home.json(
        "start",
        "--head",
        "--port",
        "0",
        "--num-cpus",
        "8",
        "--num-gpus",
        "2",
        "--labels",
        "gpu_type=H100",
        "--node-name",
        "h",
    )
    for name, labels in (("p", "gpu_type=H100,gpu_pool=team"), ("a", "gpu_type=A10")):
        shared_home.run(
            "start",
            "--address",
            started["address"],
            "--token-file",
            shared_home.token(),
            "--num-cpus",
            "8",
            "--num-gpus",
            "2",
            "--labels",
            labels,
            "--node-name",
            name,
        )
    troupe.init(started["address"])
    eventually(
        lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()), what="the zygotes"
    )
    yield shared_home
    troupe.shutdown()


def where() -> str:
    """The node of this rank."""
    return troupe.get_runtime_context().get_node_name()


def ranks() -> tuple[int, ...]:
    return (
        rt.get_global_rank(),
        rt.get_local_rank(),
        rt.get_world_size(),
        rt.get_local_world_size(),
        rt.get_node_rank(),
        rt.get_replica_rank(),
    )


def test_results_by_rank_and_runtime_helpers(
    idle_gpus: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A1, A4, A5, A8: a list by rank; the handle of troupe.launch; both names of a type, in any
    case."""
    monkeypatch.setenv("TROUPE_USE_RESERVED_GPU_POOL", "0")
    assert sg.distributed(gpus=2, gpu_type="h100", remote=True)(ranks).distributed() == [
        (0, 0, 2, 2, 0, 0),
        (1, 1, 2, 2, 0, 1),
    ]
    handle = sg.distributed(2, GPUType.A10, True)(where).submit()
    assert isinstance(handle, launch.LaunchHandle) and handle.result(60) == ["a", "a"]
    over_nodes = sg.distributed(gpus=4, gpu_type="H100", remote=True)(ranks)
    monkeypatch.setenv("TROUPE_USE_RESERVED_GPU_POOL", "1")
    with pytest.raises(exceptions.PlacementError):
        over_nodes.options(label_selector={"gpu_pool": "other"}).submit()
    assert (
        ranks() == (0, 0, 1, 1, 0, 0) == sg.distributed(gpus=2)(ranks)()
    )  # the plain call runs here, A2


def test_arguments_are_the_functions(idle_gpus: Home) -> None:
    @sg.distributed(gpus=1, remote=True)
    def train(gpus: int, timeout: str = "") -> tuple:
        return gpus, timeout

    assert train.distributed(gpus=7, timeout="x") == [(7, "x")]
    with pytest.raises(TypeError, match="missing a required argument: 'gpus'"):
        train.submit()
    assert cloudpickle.loads(cloudpickle.dumps(train)).submit(1).result(60) == [(1, "")]
    assert type(train.options(timeout=60)) is sg.ServerlessFunction


def test_without_a_type_all_ranks_have_gpus_of_one(
    idle_gpus: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TROUPE_USE_RESERVED_GPU_POOL", "false")
    assert sg.distributed(gpus=2, remote=True)(where).distributed() in (["h", "h"], ["a", "a"])
    with pytest.raises(
        exceptions.PlacementError,
        match=r"gpus=5 without gpu_type= means GPUs of any one type.*\n.*2 x A10, 4 x H100",
    ):
        sg.distributed(gpus=5, remote=True)(where).submit()


def test_a_pool_is_preferred_and_given_up_where_it_has_no_room(idle_gpus: Home) -> None:
    """A11: with nothing said, the nodes of a pool first; the others while it is full."""
    here = sg.distributed(gpus=2, gpu_type="H100", remote=True)
    assert here(where).distributed() == ["p", "p"]
    gate = Path(os.environ["TROUPE_HOME"]) / "gate"
    os.mkfifo(gate)

    def holds() -> str:
        gate.read_text()
        return where()

    first = here(holds).submit()
    first.wait_state(lambda info: info["state"] == "running", 60)
    assert here(where).submit().result(60) == ["h", "h"]
    with open(gate, "w"), open(gate, "w"):
        pass
    assert first.result(60) == ["p", "p"]


@pytest.mark.parametrize("value", ["False", "false", "0", "no", " OFF "])
@pytest.mark.parametrize("name", _variables.USE_POOL)
def test_a_pool_is_avoided(
    idle_gpus: Home, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """Both names, at each call: the function was made before the variable was set."""
    train = sg.distributed(gpus=2, gpu_type="H100", remote=True)(where)
    monkeypatch.setenv(name, value)
    assert train.distributed() == ["h", "h"]


def test_the_name_of_troupe_wins(idle_gpus: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_USE_RESERVED_GPU_POOL", "False")
    monkeypatch.setenv("TROUPE_USE_RESERVED_GPU_POOL", "only")
    train = sg.distributed(gpus=2, gpu_type="H100", remote=True)(where)
    assert train.distributed() == ["p", "p"]
    with pytest.raises(exceptions.PlacementError):  # a pool alone never has them
        sg.distributed(gpus=4, gpu_type="H100", remote=True)(where).submit()
    monkeypatch.setenv("DATABRICKS_REMOTE_GPU_POOL_ID", "nobody")
    monkeypatch.setenv("TROUPE_REMOTE_GPU_POOL_ID", "TEAM")
    assert train.distributed() == ["p", "p"]
    monkeypatch.delenv("TROUPE_REMOTE_GPU_POOL_ID")
    with pytest.raises(
        exceptions.PlacementError,
        match=r"DATABRICKS_REMOTE_GPU_POOL_ID asks for .* 'nobody'.*its pools: team\n.*gpu_pool=NAME",
    ):
        train.submit()
    monkeypatch.setenv("TROUPE_USE_RESERVED_GPU_POOL", "maybe")
    with pytest.raises(
        ValueError,
        match="TROUPE_USE_RESERVED_GPU_POOL='maybe' is neither yes .* nor no .* or 'only'",
    ):
        train.submit()


def test_an_unknown_type_is_refused_with_what_there_is(idle_gpus: Home) -> None:
    for decorator in (sg.distributed, sg.ray_launch):
        with pytest.raises(
            exceptions.PlacementError,
            match=r"gpu_type='B9000': no node has GPUs of that type\n  GPUs of the cluster: 2 x A10, 4 x H100",
        ):
            decorator(gpus=1, gpu_type="B9000", remote=True)(where).submit()
    with pytest.raises(
        exceptions.PlacementError, match="GPUs of the cluster: 2 x A10, 4 x H100"
    ):  # more than the cluster has
        sg.distributed(gpus=99, gpu_type="A10", remote=True)(where).submit()


@pytest.mark.parametrize("decorator", [sg.distributed, sg.ray_launch])
@pytest.mark.parametrize(
    ("args", "options", "text"),
    [
        ((0,), {}, "gpus must be a whole number of at least 1, not 0"),
        ((), {"gpus": -1}, "gpus must be a whole number of at least 1, not -1"),
        ((), {"gpus": True}, "gpus must be a whole number"),
        ((), {"gpus": 2.0}, "gpus must be a whole number"),
        (
            (),
            {"gpus": 2, "processes": 2},
            "was given processes= and gpus=, which both say how many ranks there are",
        ),
        ((), {"processes": 2}, "TROUPE_CPU_RANKS=1 makes these processes without GPUs"),
        (
            (),
            {"gpus": 1, "gpu_type": 7},
            r"gpu_type must be a type of GPU \(GPUType.A10, GPUType.H100, or a text",
        ),
        ((), {"gpus": 1, "gpu_type": ""}, "gpu_type must be a type of GPU"),
        ((), {"gpus": 1, "remote": "False"}, "remote must be True or False, not 'False'"),
        (
            (),
            {"gpus": 1, "timeout": 5},
            r"has no timeout=: @\w+ takes gpus, gpu_type, remote(, api)?; .* f.options\(timeout=",
        ),
        ((), {}, r"needs the number of GPUs: @(distributed|ray_launch)\(gpus=8\)"),
        ((len,), {}, "needs the number of GPUs"),
    ],
    ids=lambda value: str(value) if isinstance(value, (tuple, dict)) and len in value else None,
)
def test_options_that_are_none(decorator: object, args: tuple, options: dict, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        decorator(*args, **options)(where)  # type: ignore[operator]


def test_types_by_name() -> None:
    assert GPUType("h100") is GPUType.H100 == "H100" and f"{GPUType.A10}" == "A10"
    with pytest.raises(ValueError):
        GPUType("B9000")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (0, 0, 1, 1, 0, 0)),
        (
            {
                "RANK": "5",
                "LOCAL_RANK": "1",
                "WORLD_SIZE": "8",
                "LOCAL_WORLD_SIZE": "4",
                "NODE_RANK": "1",
            },
            (5, 1, 8, 4, 1, 5),
        ),
        ({"RANK": "5", "GROUP_RANK": "2", "REPLICA_RANK": "1"}, (5, 0, 1, 1, 2, 1)),
    ],
    ids=["none", "a launcher's", "torchrun's"],
)
def test_variables_say_the_rank(
    monkeypatch: pytest.MonkeyPatch, variables: dict, expected: tuple
) -> None:
    """RANK wins: under another launcher the answer is that one's."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ranks() == expected
    monkeypatch.setenv("LOCAL_RANK", "first")
    with pytest.raises(ValueError, match="LOCAL_RANK='first' is no whole number"):
        rt.get_local_rank()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_a_rank_in_a_group_of_torch(home: Home) -> None:
    code = """
from troupe.serverless_gpu import distributed
@distributed(gpus=3)
def f():
    import torch.distributed as dist
    from troupe.serverless_gpu import runtime as rt
    dist.init_process_group()
    group = dist.new_group([1, 2])
    return rt.get_global_rank(), rt.get_global_rank(group), rt.get_global_rank(dist.group.WORLD)
print(f.distributed())
"""
    done = home.python(code, env={"TROUPE_CPU_RANKS": "1"}, timeout=120)
    assert done.stdout.strip() == "[(0, -1, 0), (1, 0, 1), (2, 1, 2)]", done.stderr


NO_GPUS = """
from troupe.serverless_gpu import distributed, ray_launch
@distributed(gpus=2, gpu_type="Z9")
def train(): return 1
@ray_launch(gpus=2)
def drive():
    import ray
    return type(ray).__name__
for f in (train, train, drive):
    print(f.submit().result(60))
"""


def told_of(done: subprocess.CompletedProcess) -> list[str]:
    """The lines that say where launches run."""
    return [line for line in done.stderr.splitlines() if line.startswith("troupe: ")]


def test_ranks_without_gpus(home: Home) -> None:
    """On nodes without a GPU gpus=N means N processes and the type is ignored, reported once for
    each function; TROUPE_CPU_RANKS=0 refuses, with what to do."""
    for value in ("0", "False"):
        done = home.python(NO_GPUS, env={"TROUPE_CPU_RANKS": value})
        assert done.returncode == 1 and "PlacementError" in done.stderr, done.stderr
        assert (
            "no node of the cluster has a GPU" in done.stderr
            and "without TROUPE_CPU_RANKS=0, or with TROUPE_CPU_RANKS=1" in done.stderr
        )
    for value, why in (("1", "TROUPE_CPU_RANKS is set"), ("", f"{os.uname().nodename} has no GPU")):
        done = home.python(NO_GPUS, env={"TROUPE_CPU_RANKS": value})
        assert done.stdout.splitlines() == ["[1, 1]", "[1, 1]", "['RayModule', None]"], done.stderr
        train, drive = told_of(done)
        assert re.fullmatch(
            rf"troupe: {why}: gpus=2 of train means 2 processes without GPUs( that share 1 CPU)?, and gpu_type='Z9' is ignored",
            train,
        )
        assert re.fullmatch(
            rf"troupe: {why}: gpus=2 of drive means 2 processes without GPUs( that share 1 CPU)?",
            drive,
        )
    done = home.python(NO_GPUS, env={"TROUPE_CPU_RANKS": "perhaps"})
    assert "ValueError: TROUPE_CPU_RANKS='perhaps' is neither yes" in done.stderr


REMOTE = """
import troupe
from troupe.serverless_gpu import distributed
@distributed(gpus=40, gpu_type="A10", remote=True)
def ranks():
    import os
    return os.environ["TROUPE_CPU_RANKS"]
@distributed(gpus=1, remote=True)
def where():
    import troupe
    return troupe.get_runtime_context().get_node_name()
print(ranks.distributed() == ["1"] * 40, where.distributed())
"""


DRIVES = """
from troupe.serverless_gpu import ray_launch
@ray_launch(gpus=5, remote=True)
def drive():
    import ray
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as In
    @ray.remote(num_gpus=1)
    class Actor:
        def gpus(self): return ray.get_gpu_ids(), ray.get_runtime_context().get_assigned_resources()
    @ray.remote(num_cpus=0, num_gpus=0.5)
    def task(): return ray.get_gpu_ids()
    group = ray.util.placement_group([{"CPU": 1, "GPU": 1}] * 3 + [{"GPU": 1}], bundle_label_selector=[{"gpu_type": "A10"}])
    ray.get(group.ready())
    actors = [Actor.options(num_cpus=1, scheduling_strategy=In(group, index)).remote() for index in range(4)]
    actors.append(Actor.options(accelerator_type="A10").remote())
    print(ray.get([each.gpus.remote() for each in actors]))
    del actors
    ray.util.remove_placement_group(group)
    print(ray.get([task.remote() for _ in range(3)]))
drive.distributed()
"""


def test_what_asks_for_gpus_in_a_launch_of_cpu_ranks_gets_cpus(home: Home) -> None:
    """Actors, tasks and placement groups, types of GPUs with them, by the shares of the CPUs that
    the ranks have; said once, by the driver."""
    env = {
        "TROUPE_ADDRESS": home.json(
            "start", "--head", "--port", "0", "--num-cpus", "3", "--num-gpus", "0"
        )["address"]
    }
    done = home.python(DRIVES, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [f"[0] {[([], {'CPU': 0.6})] * 5}", f"[0] {[[]] * 3}"], (
        done.stdout + done.stderr
    )
    said = (
        "troupe: the ranks of this launch have no GPUs, so its actors, tasks and placement "
        "groups that ask for GPUs get CPUs, "
    )
    assert done.stderr.count(said + "of each CPU or GPU that they ask for 0.6 CPU") == 1, (
        done.stderr
    )
    done = home.python(DRIVES, env={**env, "TROUPE_CPU_RANKS": "0"})
    assert done.returncode == 1 and "PlacementError" in done.stderr, done.stderr


def test_a_program_that_names_no_cluster_runs_on_the_one_of_this_host_else_on_its_own(
    home: Home,
) -> None:
    """The cluster found is named once, in one line, with the meaning of gpus= there; with several
    clusters one has to be named. More ranks than CPUs share them."""
    done = home.python(REMOTE)
    assert done.stdout == f"True ['{os.uname().nodename}']\n", done.stderr
    first, second = told_of(done)
    assert (
        "no cluster of this user runs on this host: one of this machine is started, which ends "
        "with this program; " in first
    ), first
    assert re.search(
        r"gpus=40 of ranks means 40 processes without GPUs( that share \d+ CPUs?)?, and gpu_type='A10' is ignored$",
        first,
    ), first
    assert "cluster" not in second, second

    address = home.json(
        "start",
        "--head",
        "--port",
        "0",
        "--num-cpus",
        "3",
        "--num-gpus",
        "0",
        "--node-name",
        "mine",
    )["address"]
    done = home.python(REMOTE)
    assert done.stdout == "True ['mine']\n", done.stderr
    first, second = told_of(done)
    assert first.startswith(
        "troupe: TROUPE_ADDRESS is not set: the cluster that runs on this host is used, "
        f"{address}; mine has no GPU: "
    ), first
    assert "40 processes without GPUs that share 3 CPUs" in first and "cluster" not in second, (
        done.stderr
    )

    other = home.json(
        "start",
        "--head",
        "--port",
        "0",
        "--num-cpus",
        "1",
        "--num-gpus",
        "1",
        "--node-name",
        "other",
    )["address"]
    done = home.python(REMOTE)
    text = done.stderr[done.stderr.index("troupe.exceptions.ConnectionError") :]
    assert "TROUPE_ADDRESS says which is meant: " in text and address in text and other in text, (
        text
    )
    done = home.python(
        REMOTE, env={"TROUPE_ADDRESS": other}
    )  # a cluster with GPUs is asked for GPUs
    assert (
        "PlacementError: gpu_type='A10'" in done.stderr or "can never be placed" in done.stderr
    ), done.stderr


CHILD = """
import sys
import torch.distributed as dist
dist.init_process_group("nccl", rank=0, world_size=1, store=dist.HashStore())
print("child", dist.get_backend(), sys.customized)
"""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_nccl_is_gloo_on_cpu_ranks(home: Home, tmp_path: Path) -> None:
    """All spellings of NCCL become Gloo, reported once, also in interpreters that a rank starts,
    whose own sitecustomize runs; code that needs CUDA fails with an error that names the line, as
    nothing of CUDA is changed."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n_HERE = _GROUPS = None\nsys.customized = __file__"
    )
    (tmp_path / "child.py").write_text(CHILD)
    code = (
        f"folder = {str(tmp_path)!r}"
        + """
from troupe.serverless_gpu import distributed
@distributed(gpus=2)
def f():
    import os
    import subprocess
    import sys
    import torch
    if os.environ["RANK"] == "1":
        line = f"PYTHONPATH=$PYTHONPATH:{folder} {sys.executable} {folder}/child.py"
        print(subprocess.run(["bash", "-c", line], check=True, stdout=-1, text=True).stdout)
    import torch.distributed as dist
    dist.init_process_group("nccl", device_id=torch.device("cuda:0"))
    total = torch.ones(1)
    dist.all_reduce(total, group=dist.new_group(backend="cpu:gloo,cuda:nccl"))
    names = dist.get_backend(), dist.get_backend(dist.new_group(backend="nccl"))
    dist.destroy_process_group()
    dist.init_process_group(backend="nccl")
    return total.item(), names, dist.get_backend(), torch.cuda.is_available()
print(f.distributed())
@distributed(gpus=2)
def g():
    import torch
    torch.cuda.set_device(0)
g.distributed()
"""
    )
    done = home.python(code, env={"TROUPE_CPU_RANKS": "1"}, timeout=2 * TIMEOUT_S)
    assert done.stdout.splitlines()[-1] == str([(2.0, ("gloo", "gloo"), "gloo", False)] * 2), (
        done.stdout + done.stderr
    )
    assert f"[1] child gloo {tmp_path / 'sitecustomize.py'}" in done.stdout, (
        done.stdout + done.stderr
    )
    assert done.stderr.count("backend 'nccl' is 'gloo' on these ranks, which have no GPUs") == 2, (
        done.stderr
    )  # the ranks', and the child's
    assert done.returncode == 1 and "needs a GPU, and these ranks have none" in done.stderr, (
        done.stderr
    )


def test_shares_of_cpus_let_all_ranks_fit() -> None:
    """The largest share, of nodes of any sizes; no share where there are enough."""
    from troupe.launch._vendor_place import share_of_each

    assert [
        share_of_each(*each)
        for each in (
            ([4], 4, 1),
            ([4, 4], 8, 1),
            ([2], 8, 1),
            ([3, 5], 16, 1),
            ([8], 4, 3),
            ([2], 9, 0),
        )
    ] == [1, 1, 0.25, 0.5, 2, 0]
    for nodes, ranks in (([7, 1], 9), ([3, 3, 3], 10), ([1], 10_000), ([0.5], 3)):
        share = share_of_each(nodes, ranks, 1)
        assert (
            share > 0
            and sum(round(each * 10_000) // round(share * 10_000) for each in nodes) >= ranks
        )


MONITOR = """
import sys
from troupe.serverless_gpu import RayMetricsMonitor, distributed, ray_launch
@ray_launch(gpus=2)
def drive():
    import ray
    seen = {}
    with RayMetricsMonitor(remote=True, sampling_interval=0.05) as monitor:
        assert monitor.start() is monitor
        @ray.remote
        def wait_for_a_sample(): return 1
        while not monitor.latest():
            ray.get(wait_for_a_sample.remote())
    monitor.stop()
    return monitor.latest()
print([sorted(each) for each in drive.submit().result(60)[0].values()])
with RayMetricsMonitor(sampling_interval=60) as monitor:
    pass
print(sorted(next(iter(monitor.latest().values()))))
"""


def test_a_monitor_samples_every_node(home: Home) -> None:
    """A14: of each node of the launch, by an actor there; ended, it has a last sample and leaves no
    actor."""
    done = home.python(MONITOR, env={"TROUPE_CPU_RANKS": "1"})
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        assert "system_memory_usage_megabytes" in line, done.stdout
    with pytest.raises(ValueError, match="sampling_interval must be more than 0 seconds, not 0"):
        sg.RayMetricsMonitor(sampling_interval=0)


@pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="needs mlflow")
def test_a_monitor_logs_to_the_active_run(home: Home, tmp_path: Path) -> None:
    code = f"""
import mlflow
mlflow.set_tracking_uri("sqlite:///{tmp_path}/mlflow.db")
from troupe.serverless_gpu import RayMetricsMonitor
with mlflow.start_run() as run, RayMetricsMonitor(sampling_interval=60):
    pass
print(sorted(mlflow.MlflowClient().get_run(run.info.run_id).data.metrics))
"""
    done = home.python(code, timeout=120)
    assert f"system/{os.uname().nodename}/system_memory_usage_percentage" in done.stdout, (
        done.stderr
    )


def test_a_tracking_server_that_is_down_is_said_once(home: Home, tmp_path: Path) -> None:
    """Tracking never fails the training: a module that stands for mlflow and raises, as a server
    that is away does."""
    (tmp_path / "mlflow").mkdir()
    (tmp_path / "mlflow" / "__init__.py").write_text(
        "class MlflowClient:\n    def log_batch(self, run_id, metrics): raise OSError('connection "
        "refused by 10.0.0.9')\n"
        "def active_run(): return None\n"
    )
    (tmp_path / "mlflow" / "entities.py").write_text("def Metric(*fields): return fields\n")
    code = (
        "from troupe.serverless_gpu import RayMetricsMonitor\nwith "
        "RayMetricsMonitor(sampling_interval=0.01) as m:\n"
        "    while m._step < 3: pass\nprint(bool(m.latest()))"
    )
    done = home.python(code, cwd=tmp_path, env={"MLFLOW_RUN_ID": "abc"})
    assert done.stdout == "True\n" and done.stderr.count("connection refused by 10.0.0.9") == 1, (
        done.stderr
    )
