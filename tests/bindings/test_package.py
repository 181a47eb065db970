"""The package by itself, without a cluster: importing, what travels, errors, options."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import types
from pathlib import Path
from types import SimpleNamespace

import pytest

from troupe import exceptions
from troupe._actors import deaths, options
from troupe._base import checks as _checks
from troupe._cluster import resources, scratch, variables
from troupe._code import capture, environment, failures, runtime_env
from troupe._process import group_names, process_groups
from troupe.launch import _errors, distributed
from troupe.ray_compat import _words as ray_words
from troupe.train import GroupAborted
from troupe.tune._run import places


def run(code: str, **env: str) -> str:
    """A program's output, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_starts_no_thread_and_loads_nothing_heavy() -> None:
    run("""
import os, sys
import troupe
from troupe.launch import distributed
assert len(os.listdir("/proc/self/task")) == 1
heavy = {"torch", "numpy", "click", "rich", "cloudpickle", "asyncio"} & set(sys.modules)
assert not heavy, heavy
troupe.init, troupe.get_actor
assert len(os.listdir("/proc/self/task")) == 1
""")


@pytest.mark.parametrize("module", ["troupe._actors.streams", "troupe._actors.retries"])
def test_cancel_waits_for_a_module_that_another_thread_is_loading(module: str) -> None:
    out = run(f"""
import importlib.util, sys, threading
import troupe
from troupe._base import calls as _calls
from troupe._tasks import functions as _tasks
begun, go_on = threading.Event(), threading.Event()

class Slow:
    def find_spec(self, name, path, target=None):
        if name != {module!r}:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def exec_module(made):
            begun.set()
            go_on.wait()
            execute(made)
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Slow())
loading = threading.Thread(target=lambda: __import__({module!r}))
loading.start()
begun.wait()

promise, raised = _calls.Promise(), []
def cancel():
    try:
        troupe.cancel(promise.ref)
    except Exception as error:
        raised.append(error)

def waits_for_it(frame):
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False

cancelling = threading.Thread(target=cancel)
cancelling.start()
while cancelling.is_alive() and not waits_for_it(sys._current_frames().get(cancelling.ident)):
    cancelling.join(0.001)
go_on.set()
cancelling.join()
loading.join()
print(raised)
""")
    assert out == "[]\n"


def test_every_public_name_exists() -> None:
    import troupe

    for name in troupe.__all__:
        assert getattr(troupe, name) is not None
    assert exceptions.RayActorError is exceptions.ActorError


class Custom(Exception):
    """An exception with a field and an __init__ of its own."""

    def __init__(self, code: int, *, why: str) -> None:
        super().__init__(f"{code}: {why}")
        self.code = code


@pytest.mark.parametrize("cause", [SystemExit(3), KeyboardInterrupt()])
def test_what_would_end_the_caller_in_silence_does_not(cause: BaseException) -> None:
    error = exceptions.with_type_of(exceptions.LaunchError, cause, "the text", rank=3)
    assert isinstance(error, Exception) and not isinstance(error, type(cause))
    assert str(error) == "the text" and error.rank == 3 and error.cause is cause


@pytest.mark.parametrize(
    "cause",
    [
        KeyError("x"),
        FileNotFoundError(2, "no such file", "a.txt"),
        Custom(7, why="because"),
        UnicodeDecodeError("utf8", b"x", 0, 1, "bad"),
    ],
)
def test_an_error_is_also_of_its_cause_s_type(cause: BaseException) -> None:
    error = exceptions.with_type_of(exceptions.LaunchError, cause, "the text", rank=3)
    for each in (
        error,
        pickle.loads(pickle.dumps(error)) if not isinstance(cause, Custom) else error,
    ):
        assert isinstance(each, type(cause)) and isinstance(each, exceptions.LaunchError)
        assert str(each) == "the text" and each.rank == 3 and each.args == cause.args
    if isinstance(cause, Custom):
        assert error.code == 7
    if isinstance(cause, OSError):
        assert (error.errno, error.filename) == (2, "a.txt")
    nested = exceptions.with_type_of(exceptions.TaskError, error, "outer")
    assert (
        isinstance(nested, type(cause))
        and isinstance(nested, exceptions.TaskError)
        and str(nested) == "outer"
    )


