"""Options of remote functions: what is refused, by which error, and what stands where nothing is
said. And options of all kinds as editors see them: of the same names as at run time."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

import troupe
from troupe import _native as native, launch, tune
from troupe._actors import option_table as actors, options as actor_options
from troupe._actors.handle import ActorMethod
from troupe._actors.method_table import METHODS, MethodOptions, ReturnsOptions
from troupe._cluster import node_start
from troupe._cluster.options import nodes
from troupe._tasks import option_table as tasks
from troupe._tasks.options import check, placing
from troupe._typed import option
from troupe.cli._start import start
from troupe.launch import _submit
from troupe.launch._options import table as launches


def plain() -> None:
    """A function."""


def yields():
    """A function that yields."""
    yield 1


async def later() -> None:
    """A coroutine."""


WRONG = [
    ({"nonsense": 1}, ValueError, "max_retries"),
    ({"num_returns": -1}, ValueError, "num_returns"),
    ({"num_returns": "many"}, ValueError, "streaming"),
    ({"max_retries": -2}, ValueError, "max_retries"),
    ({"max_retries": 1.5}, TypeError, "max_retries"),
    ({"max_retries": True}, TypeError, "max_retries"),
    ({"retry_exceptions": KeyError}, ValueError, "retry_exceptions"),
    ({"retry_exceptions": ["KeyError"]}, ValueError, "retry_exceptions"),
    ({"max_calls": -1}, ValueError, "max_calls"),
    ({"max_calls": "2"}, TypeError, "max_calls"),
    ({"num_cpus": -1}, ValueError, "num_cpus"),
    ({"num_cpus": "2"}, TypeError, "num_cpus"),
    ({"num_cpus": float("nan")}, ValueError, "num_cpus"),
    ({"num_gpus": 1.5}, ValueError, "whole GPUs"),
    ({"memory": None, "resources": 3}, TypeError, "resources"),
    ({"resources": {"CPU": 1}}, ValueError, "num_cpus"),
    ({"resources": {"disk": -1}}, ValueError, "disk"),
    ({"name": 3}, TypeError, "name"),
    ({"accelerator_type": 100}, ValueError, "accelerator_type"),
    (
        {"accelerator_type": "H100", "label_selector": {"gpu_type": "A10"}},
        ValueError,
        "different GPUs",
    ),
    ({"label_selector": "zone=a"}, ValueError, "label_selector"),
    ({"label_selector": {"zone": 1}}, ValueError, "zone"),
    ({"fallback_strategy": [{"zone": "a"}]}, ValueError, "fallback_strategy"),
    ({"priority": 1.5}, ValueError, "priority"),
]


@pytest.mark.parametrize(("options", "kind", "words"), WRONG)
def test_what_can_never_be_right_is_refused(options: dict, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        check(plain, options)


class Plain:
    """A class."""


AMOUNTS = [
    (
        {"num_gpus": -1},
        ValueError,
        "num_gpus must be a number of at least 0, and at most 1e+14, not -1",
    ),
    (
        {"num_cpus": float("nan")},
        ValueError,
        "num_cpus must be a number of at least 0, and at most 1e+14, not nan",
    ),
    (
        {"num_cpus": float("inf")},
        ValueError,
        "num_cpus must be a number of at least 0, and at most 1e+14, not inf",
    ),
    (
        {"memory": -5},
        ValueError,
        "memory must be a number of at least 0, and at most 1e+14, not -5",
    ),
    (
        {"num_gpus": 1.5},
        ValueError,
        "num_gpus must be a fraction of one GPU or whole GPUs, not 1.5",
    ),
    ({"num_gpus": "1"}, TypeError, "num_gpus must be a number of at least 0, not '1'"),
    ({"num_cpus": "1"}, TypeError, "num_cpus must be a number of at least 0, not '1'"),
    ({"num_cpus": True}, TypeError, "num_cpus must be a number of at least 0, not True"),
    ({"memory": "1"}, TypeError, "memory must be a number of at least 0, not '1'"),
    (
        {"resources": {"GPU": 1.5}},
        ValueError,
        "give GPU as num_cpus=, num_gpus= or memory=, not inside resources=",
    ),
    (
        {"resources": {"disk": -1}},
        ValueError,
        "resources['disk'] must be a number of at least 0, and at most 1e+14, not -1",
    ),
    (
        {"resources": {"disk": "1"}},
        TypeError,
        "resources['disk'] must be a number of at least 0, not '1'",
    ),
    ({"resources": {3: 1}}, TypeError, "resources: 3 is no name of a resource"),
    ({"resources": 3}, TypeError, "resources must be a dict of names and amounts, not 3"),
]
FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "decorated function": lambda options: troupe.remote(**options)(plain),
    "options of a function": lambda options: troupe.remote(plain).options(**options),
    "decorated class": lambda options: troupe.remote(**options)(Plain),
    "options of a class": lambda options: troupe.remote(Plain).options(**options),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("options", "kind", "words"), AMOUNTS)
def test_an_amount_that_is_none_is_refused_alike_for_tasks_and_actors_before_anything_starts(
    options: dict, kind: type, words: str, form: str
) -> None:
    with pytest.raises(kind) as caught:
        FORMS[form](options)
    assert str(caught.value) == words


def test_coroutines_are_for_actors() -> None:
    with pytest.raises(ValueError, match="async def"):
        check(later, {})


def test_defaults() -> None:
    options = check(plain, {})
    assert options.max_retries == 3 and options.max_calls == 0 and options.retried == 0
    assert options.name == "plain" and options.target("k") == "k"
    assert check(yields, {}).target("k") == "k;returns=*"
    assert check(yields, {"num_returns": 2}).target("k") == "k;returns=2"
    assert check(plain, {"num_returns": "dynamic"}).target("k") == "k;returns=*"
    assert check(plain, {"retry_exceptions": True}).retried == 1
    assert check(plain, {"retry_exceptions": [KeyError]}).retried == 2
    assert check(plain, {"retry_exceptions": []}).retried == 0


def test_one_cpu_unless_something_is_said() -> None:
    assert placing({"name": "x", "max_calls": 1}) == {"num_cpus": 1}
    assert placing({"num_cpus": 0, "num_gpus": 1}) == {"num_cpus": 0, "num_gpus": 1}


def test_a_process_that_has_a_gpu_runs_one_task() -> None:
    """As Ray's: what the task leaves there, or breaks there, is not the next one's."""
    assert check(plain, {}).max_calls == 0 and check(plain, {"num_gpus": 0}).max_calls == 0
    assert check(plain, {"num_gpus": 0.5}).max_calls == 1
    assert check(plain, {"num_gpus": 1, "max_calls": 0}).max_calls == 0


TAKEN: dict[str, tuple[Callable[..., Any], dict[str, option.Option], tuple[type, ...]]] = {
    "remote": (troupe.remote, tasks.TASKS | actors.ACTORS, (ReturnsOptions, tasks.RemoteOptions)),
    "task": (
        troupe.remote(plain).options,
        tasks.TASKS,
        (ReturnsOptions, tasks.TaskOptions),
    ),
    "actor": (troupe.ActorClass.options, actors.ACTORS, (actors.ActorOptions,)),
    "method": (troupe.method, METHODS, (ReturnsOptions, MethodOptions)),
    "call": (ActorMethod.options, METHODS, (ReturnsOptions, MethodOptions)),
}


@pytest.mark.parametrize("noun", TAKEN)
def test_the_tables_of_tasks_and_actors_are_what_is_taken_and_said(noun: str) -> None:
    taker, table, seen = TAKEN[noun]
    by_name = {
        each.name: each
        for each in inspect.signature(taker).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    }
    assert set(by_name) == set(table)
    said = (taker.__doc__ or "").partition("Args:\n")[2]
    for name, kind in option.types_of(*seen).items():
        assert by_name[name].annotation == kind
        assert f"    {name}: " in said
        if by_name[name].default is None:
            assert {"None", "Optional", "NoneType"} & set(re.findall(r"\w+", str(kind))), (
                f"{name} may not be None"
            )


def test_each_field_of_an_actors_message_has_its_option_and_is_told() -> None:
    """The command that travels, and what the actor's process is told, are made of the table."""
    given = {"max_restarts": 3, "priority": 2, "lifetime": "detached", "exit_grace": 1.5}
    fields = option.message_of(actors.ACTORS, actor_options.check(given))
    assert fields == {
        "name": "",
        "detached": True,
        "max_concurrency": 1,
        "max_restarts": 3,
        "get_if_exists": False,
        "priority": 2,
    }
    native.encode_message("CreateActor", {"spec": fields})
    running = actor_options.running_of(given)
    assert running["exit_grace"] == 1.5 and running["groups"] == {}


