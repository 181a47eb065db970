"""What `troupe stack` says where the kernel forbids the reading: the settings are made up, the texts are real."""
from __future__ import annotations

import os

import pytest

from troupe import _stacks

DENIED = "Permission Denied: Try running again with elevated permissions\nStack backtrace:\n 0: x"


@pytest.mark.parametrize(("scope", "by_worker", "said"), [
    (0, True, "SYS_PTRACE"),
    (1, True, "a process names its worker as the one that may read it"),
    (1, False, "give the id of the launch or of the actor instead of the pid"),
    (2, True, "only root may read another process"),
    (3, False, "nobody may read another process"),
])
def test_a_refusal_says_who_may_read(monkeypatch: pytest.MonkeyPatch, scope: int, by_worker: bool, said: str) -> None:
    monkeypatch.setattr(_stacks, "_yama_scope", lambda: scope)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    reason = _stacks._reason(DENIED, os.getpid(), by_worker)
    assert said in reason and "backtrace" not in reason and "Try running" not in reason
    assert ("kernel.yama.ptrace_scope is" in reason) == (scope > 0)


def test_what_is_no_refusal_is_left_as_it_is() -> None:
    assert _stacks._reason("Error: no python here", os.getpid(), False) == "Error: no python here"
    assert "there is no process" in _stacks._reason(DENIED, 2**22 + 1, True)