def test_a_capture_is_named() -> None:
    lock, table = threading.Lock(), bytearray(3 << 20)

    def uses(n: int) -> object:
        return [lock for _ in range(n)]

    with pytest.raises(exceptions.LaunchError, match="captures `lock`") as caught:
        capture.dumps(uses, (1,), {}, what="the function")
    assert isinstance(caught.value, TypeError)
    with pytest.raises(
        exceptions.LaunchError, match="`table` .bytearray, 3.0 MiB.*limit is 1.0 MiB"
    ):
        capture.dumps(lambda: table, (), {}, what="the function", limit=1 << 20)
    with pytest.raises(exceptions.LaunchError, match="argument `data`"):
        capture.dumps(len, (), {"data": table}, what="the function", limit=1 << 20)
    assert pickle.loads(capture.dumps(len, (table,), {}, what="the function"))[1] == (table,)


def test_captures_of_classes_are_found_in_their_methods() -> None:
    lock = threading.Lock()

    class Holder:
        def method(self) -> object:
            return lock

    with pytest.raises(exceptions.LaunchError, match="`lock`"):
        capture.dumps(Holder, (), {}, what="the actor class Holder")


def test_which_variables_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "NCCL_DEBUG": "INFO",
        "OMP_NUM_THREADS": "3",
        "SET_HERE": "x",
        "TROUPE_TOKEN_FILE": "/t",
        "RANK": "3",
        "PATH": os.environ["PATH"] + ":/b",
    }.items():
        monkeypatch.setenv(name, value)
    session = SimpleNamespace(
        in_process=False,
        kept={runtime_env.SPREAD: runtime_env.Spread(asked_s=math.inf)},
        same_host=True,
        runtime_env=None,
        infeasible=None,
        job="7f3a02bc",
        namespace="prod",
        embedded=None,
    )
    built = environment.build({"env_vars": {"A": "b"}}, ["TROUPE_*"], session=session)
    names = {item["name"] for item in built["env"]}
    assert {"NCCL_DEBUG", "OMP_NUM_THREADS", "SET_HERE", "A"} <= names
    assert [
        each["value"]
        for each in built["env"]
        if each["name"] in ("TROUPE_JOB_ID", "TROUPE_NAMESPACE")
    ] == ["7f3a02bc", "prod"]
    assert not names & {"RANK", "PATH", "TROUPE_TOKEN_FILE"}
    assert (
        "SET_HERE" in built["travelled"]
        and "A" not in built["travelled"]
        and not built["fresh_interpreter"]
    )
    assert {"PATH", "RANK"} <= set(built["not_taken"]) and not built["preimport"]
    assert environment.build({}, session=session, preimport=("json",))["preimport"] == ["json"]


@pytest.mark.parametrize("wrong", ["json", ["not a module"], [""], [1]])
def test_preimport_takes_names_of_modules(wrong: object) -> None:
    with pytest.raises((TypeError, ValueError), match="preimport"):
        _checks.check_preimport(wrong)


START = {"LANG": "C", "HF_HOME": "/h", "HOME": "/root", "GONE": "1", "SAME": "s"}


