"""Clusters of TROUPE_HOME that the command `ray start` of Troupe has started."""

from __future__ import annotations

from troupe._cluster import home

MARK = "started-by-ray"
"""A file in the folder of a cluster, as old as the cluster."""


def running() -> list[home.ClusterHome]:
    """The running clusters that the command started, the latest first."""
    found = [each for each in home.clusters(running_only=True) if (each.path / MARK).exists()]
    return sorted(found, key=lambda each: (each.path / MARK).stat().st_mtime, reverse=True)


def started_here() -> str:
    """The address of the cluster that `ray start --head` started last and that runs; "": there is
    none."""
    found = running()
    return found[0].require_whole().address if found else ""
