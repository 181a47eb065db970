"""Errors: what a task raises is raised where its result is got, by its own type, through every task
    that depends on it.

    troupe run-as-ray examples/ray/task_errors.py

Prints:

    by its own type: OutOfStock, 3 of apples
    as an error of a task: RayTaskError
    by a task that needed the result: OutOfStock
    an actor goes on after an error: 2
    a constructor that raised: ActorDiedError
    good ones of a batch: [0, 10, 20]
"""

import ray


class OutOfStock(Exception):
    """An error with something to tell."""

    def __init__(self, item: str, missing: int) -> None:
        super().__init__(item, missing)
        self.item, self.missing = item, missing


@ray.remote(num_cpus=0.25)
def order(item: str, number: int) -> int:
    """Ten of anything can be had."""
    if number > 10:
        raise OutOfStock(item, number - 10)
    return number


@ray.remote(num_cpus=0.25)
def price(number: int) -> int:
    """Does not run where its argument failed."""
    return 10 * number


@ray.remote(num_cpus=0.25)
class Till:
    """Counts."""

    def __init__(self, broken: bool = False) -> None:
        if broken:
            raise RuntimeError("no money in it")
        self.paid = 0

    def pay(self, amount: int) -> int:
        """How often something was paid."""
        if amount < 0:
            raise ValueError("less than nothing")
        self.paid += 1
        return self.paid


try:
    ray.get(order.remote("apples", 13))
except OutOfStock as error:
    print(f"by its own type: OutOfStock, {error.missing} of {error.item}")
    assert isinstance(error, ray.exceptions.RayTaskError) and isinstance(error.cause, OutOfStock)
    print("as an error of a task: RayTaskError")
try:
    ray.get(price.remote(order.remote("pears", 11)))
except OutOfStock:
    print("by a task that needed the result: OutOfStock")

till = Till.remote()
calls = [till.pay.remote(5), till.pay.remote(-5), till.pay.remote(5)]
print("an actor goes on after an error:", ray.get(calls[2]))
try:
    ray.get(Till.remote(broken=True).pay.remote(1))
except ray.exceptions.ActorDiedError as error:
    assert "no money in it" in str(error)
    print("a constructor that raised: ActorDiedError")

good = []
for ref in [price.remote(order.remote("figs", number)) for number in (0, 1, 99, 2)]:
    try:
        good.append(ray.get(ref))
    except OutOfStock:
        continue
print("good ones of a batch:", good)
