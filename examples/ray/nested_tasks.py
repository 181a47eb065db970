"""Nested tasks: a task starts tasks of its own, here to sort parts of a list, down to a size that
is not worth a task.

    troupe run-as-ray examples/ray/nested_tasks.py

Prints:

    20000 numbers sorted: True
    the same as sorted() gives: True
"""

import random

import ray

SMALL = 5_000  # a task costs about a millisecond: what takes less is done at once


def split(numbers: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Return the numbers below, equal to and above the middle one of three."""
    pivot = sorted((numbers[0], numbers[len(numbers) // 2], numbers[-1]))[1]
    below = [each for each in numbers if each < pivot]
    same = [each for each in numbers if each == pivot]
    return below, same, [each for each in numbers if each > pivot]


@ray.remote(num_cpus=0.5)
def quicksort(numbers: list[int]) -> list[int]:
    """The numbers in order.

    A task that waits for others gives its CPU back, so nesting cannot block itself.
    """
    if len(numbers) <= SMALL:
        return sorted(numbers)
    below, same, above = split(numbers)
    left, right = ray.get([quicksort.remote(below), quicksort.remote(above)])
    return left + same + right


numbers = random.Random(7).choices(range(1_000_000), k=20_000)
result = ray.get(quicksort.remote(numbers))
print(f"{len(result)} numbers sorted:", all(a <= b for a, b in zip(result, result[1:])))
print("the same as sorted() gives:", result == sorted(numbers))
assert result == sorted(numbers)
