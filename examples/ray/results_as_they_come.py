"""Results as they come: ray.wait() gives what is ready, so that a slow task keeps nobody waiting.

    troupe run-as-ray examples/ray/results_as_they_come.py

Prints:

    ready while the slow one waits: [1, 4, 9, 16]
    nothing more for now: 0 ready, 1 not
    then the slow one: 0
    in time: GetTimeoutError
"""

import asyncio

import ray


@ray.remote(num_cpus=0)
class Gate:
    """Opened once."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    async def open(self) -> None:
        """Wake the waiting calls."""
        self.event.set()

    async def passed(self) -> None:
        """When it is open."""
        await self.event.wait()


@ray.remote(num_cpus=0.25)
def square(number: int, after=None) -> int:
    """Runs when `after` is there."""
    return number * number


gate = Gate.remote()
waiting = [square.remote(0, gate.passed.remote())] + [
    square.remote(number) for number in range(1, 5)
]
slow = waiting[0]

seen = []
while len(seen) < 4:
    ready, waiting = ray.wait(waiting, num_returns=1, timeout=60)
    seen += ray.get(ready)
print("ready while the slow one waits:", sorted(seen))

ready, waiting = ray.wait(waiting, timeout=0)
print(f"nothing more for now: {len(ready)} ready, {len(waiting)} not")
assert waiting == [slow]
try:
    ray.get(slow, timeout=0.1)
except ray.exceptions.GetTimeoutError:
    late = "GetTimeoutError"

ray.get(gate.open.remote())
ready, waiting = ray.wait(waiting, timeout=60)
print("then the slow one:", ray.get(ready[0]))
assert waiting == []
print("in time:", late)
