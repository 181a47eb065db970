"""Pipelines in files and by functions, as they are written and checked, without a cluster: what is
refused, where, and what a graph they become."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from azure_jobs import folder_of

from troupe.azure import (
    CommandComponent,
    Input,
    MLClient,
    Output,
    command,
    dsl,
    load_component,
    load_job as azure_file,
    sweep,
)
from troupe.azure._pipeline import digests, plan, reuse

HEAD = "type: pipeline\n"
STEP = "command: 'echo ${{inputs.x}}', inputs: {x: 1}, outputs: {o: {type: uri_folder}}"
TRAIN = """
type: command
name: train
inputs:
  data: {type: uri_folder}
  epochs: {type: integer, default: 2, max: 9}
  rate: {type: number, optional: true}
outputs: {model: {type: uri_folder}}
command: python train.py ${{inputs.data}} ${{inputs.epochs}} $[[${{inputs.rate}}]] ${{outputs.model}}
code: ./src
"""
INNER = """
type: pipeline
name: inner
inputs: {data: {type: uri_folder}, epochs: {type: integer, default: 1}}
outputs: {model: {type: uri_folder}}
jobs:
  fit:
    component: ./train.yml
    inputs: {data: "${{parent.inputs.data}}", epochs: "${{parent.inputs.epochs}}"}
    outputs: {model: "${{parent.outputs.model}}"}
