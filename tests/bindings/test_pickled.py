"""Names in pickles of Troupe's own objects (troupe/_pickled.py): public modules and that one.

Method: what is pickled is loaded by an unpickler that notes every name it is asked for. Handles,
refs and groups, which need a cluster: tests/e2e/objects/test_pickled_names.py.
"""

from __future__ import annotations

import importlib
import io
import pickle
from typing import Any

import pytest

import troupe
from troupe import _pickled, exceptions
from troupe._actors import constructor, method_options
from troupe._base import identity as _identity
from troupe._code import capture, program
from troupe._ray_cluster.driver import RayDriver
from troupe.azure._mpi import MpiStart
from troupe.azure._rank import JobStart
from troupe.azure._trials.trial import JobTrial
from troupe.launch import _large_result, _options, distributed
from troupe.launch._over_ray import OverRay
from troupe.spark._rank_zero import RankZero

PUBLIC = [
    "troupe",
    "troupe.actor",
    "troupe.launch",
    "troupe.util",
    "troupe.util.collective",
    "troupe.util.queue",
    "troupe.util.state",
    "troupe.util.placement_group",
    "troupe.util.scheduling_strategies",
    "troupe.util.serialization",
    "troupe.util.actor_pool",
    "troupe.state",
    "troupe.exceptions",
    "troupe.runtime_env",
    "troupe.cluster_utils",
    "troupe.serverless_gpu",
    "troupe.serverless_gpu.compute",
    "troupe.serverless_gpu.launcher",
    "troupe.serverless_gpu.ray",
    "troupe.serverless_gpu.runtime",
    "troupe.spark",
    "troupe.stand_ins",
    "troupe.train",
    "troupe.train.torch",
    "troupe.data",
]


