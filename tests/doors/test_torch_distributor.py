"""TorchDistributor and DeepspeedTorchDistributor in local mode, by the rows of
docs/coming/torch_distributor.md.

Method: this process is the caller, on the cluster that is started for it; ranks without GPUs say
what they have. With GPUs: test_torch_distributor_gpus.py; what ends the caller:
test_torch_distributor_alone.py.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import Home, eventually
from submits import project, torchrun_in

from troupe import exceptions
from troupe._cluster import connect
from troupe.spark import DeepspeedTorchDistributor, DistributorError, TorchDistributor
from troupe.spark._errors import Tail

cloudpickle.register_pickle_by_value(sys.modules[__name__])
# As torchrun counts them; what it says of its own store and run is no rank's.
VARIABLES = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "ROLE_NAME",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "OMP_NUM_THREADS",
)
# In one go: torchrun's Pythons are unbuffered, and print() would write the end of the line by
# itself.
SAYS = (
    f"import json, os, sys\nsys.stdout.write(json.dumps([sys.argv, {{name: os.environ.get(name) "
    f"for name in {VARIABLES!r}}}]) + '\\n')\n"
)


@pytest.fixture(scope="module")
def here(shared_home: Home) -> Iterator[Home]:
    """The cluster of this process, ready for a first run."""
    session = connect.embedded()
    eventually(
        lambda: all(node["zygote_ready"] for node in session.request("GetStatus", {})[1]["nodes"]),
        what="the zygote",
    )
    yield shared_home


def cpus(processes: int = 2) -> TorchDistributor:
    return TorchDistributor(num_processes=processes, local_mode=True, use_gpu=False)


def rank() -> int:
    return int(os.environ["RANK"])


def said(text: str) -> list[str]:
    """Lines of the ranks, sorted: which of two ranks is heard first is chance."""
    return sorted(line for line in text.splitlines() if line.startswith("["))


# Arguments of the constructor.


@pytest.mark.parametrize("count", [0, -1, -8])
def test_num_processes_that_are_none_are_a_value_error(count: int) -> None:
    with pytest.raises(
        ValueError, match=f"num_processes has to be a positive integer, not {count}"
    ):
        TorchDistributor(num_processes=count, use_gpu=False)
    with pytest.raises(ValueError, match="numGpus has to be a positive integer"):
        DeepspeedTorchDistributor(numGpus=count, useGpu=False)


@pytest.mark.parametrize("count", [2.5, "2", None, True])
def test_num_processes_that_are_no_number_are_a_type_error(count: Any) -> None:
    with pytest.raises(TypeError, match="num_processes has to be a positive integer, not "):
        TorchDistributor(num_processes=count, use_gpu=False)


def test_other_arguments_of_the_constructor() -> None:
    with pytest.raises(TypeError, match="use_gpu has to be True or False, not 'False'"):
        TorchDistributor(2, True, "False")  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match="deepspeedConfig has to be a dict or the path of a file, not 3"
    ):
        DeepspeedTorchDistributor(useGpu=False, deepspeedConfig=3)  # type: ignore[arg-type]
    made = TorchDistributor(3, use_gpu=False, _ssl_conf="pytorch.spark.distributor.ignoreSsl")
    assert (made.num_processes, made.num_tasks, made.local_mode, made.use_gpu) == (
        3,
        3,
        True,
        False,
    )
    deepspeed = DeepspeedTorchDistributor(numGpus=2, nnodes=3, useGpu=False)
    assert deepspeed.num_processes == 6 and isinstance(deepspeed, TorchDistributor)


# Function mode.


def test_b1_a_function_returns_rank_0s_output(here: Home) -> None:
    """B1, B3: with gloo, which is the function's own choice; positional and keyword arguments are
    its own."""

    def train(learning_rate: float, use_gpu: bool, *, num_processes: str) -> tuple:
        import torch
        import torch.distributed as dist

        dist.init_process_group("nccl" if use_gpu else "gloo")
        total = torch.ones(1)
        dist.all_reduce(total)
        return (
            rank(),
            learning_rate,
            num_processes,
            float(total),
            os.environ["CUDA_VISIBLE_DEVICES"],
        )

    assert cpus().run(train, 1e-3, False, num_processes="mine") == (0, 1e-3, "mine", 2.0, "")


def test_the_output_is_rank_0s_and_not_the_last_writers(here: Home) -> None:
    """pyspark's ranks all write one file.

    Rank 1 returns long after rank 0 has, and what it returns could not travel.
    """

    def train() -> Any:
        import torch.distributed as dist

        dist.init_process_group("gloo")
        if rank() == 1:
            dist.barrier()
            return open(os.devnull)
        dist.barrier()
        return "rank 0"

    assert cpus().run(train) == "rank 0"
    assert cpus().run(lambda: None) is None
    assert cpus(1).run(train_object=rank) == 0


def test_outputs_of_any_size_and_callables_of_any_kind(here: Home) -> None:
    """From pyspark's own tests: an output of many chunks."""

    class Trainer:
        def __init__(self) -> None:
            self.word = "success"

        def train(self, times: int) -> str:
            return self.word * times

        def __call__(self) -> str:
            return self.word

    assert cpus().run(Trainer().train, 4096) == "success" * 4096
    assert cpus().run(functools.partial(Trainer().train, times=2)) == "successsuccess"
    assert cpus().run(Trainer()) == "success"
    assert len(cpus(1).run(lambda: bytes(20 << 20))) == 20 << 20