"""

# Wrong files: (the file, the places, words of the message).
WRONG: dict[str, tuple[str, list[str], list[str]]] = {
    "no steps": (HEAD, ["p.yml:1:1"], ["needs jobs: its steps by their names"]),
    "keys and settings": (
        f"{HEAD}setings: {{}}\nsettings: {{force_rerun: maybe, default_compue: x}}\njobs:\n  a: "
        f"{{{STEP}}}\n",
        ["p.yml:2:1", "p.yml:3:25", "p.yml:3:32"],
        [
            "did you mean 'settings'",
            "force_rerun must be true or false, not 'maybe'",
            "did you mean 'default_compute'",
        ],
    ),
    "kinds of steps": (
        f"{HEAD}jobs:\n  a: {{type: spark}}\n  b: {{type: automl}}\n  c: {{type: parallel}}\n  d: "
        f"{{type: import}}\n  e: {{type: data_transfer}}\n"
        "  f: {type: comand}\n",
        [f"p.yml:{line}:13" for line in range(3, 9)],
        [
            "'spark', which is not run here: use troupe.spark",
            "'automl', which",
            "'parallel', which",
            "'import', which",
            "'data_transfer', which",
            "did you mean 'command'?",
        ],
    ),
    "registered components": (
        f"{HEAD}jobs:\n  a: {{component: azureml:train@latest}}\n  b: {{component: "
        f"azureml://registries/azureml/components/x/versions/1}}\n",
        ["p.yml:3:18", "p.yml:4:18"],
        ["'azureml:train@latest': components are registered nowhere here"],
    ),
    "a component that is not there": (
        f"{HEAD}jobs:\n  a: {{component: ./trian.yml}}\n",
        ["p.yml:3:18"],
        ["there is no file ./trian.yml"],
    ),
    "bindings": (
        f"{HEAD}inputs: {{n: 1}}\njobs:\n  a: {{{STEP}}}\n  b:\n    command: echo "
        f"${{{{inputs.p}}}} ${{{{inputs.q}}}} ${{{{inputs.r}}}} ${{{{inputs.s}}}}\n    inputs:\n"
        "      p: ${{parent.inputs.m}}\n      q: ${{parent.jobs.c.outputs.o}}\n      r: "
        "${{parent.jobs.a.outputs.oo}}\n      s: ${{parent.job.a}}\n",
        [f"p.yml:{line}:10" for line in range(8, 12)],
        [
            "the pipeline has no input 'm'",
            "no step 'c'",
            "step a has no output 'oo'",
            "${{parent.job.a}} is no binding",
        ],
    ),
    "outputs": (
        f"{HEAD}outputs: {{m: {{}}, n: {{}}}}\njobs:\n  a: {{command: x, outputs: {{o: "
        f'"${{{{parent.outputs.m}}}}", p: "${{{{parent.outputs.k}}}}"}}}}\n'
        '  b: {command: x, outputs: {o: "${{parent.outputs.m}}"}}\n',
        ["p.yml:2:18", "p.yml:4:60", "p.yml:5:32"],
        ["no step writes it", "the pipeline has no output 'k'", "is written by step a already"],
    ),
    "bound fields": (
        f"{HEAD}inputs: {{n: 1}}\njobs:\n  a:\n    command: echo ${{{{parent.inputs.n}}}}\n    "
        f'compute: ${{{{parent.inputs.n}}}}\n    inputs: {{x: "1${{{{parent.inputs.n}}}}"}}\n',
        ["p.yml:5:14", "p.yml:6:14", "p.yml:7:17"],
        ["a step binds an input to it", "compute is", "input or output is bound, as a whole"],
    ),
    "a circle": (
        f'{HEAD}jobs:\n  a: {{command: x, inputs: {{i: "${{{{parent.jobs.b.outputs.o}}}}"}}, '
        f"outputs: {{o: {{}}}}}}\n"
        '  b: {command: x, inputs: {i: "${{parent.jobs.a.outputs.o}}"}, outputs: {o: {}}}\n',
        ["p.yml:3:6"],
        ["wait for each other: a -> b -> a"],
    ),
    "a file for a folder": (
        f"{HEAD}jobs:\n  a: {{command: x, outputs: {{o: {{type: uri_file}}}}}}\n  b:\n    command: "
        f"cat ${{{{inputs.i}}}}\n"
        '    inputs: {i: {type: uri_folder, path: "${{parent.jobs.a.outputs.o}}"}}\n',
        ["p.yml:6:17"],
        ["of type uri_folder, and ${{parent.jobs.a.outputs.o}} of type uri_file"],
    ),
    "values of a component's inputs": (
        f"{HEAD}inputs: {{n: many, d: {{type: uri_folder, path: .}}}}\njobs:\n  a:\n    component: "
        f"./train.yml\n    inputs: {{data: 3, epochs: 12, rte: 1}}\n"
        '  b:\n    component: ./train.yml\n    inputs: {data: "${{parent.inputs.d}}", epochs: '
        '"${{parent.inputs.n}}"}\n'
        "  c: {component: ./train.yml}\n",
        ["p.yml:6:20", "p.yml:6:31", "p.yml:6:35", "p.yml:9:52", "p.yml:10:6"],
        [
            "of type uri_folder, and needs a path, not 3",
            "12, which is not within",
            "did you mean 'rate'",
            "must be of type integer, not 'many'",
            "input data has no value",
        ],
    ),
    "a step's own command beside a component": (
        f"{HEAD}jobs:\n  a: {{component: ./train.yml, command: x, inputs: {{data: .}}}}\n",
        ["p.yml:3:31"],
        ["has a component, whose command it runs"],
    ),
    "files that are wrong too": (
        f"{HEAD}jobs:\n  a: {{component: ./wrong.yml}}\n  b: {{command: 3}}\n",
        ["p.yml:4:16", "wrong.yml:2:1", "wrong.yml:3:10"],
        ["command must be a string, not 3", "did you mean 'command'", "the job has no input 'x'"],
    ),
    "a component of another type": (
        f"{HEAD}jobs:\n  a: {{component: ./spark.yml}}\n",
        ["spark.yml:1:7"],
        ["'spark', which is not run here"],
    ),
    "a pipeline in itself": (
        f"{HEAD}jobs:\n  a: {{component: ./self.yml}}\n",
        ["self.yml:3:18"],
        ["a pipeline that has itself as a step"],
    ),
    "a sweep step": (
        f"{HEAD}jobs:\n  a:\n    type: sweep\n    trial: ./train.yml\n    search_space: {{epochs: "
        f"{{type: chioce, values: [1]}}}}\n    objective: {{goal: maximise, primary_metric: m}}\n"
        "    inputs: {data: .}\n",
        ["p.yml:6:35", "p.yml:7:23"],
        ["did you mean 'choice'", "did you mean 'maximize'"],
    ),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with components, which is the current one."""
    monkeypatch.chdir(
        folder_of(
            tmp_path / "w",
            **{
                "train.yml": TRAIN,
                "src__train.py": "",
                "inner.yml": INNER,
                "spark.yml": "type: spark\n",
                "self.yml": f"{HEAD}jobs:\n  x: {{component: ./self.yml}}\n",
                "wrong.yml": "type: command\ncomand: x\ncommand: echo ${{inputs.x}}\n",
            },
        )
    )
    return tmp_path / "w"


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_pipeline_is_refused_with_all_places(here: Path, what: str) -> None:
    text, places, words = WRONG[what]
    Path("p.yml").write_text(text)
    with pytest.raises((ValueError, FileNotFoundError)) as refused:
        azure_file("p.yml")
    said = str(refused.value)
    assert re.findall(r"^ *(?:\S*/)?(\w+\.yml:\d+:\d+): ", said, re.M) == places, said
    assert all(each in said for each in words), said


