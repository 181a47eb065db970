"""Profiles of several processes in one file, and what is said where something stands in the way:
the profiles are made up, a program stands in the place of py-spy."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from troupe._tracing import profile_files, profiles, stacks as _stacks
from troupe._wire import ProfileFormat

WANTED = profiles.Wanted(seconds=1, rate=10, format=ProfileFormat.SPEEDSCOPE)


def speedscope(*stacks: list[str]) -> str:
    """A document of one thread with these stacks."""
    names = sorted({name for stack in stacks for name in stack})
    return json.dumps(
        {
            "$schema": "s",
            "shared": {"frames": [{"name": name, "file": "a.py"} for name in names]},
            "profiles": [
                {
                    "type": "sampled",
                    "name": "thread MainThread",
                    "samples": [[names.index(name) for name in stack] for stack in stacks],
                    "weights": [0.1] * len(stacks),
                }
            ],
        }
    )


def row(rank: int, text: str) -> dict:
    return {"rank": rank, "pid": 100 + rank, "node": "a", "text": text}


def test_a_speedscope_file_has_the_threads_of_all_processes() -> None:
    rows = [row(0, speedscope(["main", "step"])), row(1, speedscope(["main", "load"], ["main"]))]
    [(path, text)] = profile_files.files(rows, ProfileFormat.SPEEDSCOPE, "out.json").items()
    document = json.loads(text)
    frames = [each["name"] for each in document["shared"]["frames"]]
    assert path == "out.json" and sorted(frames) == ["load", "main", "step"]
    stacks = {
        each["name"]: [[frames[at] for at in sample] for sample in each["samples"]]
        for each in document["profiles"]
    }
    assert stacks == {
        "rank 0, pid 100 on a: thread MainThread": [["main", "step"]],
        "rank 1, pid 101 on a: thread MainThread": [["main", "load"], ["main"]],
    }
    assert [profile_files.count_samples(each, ProfileFormat.SPEEDSCOPE) for each in rows] == [1, 2]


def test_collapsed_stacks_begin_with_the_process_and_flamegraphs_are_files_of_their_own() -> None:
    rows = [row(0, "main;step 7\n"), row(1, "main 2\n"), {"rank": 2, "pid": 102, "error": "gone"}]
    collapsed = profile_files.files(rows, ProfileFormat.COLLAPSED, "out.txt")
    assert collapsed == {
        "out.txt": "rank 0, pid 100 on a;main;step 7\nrank 1, pid 101 on a;main 2\n"
    }
    assert profile_files.count_samples(rows[0], ProfileFormat.COLLAPSED) == 7
    pictures = profile_files.files(rows, ProfileFormat.FLAMEGRAPH, "out.svg")
    assert list(pictures) == ["out.rank-0.svg", "out.rank-1.svg"]
    assert list(profile_files.files(rows[:1], ProfileFormat.FLAMEGRAPH, "out.svg")) == ["out.svg"]
    assert profile_files.files(rows[2:], ProfileFormat.FLAMEGRAPH, "out.svg") == {}


@pytest.fixture
def py_spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of py-spy, still to be written."""
    program = tmp_path / "py-spy"
    program.touch(0o755)
    monkeypatch.setattr(_stacks, "_py_spy", lambda: str(program))
    return program


def test_where_frames_of_c_cannot_be_sampled_those_of_python_are_and_a_note_says_so(
    py_spy: Path,
) -> None:
    py_spy.write_text(
        "#!/bin/sh\ncase \" $* \" in *' --native '*) echo 'Error: UNW_EINVAL' >&2; exit 1;; esac\n"
        f"cat > $5 <<'END'\n{speedscope(['main'])}\nEND\n"
    )
    found = profiles.record(os.getpid(), WANTED._replace(native=True))
    assert "Python's frames only" in found["note"] and "UNW_EINVAL" in found["note"]
    assert json.loads(found["text"]) == json.loads(speedscope(["main"]))
    assert "note" not in profiles.record(os.getpid(), WANTED)


def test_a_process_of_which_nothing_ran_is_no_error(py_spy: Path) -> None:
    py_spy.write_text(f"#!/bin/sh\ncat > $5 <<'END'\n{speedscope()}\nEND\n")
    assert "--idle" in profiles.record(os.getpid(), WANTED)["note"]
    py_spy.write_text("#!/bin/sh\necho 'Error: No stack counts found' >&2; exit 1\n")
    picture = WANTED._replace(format=ProfileFormat.FLAMEGRAPH)
    assert "--idle" in profiles.record(os.getpid(), picture)["note"]


def test_what_cannot_be_sampled_or_is_too_large_says_why(py_spy: Path) -> None:
    py_spy.write_text("#!/bin/sh\necho 'Error: with'$5 >&2; exit 1\n")
    assert profiles.record(os.getpid(), WANTED)["error"].startswith("Error: with/")
    packed = profiles.pack({"pid": 7, "text": os.urandom(5000).hex()}, 1000)
    assert packed.keys() == {"pid", "error"} and "--rank" in packed["error"]
    found = {"pid": 7, "text": "main;ö 1\n", "note": "n"}
    assert profiles.unpack(profiles.pack(dict(found), 1000)) == found