@pytest.mark.parametrize(
    ("now", "named", "carried", "taken", "removed", "left"),
    [
        ({**START, "SEED": "1"}, (), None, {"SEED", "HF_HOME"}, (), ("LANG", "SAME", "GONE")),
        ({**START, "SAME": "t"}, (), None, {"SAME", "HF_HOME"}, (), ("LANG", "GONE")),
        (
            {name: value for name, value in START.items() if name != "GONE"},
            (),
            None,
            {"HF_HOME"},
            ("GONE",),
            ("LANG", "SAME"),
        ),
        ({**START, "HOME": "/b"}, (), None, {"HF_HOME"}, (), ("GONE", "HOME", "LANG", "SAME")),
        (
            {**START, "HOME": "/b"},
            ("HOME", "LA*"),
            None,
            {"HF_HOME", "HOME", "LANG"},
            (),
            ("GONE", "SAME"),
        ),
        (
            {
                **START,
                "SLURM_PROCID": "1",
                "CUDA_VISIBLE_DEVICES": "0",
                "TROUPE_HOME": "/t",
                "AWS_SECRET_ACCESS_KEY": "k",
            },
            ("TROUPE_*",),
            None,
            {"HF_HOME", "AWS_SECRET_ACCESS_KEY"},
            (),
            ("CUDA_VISIBLE_DEVICES", "GONE", "LANG", "SAME", "SLURM_PROCID"),
        ),
        # In a process of the runtime: what has travelled to it, and what it has set, go on; what
        # the node itself has does not.
        (
            {**START, "SEED": "1"},
            (),
            frozenset({"SAME"}),
            {"SEED", "SAME"},
            (),
            ("GONE", "HF_HOME", "LANG"),
        ),
    ],
)
def test_a_variable_travels_by_one_rule(
    now: dict, named: tuple, carried: frozenset | None, taken: set, removed: tuple, left: tuple
) -> None:
    choice = variables.choose(now, START, named=named, carried=carried)
    assert set(choice.taken) == taken and all(
        now[name] == value for name, value in choice.taken.items()
    )
    assert choice.removed == removed and set(choice.left) == set(left)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pip": [1]},
        {"nonsense": 1},
        {"env_vars": {"A": 1}},
        {"env_vars": "A"},
        {"working_dir": "/does/not/exist"},
    ],
)
def test_runtime_env_refuses_what_it_does_not_know(wrong: dict) -> None:
    with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
        runtime_env.check(wrong)


def test_amounts() -> None:
    wire = resources.to_wire({"CPU": 2, "GPU": 0.1, "x": 0})
    assert wire == [
        {"name": "CPU", "ten_thousandths": 20_000},
        {"name": "GPU", "ten_thousandths": 1_000},
    ]
    assert resources.from_wire(wire) == {"CPU": 2.0, "GPU": 0.1}
    assert resources.for_actor(None, None, None, None) == ({"CPU": 1}, {})
    assert resources.for_actor(0, 1, None, {"a": 2}) == ({"CPU": 0, "GPU": 1, "a": 2},) * 2
    for kind, wrong in (
        (ValueError, -1),
        (TypeError, "two"),
        (ValueError, float("nan")),
        (ValueError, float("inf")),
    ):
        with pytest.raises(kind, match="CPU"):
            resources.to_wire({"CPU": wrong})