def flat_of(job: Any) -> dict[str, tuple[dict[str, Any], dict[str, tuple[str, str]]]]:
    """By the steps' names, (values of inputs, sources of inputs)."""
    steps, _ = plan.flat(job)
    return {
        name: (
            {
                each: getattr(value, "path", value)
                for each, value in step.job.inputs.items()
                if each not in step.sources
            },
            dict(step.sources),
        )
        for name, step in steps.items()
    }


def test_components_and_pipelines_in_pipelines_become_one_graph(here: Path) -> None:
    Path("p.yml").write_text(f"""{HEAD}
settings: {{default_compute: azureml:big, continue_on_step_failure: true}}
inputs: {{n: 4, raw: {{type: uri_folder, path: ./src}}}}
outputs: {{best: {{path: ./best}}}}
jobs:
  prep:
    command: cp -r ${{{{inputs.raw}}}} ${{{{outputs.clean}}}}
    inputs: {{raw: "${{{{parent.inputs.raw}}}}"}}
    outputs: {{clean: {{}}}}
    compute: azureml:small
  whole:
    type: pipeline
    component: ./inner.yml
    inputs: {{data: "${{{{parent.jobs.prep.outputs.clean}}}}", epochs: "${{{{parent.inputs.n}}}}"}}
    outputs: {{model: "${{{{parent.outputs.best}}}}"}}
  again:
    component: file:train.yml
    inputs: {{data: {{type: uri_folder, path: "${{{{parent.jobs.whole.outputs.model}}}}", mode: download}}, rate: "0.5"}}
    environment_variables: {{A: b}}
""")
    job = azure_file("p.yml")
    steps, sources = plan.flat(job)
    assert list(steps) == ["prep", "whole.fit", "again"] and sources == {
        "best": ("whole.fit", "model")
    }
    assert flat_of(job) == {
        "prep": ({"raw": str(here / "src")}, {}),
        "whole.fit": ({"epochs": 4, "rate": None}, {"data": ("prep", "clean")}),
        "again": ({"epochs": 2, "rate": 0.5}, {"data": ("whole.fit", "model")}),
    }
    assert [each.job.compute for each in steps.values()] == [
        "azureml:small",
        "azureml:big",
        "azureml:big",
    ]
    assert (
        steps["again"].job.inputs.data.mode,
        steps["again"].job.environment_variables,
        steps["again"].job.base_path,
    ) == ("download", {"A": "b"}, str(here))
    assert steps["whole.fit"].job.outputs.model.path == str(here / "best")
    assert job.settings.continue_on_step_failure is True
    assert azure_file("p.yml", params_override=[{"inputs.n": 7}]).inputs.n == 7


def test_a_function_becomes_the_same_graph(here: Path) -> None:
    train = load_component("./train.yml")
    assert (train.name, train.version, list(train.inputs)) == (
        "train",
        "1",
        ["data", "epochs", "rate"],
    )
    made = CommandComponent(
        name="own",
        command="echo ${{inputs.n}}",
        environment="e",
        inputs={"n": Input(type="integer")},
    )
    assert made(n=3).inputs.n == 3 and MLClient().create_or_update(made).version == "1"
    prepare = command(
        name="prepare",
        command="cp -r ${{inputs.raw}} ${{outputs.clean}} && echo ${{inputs.word}}",
        environment="e",
        inputs={"raw": Input(type="uri_folder"), "word": "x"},
        outputs={"clean": Output(type="uri_folder")},
    )
    assert (
        MLClient().create_or_update(prepare.component).name == "prepare"
        and MLClient().create_or_update(train) is train
    )

    @dsl.pipeline()
    def inner(data, epochs):
        fit = train(data=data, epochs=epochs)
        return {"model": fit.outputs.model}

    @dsl.pipeline(compute="big", description="all of it", non_pipeline_inputs=["twice"])
    def whole(raw, epochs=3, twice=False):
        clean = prepare(raw=raw, word="y")
        nested = inner(data=clean.outputs.clean, epochs=epochs)
        for _ in range(2 if twice else 1):
            train(data=clean, rate=0.1)
        tried = prepare(raw=nested.outputs.model, word=sweep.Choice(["a", "b"])).sweep(
            primary_metric="m", goal="maximize"
        )
        tried.set_limits(max_total_trials=2)
        last = command(
            command="cat ${{inputs.one}}", inputs={"one": tried.outputs.clean}, environment="e"
        )
        last.compute = "small"
        return {"model": nested.outputs.model}

    job = whole(raw=Input(type="uri_folder", path="./src"), twice=True)
    steps, sources = plan.flat(job)
    assert set(steps) == {
        "clean",
        "nested.fit",
        "train",
        "train_1",
        "tried",
        "last",
    } and sources == {"model": ("nested.fit", "model")}
    found = flat_of(job)
    assert found["nested.fit"] == ({"epochs": 3, "rate": None}, {"data": ("clean", "clean")})
    assert found["train_1"] == ({"epochs": 2, "rate": 0.1}, {"data": ("clean", "clean")})
    assert (found["tried"][1], found["last"][1]) == (
        {"raw": ("nested.fit", "model")},
        {"one": ("tried", "clean")},
    )
    assert (
        steps["tried"].job.type == "sweep"
        and steps["last"].job.compute == "small"
        and steps["clean"].job.compute == "big"
    )
    assert (job.display_name, job.description, job.settings.default_compute) == (
        "whole",
        "all of it",
        "big",
    )
    assert job.to_dict()["jobs"]["nested"]["outputs"] == {"model": "${{parent.outputs.model}}"}
    job.check()


