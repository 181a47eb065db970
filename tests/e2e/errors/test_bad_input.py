"""Mistakes of users with launches: one clear error each, before any rank starts where that is
possible."""

from __future__ import annotations

import threading

import pytest
from conftest import Home, eventually

import troupe
from troupe import exceptions
from troupe._base import identity as _identity
from troupe.launch import distributed, ray_launch


def test_both_and_neither_of_gpus_and_processes() -> None:
    for decorator in (distributed, ray_launch):
        with pytest.raises(TypeError, match="both"):
            decorator(gpus=1, processes=1)
        with pytest.raises(TypeError, match="neither"):
            decorator(len)
    with pytest.raises(TypeError, match="at least 1"):
        distributed(processes=0)


def test_remote_without_a_cluster(home: Home) -> None:
    lock = threading.Lock()  # cannot be pickled: nothing may be pickled before the refusal
    with pytest.raises(exceptions.ConnectionError, match="TROUPE_ADDRESS"):
        distributed(processes=1, remote=True)(lambda: lock).distributed()
    assert not home.processes()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"num_cpu": 1}, TypeError, "no parameter 'num_cpu': do you mean 'num_cpus'"),
        ({"address": 6400}, TypeError, "a string like '10.0.0.1:6400'"),
        ({"token_file": "token"}, ValueError, "is for a cluster elsewhere: give its address"),
        ({"labels": {"rack": 7}}, TypeError, "a label's key and value are strings"),
    ],
    ids=str,
)
def test_init_says_what_is_wrong_before_anything_starts(
    home: Home, given: dict, error: type, words: str
) -> None:
    done = home.python(f"import troupe\ntroupe.init(**{given!r})")
    assert (
        done.returncode == 1
        and done.stderr.splitlines()[-1].startswith(error.__name__)
        and words in done.stderr
    ), done.stderr
    assert not home.processes()


def test_a_capture_that_is_too_large(idle: Home) -> None:
    dataset = bytearray(200 << 20)

    @distributed(processes=2, remote=True)
    def train() -> int:
        return len(dataset)

    with pytest.raises(exceptions.LaunchError) as caught:
        train.distributed()
    text = str(caught.value)
    assert (
        "`dataset`" in text
        and "bytearray" in text
        and "200.0 MiB" in text
        and "limit is 100" in text
    )
    with pytest.raises(exceptions.LaunchError, match="argument 1"):
        distributed(processes=1, remote=True)(len).distributed(dataset)
    assert len(troupe.state.list_launches()) == len(
        [each for each in troupe.state.list_launches() if each["name"] != "train"]
    )


def test_a_capture_that_cannot_be_pickled(idle: Home) -> None:
    lock = threading.Lock()

    @distributed(processes=2, remote=True)
    def train() -> None:
        lock.acquire()

    with pytest.raises(exceptions.LaunchError, match="`lock`.*cannot be pickled") as caught:
        train.distributed()
    assert isinstance(caught.value, TypeError)


def test_a_module_the_workers_lack(idle: Home, tmp_path) -> None:
    code = """
import sys, types, troupe
module = types.ModuleType("only_here")
exec("def helper(): return 1", module.__dict__)
module.helper.__module__ = "only_here"
sys.modules["only_here"] = module
from troupe.launch import distributed
troupe.init("auto")
helper = module.helper
distributed(processes=1, remote=True)(lambda: helper()).distributed()
"""
    done = idle.python(code, cwd=tmp_path)
    assert done.returncode != 0
    assert (
        "only_here" in done.stderr
        and "cannot be imported" in done.stderr
        and "LaunchError" in done.stderr
    )


def test_more_ranks_than_the_cluster_can_ever_hold(idle: Home) -> None:
    with pytest.raises(exceptions.PlacementError) as caught:
        distributed(processes=100, remote=True)(len).submit([])
    assert "one" in str(caught.value) and "CPU" in str(caught.value)
    with pytest.raises(exceptions.PlacementError):
        distributed(gpus=4, gpu_type="H100", remote=True)(len).submit([])


def test_more_ranks_than_it_holds_now(idle: Home) -> None:
    first = distributed(processes=8, remote=True)(lambda: threading.Event().wait()).submit()
    first.wait_state(lambda info: info["state"] == "running", 30)
    second = distributed(processes=8, remote=True)(lambda: 1).submit()
    status = eventually(
        lambda: second.status() if second.status()["waiting_for"] else None, what="the queue place"
    )
    assert status["state"] in ("queued", "reserving") and "CPU" in status["waiting_for"]
    first.cancel()
    assert second.result(timeout=30) == [1] * 8


