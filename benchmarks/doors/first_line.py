"""A command job of one node x 2 processes: from `jobs.create_or_update` to the first line that it
prints, on a cluster that runs.

The job has a code folder of 20 files, an input and an output. `edited`: a file of the folder was
changed before each, so that it is packed and sent anew. `program`: the same line by
`submit_command`, without a directory of its own. All in one process, alternately. Run by submit.py.
"""

import os
import pathlib
import tempfile
import time

from contender import troupe_command
from report import await_rest, settle, summary

FILES = 20
LINE = "echo first"


def first_line(start, folder: pathlib.Path) -> float:
    """Seconds from the call of `start` to the first line of what it started, which is then waited
    for."""
    begin = time.perf_counter()
    handle = start(folder)
    lines = handle.logs(follow=True)
    line = next(lines)
    took = time.perf_counter() - begin
    if not line.endswith("first"):
        raise SystemExit(f"the first line is {line!r}")
    handle.result()
    return took


def start_job(folder: pathlib.Path):
    from troupe.azure import Input, MLClient, command

    jobs = MLClient().jobs
    job = jobs.create_or_update(
        command(
            code=str(folder),
            command=f"{LINE} && cat ${{{{inputs.data}}}} > ${{{{outputs.copy}}}}/$RANK",
            outputs={"copy": None},
            inputs={"data": Input(type="uri_file", path=str(folder / "file0.py"))},
            distribution={"type": "PyTorch", "process_count_per_instance": 2},
        )
    )
    return jobs.handle(jobs.info(job.name))


def start_edited(folder: pathlib.Path):
    (folder / "file1.py").write_text(f"x = {time.time()}\n")
    return start_job(folder)


def start_program(_: pathlib.Path):
    from troupe.launch import submit_command

    return submit_command(["--", "bash", "-c", LINE], processes=2, remote=True)


def rows(rounds: int) -> dict:
    """Measure all three contenders and return their rows."""
    os.environ["TROUPE_QUIET"] = "1"
    contenders = {"job": start_job, "edited": start_edited, "program": start_program}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    with (
        tempfile.TemporaryDirectory(prefix="troupe-bench-") as home,
        tempfile.TemporaryDirectory(prefix="troupe-bench-") as place,
    ):
        folder = pathlib.Path(place)
        for number in range(FILES):
            (folder / f"file{number}.py").write_text(f"x = {number}\n" * 100)
        os.environ["TROUPE_HOME"] = home
        troupe_command(home, "start", "--head", "--port", "0", "--num-cpus", "4")
        import troupe

        troupe.init("auto")
        try:
            for start in contenders.values():
                first_line(start, folder)
            await_rest()
            for _ in range(rounds):
                for name, start in contenders.items():
                    settle()
                    times[name].append(first_line(start, folder))
        finally:
            troupe.shutdown()
            troupe_command(home, "stop", "--all")
    return {name: summary(taken) for name, taken in times.items()}
