"""Launches: a function run by many ranks, and a function that drives many ranks.

    from troupe.launch import distributed

    @distributed(processes=4)
    def train(epochs): ...

    train.distributed(epochs=3)      # the list of four results, by rank
    train.submit(epochs=3)           # the same, without waiting: a LaunchHandle
    train(epochs=3)                  # here, in this process

    get("7f3a").watch()              # what a launch does that runs already, by its id

    # a script, or any command, on each rank
    submit_command(["train.py", "--epochs", "3"], processes=4)

`@ray_launch` runs the function on rank 0 only, as the driver of a cluster made of exactly the
launch's nodes, while the other ranks serve `troupe.launch.current().run(...)` and wait for its
marker.
"""

from typing import TYPE_CHECKING, Any

from troupe import _pickled
from troupe.exceptions import LaunchCancelledError, LaunchError
from troupe.launch._context import LaunchContext, current
from troupe.launch._function import DistributedFunction, distributed, ray_launch
from troupe.launch._handle import LaunchHandle

if TYPE_CHECKING:
    from troupe.launch._attach import attach, get
    from troupe.launch._program import submit_command

_pickled.named_in(
    __name__, DistributedFunction, LaunchContext, LaunchHandle, current, distributed, ray_launch
)

__all__ = [
    "DistributedFunction",
    "LaunchCancelledError",
    "LaunchContext",
    "LaunchError",
    "LaunchHandle",
    "attach",
    "current",
    "distributed",
    "get",
    "ray_launch",
    "submit_command",
]

if not TYPE_CHECKING:  # else checkers would take any name for one of the module

    def __getattr__(name: str) -> Any:
        """get, attach and submit_command, which bring along what a submission needs: programs that
        define functions import none of it before they launch one."""
        if name in ("attach", "get"):
            from troupe.launch._attach import attach as found
        elif name == "submit_command":
            from troupe.launch._program import submit_command as found
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        _pickled.named_in(__name__, found)
        globals()[name] = found
        return found
