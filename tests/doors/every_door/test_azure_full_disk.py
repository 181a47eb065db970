"""Command jobs where there is no room: for outputs that are brought here, for what a job brings to
its node.

Method: a node whose cache is a file system of a few MiB, and commands that see one of 1 MiB; each
is to end in one error that names what was written, where, and how many bytes are needed and free,
with nothing left that looks whole.
"""

from __future__ import annotations

import http.server
import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure_jobs import LIMIT_S, folder_of, run
from small_disks import folders_in, left_of, needs_mounts, on_a_small_disk

from troupe import exceptions
from troupe.azure import Input, MLClient, Output, command

pytestmark = needs_mounts
HOST = os.uname().nodename
MAKE = "head -c {} /dev/zero > {}; "


def download(folder: Path, job: str, *words: str, options: str = "size=1m") -> object:
    return on_a_small_disk(
        folder,
        [
            sys.executable,
            "-m",
            "troupe",
            "azure",
            "job",
            "download",
            "-n",
            job,
            "-p",
            str(folder),
            *words,
        ],
        options,
    )


@pytest.fixture(scope="module")
def job(small_node: Path) -> str:
    """A job that has written a small output and one of 2 MiB, in two files."""
    outputs = {
        "large": Output(type="uri_folder"),
        "little": Output(type="uri_folder"),
        "one": Output(type="uri_file"),
    }
    line = (
        MAKE.format(1 << 20, "${{outputs.large}}/a")
        + MAKE.format(1 << 20, "${{outputs.large}}/b")
        + "echo x > ${{outputs.little}}/x; "
    )
    made, _ = run(
        command=line + MAKE.format(2 << 20, "${{outputs.one}}") + "echo said", outputs=outputs
    )
    return str(made.name)


def test_c6_an_output_that_does_not_fit_is_one_error_and_none_of_it_is_there(
    job: str, tmp_path: Path
) -> None:
    there = tmp_path / "d"
    done = download(there, job, "--output-name", "large")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert re.fullmatch(
        rf"OutOfDiskError\(OSError\): output 'large' of job {job} cannot be written to {there}/named-outputs/large on {HOST}: No space left on device\n"
        r"  it needs 2\.0 MiB, and (\d{3,4}\.\d KiB|1\.0 MiB) of 1\.0 MiB is free there\n"
        r"  free room there or give another download_path: the job's files stay on its nodes\n",
        done.stderr,
    ), done.stderr
    assert left_of(done) == [], "neither files nor folders that were made for it"
    done = download(there, job, "--output-name", "one")
    assert (
        "output 'one' of job" in done.stderr
        and "it needs 2.0 MiB" in done.stderr
        and left_of(done) == []
    )


def test_c6_an_output_that_does_fit_is_whole_beside_one_that_does_not(
    job: str, tmp_path: Path
) -> None:
    done = download(tmp_path / "d", job, "--all", options="size=1536k")
    assert done.returncode == 1 and done.stderr.count("cannot be written") == 1, done.stderr
    assert [
        each for each in left_of(done) if "large" in each or "one" in each or "arriving" in each
    ] == []
    done = download(tmp_path / "d", job, "--all", options="size=8m")
    assert done.returncode == 0, done.stderr
    assert {
        "./named-outputs/large/a",
        "./named-outputs/large/b",
        "./named-outputs/little/x",
        "./named-outputs/one/one",
        "./artifacts/user_logs/std_log.txt",
    } <= set(left_of(done))


def test_a_disk_that_may_not_be_written_and_one_without_inodes(job: str, tmp_path: Path) -> None:
    done = download(tmp_path / "d", job, "--all", options="ro")
    assert (
        done.returncode == 1
        and f"on {HOST}: Read-only file system\n  free room there or" in done.stderr
    ), done.stderr
    done = download(tmp_path / "d", job, "--output-name", "large", options="size=8m,nr_inodes=5")
    assert "no file more can be made: all 5 inodes are used" not in done.stderr, (
        "what is free is looked at without what was written"
    )
    assert "output 'large' of job" in done.stderr and left_of(done) == []


