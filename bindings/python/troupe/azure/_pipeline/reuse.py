"""Steps that are reused: the key of a step, by which an earlier one with the same code, command,
inputs and variables is found, if its outputs are whole."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._cluster import folders, home
from troupe.azure._pipeline import digests
from troupe.azure._pipeline.plan import StepPlan

FOLDER = ".steps"
"""In ~/troupe_results: a file for each key, which names the job and its outputs."""
_VERSION, _KEYS_MAX = 1, 10_000
_IGNORED = (
    "name",
    "description",
    "display_name",
    "tags",
    "properties",
    "experiment_name",
    "services",
    "identity",
    "queue_settings",
    "limits",
    "compute",
    "code",
    "is_deterministic",
    "parent_job_name",
    "type",
    "status",
    "id",
)


def key_of(step: StepPlan, inputs: Mapping[str, str]) -> str:
    """Return the key of a step.

    `inputs`: the digests of its files and folders, by the inputs' names. Pure.

    Names, tags, limits, compute and the paths of inputs do not count; the content of inputs, and
    all that the command sees, does.
    """
    job = _content(step.job)
    if step.type == "sweep":
        job["trial"] = _content(step.job["trial"])
    part = job["trial"] if step.type == "sweep" else job
    part["inputs"] = {
        name: _input(about, inputs.get(name)) for name, about in part.get("inputs", {}).items()
    }
    return digests.of_value(
        {
            "version": _VERSION,
            "type": step.type,
            "code": step.code,
            "job": job,
            "python": sys.version,
        }
    )


def _content(job: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in job.items() if name not in _IGNORED}


def _input(about: Any, digest: str | None) -> Any:
    if not isinstance(about, Mapping):
        return about
    return {
        **{name: value for name, value in about.items() if name in ("type", "mode", "default")},
        **({"digest": digest} if digest else {}),
    }


def digests_of_inputs(
    inputs: Mapping[str, Any], known: Mapping[str, str], base: str, *, same_host: bool
) -> dict[str, str] | None:
    """Return the digest of each input with a path, of which `known` has those that other steps have
    written; None: one of them cannot be told.

    What is on other nodes, or at an address, may change without that anybody here sees it, and what
    a step may write to is changed by it. Raises OSError.
    """
    if any(getattr(value, "mode", None) == "rw_mount" for value in inputs.values()):
        return None
    found = dict(known)
    for name, value in inputs.items():
        path = getattr(value, "path", None)
        if name in found or path is None:
            continue
        scheme, separator, _ = path.partition("://")
        if value.mode == "direct" or separator and not (scheme == "file" and same_host):
            return None
        found[name] = digests.of_path(
            os.path.join(base, os.path.expanduser(path.removeprefix("file://")))
        )
    return found


class Store:
    """Steps that have ended well, by their keys. `root`: the folder of all results."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER

    def find(self, key: str) -> tuple[str, dict[str, dict[str, str]]] | None:
        """Return (the job, its outputs) of an equal step whose outputs are there and whole; None:
        there is none."""
        try:
            fields = home.read_record(
                self._folder / f"{key}.json",
                "remove it: the step runs again",
                job=str,
                outputs=dict,
            )
        except (exceptions.DamagedFileError, OSError):
            return None
        if fields is None:
            return None
        for each in fields["outputs"].values():
            try:
                if digests.of_path(each["path"]) != each["digest"]:
                    return None
            except OSError:
                return None
        return fields["job"], fields["outputs"]

    def note(self, key: str, job: str, outputs: Mapping[str, Mapping[str, str]]) -> None:
        """Keep a step that has ended well, in place of an earlier one with that key.

        Raises OSError.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._drop_oldest()
        with folders.replacement(self._folder / f"{key}.json") as fresh:
            fresh.write_text(json.dumps({"job": job, "outputs": outputs}))

    def _drop_oldest(self) -> None:
        """Remove the oldest tenth where there are as many as may be."""
        found = [
            (each.stat().st_mtime, each.path)
            for each in os.scandir(self._folder)
            if each.name.endswith(".json")
        ]
        for _, path in sorted(found)[: _KEYS_MAX // 10] if len(found) >= _KEYS_MAX else ():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
