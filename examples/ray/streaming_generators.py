"""Generators: a task or method yields results that can be used while it still runs, as many as
    there turn out to be.

    troupe run-as-ray examples/ray/streaming_generators.py

Prints:

    chunks: [[0, 1, 2], [3, 4, 5], [6, 7]]
    sums while it runs: [3, 12, 13]
    an endless one, stopped: [1, 1, 2, 3, 5, 8]
    after the third item: ValueError
"""

import ray


@ray.remote(num_cpus=0.5)
def chunks(numbers: list[int], size: int):
    """Pieces of the list, of at most `size`."""
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


@ray.remote(num_cpus=0.5)
def total(numbers: list[int]) -> int:
    """Return the sum of the numbers."""
    return sum(numbers)


@ray.remote(num_cpus=0.5)
class Fibonacci:
    """Yields without an end, at most a few ahead of who takes them."""

    @ray.method(num_returns="streaming")
    def run(self):
        """1, 1, 2, 3, 5..."""
        last, current = 0, 1
        while True:
            yield current
            last, current = current, last + current


@ray.remote(num_cpus=0.5)
def breaks(after: int):
    """Yields some and raises."""
    yield from range(after)
    raise ValueError("no more of it")


print("chunks:", [ray.get(ref) for ref in chunks.remote(list(range(8)), 3)])

# The items are refs: they go on to other tasks without coming here.
print(
    "sums while it runs:", ray.get([total.remote(ref) for ref in chunks.remote(list(range(8)), 3)])
)

numbers = Fibonacci.remote()
stream = numbers.run.options(_generator_backpressure_num_objects=4).remote()
print("an endless one, stopped:", [ray.get(next(stream)) for _ in range(6)])
ray.kill(numbers)

taken = []
try:
    for ref in breaks.remote(3):
        taken.append(ray.get(ref))
except ValueError:
    assert taken == [0, 1, 2]
    print("after the third item: ValueError")