def test_options_of_actors_are_checked() -> None:
    for wrong in (
        {"num_gpus": 1.5},
        {"lifetime": "x"},
        {"max_concurrency": 0},
        {"get_if_exists": True},
        {"max_task_retries": -3},
        {"max_pending_calls": -2},
        {"concurrency_groups": {"io": 0}},
        {"nonsense": 1},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            options.check(wrong)


def test_folders_of_processes_that_were_killed_go_when_the_next_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    owned = scratch.Folder("troupe-x-")
    left, young = tmp_path / "troupe-x-left", tmp_path / "troupe-x-young"
    for folder in (left, young, tmp_path / "troupe-other"):
        folder.mkdir()
        (folder / "head.log").write_text("words")
    for folder in (left, owned.path):
        os.utime(folder, (1, 1))
    second = scratch.Folder("troupe-x-")
    assert {each.name for each in tmp_path.iterdir()} == {
        owned.path.name,
        second.path.name,
        young.name,
        "troupe-other",
    }
    for folder in (owned, second):
        folder.remove()
        folder.remove()
    assert {each.name for each in tmp_path.iterdir()} == {young.name, "troupe-other"}


def test_the_text_of_a_failed_launch() -> None:
    failure = {
        "rank": 5,
        "node": "",
        "node_name": "node-c",
        "host": "c",
        "pid": 9,
        "exit_code": 0,
        "signal": 9,
        "kind": "killed",
        "cause": "the kernel's out-of-memory killer chose it: 61.2 GiB of 64 GiB used by this rank",
        "located": False,
        "exception_type": "",
        "traceback": "",
        "log_tail": "step 410 loss 2.31\n",
        "peak_rss_kib": 0,
    }
    text = _errors.text_of(
        {
            "launch": "7f3a" + "0" * 28,
            "epoch": 1,
            "attempts_max": 1,
            "duration_ms": 12_400,
            "ranks": 16,
            "mode": "distributed",
            "cause": "",
            "failure": failure,
            "rank_infos": [
                {"rank": 5, "outcome": "failed", "kind": "killed", "cause": failure["cause"]},
                {"rank": 6, "outcome": "cancelled", "kind": "unknown", "cause": ""},
                {
                    "rank": 7,
                    "outcome": "failed",
                    "kind": "raised",
                    "cause": "Connection closed by peer",
                },
                {"rank": 8, "outcome": "succeeded", "kind": "unknown", "cause": ""},
            ],
        }
    )
    assert text.splitlines() == [
        "rank 5 was killed by SIGKILL on node-c after 12.4 s (epoch 1 of 1)",
        "  the kernel's out-of-memory killer chose it: 61.2 GiB of 64 GiB used by this rank",
        "  last lines of its stderr:",
        "    step 410 loss 2.31",
        "  rank 7 too: Connection closed by peer",
        "  rank 8 had returned",
        "  the other 15 ranks are stopped; nothing of the launch stays on any node",
        "  logs: troupe logs 7f3a --rank 5",
    ]


KINDS = {  # first line about a rank, by the kind of its failure and its other fields
    "hung": ({"signal": 9}, "rank 1 hung on node-c", True),
    "killed": ({"signal": 15}, "rank 1 was killed by SIGTERM on node-c", True),
    "exited": ({"pid": 9, "exit_code": 3}, "rank 1 exited with code 3 on node-c", True),
    "node_lost": ({}, "rank 1 was lost with its node on node-c", True),
    "node_unreachable": ({}, "rank 1 was lost with its node on node-c", True),
    "called_exit": (
        {"exception_type": "builtins.SystemExit"},
        "rank 1 left by WHY on node-c",
        False,
    ),
    "raised": ({"exception_type": "builtins.KeyError"}, "rank 1 raised WHY on node-c", False),
    "returned_early": ({}, "rank 1 WHY on node-c", False),
    "no_value": (
        {"pid": 9},
        "rank 1 exited with code 0 without returning a value on node-c",
        False,
    ),
    "missing": ({}, "rank 1 failed: WHY on node-c", False),
    "unknown": ({}, "rank 1 failed: WHY on node-c", False),
}


def info_of(kind: str, cause: str = "WHY", own: str = "WHY", **said: object) -> dict:
    failure = {
        "rank": 1,
        "node_name": "node-c",
        "host": "",
        "pid": 0,
        "exit_code": 0,
        "signal": 0,
        "kind": kind,
        "cause": cause,
        "located": False,
        "exception_type": "",
        "traceback": "",
        "log_tail": "",
        **said,
    }
    return {
        "launch": "7f3a" + "0" * 28,
        "epoch": 1,
        "attempts_max": 1,
        "duration_ms": 0,
        "ranks": 2,
        "mode": "distributed",
        "cause": "",
        "per_rank": [],
        "travelled": [],
        "failure": failure,
        "rank_infos": [
            {
                "rank": 1,
                "outcome": "failed",
                "kind": kind,
                "cause": own,
                "node_name": "",
                "host": "",
            }
        ],
    }


def test_what_became_of_a_rank_is_told_by_the_kind_of_its_failure_whatever_its_cause_says() -> None:
    for kind, (said, first, is_cause_apart) in KINDS.items():
        for cause in ("WHY", "hung: ended: exit 3", "killed", "its placement group ended"):
            lines = _errors.text_of(info_of(kind, cause, cause, **said)).splitlines()
            assert lines[0] == f"{first.replace('WHY', cause)} (epoch 1 of 1)", (kind, lines)
            assert (f"  {cause}" in lines) == is_cause_apart, (kind, lines)
    more = "WHY; of 2 ranks 0 are left"
    assert f"  {more}" in _errors.text_of(info_of("no_value", more)).splitlines(), (
        "the launch's failure says more than the rank's own"
    )


def test_python_raises_a_class_of_its_own_by_the_kind_of_a_failure() -> None:
    for kind, expected in failures.BY_KIND.items():
        if expected is TimeoutError:
            continue
        info = {**info_of(kind), "outcome": "failed", "exit_code": 1}
        info["failure"].update(peak_rss_kib=0, memory_limit_bytes=0, memory_asked_bytes=0)
        error = _errors.of_launch(None, info)
        assert isinstance(error, exceptions.LaunchError) and isinstance(error, expected), kind
    late = {**info_of("timed_out"), "outcome": "cancelled", "cause": "timed out"}
    assert isinstance(_errors.of_launch(None, late), exceptions.GetTimeoutError)
    stopped = _errors.of_launch(None, {**info_of("stopped"), "outcome": "cancelled"})
    assert isinstance(stopped, exceptions.LaunchCancelledError)


def test_an_exception_that_did_not_travel_has_its_words_again() -> None:
    for kind, cause, words in (
        (ValueError, "ValueError: at: 3", ("at: 3",)),
        (ValueError, "ValueError", ()),
        (SystemExit, "sys.exit(3): as asked", ()),
    ):
        info = info_of("raised", cause, exception_type=f"builtins.{kind.__name__}")
        error = _errors.of_launch(None, {**info, "outcome": "failed", "exit_code": 1})
        assert isinstance(error, exceptions.LaunchError) and isinstance(error.cause, kind)
        assert error.cause.args == words


def test_words_of_ray_and_lost_nodes_are_told_by_kind() -> None:
    rays = ray_words.RaysWords()
    for kind, words in {
        "kill_requested": "it was killed by `ray.kill`: ",
        "group_removed": "its placement group was removed: ",
        "unreferenced": "all references to the actor were removed: ",
        "killed": "its worker process has died: ",
    }.items():
        assert rays.of_death({"kind": kind}, raised=False).endswith(words), kind
    for kind, is_lost in {"node_lost": True, "node_leaves": True, "killed": False}.items():
        info = {"actor": "ab", **info_of(kind, "node b is lost: by its text alone")}
        died = pickle.loads(pickle.dumps(deaths.death_of(info, b"", "actor A")))
        assert places.went_with_a_node(died) == is_lost, kind


def test_deaths_that_end_a_group_of_ranks_name_each_place_once() -> None:
    ends = {
        0: {
            **info_of("killed", "rank 0 on a (a), pid 7, ended: SIGKILL")["failure"],
            "located": True,
        },
        1: info_of("hung", "hung: it has kept rank 0 waiting")["failure"],
        2: info_of("node_lost", "node node-c is lost: its worker ended")["failure"],
    }
    error = GroupAborted.of("fit", 2, ends, "all_reduce")
    assert str(error).partition("aborted in all_reduce: ")[2].split("; ") == [
        "rank 0 on a (a), pid 7, ended: SIGKILL",
        "rank 1: hung: it has kept rank 0 waiting on node-c",
        "rank 2: node node-c is lost: its worker ended",
    ]
    assert error.first_late_rank == 1 and error.dead[2]["kind"] == "node_lost"


def test_a_death_for_want_of_memory_is_of_two_types_and_has_limit_and_use() -> None:
    failure = {
        "rank": -1,
        "node": "",
        "node_name": "node-c",
        "host": "c",
        "pid": 9,
        "exit_code": 0,
        "signal": 9,
        "kind": "out_of_memory",
        "cause": "actor A on node-c (c), pid 9, ended: SIGKILL, out of memory (cgroup "
        "memory.events), peak RSS 3072.0 MiB, limit 4096.0 MiB",
        "located": True,
        "exception_type": "",
        "traceback": "",
        "log_tail": "",
        "peak_rss_kib": 3 << 20,
        "memory_limit_bytes": 4 << 30,
        "memory_asked_bytes": 0,
    }
    died = deaths.death_of({"actor": "ab", "failure": failure}, b"", "actor A")
    task = exceptions.with_type_of(exceptions.WorkerCrashedError, died.cause, str(died))
    for error, kind in (
        (died, exceptions.ActorDiedError),
        (task, exceptions.WorkerCrashedError),
        (pickle.loads(pickle.dumps(died)), exceptions.ActorDiedError),
    ):
        assert isinstance(error, kind) and isinstance(error, exceptions.OutOfMemoryError)
        assert (error.used, error.limit, error.requested) == (3 << 30, 4 << 30, 0)
        assert kind is not exceptions.ActorDiedError or error.failure_kind == "out_of_memory"
        assert str(error).startswith(
            f"actor A is dead: {failure['cause']}\n  try: less data held by it"
        )
    killed = deaths.death_of(
        {"actor": "ab", "failure": {**failure, "kind": "killed"}}, b"", "actor A"
    )
    assert isinstance(killed, exceptions.ActorDiedError) and not isinstance(
        killed, exceptions.OutOfMemoryError
    )


def test_a_decorated_function_runs_here_and_travels() -> None:
    @distributed(processes=2)
    def double(x: int) -> int:
        """Doubles."""
        return 2 * x

    assert double(3) == 6 and double.__doc__ == "Doubles."
    import cloudpickle

    assert cloudpickle.loads(cloudpickle.dumps(double))(4) == 8


def test_groups_made_after_the_default_one_was_destroyed_have_names_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = types.ModuleType("torch.distributed.distributed_c10d")
    module._world = types.SimpleNamespace(group_count=3)
    alive, destroyed = ["world"], []

    def destroy(group: object = None) -> None:
        destroyed.append(group)
        if group is None:
            alive.clear()
            module._world.group_count = 0

    module.destroy_process_group, module.is_initialized = destroy, lambda: bool(alive)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(process_groups, "_worlds", 0)
    monkeypatch.setattr(process_groups, "_epoch", 0)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    process_groups.prepare()
    process_groups.prepare()
    module.destroy_process_group("sub")
    assert module._world.group_count == 3, "the default one is there"
    module.destroy_process_group()
    assert destroyed == ["sub", None] and module._world.group_count == group_names.GROUPS_OF_A_WORLD
    process_groups.begin_epoch(2)
    alive.append("world")
    module.destroy_process_group()
    assert module._world.group_count == group_names.first_of(2, 1), (
        "whatever was destroyed before: another rank of that epoch may be new"
    )
    assert group_names.shown(str(module._world.group_count + 5)) == "5"


def test_a_sound_token_s_cluster_is_read_as_the_native_module_reads_it() -> None:
    """The tokens of the C++ tests' shape, made here; a changed character anywhere leaves it to the
    native module."""
    from troupe import _native
    from troupe._cluster import node_start

    alphabet = "abcdefghijklmnopqrstuvwxyz234567"
    for seed in range(8):
        body = ".".join(
            [
                "rt1",
                ("worker", "client")[seed % 2],
                "".join(alphabet[(seed * 7 + i * i) % 32] for i in range(51)) + "aq"[seed % 2],
                "".join(alphabet[(seed + 3 * i) % 32] for i in range(51)) + "a",
            ]
        )
        text = f"{body}.{node_start._crc32c(body.encode()):08x}"
        assert (
            node_start.cluster_of_sound_token(f" {text}\n")
            == _native.check_token(text)["cluster_id"]
        )
        for place in range(0, len(text), 5):
            changed = text[:place] + ("a" if text[place] != "a" else "b") + text[place + 1 :]
            assert node_start.cluster_of_sound_token(changed) is None
    assert node_start.cluster_of_sound_token("") is None


def test_the_stub_of_the_extension_says_what_the_extension_offers() -> None:
    """The stub of `troupe._native` equals the output of scripts/native_stub.py for this build."""
    root = Path(__file__).parents[2]
    made = run(f"""
import sys
sys.path.insert(0, {str(root / "scripts")!r})
import native_stub
print(native_stub.made(), end="")
""")
    stub = root / "bindings/python/troupe/_native.pyi"
    assert made == stub.read_text(), "write it anew: python scripts/native_stub.py"
