"""`troupe stack` where the reading is refused: the settings are made up, the texts are real."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from troupe._tracing import stacks as _stacks

DENIED = "Permission Denied: Try running again with elevated permissions\nStack backtrace:\n 0: x"


@pytest.mark.parametrize(
    ("scope", "by_worker", "said"),
    [
        (0, True, "SYS_PTRACE"),
        (1, True, "a process names its worker as the one that may read it"),
        (1, False, "give the id of the launch or of the actor instead of the pid"),
        (2, True, "only root may read another process"),
        (3, False, "nobody may read another process"),
    ],
)
def test_a_refusal_says_who_may_read(
    monkeypatch: pytest.MonkeyPatch, scope: int, by_worker: bool, said: str
) -> None:
    monkeypatch.setattr(_stacks, "_yama_scope", lambda: scope)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    reason = _stacks._reason(DENIED, os.getpid(), by_worker)
    assert said in reason and "backtrace" not in reason and "Try running" not in reason
    assert ("kernel.yama.ptrace_scope is" in reason) == (scope > 0)


def test_what_is_no_refusal_is_left_as_it_is() -> None:
    assert _stacks._reason("Error: no python here", os.getpid(), False) == "Error: no python here"
    assert "there is no process" in _stacks._reason(DENIED, 2**22 + 1, True)


# As py-spy where a library of the process cannot be unwound: it reads Python's frames, and fails
# with C's.
NO_NATIVE = """#!/bin/sh
case " $* " in
*" --native "*) printf 'Error: UNW_EINVAL\n\nStack backtrace:\n 0: x\n' >&2; exit 1;;
*) echo '[{"os_thread_id": 7, "thread_name": "t", "active": true, "frames": [{"name": "step", "filename": "a.py", "line": 3}]}]';;
esac
"""


@pytest.fixture
def py_spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of py-spy, still to be written."""
    program = tmp_path / "py-spy"
    program.touch(0o755)
    monkeypatch.setattr(_stacks, "_py_spy", lambda: str(program))
    return program


def test_where_frames_of_c_cannot_be_read_those_of_python_are_and_a_note_says_so(
    py_spy: Path,
) -> None:
    py_spy.write_text(NO_NATIVE)
    found = _stacks.read(os.getpid(), native=True)
    assert (
        found["note"]
        == "Python's frames only: py-spy could not read those of C and C++ (Error: UNW_EINVAL)"
    )
    assert [each["name"] for each in found["threads"][0]["frames"]] == ["step"]
    assert "note" not in _stacks.read(os.getpid(), native=False)


def test_where_nothing_can_be_read_the_first_error_is_told(py_spy: Path) -> None:
    py_spy.write_text('#!/bin/sh\necho "Error: with$5" >&2; exit 1\n')
    assert _stacks.read(os.getpid(), native=True) == {
        "pid": os.getpid(),
        "error": "Error: with--native",
    }
    py_spy.write_text("#!/bin/sh\necho nothing of use\n")
    assert "not what it was expected to be" in _stacks.read(os.getpid(), native=True)["error"]
