"""pip requirements of launches: one virtual environment for each set and node, which sees what the
node has, made once, and a zygote of it.

Method: wheels made here, and in most tests a `uv` that tells of each of its runs; nothing is
fetched from anywhere.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually
from installs import Installer, wheel
from submits import printed, project, troupe_in, two

from troupe import exceptions
from troupe.launch import distributed

LOOK = """
import os, subprocess, sys
import tiny_thing
child = subprocess.run([sys.executable, "-c", "import tiny_thing, numpy, troupe; print(tiny_thing.VALUE)"], capture_output=True, text=True)
print(tiny_thing.VALUE, child.stdout.strip() or child.stderr)
"""


@pytest.fixture
def installer(tmp_path: Path) -> Installer:
    return Installer(tmp_path / "bin")


def value() -> tuple[str, str, str]:
    import numpy
    import tiny_thing

    return tiny_thing.VALUE, tiny_thing.__file__, numpy.__file__


def test_a6_it_is_installed_once_beside_what_the_node_has_and_has_a_zygote(
    idle: Home, tmp_path: Path, installer: Installer
) -> None:
    environment = {
        "pip": [wheel(tmp_path, requires=["numpy", "torch"])],
        "env_vars": installer.variables(),
    }
    launch = distributed(processes=4, remote=True, quiet=True, runtime_env=environment)(value)
    results = launch.distributed()
    assert {each[0] for each in results} == {"1.0"} and len({each[1] for each in results}) == 1
    assert len(installer.runs()) == 1, "of four ranks one has asked the installer"
    import numpy

    assert results[0][2] == numpy.__file__, "the node's own, not one more"

    def forked() -> bool:
        handle = launch.submit()
        handle.result(timeout=TIMEOUT_S)
        return handle.status()["started_from"] == "forked from a zygote with its pip requirements"

    eventually(forked, timeout=2 * TIMEOUT_S, what="the zygote of the requirements")
    assert len(installer.runs()) == 1
    with pytest.raises(ModuleNotFoundError):
        distributed(processes=1, remote=True, quiet=True)(
            lambda: __import__("tiny_thing")
        ).distributed()


def test_the_resolver_s_words_come_once_with_the_node_and_without_credentials(
    idle: Home, tmp_path: Path
) -> None:
    secret = "https://somebody:s3cr3t@127.0.0.1:9/simple"
    environment = {
        "pip": ["no-such-thing-anywhere==1.0"],
        "env_vars": {"PIP_INDEX_URL": secret, "PIP_NO_INDEX": "1", "PATH": os.environ["PATH"]},
    }
    launch = distributed(processes=3, remote=True, quiet=True, runtime_env=environment)(value)
    handle = launch.submit()
    with pytest.raises(exceptions.RuntimeEnvSetupError) as caught:
        handle.result(timeout=2 * TIMEOUT_S)
    text = str(caught.value)
    assert text.count("No matching distribution found for no-such-thing-anywhere==1.0") == 1, text
    assert "on one" in text and "rank 1 too" not in text and "rank 2 too" not in text, text
    told = (
        text
        + json.dumps(handle.status())
        + idle.run("list", "launches").stdout
        + idle.run("logs", handle.id, ok=False).stdout
    )
    assert "s3cr3t" not in told


def test_lines_with_credentials_are_in_no_command_line(
    idle: Home, tmp_path: Path, installer: Installer
) -> None:
    line = "--extra-index-url https://somebody:s3cr3t@127.0.0.1:9/simple"
    os.mkfifo(installer.gate)
    environment = {"pip": [line, wheel(tmp_path, version="1.5")], "env_vars": installer.variables()}
    handle = distributed(processes=1, remote=True, quiet=True, runtime_env=environment)(
        value
    ).submit()
    eventually(installer.runs, what="the installer")
    assert not [command for command in idle.processes().values() if "s3cr3t" in command]
    installer.gate.write_text("")
    os.unlink(installer.gate)
    assert handle.result(timeout=2 * TIMEOUT_S)[0][0] == "1.5"
    assert "s3cr3t" not in json.dumps(handle.status()) and "s3cr3t" not in "".join(installer.runs())
    again = distributed(processes=1, remote=True, quiet=True, runtime_env=environment)(
        value
    ).submit()
    again.result(timeout=2 * TIMEOUT_S)
    assert not [command for command in idle.processes().values() if "s3cr3t" in command], (
        "nor in that of its zygote"
    )


@pytest.mark.long
def test_submit_installs_what_it_is_told_and_nothing_else(idle: Home, tmp_path: Path) -> None:
    folder = project(
        tmp_path / "w",
        look=LOOK,
        **{"requirements.txt": wheel(tmp_path, version="2.0", command="tiny-command") + "\n"},
    )
    assert "No module named 'tiny_thing'" in troupe_in(folder, "submit", "look.py").stderr
    assert (
        printed(troupe_in(folder, *two("--requirements", "requirements.txt", "look.py")))
        == ["2.0 2.0"] * 2
    )
    assert (
        printed(troupe_in(folder, *two("--requirements", "requirements.txt", "--fresh", "look.py")))
        == ["2.0 2.0"] * 2
    )
    assert printed(
        troupe_in(folder, "submit", "--requirements", "requirements.txt", "--", "tiny-command")
    ) == ["the command of 2.0"]
    assert printed(
        troupe_in(folder, "submit", "--pip", wheel(tmp_path, version="3.0"), "look.py")
    ) == ["3.0 3.0"]
    refused = troupe_in(folder, "submit", "--requirements", "no_such.txt", "look.py")
    assert (
        refused.returncode != 0
        and "no_such.txt cannot be read" in refused.stderr
        and "Traceback" not in refused.stderr
    )