def test_what_a_function_does_wrong_is_named(here: Path) -> None:
    train = load_component("./train.yml")

    @dsl.pipeline
    def asks(n):
        train(data="./src", epochs=1 if n else 2)

    @dsl.pipeline
    def nothing(n):
        return {"o": n}

    @dsl.pipeline
    def empty():
        return None

    with pytest.raises(
        TypeError, match=r"n is an input of the pipeline, .*non_pipeline_inputs=\['n'\]"
    ):
        asks(1)
    with pytest.raises(TypeError, match="returns o: .* no output of one of its steps"):
        nothing(1)
    with pytest.raises(ValueError, match="the pipeline empty has no step"):
        empty()
    with pytest.raises(TypeError, match="missing a required argument: 'n'"):
        asks()
    with pytest.raises(TypeError, match=r"@pipeline has no computee=: did you mean 'compute'"):
        dsl.pipeline(computee="x")
    with pytest.raises(ValueError, match="did you mean 'epochs'"):
        train(data="./src", epoch=1)
    with pytest.raises(TypeError, match="must be of type integer, not 'x'"):
        train(data="./src", epochs="x")
    with pytest.raises(ValueError, match="did you mean 'force_rerun'"):
        azure_file("inner.yml").settings.force_rerunn = True


def test_the_key_of_a_step_is_all_that_its_command_sees(tmp_path: Path) -> None:
    def key(digest: str = "d", code: str = "c", **changes: Any) -> str:
        job = {
            "type": "command",
            "command": "x",
            "inputs": {"n": 1, "data": {"type": "uri_folder", "path": "/a"}},
            **changes,
        }
        return reuse.key_of(plan.StepPlan(job, "/", code=code), {"data": digest})

    first = key()
    assert (
        key(name="other", display_name="x", tags={"a": "b"}, limits={"timeout": 3}, compute="big")
        == first
    )
    assert key(inputs={"data": {"type": "uri_folder", "path": "/b"}, "n": 1}) == first, (
        "where the data is does not count"
    )
    others = [
        key("e"),
        key(code="k"),
        key(command="y"),
        key(environment_variables={"A": "b"}),
        key(environment="e"),
        key(resources={"instance_count": 2}),
        key(inputs={"n": 2, "data": {"type": "uri_folder", "path": "/a"}}),
        key(outputs={"o": {"type": "uri_file"}}),
    ]
    assert len({first, *others}) == 1 + len(others)
    inputs = {
        "data": Input(type="uri_folder", path="/a"),
        "web": Input(type="uri_file", path="https://a.b/c"),
    }
    assert reuse.digests_of_inputs(inputs, {"data": "d"}, "/", same_host=True) is None, (
        "what an address has cannot be told"
    )
    assert (
        reuse.digests_of_inputs(
            {"data": Input(path="/a", mode="rw_mount")}, {"data": "d"}, "/", same_host=True
        )
        is None
    )


def test_a_digest_is_of_names_and_contents(tmp_path: Path) -> None:
    def digest(name: str, **files: str) -> str:
        return digests.of_path(folder_of(tmp_path / name, **files))

    first = digest("a", x__b="1", c="2")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert digest("b", x__b="1", c="2") == first == digests.of_path(tmp_path / "link")
    others = [
        digest("d", x__b="1", c="3"),
        digest("e", x__b="1", d="2"),
        digest("f", xb="1", c="2"),
        digest("g", x__b="1", c="2", e=""),
        digest("h"),
    ]
    assert len({first, *others}) == 1 + len(others)
    (tmp_path / "a/x/loop").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="a link to a folder that it lies in"):
        digests.of_path(tmp_path / "a")