def test_the_functions_processes_have_no_arguments_of_the_program(here: Home) -> None:
    """As under torchrun, where the function is run by a script of its own: a parser in it does not
    see what the caller was started with."""

    def parse() -> tuple:
        return argparse.ArgumentParser().parse_args(), len(sys.argv)

    assert cpus(1).run(parse) == (argparse.Namespace(), 1)


# File mode.


def test_b2_a_file_runs_as_torchrun_starts_it(
    here: Home, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    """B2: the same variables and the same sys.argv; None is returned."""
    folder = project(tmp_path / "w", says=SAYS)
    words = ("--learning_rate=0.001", "3")
    for processes in (1, 2):
        torchrun = sorted(
            torchrun_in(
                folder, "--standalone", f"--nproc_per_node={processes}", "says.py", *words
            ).stdout.splitlines()
        )
        capfd.readouterr()
        assert cpus(processes).run(str(folder / "says.py"), "--learning_rate=0.001", 3) is None
        lines = said(capfd.readouterr().out)
        assert [line[:4] for line in lines] == [f"[{number}] " for number in range(processes)]
        for line, of_torchrun in zip(lines, torchrun, strict=True):
            (argv, variables), (_, expected) = json.loads(line[4:]), json.loads(of_torchrun)
            assert argv == [str(folder / "says.py"), *words]
            assert variables == {**expected, "OMP_NUM_THREADS": variables["OMP_NUM_THREADS"]}
            assert variables["OMP_NUM_THREADS"] == (
                expected["OMP_NUM_THREADS"] or str(len(os.sched_getaffinity(0)))
            )


def test_a_file_takes_no_keywords_and_may_be_a_path(
    here: Home, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    folder = project(tmp_path / "w", says="print('ran')\n")
    with pytest.raises(
        ValueError,
        match=r"running a file takes no keyword arguments, and lr was given\n.*--lr=\.\.\.",
    ):
        cpus().run(str(folder / "says.py"), lr=1)
    with pytest.raises(ValueError, match="takes no keyword arguments"):
        DeepspeedTorchDistributor(useGpu=False).run(str(folder / "says.py"), lr=1)
    assert cpus(1).run(folder / "says.py") is None
    assert said(capfd.readouterr().out) == ["[0] ran"]


def test_b2_a_failure_has_the_last_100_lines(here: Home, tmp_path: Path) -> None:
    """B2: of the rank that failed, after which rank, where and why; stdout and stderr."""
    text = (
        "import os, sys\nfor number in range(150):\n    print('line', number, os.environ['RANK'], "
        "flush=True)\n"
        "if os.environ['RANK'] == '1':\n    sys.exit('no such file')\n"
    )
    script = str(project(tmp_path / "w", fails=text) / "fails.py")
    with pytest.raises(RuntimeError) as caught:
        cpus().run(script, "--lr=1")
    error = caught.value
    assert (
        isinstance(error, DistributorError)
        and (error.rank, error.exit_code) == (1, 1)
        and error.host
    )
    before, _, below = str(error).partition(
        f"\nCommand {[script, '--lr=1']} failed with return code 1. The last 100 lines of the task "
        "output "
        "are included below: \n"
    )
    assert (
        before.startswith("rank 1 left by sys.exit('no such file') on ")
        and "Traceback" not in before
    )
    lines = below.splitlines()
    assert (
        len(lines) == 100
        and {"line 149 1", "no such file"} <= set(lines)
        and not any(line.endswith(" 0") for line in lines)
    ), below


def test_b2_the_last_lines_have_what_stderr_said_however_early_it_was_read() -> None:
    tail = Tail()
    tail.hear({}, 1, True, ["no such file"])
    tail.hear({}, 1, False, [f"line {number}" for number in range(150)])
    assert (
        tail.of(1) == ["no such file", *(f"line {number}" for number in range(51, 150))]
        and tail.of(0) == []
    )
    tail.hear({}, 1, True, [f"error {number}" for number in range(200)])
    assert tail.of(1) == [f"error {number}" for number in range(100, 200)], "they came last"
    tail.hear({}, 1, False, ["end"] * 300)
    assert tail.of(1) == [*(f"error {number}" for number in range(150, 200)), *["end"] * 50]


# Failures.


def test_a_functions_exception_is_a_runtime_error_and_its_own_type(
    here: Home, capfd: pytest.CaptureFixture
) -> None:
    def train() -> None:
        print("before it", flush=True)
        raise KeyError("lr")

    with pytest.raises(
        RuntimeError,
        match=r"raised KeyError: 'lr' on .*\n  Traceback[\s\S]*test_torch_distributor.py[\s\S]*\n"
        r"Command .*train\(\.\.\.\) failed with return code 1\. The task output is included below: \nbefore it$",
    ) as caught:
        cpus(1).run(train)
    assert isinstance(caught.value, KeyError) and isinstance(caught.value, exceptions.LaunchError)
    assert "[0] before it" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("train", "words", "number"),
    [
        (lambda: os._exit(0), "exited with code 0 without returning a value", 1),
        (lambda: os._exit(7), "exited with code 7", 7),
        (lambda: os.kill(os.getpid(), 9), "was killed by SIGKILL", 137),
        (lambda: sys.exit(3), r"left by sys\.exit\(3\)", 3),
    ],
    ids=["exits with 0", "exits with 7", "is killed", "leaves with 3"],
)
def test_a_rank_that_ends_without_an_output(
    here: Home, train: Callable[[], None], words: str, number: int
) -> None:
    with pytest.raises(
        RuntimeError,
        match=rf"^rank 0 {words} on [\s\S]*Command .* failed with return code {number}\.",
    ):
        cpus(1).run(train)


def test_an_output_that_cannot_travel(here: Home, tmp_path: Path) -> None:
    """A value that cannot be pickled is named on rank 0; one that cannot be loaded here, here."""
    with pytest.raises(
        RuntimeError,
        match=r"the result of rank 0 \(dict\) cannot be pickled: .*\n[\s\S]*result\['lock'\] \(_thread\.lock\)",
    ):
        cpus(1).run(lambda: {"lock": threading.Lock()})

    folder = project(tmp_path / "there", onlythere="class Model:\n    pass\n")

    def train() -> Any:
        sys.path.append(str(folder))
        import onlythere

        return onlythere.Model()

    with pytest.raises(
        RuntimeError,
        match="failed due to a pickling error: .*train.* cannot be loaded here: "
        "ModuleNotFoundError: No module named 'onlythere'",
    ):
        cpus(1).run(train)


def test_what_cannot_start_is_refused_before_there_are_ranks(here: Home, tmp_path: Path) -> None:
    """Each a RuntimeError, as pyspark's is once torchrun has failed, and what it is."""

    def train(learning_rate: float) -> None: ...
    async def asynchronous() -> None: ...

    folder = project(tmp_path / "w", broken="x = (\n")
    lock = threading.Lock()
    for what, args, kind, words in (
        (train, (), TypeError, "missing a required argument: 'learning_rate'"),
        (train, (1, 2), TypeError, "too many positional arguments"),
        (
            3,
            (),
            TypeError,
            "TorchDistributor.run takes a function, or the path of a Python script, not 3",
        ),
        (asynchronous, (), TypeError, "TorchDistributor.run: asynchronous is an async def"),
        (str(folder / "no.py"), (), FileNotFoundError, "there is no script"),
        (str(folder), (), IsADirectoryError, "is a folder"),
        (str(folder / "broken.py"), (), SyntaxError, "never closed"),
        ("", (), ValueError, "the path of the script is empty"),
        (lambda: lock, (), TypeError, "captures `lock`"),
    ):
        with pytest.raises(kind, match=words) as caught:
            cpus().run(what, *args)
        assert isinstance(caught.value, RuntimeError) and isinstance(caught.value, DistributorError)


def test_inside_a_rank_another_is_refused(here: Home) -> None:
    with pytest.raises(RuntimeError, match="this is rank 0 of launch"):
        cpus(1).run(lambda: TorchDistributor(1, use_gpu=False).run(rank))


def test_a_dataframe_is_refused_with_what_to_use() -> None:
    with pytest.raises(
        RuntimeError, match=r"there is no Spark here\n.*df\.write\.parquet\(path\)[\s\S]*RANK"
    ):
        TorchDistributor(1, use_gpu=False)._train_on_dataframe(rank, None)


# DeepSpeed.


def options() -> tuple:
    known = argparse.ArgumentParser()
    known.add_argument("--deepspeed", action="store_true")
    known.add_argument("--deepspeed_config")
    found = known.parse_args()
    text = Path(found.deepspeed_config).read_text() if found.deepspeed_config else None
    return rank(), os.environ["WORLD_SIZE"], found.deepspeed, text


def test_b6_deepspeeds_options_in_function_mode(here: Home, tmp_path: Path) -> None:
    """B6: from a dict and from a file; without a configuration the option alone."""
    config = {"train_batch_size": 64, "zero_optimization": {"stage": 2}}
    (tmp_path / "ds.json").write_text("{} // of DeepSpeed's own dialect")
    for given, text in (
        (config, json.dumps(config)),
        (str(tmp_path / "ds.json"), "{} // of DeepSpeed's own dialect"),
        (None, None),
    ):
        assert DeepspeedTorchDistributor(
            numGpus=1, nnodes=2, useGpu=False, deepspeedConfig=given
        ).run(options) == (0, "2", True, text)
    with pytest.raises(RuntimeError) as caught:
        DeepspeedTorchDistributor(useGpu=False, deepspeedConfig=str(tmp_path / "none.json")).run(
            options
        )
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("given", [{"a": 1}, None], ids=["with a configuration", "without"])
def test_b6_deepspeeds_options_in_file_mode(
    here: Home, tmp_path: Path, capfd: pytest.CaptureFixture, given: dict | None
) -> None:
    """B6: behind the file's own arguments; its children can read the configuration too."""
    text = (
        "import subprocess, sys\nprint(sys.argv[1:3], flush=True)\n"
        "if '--deepspeed_config' in sys.argv:\n    assert sys.argv[3] == '--deepspeed_config' and "
        "len(sys.argv) == 5\n"
        "    subprocess.run(['cat', sys.argv[4]], check=True)\n    print()\n"
    )
    folder = project(tmp_path / "w", shows=text)
    assert (
        DeepspeedTorchDistributor(useGpu=False, deepspeedConfig=given).run(
            str(folder / "shows.py"), "--lr=1"
        )
        is None
    )
    assert said(capfd.readouterr().out) == [
        "[0] ['--lr=1', '--deepspeed']",
        *(['[0] {"a": 1}'] if given else []),
    ]
