# Method: `troupe completion` in a real bash; units are read as systemd would, verified by
#     systemd-analyze where it is, and run; systemctl is a script that says what it was told.
from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from e2e_conftest import TIMEOUT_S, Home

from troupe import cli
from troupe.cli.operation import _service


def _completed(home: Home, *words: str, env: dict[str, str] | None = None) -> set[str]:
    """Return bash's completions for the last of these words."""
    variables = {
        "_TROUPE_COMPLETE": "bash_complete",
        "COMP_WORDS": shlex.join(["troupe", *words]),
        "COMP_CWORD": str(len(words)),
    }
    told = home.run(env={**variables, **(env or {})}).stdout
    return {line.partition(",")[2] for line in told.splitlines() if line}


def test_a_shell_completes_commands_options_and_names_of_clusters(
    home: Home, tmp_path: Path
) -> None:
    assert _completed(home, "sta") == {"stack", "start", "status"}
    assert {"submit", "stop", "show"} <= _completed(home, "job", "s")
    assert _completed(home, "job", "submit", "--wor") == {"--working-dir"}
    config = {"XDG_CONFIG_HOME": str(tmp_path)}
    for name in ("lab", "larger", "desk"):
        home.run("cluster", "add", name, "--address", "h:1", env=config)
    assert _completed(home, "status", "--cluster", "la", env=config) == {"lab", "larger"}
    assert _completed(home, "cluster", "use", "d", env=config) == {"desk"}
    (tmp_path / "troupe/clusters.toml").write_text("damaged")
    assert not _completed(home, "status", "--cluster", "la", env=config)
    script = home.run("completion", "bash").stdout
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\ncomplete -p troupe"], capture_output=True, text=True
    )
    assert "troupe" in done.stdout and done.returncode == 0, done.stderr
    refused = home.run("completion", ok=False, env={"SHELL": "/bin/dash"})
    assert refused.returncode == 2 and "'dash'" in refused.stderr


def test_completing_a_command_loads_none_of_them() -> None:
    code = (
        "import sys, click; from troupe.cli import commands\n"
        "found = commands.shell_complete(click.Context(commands), 'jo')\n"
        "assert [each.value for each in found] == ['job', 'journal'], found\n"
        "assert not any(each.startswith('troupe.cli.') for each in sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=TIMEOUT_S)


def test_help_lists_the_commands_as_they_say_it_and_loads_none_of_them() -> None:
    for name, said in cli._SHORT_HELP.items():
        command = cli.commands.get_command(click.Context(cli.commands), name)
        assert command is not None and command.get_short_help_str(limit=200) == said, name
    code = (
        "import os, sys; from troupe.cli import main\n"
        "os._exit = sys.exit\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'troupe.cli._azure', 'troupe.cli._sweep'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.stdout.endswith("\n[]\n") and "torchrun" in done.stdout, done


def _command(unit: str) -> list[str]:
    """The words of ExecStart, as systemd reads them."""
    (line,) = re.findall(r"^ExecStart=(.*)$", unit, re.M)
    return [each.replace("%%", "%").replace("$$", "$") for each in shlex.split(line)]


def test_words_of_a_unit_are_what_was_given(tmp_path: Path) -> None:
    words = ["--labels", 'a="b c"', "--node-name", "100%", "$HOME", "back\\slash", ""]
    unit = _service.unit("n", words, {"TROUPE_HOME": "/a b", "PYTHONPATH": ""})
    assert _command(unit)[4:] == words
    assert 'Environment="TROUPE_HOME=/a b"\n' in unit and "PYTHONPATH" not in unit
    if shutil.which("systemd-analyze"):
        path = tmp_path / "troupe-n.service"
        path.write_text(_service.unit("n", ["--head", "--node-name", "a b"], {}))
        done = subprocess.run(
            ["systemd-analyze", "--user", "verify", path], capture_output=True, text=True
        )
        assert path.name not in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([], "--head, or --address"),
        (["--head", "--block"], "--block is there already"),
        (["--address", "h:1", "--token-file", "t"], "give the whole path"),
        (["--head", "--prot", "7"], "No such option"),
    ],
    ids=range(4),
)
def test_a_service_that_could_not_start_is_refused(home: Home, line: list[str], said: str) -> None:
    done = home.run("service", "install", "--user", "--dry-run", "--", *line, ok=False)
    assert done.returncode == 2 and said.lower() in done.stderr.lower(), done.stderr


def test_a_service_is_installed_runs_ends_at_sigterm_and_is_removed(
    home: Home, tmp_path: Path
) -> None:
    told, bin_folder = tmp_path / "told", tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {told}\n')
    (bin_folder / "systemctl").chmod(0o755)
    env = {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    line = ["service", "install", "--user", "--name", "lab"]
    options = ["--", "--head", "--port", "0", "--num-cpus", "2"]
    printed = home.run(*line, "--dry-run", *options, env=env).stdout
    unit = tmp_path / "config/systemd/user/troupe-lab.service"
    assert not unit.exists() and not told.exists()
    home.run(*line, *options, env=env)
    assert unit.read_text() == printed
    assert told.read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable --now troupe-lab.service",
    ]
    running = subprocess.Popen(_command(printed), stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None and "head ready at" in running.stdout.readline()
        assert len(home.json("status")["nodes"]) == 1
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=TIMEOUT_S)
        assert running.returncode == 0
    finally:
        running.kill()
        running.wait()
    home.run("service", "remove", "--user", "--name", "lab", env=env)
    assert not unit.exists()
    assert (
        home.run("service", "remove", "--user", "--name", "lab", ok=False, env=env).returncode == 2
    )
