"""Workload files: what is accepted, what is refused and how, and what the help says.

Method: files written to a folder, read by the function that the command uses. No cluster.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from troupe._code import yaml_files
from troupe.air import _accelerators, _code, _fields, _secrets, _workload

MINIMAL: dict[str, Any] = {
    "experiment_name": "e",
    "compute": {"num_accelerators": 8, "accelerator_type": "GPU_8xH100"},
    "command": "true",
}


def written(folder: Path, **changes: Any) -> str:
    """Write a workload with these fields in place of MINIMAL's, None for none, and return its
    path."""
    fields = {name: value for name, value in {**MINIMAL, **changes}.items() if value is not None}
    path = folder / "train.yaml"
    path.write_text(yaml_files.text_of(fields))
    return str(path)


def test_every_documented_field_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "repo" / "src").mkdir(parents=True)
    (tmp_path / "requirements.yaml").write_text("dependencies:\n- torch\n- transformers>=4\n")
    nested = {"type": "snapshot", "snapshot": {"root_path": "repo", "include_paths": ["src"]}}
    found = _workload.load(
        written(
            tmp_path,
            compute={
                "num_accelerators": 16,
                "accelerator_type": "GPU_8xH100",
                "pool_id": "team",
                "priority_class": "CRITICAL",
            },
            environment={
                "version": 5,
                "dependencies": "requirements.yaml",
                "env_variables": {"A": "1"},
                "secret_env_variables": {"T": "s/k"},
            },
            env_variables={"B": 2},
            code_source=nested,
            hyperparameters={"lr": 0.1},
            max_retries=0,
            timeout_minutes=1.5,
            idempotency_token="k",
            run_name="r",
            permissions=[{"user_name": "a", "level": "CAN_VIEW"}],
            usage_policy_id="p",
        )
    )
    assert (found.nodes, found.accelerators, str(found.kind), found.pool, found.priority) == (
        2,
        16,
        "GPU_8xH100",
        "team",
        1,
    )
    assert (
        found.requirements == ("torch", "transformers>=4")
        and found.variables == {"A": "1", "B": "2"}
        and found.secrets == {"T": "s/k"}
    )
    assert found.code == _workload.Code(str(tmp_path / "repo"), ("src",))
    assert (found.max_retries, found.timeout_s, found.idempotency_key, found.run_name) == (
        0,
        90.0,
        "k",
        "r",
    )
    assert [each.partition(" ")[0] for each in found.unused] == [
        "permissions",
        "usage_policy_id",
        "environment.version",
    ]
    json.dumps(found.shown())


def test_both_forms_of_code_source_mean_the_same(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    flat = _workload.load(written(tmp_path, code_source={"root_path": "repo"}))
    assert (
        flat.code
        == _workload.load(
            written(tmp_path, code_source={"type": "snapshot", "snapshot": {"root_path": "repo"}})
        ).code
    )


def test_defaults_are_the_services(tmp_path: Path) -> None:
    found = _workload.load(written(tmp_path))
    assert (
        found.max_retries == 3
        and found.timeout_s is None
        and found.run_name == "e"
        and found.code is None
        and found.nodes == 1
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"command": None}, "the file needs command"),
        ({"comand": "x"}, "did you mean 'command'?"),
        ({"compute": {"num_accelerators": 12, "accelerator_type": "GPU_8xH100"}}, "8 or 16"),
        ({"compute": {"num_accelerators": 8, "accelerator_type": "gpu_8xh100"}}, "case matters"),
        ({"compute": {"num_accelerators": True, "accelerator_type": "GPU_8xH100"}}, "whole number"),
        (
            {
                "compute": {
                    "num_accelerators": 8,
                    "accelerator_type": "GPU_8xH100",
                    "priority_class": "NORMAL",
                }
            },
            "needs compute.pool_id",
        ),
        ({"environment": {"docker_image": "x", "version": 5}}, "exclude each other"),
        ({"environment": {"dependencies": "none.yaml"}}, "there is no file"),
        ({"env_variables": {"A": True}}, "quote it"),
        (
            {"env_variables": {"A": "1"}, "environment": {"env_variables": {"A": "2"}}},
            "different values",
        ),
        ({"env_variables": {"1A": "1"}}, "no name of an environment variable"),
        ({"code_source": {"root_path": "/nonexistent"}}, "there is no folder"),
        ({"code_source": {"root_path": "/", "include_paths": ["../etc"]}}, "leaves root_path"),
        (
            {"code_source": {"root_path": "/", "git": {"branch": "a", "commit": "b"}}},
            "exclude each other",
        ),
        (
            {"code_source": {"root_path": "/", "git": {"commit": "b", "remote": True}}},
            "needs code_source.git.branch",
        ),
        ({"code_source": {"type": "volume", "root_path": "/"}}, "only 'snapshot'"),
        ({"experiment_name": "x" * 257}, "257 characters"),
        ({"max_retries": -1}, "at least 0, not -1"),
        ({"timeout_minutes": 0}, "a number of minutes above 0"),
        ({"idempotency_token": "a b"}, "printable ASCII"),
        ({"hyperparameters": {}, "parameters": {}}, "same field"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_field(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        _workload.load(path)
    assert re.match(re.escape(path) + r":\d+:\d+: ", str(caught.value)) and words in str(
        caught.value
    )


def test_all_errors_of_a_file_are_said_at_once_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(
        "comand: x\nexperiment_name: [e]\ncompute:\n  num_accelerators: eight\n  accelerator_type: "
        "GPU_8xH100\n  pool: p\ncommand: 'true'\n"
    )
    with pytest.raises(ValueError) as caught:
        _workload.load(str(path))
    assert [
        line.split(" ")[2].removeprefix(f"{path}:") for line in str(caught.value).splitlines()[1:]
    ] == ["1:1:", "2:18:", "4:21:", "6:3:"], caught.value
    assert str(caught.value).startswith(
        f"{path} has 4 errors\n"
    ) and "did you mean 'command'?" in str(caught.value)


def test_a_secret_in_the_place_of_its_reference_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="scope/key") as caught:
        _workload.load(written(tmp_path, secret_env_variables={"TOKEN": "hf_verysecret"}))
    assert "hf_verysecret" not in str(caught.value)


def test_overrides_are_values_as_in_yaml_and_unknown_paths_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    found = _workload.load(
        path,
        [
            ("compute.num_accelerators", "16"),
            ("config.max_retries", "0"),
            ("hyperparameters", "{lr: 0.5}"),
        ],
    )
    assert (found.nodes, found.max_retries, found.hyperparameters) == (2, 0, {"lr": 0.5})
    with pytest.raises(ValueError, match="did you mean 'num_accelerators'"):
        _workload.load(path, [("compute.num_accelerator", "16")])


def test_help_names_every_field_and_its_type() -> None:
    text = _fields.help_of("config")
    assert all(each.name in text and each.text in text for each in _fields.WORKLOAD)
    assert "(string, required)" in _fields.help_of("config.compute.accelerator_type")
    assert "git" in _fields.help_of("config.code_source.snapshot")


def test_the_types_of_a_cluster_are_named_as_the_api_names_them() -> None:
    nodes = [
        {"gpus": 8.0, "gpu_type": "H100"},
        {"gpus": 8.0, "gpu_type": "H100"},
        {"gpus": 1.0, "gpu_type": "A10"},
        {"gpus": 0.0, "gpu_type": ""},
    ]
    assert _accelerators.types_of(nodes) == ["GPU_1xA10", "GPU_8xH100"]


def test_include_paths_take_folders_whole_and_nothing_else(tmp_path: Path) -> None:
    included = _code.Included(str(tmp_path), ("src/model", "train.py"))
    assert [included(each) for each in ("src/", "src/model/", "src/model/a.py", "train.py")] == [
        False
    ] * 4
    assert [included(each) for each in ("src/other/", "src/a.py", "train.pyc", "model/")] == [
        True
    ] * 4


def test_git_gives_what_is_committed_not_what_lies_there(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *words],
            check=True,
            capture_output=True,
        )

    git("init", "-q", "-b", "main")
    (tmp_path / "train.py").write_text("committed")
    git("add", "train.py")
    git("commit", "-qm", "first")
    (tmp_path / "train.py").write_text("changed")
    with _code._folder(_workload.Code(str(tmp_path), branch="main")) as folder:
        assert Path(folder, "train.py").read_text() == "committed"
    with (
        pytest.raises(ValueError, match="'nosuch'"),
        _code._folder(_workload.Code(str(tmp_path), branch="nosuch")),
    ):
        pass


def test_secrets_are_files_that_their_owner_alone_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_secrets.FOLDER, str(tmp_path))
    (tmp_path / "scope").mkdir()
    secret = tmp_path / "scope" / "key"
    with pytest.raises(FileNotFoundError, match="there is no secret scope/key"):
        _secrets.values({"T": "scope/key"})
    secret.write_text("value\n")
    secret.chmod(0o644)
    with pytest.raises(PermissionError, match="chmod 600"):
        _secrets.values({"T": "scope/key"})
    secret.chmod(0o600)
    assert _secrets.values({"T": "scope/key"}) == {"T": "value"}
