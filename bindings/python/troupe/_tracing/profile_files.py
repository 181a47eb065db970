"""Files of profiles: those of several processes in one, where the format has room for that. Pure.

A speedscope file holds many profiles, each with a name. Collapsed stacks of several processes
differ by their first frame. A flamegraph is a picture: there is one file for each process.
"""

from __future__ import annotations

import json
import os
from typing import Any

from troupe._wire import ProfileFormat

SUFFIXES = {
    ProfileFormat.FLAMEGRAPH: ".svg",
    ProfileFormat.SPEEDSCOPE: ".speedscope.json",
    ProfileFormat.COLLAPSED: ".txt",
}


def files(rows: list[dict[str, Any]], format: str, path: str) -> dict[str, str]:
    """Return the text of each file, by its path.

    Args:
        rows: One entry a process, `{rank, pid, node, text}`; those without a text are left out.
        format: A value of ProfileFormat.
        path: Where the profile is to go. Flamegraphs of several processes get the rank before the
            ending: `out.rank-3.svg`.
    """
    there = [each for each in rows if each.get("text")]
    if format == ProfileFormat.SPEEDSCOPE:
        return {path: _one_speedscope(there)} if there else {}
    if format == ProfileFormat.COLLAPSED:
        lines = [
            f"{_name(each)};{line}" for each in there for line in each["text"].splitlines() if line
        ]
        return {path: "".join(line + "\n" for line in lines)} if there else {}
    if len(there) == 1:
        return {path: there[0]["text"]}
    stem, ending = os.path.splitext(path)
    return {f"{stem}.rank-{each['rank']}{ending}": each["text"] for each in there}


def count_samples(row: dict[str, Any], format: str) -> int | None:
    """Return how many samples a process's profile has; None where its format does not say."""
    text = row.get("text", "")
    if format == ProfileFormat.SPEEDSCOPE:
        profiles = json.loads(text)["profiles"] if text else []
        return sum(len(each["samples"]) for each in profiles)
    if format == ProfileFormat.COLLAPSED:
        return sum(int(line.rpartition(" ")[2]) for line in text.splitlines() if line)
    return None


def _name(row: dict[str, Any]) -> str:
    process = f"pid {row['pid']} on {row['node']}"
    return f"rank {row['rank']}, {process}" if row["rank"] >= 0 else process


def _one_speedscope(rows: list[dict[str, Any]]) -> str:
    """The profiles of all processes, over one table of frames."""
    known: dict[str, int] = {}
    frames: list[dict[str, Any]] = []
    profiles: list[dict[str, Any]] = []
    whole: dict[str, Any] = {}
    for row in rows:
        document = json.loads(row["text"])
        whole = whole or document
        places = []
        for frame in document["shared"]["frames"]:
            key = json.dumps(frame, sort_keys=True)
            if key not in known:
                known[key] = len(frames)
                frames.append(frame)
            places.append(known[key])
        for profile in document["profiles"]:
            profiles.append(
                {
                    **profile,
                    "name": f"{_name(row)}: {profile['name']}",
                    "samples": [
                        [places[frame] for frame in sample] for sample in profile["samples"]
                    ],
                }
            )
    return json.dumps(
        {**whole, "activeProfileIndex": 0, "shared": {"frames": frames}, "profiles": profiles}
    )