@pytest.mark.parametrize(
    "seen, decorator",
    [
        (launches.DistributedOptions, launch.distributed),
        (launches.DriverOptions, launch.ray_launch),
    ],
)
def test_the_table_of_launches_is_what_their_decorators_take_and_say(
    seen: type, decorator: Callable[..., Any]
) -> None:
    parameters = list(inspect.signature(decorator).parameters.values())[1:]
    table, types = option.table_of(seen), option.types_of(seen)
    assert [each.name for each in parameters] == list(table)
    said = (decorator.__doc__ or "").partition("Args:\n")[2]
    for each in parameters:
        assert each.annotation == types[each.name]
        assert each.default == table[each.name].default
        if each.default is None:
            assert type(None) in get_args(each.annotation), f"{each.name} may not be None"
        assert f"    {each.name}: " in said
    decorated = decorator(processes=2)(lambda: None)._options
    for name, about in launches.ALL.items():
        if name in table and hasattr(decorated, name) and name != "gpus":
            assert getattr(decorated, name) == about.check(name, about.default)


def test_each_option_of_a_message_has_its_field_and_reaches_it() -> None:
    kinds = {name for name, each in launches.ALL.items() if each.wire}
    assert {"exit_grace", "timeout", "on_rank_death", "priority", "detach"} <= kinds

    @launch.distributed(processes=3, exit_grace=2.5, timeout=1.25, on_rank_death="shrink")
    def train() -> None: ...

    spec = _submit.spec_of(train._options, "train", {"travelled": [], "env": []})
    assert (spec["exit_grace_ms"], spec["timeout_ms"], spec["hang_ms"]) == (2500, 1250, 0)
    assert (spec["on_rank_death"], spec["ranks_min"], spec["reform_ms"]) == ("shrink", 1, 300_000)
    native.encode_message("SubmitLaunch", {"spec": spec, "request": "0" * 32})


