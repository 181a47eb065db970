"""Cancellation: of a task that waits in line, of one that runs, of one that must be ended by force,
    and of a coroutine.

    troupe run-as-ray examples/ray/cancellation.py

Prints:

    before it ran: cancelled
    while it ran: cancelled
    by force: over
    a coroutine: cancelled, cleaned up: True
"""

import asyncio

import ray
from ray.exceptions import TaskCancelledError, WorkerCrashedError


@ray.remote(num_cpus=0)
class Signal:
    """Something to wait for; what is cancelled here cleans up."""

    def __init__(self) -> None:
        self.event, self.cleaned = asyncio.Event(), False

    async def set(self) -> None:
        """Wake the waiting calls."""
        self.event.set()

    async def wait(self) -> None:
        """Until it was set."""
        await self.event.wait()

    async def forever(self) -> None:
        """Until it is cancelled."""
        self.event.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cleaned = True

    async def was_cleaned(self) -> bool:
        """Return True if forever() was left by its cancellation."""
        return self.cleaned


@ray.remote(num_cpus=0.1, max_retries=0)
def stuck(started: "ray.actor.ActorHandle", after: object = None) -> None:
    """Says that it runs, once `after` is there, and does not end by itself."""
    started.set.remote()
    while True:
        sum(range(10_000))


def outcome(ref: "ray.ObjectRef") -> str:
    """How it ended."""
    try:
        return ray.get(ref, timeout=60)
    except TaskCancelledError:
        return "cancelled"


signals = [Signal.remote() for _ in range(3)]
running = stuck.remote(signals[0])
behind = stuck.remote(signals[0], after=running)
ray.get(signals[0].wait.remote())
ray.cancel(behind)
print("before it ran:", outcome(behind))
ray.cancel(running)  # a KeyboardInterrupt where it is
print("while it ran:", outcome(running))

running = stuck.remote(signals[1])
ray.get(signals[1].wait.remote())
ray.cancel(running, force=True)  # ends the process
try:
    ray.get(running, timeout=60)
except (TaskCancelledError, WorkerCrashedError):  # either error, by timing
    print("by force: over")

coroutine = signals[2].forever.remote()
ray.get(signals[2].wait.remote())
ray.cancel(coroutine)
print(f"a coroutine: {outcome(coroutine)}, cleaned up: {ray.get(signals[2].was_cleaned.remote())}")
