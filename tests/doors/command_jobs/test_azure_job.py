"""Command jobs as they are written: from Python objects, dicts and files, one schema; what is wrong
is refused with the nearest.

Method: no cluster: what a job says of itself, and the errors' words.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from azure_jobs import a_job_file, folder_of
from e2e_conftest import eventually

from troupe import azure
from troupe._ray_cluster import words
from troupe.azure import (
    Input,
    Output,
    _code_folder,
    _expressions,
    _instances,
    _plan,
    _start,
    _tensorflow,
    command,
    credentials,
)
from troupe.azure._instances import Kind
from troupe.azure._jobs.poller import Poller
from troupe.launch import _hints

NODES = [{"CPU": 8.0}, {"CPU": 16.0}]
GPU_NODES = [{"CPU": 64.0, "GPU": 8.0}, {"CPU": 64.0, "GPU": 4.0}]


def a_job(**fields: Any) -> azure.Command:
    return command(**{"command": "python train.py", "environment": "any", **fields})


def test_c1_a_file_objects_and_dicts_are_one_job(tmp_path: Path) -> None:
    file = a_job_file(tmp_path)
    of_file = azure.load_job(file)
    text = of_file.command
    of_objects = command(
        command=text,
        code="src",
        environment="azureml:pytorch@latest",
        compute="azureml:cpu-cluster",
        instance_count=1,
        inputs={
            "epochs": 3,
            "lr": Input(type="number", optional=True),
            "data": Input(type="uri_file", path="./data.txt"),
        },
        outputs={"model": Output(type="uri_folder", path="./model")},
        distribution=azure.PyTorchDistribution(process_count_per_instance=2),
    )
    of_dicts = command(
        command=text,
        code="src",
        environment="azureml:pytorch@latest",
        compute="azureml:cpu-cluster",
        instance_count=1,
        inputs={
            "epochs": {"value": 3},
            "lr": {"type": "number", "optional": True},
            "data": {"type": "uri_file", "path": "./data.txt"},
        },
        outputs={"model": {"type": "uri_folder", "path": "./model"}},
        distribution={"type": "PyTorch", "process_count_per_instance": 2},
    )
    expected = {**of_file.to_dict(), "is_deterministic": True}
    assert of_objects.to_dict() == of_dicts.to_dict() == expected
    assert of_file.base_path == str(tmp_path), "paths in a file are from its folder"


def test_expressions_stand_for_values_and_optional_parts_for_what_is_given() -> None:
    read = _expressions.read(
        "train $[[--lr ${{inputs.lr}} ]]${{ inputs.n }}>${{outputs.o}}",
        "command",
        {"lr", "n"},
        {"o"},
    )

    def text(values: dict[str, str | None]) -> str:
        return _expressions.put_together(read, lambda place: values[place.name])

    assert text({"lr": "0.1", "n": "3", "o": "/o"}) == "train --lr 0.1 3>/o"
    assert text({"lr": None, "n": "3", "o": "/o"}) == "train 3>/o"
    plain = "if [[ -n $X ]]; then echo ${X} $$ {{}}; fi"
    assert (
        _expressions.put_together(_expressions.read(plain, "command", (), ()), lambda _: "")
        == plain
    ), "a shell's own words stay"


WRONG = [
    (
        {"command": "run ${{inputs.typo}}", "inputs": {"type": 1}},
        "the job has no input 'typo': did you mean 'type'?",
    ),
    (
        {"command": "run ${{input.x}}", "inputs": {"x": 1}},
        "there are ${{inputs.NAME}} and ${{outputs.NAME}}",
    ),
    ({"command": "run ${{outputs.x}}"}, "the job has no output 'x': it has none"),
    ({"command": "run ${{search_space.lr}}"}, "in the command they are inputs"),
    ({"command": "run ${{inputs.x"}, "has no }} after it"),
    ({"command": "run $[[--x ${{inputs.x}}", "inputs": {"x": 1}}, "has no ]] after it"),
    ({"command": "run $[[--x]]"}, "names no input"),
    (
        {"command": "run ${{inputs.x}}", "inputs": {"x": None}},
        "inputs: x has no value; one that may have none stands in $[[...]]",
    ),
    ({"command": ""}, "command is empty"),
    ({"inputs": {"x": {"typ": "uri_file"}}}, "inputs: x: it has no 'typ': did you mean 'type'?"),
    ({"inputs": {"x": {"type": "uri_fiel", "path": "."}}}, "did you mean 'uri_file'?"),
    ({"inputs": {"../x": 1}}, "inputs: '../x' is no name"),
    ({"outputs": {"a b": None}}, "outputs: 'a b' is no name"),
    ({"inputs": {"x": [1]}}, "inputs: x: it must be a string, a number"),
    ({"inputs": {"x": {"type": "integer", "default": 1.5}}}, "must be of type integer"),
    ({"inputs": {"x": {"type": "number", "default": 3, "max": 2}}}, "not within None and 2"),
    ({"outputs": {"x": {"path": 3}}}, "outputs: x: an output's path must be a path"),
    (
        {"environment_variables": {"A": "${{inputs.b}}"}},
        "environment_variables: A: ${{inputs.b}}: the job has no input 'b'",
    ),
    ({"environment_variables": ["A"]}, "environment_variables must be a mapping"),
    (
        {"distribution": {"type": "PyTroch"}},
        "distribution: type is 'PyTroch', which is none: did you mean 'pytorch'?",
    ),
    ({"distribution": {"type": "horovod"}}, "it has mpi, pytorch, ray, tensorflow"),
    ({"distribution": {"process_count_per_instance": 2}}, "distribution has no 'type'"),
    (
        {"distribution": {"type": "pytorch", "proces_count_per_instance": 2}},
        "did you mean 'process_count_per_instance'?",
    ),
    (
        {"distribution": {"type": "pytorch", "process_count_per_instance": 0}},
        "must be at least 1, not 0",
    ),
    (
        {"distribution": {"type": "tensorflow", "worker_count": "two"}},
        "must be a whole number, not 'two'",
    ),
    ({"instance_count": 0}, "instance_count must be at least 1"),
    ({"instance_count": 1.5}, "instance_count must be a whole number"),
    ({"timeout": -1}, "timeout must be a number of seconds above 0"),
    ({"priority": "urgent"}, "it has high, low, medium"),
    ({"instance_cont": 2}, "command() has no instance_cont=: did you mean 'instance_count'?"),
]


@pytest.mark.parametrize(("fields", "words"), WRONG, ids=[words for _, words in WRONG])
def test_what_is_wrong_is_said_when_the_job_is_made(fields: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError)) as refused:
        a_job(**fields)
    assert words in str(refused.value)


FILES = [
    ("command: x\nenvironment: e\ninputz: {}\n", "has no 'inputz': did you mean 'inputs'?"),
    ("command: x\n\tcode: y\n", "job.yml:2:1: "),
    ("command: x\n\tcode: y\n", "there is a tab: YAML is indented by spaces alone"),
    ("command: x\ncommand: y\n", "job.yml:2:1: 'command' is there twice"),
    ("command: [x\n", "job.yml:2:1: expected"),
    ("- command\n", "must be a mapping"),
    ("type: pipeline\njobs: {}\n", "a pipeline job needs jobs: its steps by their names"),
    (
        "type: automl\n",
        "type is 'automl', and command jobs, sweeps and pipelines of them are run here",
    ),
    ("$schema: https://x/sweepJob.schema.json\n", "a sweep job needs trial"),
    (
        "command: x\nresources: {instance_cuont: 2}\n",
        "resources has no 'instance_cuont': did you mean 'instance_count'?",
    ),
    ("command: x\nlimits: {timeout: soon}\n", "timeout must be a number of seconds"),
    ("code: src\n", "a command job needs command"),
]


@pytest.mark.parametrize(("text", "words"), FILES, ids=[words for _, words in FILES])
def test_a_file_that_is_wrong_is_named_with_what_is(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "job.yml"
    file.write_text(text)
    with pytest.raises((ValueError, TypeError)) as refused:
        azure.load_job(file)
    assert words in str(refused.value) and str(file) in str(refused.value)


def test_a_file_that_is_no_text_and_one_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_bytes(b"command: \xff\xfe\x00")
    with pytest.raises(ValueError, match=r"job\.yml"):
        azure.load_job(tmp_path / "job.yml")
    with pytest.raises(FileNotFoundError, match=r"none\.yml"):
        azure.load_job(tmp_path / "none.yml")


def test_values_in_place_of_the_files(tmp_path: Path) -> None:
    job = azure.load_job(
        a_job_file(tmp_path),
        params_override=[
            {"inputs.epochs": 5},
            {"resources.instance_count": 2},
            {"inputs.data.path": "other"},
        ],
    )
    assert (job.inputs.epochs, job.instance_count, job.inputs.data.path, job.inputs.data.type) == (
        5,
        2,
        "other",
        "uri_file",
    )


def test_a_job_is_changed_and_made_again_with_other_inputs() -> None:
    job = a_job(
        command="python train.py ${{inputs.lr}}",
        inputs={"lr": Input(type="number", default=0.1)},
        distribution={"type": "PyTorch", "added": 7},
    )
    assert job.distribution.added == 7 and job.distribution.to_dict()["added"] == 7, (
        "properties of others are kept"
    )
    job.set_resources(instance_count=2, instance_type="Standard_X")
    job.set_limits(timeout=60)
    job.resources.instance_count = 3
    assert (job.instance_count, job.resources.instance_type, job.limits.timeout) == (
        3,
        "Standard_X",
        60,
    )
    other = job(lr=0.5)
    assert other.inputs.lr == 0.5 and job.inputs.lr.default == 0.1 and other.instance_count == 3
    with pytest.raises(ValueError, match="has no 'lrr': did you mean 'lr'"):
        job(lrr=1)
    with pytest.raises(TypeError, match="must be of type number"):
        job(lr="high")


SHAPES = [
    ({}, NODES, Kind(), (1, 1, 0, 8)),
    ({"instance_count": 2}, NODES, Kind(), (2, 2, 0, 8)),
    (
        {"instance_count": 2, "distribution": {"type": "pytorch"}},
        GPU_NODES,
        Kind(),
        (2, 2, 4, 64),
    ),
    (
        {"distribution": {"type": "PyTorch", "process_count_per_instance": 4}},
        GPU_NODES,
        Kind(),
        (1, 4, 1, 16),
    ),
    (
        {"distribution": {"type": "PyTorch", "process_count_per_instance": 4}},
        GPU_NODES,
        Kind(gpus=8),
        (1, 4, 2, 16),
    ),
    (
        {"distribution": {"type": "PyTorch", "process_count_per_instance": 4}},
        GPU_NODES,
        Kind(gpus=0, cpus=8),
        (1, 4, 0, 2),
    ),
    ({"instance_count": 2, "distribution": {"type": "TensorFlow"}}, NODES, Kind(), (2, 2, 0, 8)),
    (
        {
            "instance_count": 2,
            "distribution": azure.TensorFlowDistribution(worker_count=2, parameter_server_count=1),
        },
        NODES,
        Kind(),
        (2, 3, 0, 4),
    ),
    (
        {
            "distribution": {
                "type": "tensorflow",
                "worker_count": 2,
                "chief_count": 1,
                "evaluator_count": 1,
            }
        },
        NODES,
        Kind(),
        (1, 4, 0, 2),
    ),
]


@pytest.mark.parametrize(("fields", "nodes", "kind", "expected"), SHAPES)
def test_how_many_processes_where_and_with_what(
    fields: dict[str, Any], nodes: list[dict[str, float]], kind: Kind, expected: tuple
) -> None:
    plan = _plan.of(a_job(**fields), nodes, kind)
    assert (plan.nodes, plan.ranks, plan.gpus, plan.threads) == expected


def test_c7_one_rank_of_a_node_has_all_of_it_for_ray() -> None:
    for distribution in (azure.RayDistribution(port=6379), {"type": "ray"}):
        plan = _plan.of(a_job(instance_count=2, distribution=distribution), GPU_NODES, Kind())
        assert (plan.kind, plan.nodes, plan.ranks, plan.processes, plan.gpus) == (
            "ray",
            2,
            2,
            plan.threads,
            4,
        )


def test_c7_what_the_ray_distribution_says() -> None:
    assert (
        azure.RayDistribution().wishes() == words.Wishes()
        and azure.RayDistribution().to_dict()["api"] == "troupe"
    )
    said = azure.RayDistribution(
        port=6379,
        include_dashboard=True,
        dashboard_port=8265,
        head_node_additional_args="--labels 'a=b c'",
        worker_node_additional_args="--resources={}",
        api="ray",
        added="x",
    )
    assert said.wishes() == words.Wishes(
        6379, True, 8265, ("--labels", "a=b c"), ("--resources={}",)
    )
    assert a_job(distribution=said.to_dict()).distribution == said, "as a dict, as YAML has it"
    for wrong, text in (
        ({"api": "rey"}, "distribution: api"),
        ({"include_dashboard": "yes"}, "include_dashboard must be True or False"),
        (
            {"head_node_additional_args": "--block"},
            "head_node_additional_args has --block, which the launch says itself",
        ),
        (
            {"worker_node_additional_args": "'"},
            "worker_node_additional_args must be a text of arguments",
        ),
        ({"port": 0}, "port"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            azure.RayDistribution(**wrong)


def test_c3_one_rank_of_a_node_has_what_its_processes_need() -> None:
    plan = _plan.of(
        a_job(instance_count=2, distribution=azure.MpiDistribution(process_count_per_instance=4)),
        GPU_NODES,
        Kind(),
    )
    assert (plan.nodes, plan.ranks, plan.processes, plan.gpus, plan.threads) == (2, 2, 4, 4, 16)


def test_c4_more_instances_than_processes_are_refused() -> None:
    with pytest.raises(
        ValueError, match="instance_count is 3, and the distribution has 2 processes"
    ):
        _plan.of(
            a_job(instance_count=3, distribution={"type": "tensorflow", "worker_count": 2}),
            NODES,
            Kind(),
        )


def test_c4_tf_config_has_the_guides_shape() -> None:
    tasks = [("chief", 0), ("worker", 2), ("ps", 0), ("evaluator", 0)]
    assert json.loads(_tensorflow.config(tasks, ["host0:2222", "host1:2222"], 0)) == {
        "cluster": {"worker": ["host0:2222", "host1:2222"]},
        "task": {"type": "worker", "index": 0},
        "environment": "cloud",
    }
    tasks = [("chief", 1), ("worker", 1), ("ps", 1), ("evaluator", 1)]
    configs = [
        json.loads(_tensorflow.config(tasks, ["a:1", "b:2", "c:3", "d:4"], rank))
        for rank in range(4)
    ]
    assert [each["task"] for each in configs] == [
        {"type": kind, "index": 0} for kind in ("chief", "worker", "ps", "evaluator")
    ]
    assert all(
        each["cluster"] == {"chief": ["a:1"], "worker": ["b:2"], "ps": ["c:3"]} for each in configs
    ), "an evaluator is beside the cluster"
    assert _tensorflow.training_ranks(tasks) == [0, 1]


def test_names_of_compute_mean_nodes_by_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "types.yml"
    file.write_text(
        "gpu-cluster: {labels: {pool: a}}\nStandard_ND96:\n  labels: {gpu_type: H100}\n  prefer: "
        "{fabric: infiniband}\n  gpus: 8\n"
    )
    monkeypatch.setenv(_instances.VARIABLE, str(file))
    kind, unknown = _instances.meant(
        {"compute": "azureml:gpu-cluster", "instance_type": "Standard_ND96"}
    )
    assert (dict(kind.labels), kind.gpus, unknown) == ({"pool": "a", "gpu_type": "H100"}, 8, [])
    where = kind.where()
    assert [term["key"] for term in where["labels"]] == ["pool", "gpu_type", "fabric"]
    assert [[term["key"] for term in each["terms"]] for each in where["fallbacks"]] == [
        ["pool", "gpu_type"]
    ], "a wish gives way"
    with pytest.raises(
        ValueError,
        match=r"compute 'gpu-clutser' is not in .*types\.yml: did you mean 'gpu-cluster'\?",
    ):
        _instances.meant({"compute": "gpu-clutser"})
    file.write_text("x: {label: {}}\n")
    with pytest.raises(ValueError, match=r"types\.yml: x has no 'label': did you mean 'labels'\?"):
        _instances.meant({"compute": "x"})
    monkeypatch.setenv(_instances.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match=_instances.VARIABLE):
        _instances.meant({"compute": "x"})


def test_code_is_a_folder_or_a_file_of_this_machine(tmp_path: Path) -> None:
    folder_of(tmp_path, src__a="x")
    assert _code_folder.check("./src", str(tmp_path)) == str(tmp_path / "src")
    for wrong, said in (
        ("./srcs", "there is no code folder ./srcs in"),
        ("git+https://x/y", "clone it"),
        ("azureml:code:1", "clone it"),
    ):
        with pytest.raises((ValueError, FileNotFoundError)) as refused:
            _code_folder.check(wrong, str(tmp_path))
        assert said in str(refused.value)


def test_the_ignore_file_is_the_amlignore_else_the_gitignore(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "src", **{".gitignore": "*.bin\n/data/\n!keep.bin\n"})
    ignored = _code_folder.rules(str(folder))
    assert ignored is not None
    assert [
        path for path in ("a.bin", "keep.bin", "data/", "sub/data/", "a.py") if ignored(path)
    ] == ["a.bin", "data/"]
    (folder / ".amlignore").write_text("*.py\n")
    ignored = _code_folder.rules(str(folder))
    assert ignored is not None and ignored("a.py") and not ignored("a.bin")


def test_a_missing_module_is_told_with_a_remedy_that_a_job_has() -> None:
    failure = {
        "cause": "No module named 'no_such_module_here'",
        "exception_type": "",
        "log_tail": "ModuleNotFoundError: No module named 'no_such_module_here'\n",
        "traceback": "",
        "node_name": "one",
        "host": "",
        "rank": 0,
        "signal": 0,
        "exit_code": 1,
    }
    for door, is_azure in (("azure", True), ("submit", False)):
        hint = _hints.of_failure(
            {
                "per_rank": [],
                "mode": "ranks",
                "travelled": [f"door={door}"],
                "rank_infos": [],
                "ranks": 1,
            },
            failure,
        )
        assert (
            "'no_such_module_here'" in hint
            and ("pip install at the beginning of the command, or on one" in hint) == is_azure
        ), hint
        assert ("runtime_env" not in hint and "py_modules" not in hint) == is_azure, hint


def test_an_output_in_a_storage_is_refused_without_a_remedy_that_outputs_lack() -> None:
    for mode in (None, "direct"):
        job = a_job(outputs={"o": azure.Output(path="azureml://datastores/d/paths/x", mode=mode)})
        with pytest.raises(ValueError, match="outputs: o: azureml://") as refused:
            _start._output(job, "o", job.outputs["o"])
        assert "direct" not in str(refused.value) and "file:///PATH" in str(refused.value)


def test_the_path_of_an_input_may_come_in_the_call() -> None:
    part = a_job(command="cat ${{inputs.d}}", inputs={"d": Input(type="uri_file")})
    part(d=Input(type="uri_file", path="./x")).check(is_complete=True)
    with pytest.raises(
        ValueError, match=r"inputs: d has no value: give it one, as job\(d=\.\.\.\) does"
    ):
        part.check(is_complete=True)


def test_entities_are_values_and_say_what_to_use_instead() -> None:
    model = azure.Model(name="m", path="./model", type="mlflow_model")
    assert a_job(command="x ${{inputs.m}}", inputs={"m": model}).inputs.m == Input(
        type="mlflow_model", path="./model"
    )
    described = (
        model,
        azure.AmlCompute(name="cpu", size="Standard_DS3_v2", min_instances=0, max_instances=4),
        azure.Workspace(name="w", location="here"),
        azure.Environment(image="x"),
        azure.Data(path="./x"),
    )
    words = (
        "jobs.download",
        "instance_types.yml",
        "TROUPE_ADDRESS",
        "what is installed on the nodes",
        "give a path",
    )
    for each, instead in zip(described, words, strict=True):
        with pytest.raises(TypeError, match=f"not {type(each).__name__}: .*{instead}"):
            azure.MLClient().create_or_update(each)


def test_what_the_service_has_and_is_not_here_is_said_with_what_to_use_instead() -> None:
    client = azure.MLClient()
    with pytest.raises(
        NotImplementedError, match=r"makes no AmlCompute here: .*instance_types\.yml"
    ):
        client.begin_create_or_update(azure.AmlCompute(name="cpu"))
    with pytest.raises(AttributeError, match="jobs has no archive here: jobs go by themselves"):
        _ = client.jobs.archive
    with pytest.raises(AttributeError, match="jobs has no 'strem': did you mean 'stream'"):
        _ = client.jobs.strem


def test_a_poller_tells_of_its_end_each_that_asked_to_know() -> None:
    go, told = threading.Event(), []
    poller = Poller(lambda: assert_is(go.wait(60)))
    poller.add_done_callback(lambda each: told.append((each.status(), "early")))
    unwanted = lambda each: told.append("unwanted")  # noqa: E731
    poller.add_done_callback(unwanted)
    poller.remove_done_callback(unwanted)
    poller.wait(0.01)
    assert (poller.done(), poller.status(), told) == (False, "InProgress", [])
    go.set()
    assert poller.result(60) is None and poller.status() == "Succeeded"
    ended = threading.Event()
    poller.add_done_callback(lambda each: ended.set())
    assert ended.wait(60)
    eventually(lambda: told == [("Succeeded", "early")], what="the call of who asked before")
    failed = Poller(lambda: assert_is(False))
    with pytest.raises(AssertionError):
        failed.result(60)
    assert failed.status() == "Failed"


def assert_is(value: bool) -> None:
    assert value


def test_names_of_azure_identity_take_the_keywords_of_the_real_classes() -> None:
    """A5: an argument that is not known is an error that names it."""
    credentials.DefaultAzureCredential(
        exclude_interactive_browser_credential=False, managed_identity_client_id="a", authority="b"
    )
    credentials.InteractiveBrowserCredential(tenant_id="t", login_hint="me", timeout=3)
    credentials.DeviceCodeCredential("client", prompt_callback=print)
    with pytest.raises(
        TypeError,
        match=r"DefaultAzureCredential\(\) has no exclude_cli_credentials=; did you mean 'exclude_cli_credential'|exclude_cli_credentials=",
    ):
        credentials.DefaultAzureCredential(exclude_cli_credentials=True)
    with pytest.raises(TypeError, match="takes 0 positional arguments, and 1 were given"):
        credentials.ManagedIdentityCredential("client")
