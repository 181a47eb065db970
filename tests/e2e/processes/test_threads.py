"""How many threads numpy's and torch's pools have in actors, tasks and ranks: their CPUs, or what a
variable says.

Method: what each library reports, asked of its own functions, and the threads that have used a CPU
during some products of large matrices (`/proc/self/task/*/schedstat`). All of it in processes
forked from a zygote, which has loaded both with one thread each. Of MKL, torch's own.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import Home, eventually, parked

import troupe
from troupe.launch import distributed

pytest.importorskip("threadpoolctl")
numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
SIZE = 1200


def pools() -> dict[str, int]:
    """Return the libraries' own numbers, and how many threads products of matrices take."""
    import os
    import re

    import numpy
    import threadpoolctl
    import torch

    def times() -> dict[str, int]:
        spent = {}
        for each in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{each}/schedstat") as file:
                spent[each] = int(file.read().split()[0])
        return spent

    def working(product) -> int:
        product()
        before = times()
        for _ in range(5):
            product()
        spent = [time - before.get(task, 0) for task, time in times().items()]
        return sum(
            each > max(spent) / 3 for each in spent
        )  # a pool's have equal parts; others take and answer calls

    blas = {
        each["num_threads"]
        for each in threadpoolctl.threadpool_info()
        if each["user_api"] == "blas"
    }
    info = torch.__config__.parallel_info()
    here, there = numpy.ones((SIZE, SIZE)), torch.ones((SIZE, SIZE), dtype=torch.float64)
    found = {
        "torch": torch.get_num_threads(),
        "numpy": max(blas),
        "least of numpy": min(blas),
        "numpy's threads that work": working(lambda: here @ here),
        "torch's threads that work": working(lambda: there @ there),
    }
    for name in ("omp_get_max_threads", "mkl_get_max_threads"):
        reported = re.search(rf"{name}\(\) : (\d+)", info)
        if reported is not None:
            found[name] = int(reported[1])
    return found


def all_of(found: dict[str, int]) -> set[int]:
    return set(found.values())


def warm(home: Home) -> None:
    """Until the zygote has forked ahead: what is started then is forked."""
    eventually(lambda: len(parked(home)) >= 2, what="parked processes")


class Pools:
    """Tells of its process."""

    def pools(self) -> dict[str, int]:
        return pools()

    def variable(self) -> str | None:
        return os.environ.get("OMP_NUM_THREADS")


@pytest.mark.parametrize("cpus", [1, 2, 2.5])
def test_an_actor_has_a_thread_for_each_whole_cpu(idle: Home, cpus: float) -> None:
    warm(idle)
    actor = troupe.remote(num_cpus=cpus)(Pools).remote()
    assert troupe.get(actor.variable.remote(), timeout=60) == str(int(cpus))
    assert all_of(troupe.get(actor.pools.remote(), timeout=60)) == {int(cpus)}
    troupe.kill(actor)


def test_an_actor_that_says_no_cpus_has_one(idle: Home) -> None:
    warm(idle)
    actor = troupe.remote(Pools).remote()
    assert troupe.get(actor.variable.remote(), timeout=60) == "1"
    assert all_of(troupe.get(actor.pools.remote(), timeout=60)) == {1}
    troupe.kill(actor)


def test_an_actor_in_a_bundle_that_others_share_has_its_own_cpus_threads(idle: Home) -> None:
    from troupe.util.placement_group import placement_group, remove_placement_group
    from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    group = placement_group([{"CPU": 4}])
    troupe.get(group.ready(), timeout=60)
    where = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=0)
    actor = troupe.remote(num_cpus=2, scheduling_strategy=where)(Pools).remote()
    assert troupe.get(actor.variable.remote(), timeout=60) == "2"
    remove_placement_group(group)


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_task_has_a_thread_for_each_whole_cpu(idle: Home, cpus: int) -> None:
    warm(idle)
    found = troupe.get(troupe.remote(num_cpus=cpus)(pools).remote(), timeout=60)
    # Not which work: the thread that reads a process's calls may look for the next one all the
    # while.
    assert {count for name, count in found.items() if not name.endswith("that work")} == {cpus}


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_rank_has_a_thread_for_each_of_its_cpus(idle: Home, cpus: int) -> None:
    warm(idle)
    [found] = distributed(processes=1, cpus_per_rank=cpus, remote=True)(pools).distributed()
    assert all_of(found) == {cpus}