@pytest.mark.parametrize(
    "given, words",
    [
        ({"exit_grace": -1}, "exit_grace must be 0 to 86400 seconds, not -1"),
        ({"processes": 0}, "processes must be a whole number of at least 1, not 0"),
        ({"gpus": 1}, "takes exactly one of gpus= and processes=, both given"),
        ({"proceses": 3}, "@distributed has no proceses=: did you mean 'processes'?"),
        ({"gpu_type": "A10"}, "gpu_type= goes with gpus="),
        ({"inherit_env": "A"}, "inherit_env must be a list of names, not a text"),
        ({"api": "ray"}, "@distributed has no api=; it has backend, cpus_per_rank"),
    ],
)
def test_a_wrong_option_of_a_launch_is_said(given: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        launch.distributed(**{"processes": 2, **given})


@pytest.mark.parametrize(
    "given_to, words",
    [
        (lambda: launch.distributed(proceses=2), "@distributed has no proceses=: did you mean"),
        (lambda: launch.distributed(processes=2)(plain).options(time_out=1), "'timeout'?"),
        (lambda: tune.sweep(trails=2), "@sweep has no trails=: did you mean 'trials'?"),
        (
            lambda: troupe.remote(num_cpu=1)(plain),
            "a task has no num_cpu=: did you mean 'num_cpus'",
        ),
        (lambda: troupe.remote(max_restart=1)(Plain), "an actor has no max_restart=: did you mean"),
        (lambda: troupe.method(num_return=2), "a method has no num_return=: did you mean"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_by_every_noun(
    given_to: Callable[[], Any], words: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        given_to()


@pytest.mark.parametrize(
    "table, program", [(nodes.NODES, "worker/main.cc"), (nodes.HEADS, "head/main.cc")]
)
def test_each_option_of_nodes_and_heads_is_a_flag_of_the_command_and_of_its_program(
    table: dict[str, option.Option], program: str
) -> None:
    source = (Path(__file__).parents[2] / program).read_text()
    taken = set(re.findall(r"ABSL_FLAG\(\s*[\w:]+, (\w+)", source))
    flags = {each.name: each for each in start.params}
    for name, each in table.items():
        assert each.wire in taken, f"{program} has no flag for {name}"
        said = flags[name].help
        assert each.doc.partition(". ")[0].rstrip(".").replace("`", "")[1:] in said
        assert each.unsaid in said


def test_options_of_a_node_are_its_programs_command_line() -> None:
    offer = node_start.offer(num_cpus=2, labels={"zone": "a"}, log_gib=0.5, preimport=[["a", "b"]])
    assert offer == [
        "--num_cpus=2",
        "--labels=zone=a",
        "--preimport=a,b",
        "--ended_log_bytes_max=536870912",
    ]
    with pytest.raises(ValueError, match="log_days must be a number from 0 to 36500, not -1"):
        node_start.offer(log_days=-1)
