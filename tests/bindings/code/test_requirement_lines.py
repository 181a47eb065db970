"""pip requirements in their forms, what of them is shown, and how what a host has of them is told
apart."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from troupe._code import requirements, runtime_env, virtual_environments
from troupe.runtime_env import RuntimeEnv

SECRET = "https://user:s3cr3t@index.example/simple"


def lines(given: object, key: str = "pip") -> list[str]:
    return requirements.travelling(requirements.read(key, given))["lines"]


def test_a_list_a_dict_and_a_file_are_the_same(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(
        "# what is needed\nnumpy>=1  # arrays\n\neinops==0.8.0 \\\n  ; python_version > '3'\n"
    )
    wanted = ["einops==0.8.0    ; python_version > '3'", "numpy>=1"]
    assert lines(str(file)) == lines(file) == wanted
    assert (
        lines(wanted)
        == lines({"packages": wanted, "pip_version": "==23.0"})
        == lines({"packages": wanted}, "uv")
        == wanted
    )
    assert requirements.read(
        "pip", requirements.read("pip", {"packages": wanted, "pip_check": True})
    ) == {"packages": wanted, "pip_check": True}
    assert (
        requirements.travelling(requirements.read("uv", {"packages": ["a"], "uv_check": True}))[
            "check"
        ]
        is True
    )
    assert RuntimeEnv(**RuntimeEnv(pip={"packages": ["a"], "pip_check": True}))["pip"] == {
        "packages": ["a"],
        "pip_check": True,
    }


def test_files_may_include_others_and_say_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "base.txt").write_text("b\n--extra-index-url https://x/simple\n")
    (tmp_path / "limits.txt").write_text("numpy<3\n")
    (tmp_path / "all.txt").write_text("-r base.txt\n-c limits.txt\na\n--no-index\n")
    assert lines(str(tmp_path / "all.txt")) == [
        "--extra-index-url https://x/simple",
        "--no-index",
        "a",
        "b",
        "constraint: numpy<3",
    ]
    assert requirements.read("pip", lines(str(tmp_path / "all.txt"))) == lines(
        str(tmp_path / "all.txt")
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-e .", "no option -e: a folder of the program is given as working_dir"),
        ("--target=x", "no option --target"),
        ("-r itself.txt", "includes itself"),
        ("-r no_such.txt", "no_such.txt cannot be read"),
    ],
)
def test_what_a_file_cannot_say(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "itself.txt"
    file.write_text(text + "\n")
    with pytest.raises(ValueError, match=words):
        lines(str(file))


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("conda", "start its worker there"),
        ("container", "start its worker there"),
        ("image_uri", "start its worker there"),
        ("nsight", "nsys profile"),
        ("nonsense", "supported: config"),
    ],
)
def test_what_ray_has_beside_it_is_refused_with_the_way_to_it(key: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        runtime_env.check({key: {}})


def test_credentials_are_shown_nowhere_and_tell_no_environment_from_another() -> None:
    pip = {"lines": [f"--index-url {SECRET}", f"tiny @ {SECRET}/tiny.whl"], "check": False}
    assert "s3cr3t" not in requirements.names(
        pip
    ) and "tiny @ https://***@index.example" in requirements.names(pip)
    assert (
        requirements.shown(f"cannot reach {SECRET}")
        == "cannot reach https://***@index.example/simple"
    )
    other = {**pip, "lines": [line.replace("s3cr3t", "renewed") for line in pip["lines"]]}
    assert requirements.digest(pip, {"PIP_INDEX_URL": SECRET}) == requirements.digest(
        other, {"PIP_INDEX_URL": SECRET.replace("s3cr3t", "x")}
    )
    assert requirements.digest(pip, {"PIP_INDEX_URL": SECRET}) != requirements.digest(
        pip, {"PIP_INDEX_URL": "https://other/simple"}
    )
    assert requirements.digest(pip, {"WORD": "a"}) == requirements.digest(pip, {})
    travelling = {**pip, "digest": "d"}
    assert json.loads(runtime_env.setup_text({"pip": travelling})) == {"pip": {"digest": "d"}}, (
        "it stands in the command line of a zygote"
    )


def test_an_archive_that_was_built_again_is_another_one(tmp_path: Path) -> None:
    archive = tmp_path / "tiny-1.0-py3-none-any.whl"
    archive.write_bytes(b"x")
    pip = requirements.travelling(requirements.read("pip", [str(archive)]))
    first = requirements.digest(pip, {})
    os.utime(archive, ns=(1, 1))
    assert requirements.digest(pip, {}) != first


@pytest.mark.parametrize(
    ("variables", "configured", "uses_uv"),
    [
        ({}, False, True),
        ({"PIP_INDEX_URL": "x"}, False, False),
        ({}, True, False),
        ({"PIP_INDEX_URL": "x", "UV_INDEX_URL": "y"}, True, True),
        ({"PIP_CERT": "x"}, False, True),
    ],
)
def test_uv_where_it_knows_the_indexes_that_pip_knows(
    tmp_path: Path, variables: dict, configured: bool, uses_uv: bool
) -> None:
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)
    found = virtual_environments.found_uv(
        {"PATH": str(tmp_path), **variables}, pip_is_configured=configured
    )
    assert found == (str(uv) if uses_uv else None)
