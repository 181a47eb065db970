"""Several results of one task: each a ref of its own, that goes to whoever needs it.

    troupe run-as-ray examples/ray/multiple_returns.py

Prints:

    three refs: ['low', 'middle', 'high']
    split in two: train on 8, test on 2
    by the call's own choice: [1, 2, 3, 4]
    wrong number: ValueError
    of a method: (10, 3)
"""

import ray


@ray.remote(num_cpus=0.25, num_returns=3)
def levels() -> tuple[str, str, str]:
    """As many results as num_returns says."""
    return "low", "middle", "high"


@ray.remote(num_cpus=0.25, num_returns=2)
def split(numbers: list[int], share: float) -> tuple[list[int], list[int]]:
    """The first part and the rest."""
    cut = int(len(numbers) * share)
    return numbers[:cut], numbers[cut:]


@ray.remote(num_cpus=0.25)
def size(numbers: list[int]) -> int:
    """How many there are."""
    return len(numbers)


@ray.remote(num_cpus=0.25)
def up_to(number: int) -> list[int]:
    """1, 2, 3..."""
    return list(range(1, number + 1))


@ray.remote(num_cpus=0.25)
class Statistics:
    """Statistics of a list of numbers."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers

    @ray.method(num_returns=2)
    def extent(self) -> tuple[int, int]:
        """The sum, and how many."""
        return sum(self.numbers), len(self.numbers)


print("three refs:", ray.get(levels.remote()))
train, test = split.remote(list(range(10)), 0.8)
print(
    "split in two: train on {}, test on {}".format(
        *ray.get([size.remote(train), size.remote(test)])
    )
)
print("by the call's own choice:", ray.get(up_to.options(num_returns=4).remote(4)))
try:
    ray.get(up_to.options(num_returns=2).remote(3))
except ValueError:
    print("wrong number: ValueError")
total, count = Statistics.remote([2, 3, 5]).extent.remote()
print("of a method:", (ray.get(total), ray.get(count)))
