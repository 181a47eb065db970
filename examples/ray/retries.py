"""Retries: a task whose process is lost, or which raises what is worth another try, runs again.

    troupe run-as-ray examples/ray/retries.py

Prints:

    after two lost processes: run 3
    after two errors worth a retry: run 3
    another error at once: KeyError, run 1
    given up: WorkerCrashedError
"""

import os
import tempfile

import ray


def count_run(folder: str, name: str) -> int:
    """Return the number of this run of `name`, by a file of marks that outlives the process."""
    with open(os.path.join(folder, name), "a+", encoding="utf-8") as file:
        file.write("x")
        file.flush()
        return file.tell()


@ray.remote(num_cpus=0.5, max_retries=3)
def lost_twice(folder: str) -> int:
    """Return the number of the run; the process ends in the first two runs.

    Lost processes are retried without being asked for.
    """
    run = count_run(folder, "lost")
    if run < 3:
        os._exit(1)
    return run


@ray.remote(num_cpus=0.5, max_retries=3, retry_exceptions=[ConnectionError])
def raises(folder: str, error: Exception) -> int:
    """Raises in the first two runs.

    Errors are retried where they are named, or all with retry_exceptions=True.
    """
    run = count_run(folder, type(error).__name__)
    if run < 3:
        raise error
    return run


@ray.remote(num_cpus=0.5, max_retries=0)
def always_lost() -> None:
    """Never retried."""
    os._exit(1)


with tempfile.TemporaryDirectory() as folder:
    print("after two lost processes: run", ray.get(lost_twice.remote(folder)))
    print(
        "after two errors worth a retry: run",
        ray.get(raises.remote(folder, ConnectionError("busy"))),
    )
    try:
        ray.get(raises.remote(folder, KeyError("wrong")))
    except KeyError:
        print(
            "another error at once: KeyError, run",
            os.path.getsize(os.path.join(folder, "KeyError")),
        )
    try:
        ray.get(always_lost.remote())
    except ray.exceptions.WorkerCrashedError:
        print("given up: WorkerCrashedError")
