"""Hints for frequent mistakes in launches: the error names what was probably meant.

Method: each common mistake once, through a real launch where it gets that far; the text is looked
at.
"""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import pytest
from conftest import Home

import troupe
from troupe import exceptions
from troupe.launch import distributed, ray_launch


@pytest.mark.parametrize("decorator", [distributed, ray_launch])
@pytest.mark.parametrize(
    "args, options, text",
    [
        ((2,), {}, r"\(2\) does not say of what: gpus=N .* or processes=N"),
        ((), {"num_gpus": 2}, r"has no num_gpus=: gpus=N is the number of ranks"),
        ((), {"num_workers": 2}, r"has no num_workers=: gpus=N .* or processes=N"),
        ((), {"processes": 1, "detach": True}, r"has no detach=: options\(detach=True\)"),
        ((), {"colour": 1}, r"has no colour=; it has .*gpus.*, processes"),
        ((len,), {}, r"neither given: @(distributed|ray_launch)\(processes=4\)"),
    ],
)
def test_options_that_are_none(decorator: Any, args: tuple, options: dict, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        decorator(*args, **options)


def test_functions_that_ranks_cannot_run() -> None:
    async def waits() -> None:
        """A coroutine."""

    def yields() -> Any:
        yield 1

    with pytest.raises(TypeError, match=r"waits is an async def.*\n  call asyncio.run"):
        distributed(processes=1)(waits)
    with pytest.raises(TypeError, match="yields yields, .*\n  return a list"):
        distributed(processes=1)(yields)
    with pytest.raises(TypeError, match="Trainer.train is a method"):
        exec(
            "class Trainer:\n    @distributed(processes=1)\n    def train(self): pass\n",
            {"distributed": distributed, "__name__": __name__},
        )
    with pytest.raises(TypeError, match="say @staticmethod above it"):
        distributed(processes=1)(staticmethod(len))


class Trainer:
    """A class with a method that is meant."""

    @staticmethod
    @distributed(processes=1, remote=True)
    def static(x: int) -> int:
        """Is a function."""
        return x

    def method(self) -> int:
        """Is one of an object."""
        return 2


def test_methods_that_can_be_launched(idle: Home) -> None:
    assert Trainer.static.distributed(3) == [3]
    assert distributed(processes=1, remote=True)(Trainer().method).distributed() == [2]


def test_gpus_that_are_not_there(idle: Home) -> None:
    with pytest.raises(
        exceptions.PlacementError,
        match="no node of the cluster has a GPU: processes= is for ranks without",
    ):
        distributed(gpus=2, remote=True)(len).submit([])


def test_types_of_gpus_that_are_not_there(idle: Home) -> None:
    code = """
import troupe
from troupe.launch import distributed
with troupe.init(num_cpus=2, num_gpus=2, labels={"gpu_type": "A10"}):
    try:
        distributed(gpus=1, gpu_type="H100", remote=True)(len).submit([])
    except troupe.exceptions.PlacementError as error:
        print(error)
"""
    done = idle.python(code)
    assert done.returncode == 0 and "GPUs of the cluster: 2 x A10" in done.stdout, (
        done.stdout + done.stderr
    )


def test_more_cpus_than_are_there(idle: Home) -> None:
    """The amount that is named fits; where CPUs are not what is missing, nothing is said of
    them."""
    code = """
import troupe
from troupe.launch import distributed
from troupe.util import placement_group
with troupe.init(num_cpus=3):
    for start in (lambda: distributed(processes=7, remote=True)(len).submit([]), lambda: placement_group([{"CPU": 4}]),
                  lambda: troupe.get(troupe.remote(len).options(num_cpus=5).remote([])),
                  lambda: troupe.get(troupe.remote(len).options(num_cpus=1, resources={"licence": 1}).remote([]))):
        try:
            start()
        except troupe.exceptions.PlacementError as error:
            print(str(error).replace("\\n", "|"))
    troupe.get(troupe.util.placement_group([{"CPU": 0.4285}] * 7).ready(), timeout=60)
"""
    done = idle.python(code)
    several, one, task, other = done.stdout.splitlines()
    begin = (
        "3 CPU in all, at most 3 on one node: troupe start --num-cpus N starts a node that "
        "offers N, whatever its machine has; with "
    )
    assert several.endswith(f"|  {begin}cpus_per_rank=0.4285 there are enough for all"), (
        done.stdout + done.stderr
    )
    assert one.endswith(f'|  {begin}{{"CPU": 3}} there are enough for all') and task.endswith(
        f"{begin}num_cpus=3 there are enough for all"
    )
    assert "licence" in other and "--num-cpus" not in other and done.returncode == 0, (
        done.stdout + done.stderr
    )


def test_a_cause_of_whole_sentences_is_not_gone_on_with(idle: Home) -> None:
    """Method: otherwise the last line of the cause would read as a part of what follows."""

    @distributed(processes=1, remote=True)
    def fails() -> None:
        raise ValueError("It is not here. It is built on a host that has it installed.")

    with pytest.raises(
        ValueError, match=r"that has it installed\.\n  on one after [\d.]+ s \(epoch 1 of 1\)\n"
    ):
        fails.submit().result(60)


def test_what_a_rank_wrote_and_went_on_from_is_not_what_failed(idle: Home) -> None:
    @distributed(processes=1, remote=True)
    def fails() -> None:
        import sys

        print(
            "RuntimeError: Distributed package doesn't have MPI built in.",
            file=sys.stderr,
            flush=True,
        )
        raise ValueError("another cause")

    with pytest.raises(ValueError, match="another cause") as caught:
        fails.submit().result(60)
    assert "try:" not in str(caught.value)


def test_nccl_on_ranks_without_gpus(idle: Home) -> None:
    pytest.importorskip("torch")

    @distributed(processes=2, remote=True)
    def train() -> None:
        import torch.distributed as dist

        dist.init_process_group("nccl")

    with pytest.raises(
        exceptions.LaunchError,
        match=r'(?s)try: test_hints.py, line \d+: dist.init_process_group\("nccl"\)\n +needs a GPU, '
        r"and these ranks have none: gpus=N.*init_process_group\(\) without a backend",
    ):
        train.submit().result(60)


@pytest.mark.parametrize(
    "line",
    [
        'torch.zeros(1, device="cuda")',
        "torch.zeros(1).cuda()",
        "torch.cuda.set_device(0)",
        "(dist.init_process_group(), torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, "
        "1), device_ids=[0]))",
    ],
)
def test_cuda_on_ranks_without_gpus(idle: Home, line: str, tmp_path: Path) -> None:
    """The line is the program's own, and none of a library that it calls."""
    pytest.importorskip("torch")
    file = tmp_path / "program.py"
    file.write_text(f"def train():\n    import torch, torch.distributed as dist\n    {line}\n")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(exceptions.LaunchError) as caught:
        distributed(processes=1, remote=True)(names["train"]).submit().result(60)
    text = str(caught.value)
    assert f"try: program.py, line 3: {line}\n" in text and "torch.cuda.is_available()" in text, (
        text
    )


def test_ray_itself_in_a_driver(idle: Home, capsys: pytest.CaptureFixture) -> None:
    @ray_launch(processes=1, remote=True, api=None)
    def drive() -> str:
        import sys

        sys.path[:] = [each for each in sys.path if each and not each.startswith("/tmp")]
        sys.modules["ray"] = None  # type: ignore[assignment]  # as where Ray is not installed
        import ray

        return ray.__name__

    with pytest.raises(ModuleNotFoundError):
        drive.distributed()
    assert (
        'drive imports ray, which is Ray itself, beside this cluster: api="troupe"'
        in capsys.readouterr().err
    )

    @ray_launch(processes=1, remote=True)
    def right() -> bool:
        import ray

        import troupe

        return ray.ObjectRef is troupe.ObjectRef

    assert right.distributed() == [True] and "imports ray" not in capsys.readouterr().err


CELL = """
def fails():
    x = 1
    return x / 0  # in a cell
"""


def test_an_error_in_a_notebooks_cell_shows_its_line(idle: Home) -> None:
    name = "/tmp/ipykernel_1/2.py"
    linecache.cache[name] = (len(CELL), None, CELL.splitlines(True), name)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(CELL, name, "exec"), names)
    with pytest.raises(
        ZeroDivisionError, match="line 4, in fails\n *return x / 0  # in a cell\n"
    ) as first:
        distributed(processes=1, remote=True)(names["fails"]).submit().result(60)
    assert isinstance(first.value, exceptions.LaunchError)
    with pytest.raises(ZeroDivisionError, match="line 4, in fails\n *return x / 0  # in a cell\n"):
        troupe.get(troupe.remote(names["fails"]).remote(), timeout=60)