def test_c6_what_a_streamed_job_has_written_and_does_not_fit(
    small_node: Path, tmp_path: Path
) -> None:
    """The job itself has succeeded; of one that has failed, that is the error."""
    there = tmp_path / "d"
    line = MAKE.format(2 << 20, "${{outputs.o}}/a") + "echo said; exit CODE"
    script = (
        "import sys; from troupe.azure import MLClient, Output, command\n"
        "jobs = MLClient().jobs; job = jobs.create_or_update(command(command=sys.argv[1], "
        "outputs={'o': Output(path=sys.argv[2])}))\n"
        "try:\n    jobs.stream(job.name)\nexcept Exception as error:\n    "
        "print(type(error).__name__, isinstance(error, OSError), error)"
    )
    for code, kind in (
        (0, "OutOfDiskError(OSError) True output 'o' of job"),
        (7, "LaunchError False rank 0 exited with code 7"),
    ):
        done = on_a_small_disk(
            there,
            [sys.executable, "-c", script, line.replace("CODE", str(code)), str(there / "made")],
            env={"TROUPE_ADDRESS": address()},
        )
        assert "[0] said" in done.stdout and kind in done.stdout, done.stdout + done.stderr
        assert (
            "it needs 2.0 MiB" in done.stdout + done.stderr
            and "jobs.stream brings it again" in done.stdout + done.stderr
        )
        assert left_of(done) == []


def test_what_a_job_has_written_on_a_node_that_is_full_now_can_be_fetched(
    small_node: Path, tmp_path: Path
) -> None:
    made, _ = run(command="echo x > ${{outputs.o}}/x", outputs={"o": None})
    filler = small_node / "filler"
    with open(filler, "wb") as file, pytest.raises(OSError):
        while True:
            file.write(bytes(1 << 16))
            file.flush()
    MLClient().jobs.download(made.name, download_path=tmp_path, output_name="o")
    filler.unlink()
    assert (tmp_path / "named-outputs/o/x").read_text() == "x\n"


def address() -> str:
    import troupe

    return str(troupe.get_runtime_context().gcs_address)


def failure(**fields: object) -> str:
    """Return the error text of a job that fails."""
    with pytest.raises(exceptions.LaunchError) as failed:
        run(**fields)
    return str(failed.value)


def test_c1_code_that_does_not_fit_on_its_node(small_node: Path, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "src", a="x")
    before = folders_in(small_node)
    for size, needs in (
        (25 << 20, r"25\.0 MiB"),
        (11 << 20, r"11\.0 MiB"),
    ):  # the second fits once, and not as the job's own copy too
        (folder / "weights").write_bytes(os.urandom(size))
        text = failure(code=str(folder), command="true")
        assert re.search(
            rf"the code of job \S+ cannot be written to \S+/cache/\S+ on {HOST}: No space left on device\n\s+"
            rf"it needs {needs}, and \d[\d.]* [KM]iB of 24\.0 MiB is free there\n\s+free room there",
            text,
        ), text
    assert [
        each
        for each in folders_in(small_node)
        if each not in before and not each.startswith("tree-")
    ] == []


@pytest.fixture
def server() -> Iterator[str]:
    """A file of 30 MiB."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(30 << 20))
            self.end_headers()
            self.wfile.write(bytes(30 << 20))

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}/data.bin"
        made.shutdown()


def test_c6_an_input_of_an_address_that_does_not_fit(small_node: Path, server: str) -> None:
    before = folders_in(small_node)
    text = failure(command="true", inputs={"data": Input(type="uri_file", path=server)})
    assert re.search(
        rf"inputs: data: {server} cannot be written to \S+ on {HOST}: No space left on device\n\s+it needs 30\.0 MiB, and ",
        text,
    ), text
    assert folders_in(small_node) == before


def test_c6_an_output_where_nothing_may_be_written_is_said_before_the_command_runs(
    small_node: Path,
) -> None:
    text = failure(command="echo ran", outputs={"o": Output(path="file:///mnt/o")})
    assert re.search(
        rf"outputs: o cannot be written to /mnt/o on {HOST}: Read-only file system\n\s+give the output another path",
        text,
    ), text
    jobs = MLClient().jobs
    made = jobs.create_or_update(
        command(command="echo ran", outputs={"o": Output(path="file:///mnt")})
    )
    handle = jobs.handle(jobs.info(made.name))
    with pytest.raises(exceptions.LaunchError, match="outputs: o cannot be written to /mnt on "):
        handle.result(timeout=LIMIT_S)
    assert "ran" not in list(handle.logs(0))