def test_omp_num_threads_says_it_for_all_of_them(idle: Home) -> None:
    warm(idle)
    said = {"env_vars": {"OMP_NUM_THREADS": "2,1"}}
    [found] = distributed(processes=1, cpus_per_rank=1, remote=True, runtime_env=said)(
        pools
    ).distributed()
    assert all_of(found) == {2}
    actor = troupe.remote(num_cpus=1, runtime_env=said)(Pools).remote()
    assert all_of(troupe.get(actor.pools.remote(), timeout=60)) == {2}
    troupe.kill(actor)


@pytest.mark.parametrize(
    "variable", ["OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OPENBLAS_DEFAULT_NUM_THREADS"]
)
def test_a_variable_of_openblas_is_numpys(idle: Home, variable: str) -> None:
    warm(idle)
    said = {"env_vars": {variable: "2"}}
    [found] = distributed(processes=1, cpus_per_rank=1, remote=True, runtime_env=said)(
        pools
    ).distributed()
    assert found["numpy"] == found["numpy's threads that work"] == 2 and found["torch"] == 1, found


def test_mkl_num_threads_is_torchs_as_where_it_is_loaded_afresh(idle: Home) -> None:
    if not torch.backends.mkl.is_available():
        pytest.skip("a torch without MKL")
    warm(idle)
    said = {"env_vars": {"MKL_NUM_THREADS": "2"}}
    [found] = distributed(processes=1, cpus_per_rank=1, remote=True, runtime_env=said)(
        pools
    ).distributed()
    assert (
        found["torch"] == found["mkl_get_max_threads"] == found["torch's threads that work"] == 2
    ), found
    assert found["numpy"] == 1, found


ABOVE = 4 * len(os.sched_getaffinity(0))
REPORTED = """
import re, numpy, threadpoolctl, torch
mkl = re.search(r"mkl_get_max_threads\\(\\) : (\\d+)", torch.__config__.parallel_info())
print(torch.get_num_threads(), mkl and mkl[1], sorted((each["internal_api"], each["num_threads"]) for each in threadpoolctl.threadpool_info()))
"""


@pytest.mark.parametrize(
    "said",
    [
        {"OMP_NUM_THREADS": str(ABOVE)},
        {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": str(ABOVE)},
        {"OMP_NUM_THREADS": str(ABOVE), "MKL_DYNAMIC": "FALSE"},
    ],
    ids=lambda said: " ".join(said),
)
def test_numbers_above_the_cores_are_what_they_are_where_the_libraries_are_loaded_afresh(
    idle: Home, said: dict[str, str]
) -> None:
    """Sums of floats depend on the number of threads: the yardstick is an interpreter that loads
    the libraries itself."""

    def report() -> str:
        import contextlib
        import io

        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(REPORTED, {})
        return out.getvalue()

    warm(idle)
    own = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    afresh = subprocess.run(
        [sys.executable, "-c", REPORTED],
        env={**own, **said},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    [found] = distributed(processes=1, remote=True, runtime_env={"env_vars": said})(
        report
    ).distributed()
    assert found == afresh.stdout


def test_no_such_variable_costs_an_interpreter(idle: Home) -> None:
    """Forks come from the parked processes."""
    warm(idle)
    said = {
        "env_vars": {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    }
    before = parked(idle)
    [pid] = distributed(processes=1, remote=True, runtime_env=said)(
        lambda: os.getpid()
    ).distributed()
    assert pid in before
