"""An actor with coroutines: many calls are under way in it at once, on one thread, and a driver may
await refs.

    troupe run-as-ray examples/ray/async_actor.py

Prints:

    all five waited at once: 5
    opened for all of them: ['a', 'b', 'c', 'd', 'e']
    awaited in the driver: [0, 2, 4]
"""

import asyncio

import ray


@ray.remote(num_cpus=0.5)
class Gate:
    """Lets callers wait until it is opened."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.all_here = asyncio.Event()
        self.waiting = 0

    async def wait(self, name: str, expected: int) -> str:
        """Answers once the gate is open."""
        self.waiting += 1
        if self.waiting == expected:
            self.all_here.set()
        await self.opened.wait()
        return name

    async def open(self) -> int:
        """Opens it once all have come; how many were waiting.

        A plain method would have stood in a line behind them.
        """
        await self.all_here.wait()
        self.opened.set()
        return self.waiting


@ray.remote(num_cpus=0.5)
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


async def main() -> None:
    """A driver that is a coroutine: refs can be awaited and gathered."""
    print(
        "awaited in the driver:",
        await asyncio.gather(*[double.remote(number) for number in range(3)]),
    )
    assert await asyncio.wait_for(double.remote(21), timeout=60) == 42


gate = Gate.remote()
waiters = [gate.wait.remote(name, 5) for name in "abcde"]
print("all five waited at once:", ray.get(gate.open.remote()))
print("opened for all of them:", ray.get(waiters))
asyncio.run(main())