def test_another_version_of_python(idle: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from troupe._code import environment

    monkeypatch.setattr(environment, "PYTHON_VERSION", "3.9")
    with pytest.raises(exceptions.TroupeError) as caught:
        distributed(processes=1, remote=True)(lambda: 1).distributed()
    assert "3.9" in str(caught.value) and _identity.PYTHON_VERSION in str(caught.value)


def test_a_result_that_cannot_be_pickled(idle: Home) -> None:
    with pytest.raises(TypeError, match="the result of rank 0 .*lock.* cannot be pickled"):
        distributed(processes=1, remote=True)(lambda: __import__("threading").Lock()).distributed()


def test_init_arguments_that_contradict(idle: Home) -> None:
    with pytest.raises(RuntimeError, match="called before"):
        troupe.init()
    assert troupe.init(ignore_reinit_error=True)
    with pytest.raises(TypeError, match="no parameter"):
        troupe.init(nonsense=1)


SCRIPTS = {
    "both": (
        "distributed(gpus=1, processes=1)",
        "TypeError: @distributed takes exactly one of gpus= and processes=, both given",
    ),
    "neither": (
        "ray_launch()",
        "TypeError: @ray_launch takes exactly one of gpus= and processes=, neither given",
    ),
    "too many": (
        "distributed(processes=100, remote=True)(len).distributed([])",
        "on one node: troupe start --num-cpus N starts a node that offers N, whatever its machine "
        "has; with cpus_per_rank=0.",
    ),
    "no such GPU": (
        "distributed(gpus=1, gpu_type='H100', remote=True)(len).distributed([])",
        "H100",
    ),
    "200 MB": (
        "data = bytearray(200 << 20); distributed(processes=2, remote=True)(lambda: "
        "len(data)).distributed()",
        "`data` (bytearray, 200.0 MiB",
    ),
    "unpicklable": (
        "lock = threading.Lock(); distributed(processes=2, remote=True)(lambda: "
        "lock).distributed()",
        "`lock`",
    ),
    "python": (
        "_environment.PYTHON_VERSION = '3.9'; distributed(processes=1, "
        "remote=True)(len).distributed([])",
        "3.9",
    ),
    "arguments": (
        "distributed(processes=1, remote=True)(lambda x: x).distributed()",
        "missing a required argument: 'x'",
    ),
    "raises": (
        "distributed(processes=2, remote=True)(lambda: {}['lr']).distributed()",
        "KeyError: 'lr'",
    ),
    "exits": (
        "distributed(processes=2, remote=True)(lambda: sys.exit(3)).distributed()",
        "left by sys.exit(3)",
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_ends_with_one_screen_and_a_code(idle: Home, name: str) -> None:
    """As a user sees it: a process of its own, its exit code, what it printed, what it left."""
    line, text = SCRIPTS[name]
    known = len(troupe.state.list_launches())
    done = idle.python(
        "import sys, threading, troupe\nfrom troupe._code import environment as _environment\n"
        f"from troupe.launch import distributed, ray_launch\ntroupe.init('auto')\n{line}\n"
    )
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert text in done.stderr and len(done.stderr.splitlines()) <= 40, done.stderr
    if name not in ("raises", "exits", "python"):  # refused before any rank starts
        assert len(troupe.state.list_launches()) == known
    eventually(
        lambda: (
            not [
                each
                for each in troupe.state.list_launches()
                if each["state"] not in ("succeeded", "failed", "cancelled")
            ]
        ),
        what="the end of its launches",
    )
    eventually(
        lambda: not [title for title in idle.processes().values() if "troupe: rank" in title],
        what="the end of its ranks",
    )


def test_client_tokens_that_are_refused(idle: Home, tmp_path) -> None:
    address = troupe.init(ignore_reinit_error=True).address
    revoked = idle.json("token", "create", "--role", "client")
    idle.run("token", "revoke", revoked["id"])
    path = tmp_path / "revoked"
    path.touch(mode=0o600)
    path.write_text(revoked["token"])
    for_workers = idle.token("--role", "worker")
    for token, text in ((str(path), "revoked"), (for_workers, "worker")):
        done = idle.python(f"import troupe; troupe.init({address!r}, token_file={token!r})")
        assert done.returncode == 1 and "JoinError" in done.stderr and text in done.stderr
        assert revoked["token"] not in done.stderr and len(done.stderr.splitlines()) <= 30