class Noting(pickle.Unpickler):
    """Notes the modules of ours that a pickle names."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.named: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "troupe":
            self.named.add(module)
        return super().find_class(module, name)


def travelled(value: Any) -> Any:
    """The value as it arrives; its pickle names nothing of ours but `troupe._pickled` and public
    modules."""
    noting = Noting(capture.cloudpickled(value))
    arrived = noting.load()
    private = {each for each in noting.named if "._" in each and each != "troupe._pickled"}
    assert not private, f"{value!r} is pickled by names of {private}"
    return arrived


class Refused(Exception):
    def __init__(self, code: int, path: str) -> None:
        super().__init__(f"{code} for {path}")


class Counter:
    @troupe.method(num_returns=2, retry_exceptions=[KeyError])
    def both(self, a: int, b: int = 1) -> tuple:
        return a, b


@pytest.mark.parametrize("name", _pickled.MADE_IN)
def test_each_name_of_the_table_is_found_and_is_what_pickles_name(name: str) -> None:
    try:
        found = getattr(_pickled, name)
    except ImportError as error:
        assert not (error.name or "").startswith("troupe"), error
        pytest.skip(f"{name} needs {error.name}")
    assert (found.__module__, found.__name__) == ("troupe._pickled", name)
    assert pickle.loads(pickle.dumps(found)) is found


def test_values_arrive_as_they_were() -> None:
    traits = method_options.Traits.of_class(Counter, {"max_task_retries": 3})
    options = _options.checked(
        "distributed",
        {
            "processes": 2,
            "cpus_per_rank": 0.5,
            "remote": True,
            "max_attempts": 2,
            "inherit_env": ["A"],
            "priority": 1,
            "stop_grace": 3,
        },
    )
    for value in (
        traits,
        method_options.Traits(),
        method_options.MethodOptions(num_returns="streaming", backpressure=2),
        options,
        _large_result.KeptValue("n", b"digest", 7),
        constructor._Place(3),
        _identity.HexID("ab"),
        program.Program(
            program.SCRIPT,
            "train.py",
            ("--lr", "1"),
            file="/w/train.py",
            max_restarts=2,
            option_files=(("--c", "{}"),),
        ),
        JobStart(
            "job",
            {"": "echo ${{inputs.n}}"},
            {"n": {"how": "text", "value": "3"}},
            tasks=(("worker", 2),),
        ),
        JobStart(
            "job",
            {"": "echo"},
            trial={"reports": "job", "namespace": "troupe.azure", "metric": "loss"},
        ),
        JobTrial("sweep", {"command": "echo"}, "/", "loss"),
        MpiStart(JobStart("job", {"": "echo"}), 2),
    ):
        arrived = travelled(value)
        assert arrived == value and type(arrived) is type(value)


def test_functions_and_classes_arrive_as_what_they_were_made() -> None:
    launched = travelled(distributed(processes=3)(len))
    assert launched([1, 2]) == 2 and launched._options.ranks == 3
    assert vars(travelled(RankZero(len, ["--deepspeed"], [("--c", "{}")])))["_function"] is len
    assert (
        vars(travelled(OverRay(len)))["_function"] is len
        and type(travelled(OverRay(len))) is RayDriver
    )
    assert travelled(troupe.remote(len).options(num_cpus=2))._options == {"num_cpus": 2}
    assert travelled(troupe.remote(Counter).options(name="a"))._cls is Counter


def test_datasets_and_their_shares_arrive_as_they_were() -> None:
    """Not where pyarrow is not installed."""
    pytest.importorskip("pyarrow")
    from troupe import data
    from troupe.data._tasks import MapWorker
    from troupe.train import DataConfig

    ds = (
        data.range(20, override_num_blocks=4).map(lambda row: {"y": row["id"]}, num_cpus=2).limit(7)
    )
    assert travelled(ds).take_all() == [{"y": each} for each in range(7)] and travelled(
        ds
    )._node.child.op.options == {"num_cpus": 2}
    assert travelled(data.from_items([1, 2]).union(data.from_items([3]))).take_all() == [
        {"item": each} for each in (1, 2, 3)
    ]
    shard = data.range(20, override_num_blocks=4).streaming_split(2, equal=True)[1]
    list(shard.iter_rows())
    assert travelled(shard)._epoch == 1 and list(travelled(shard).iter_rows()) == list(
        shard.iter_rows()
    )
    for value in (
        data.ActorPoolStrategy(min_size=2),
        data.FileShuffleConfig(seed=3),
        data.Partitioning("hive"),
        data.Schema(ds.schema().base_schema),
        DataConfig(["a"]),
    ):
        assert travelled(value) == value
    assert travelled(MapWorker) is MapWorker


def test_exceptions_arrive_as_what_they_were() -> None:
    from troupe._base.exception_pickles import carried

    error = travelled(
        exceptions.with_type_of(
            exceptions.TaskError, Refused(3, "/data"), "it failed", remote_traceback="there"
        )
    )
    assert (
        isinstance(error, Refused)
        and isinstance(error, exceptions.TaskError)
        and str(error) == "it failed"
    )
    assert error.remote_traceback == "there" and str(error.cause) == "3 for /data"
    assert str(travelled(carried(Refused(4, "/a")))) == "4 for /a"
    assert str(travelled(exceptions.GetTimeoutError("late"))) == "late"


def test_a_later_version_s_fields_are_left_out() -> None:
    assert _pickled.traits(
        {"max_task_retries": 2, "of a later version": 1}
    ) == method_options.Traits(max_task_retries=2)


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_pickled_as_public_names(module: str) -> None:
    """A script's function that uses them travels with them."""
    public = importlib.import_module(module)
    own = [
        name
        for name, value in vars(public).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module
    ]
    for name in getattr(public, "__all__", own):
        value = getattr(public, name)
        if callable(value) and getattr(value, "__module__", "").startswith("troupe"):
            assert travelled(value) is value


def test_code_that_uses_troupe_names_public_modules_only() -> None:
    def work() -> Any:
        return troupe, exceptions, get, distributed, ObjectRef

    from troupe import ObjectRef, get

    assert travelled(work)() == work()
