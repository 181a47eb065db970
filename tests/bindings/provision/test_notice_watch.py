"""Notices: the command is run until it exits with 0, and what is wrong with it is said once."""

from __future__ import annotations

import select
from pathlib import Path

import pytest

from troupe._provision.notices import NoticeWatch

LIMIT_S = 60.0


def is_noticed(watch: NoticeWatch, timeout_s: float = LIMIT_S) -> bool:
    """Wait for the notice."""
    return bool(select.select([watch.descriptor], [], [], timeout_s)[0])


def test_the_first_0_is_the_notice(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command = f"echo x >>{runs}; test $(wc -l <{runs}) -ge 4"
    watch = NoticeWatch(command, interval_s=0.01)
    watch.start()
    assert is_noticed(watch)
    assert len(runs.read_text().split()) == 4, "nothing is run after the notice"


def test_a_command_that_cannot_be_run_is_no_notice(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = tmp_path / "later"
    watch = NoticeWatch(f"echo x >>{tmp_path}/runs; {command}", interval_s=0.01)
    watch.start()
    while not (tmp_path / "runs").exists() or len((tmp_path / "runs").read_text()) < 6:
        assert not is_noticed(watch, 0.01)
    fresh = tmp_path / "fresh"
    fresh.write_text("#!/bin/sh\nexit 0\n")
    fresh.chmod(0o700)
    fresh.rename(command)
    assert is_noticed(watch)
    said = capfd.readouterr().err
    assert said.count("--notice-command") == 1 and "exit code 127" in said
