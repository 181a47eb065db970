"""How torch's process groups are named here (`_process.process_groups`): by numbers that no group
of this process had before. Pure."""

from __future__ import annotations

GROUPS_OF_A_WORLD = 1 << 20
WORLDS_OF_AN_EPOCH = 1 << 20


def first_of(group_epoch: int, worlds: int) -> int:
    """The number of the default group after so many were destroyed in that epoch of the ranks'
    group."""
    return (group_epoch * WORLDS_OF_AN_EPOCH + worlds) * GROUPS_OF_A_WORLD


def shown(name: str) -> str:
    """A group's name as its program would count: "0" for the first of its world."""
    return str(int(name) % GROUPS_OF_A_WORLD) if name.isdigit() else name or "0"
