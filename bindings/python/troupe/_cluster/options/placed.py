"""Entries of the tables of all that waits for a place: launches, actors, tasks and sweeps."""

from troupe._cluster import infeasible as _infeasible, resources as _resources
from troupe._typed.option import Option

PRIORITY = Option(
    0,
    "Of what waits the highest is first. Whether it also ends what runs is the cluster's policy.",
    lambda name, value: _resources.check_priority(value),
)
INFEASIBLE = Option(
    None,
    '"wait": what no node can hold waits for one that joins. "refuse": it is an error. None: as '
    "the cluster says.",
    lambda name, value: _infeasible.check(value),
)
