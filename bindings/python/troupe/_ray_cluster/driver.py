"""The driver of a `@ray_launch(api="ray")`: rank 0 runs the function, over a Ray cluster on the
launch's nodes."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from troupe import _pickled
from troupe._ray_cluster import running, words


class RayDriver:
    """A function that runs once the cluster is there, with the variables by which `ray.init()`
    finds it. As it travels."""

    # Ray's native code keeps Python's lock while it connects, on a busy machine for longer than a
    # driver's own lease. The worker, which sees the process end, is what holds the lease then.
    renews_lease = False

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Starts the cluster, runs the function, ends the cluster.

        Raises what the function does, RayProcessDiedError, and as `running.running`.
        """
        with running.running(words.Wishes()) as cluster:
            settled = words.environment(os.environ, cluster.variables)
            os.environ.clear()
            os.environ.update(settled)
            return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.ray_driver, (self._function,)


@_pickled.maker("ray_driver")
def _ray_driver(function: Callable[..., Any]) -> Any:
    """Rebuild the driver that a launch runs over a real Ray cluster."""
    return RayDriver(function)
