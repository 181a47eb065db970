"""Named actors: found by name from anywhere in the cluster, made once by whoever comes first.

    troupe run-as-ray examples/ray/named_actors.py

Prints:

    counted by 4 tasks: 10
    the name is taken: True
    in another namespace: 0
    nobody has this name: ValueError
"""

import ray


@ray.remote(num_cpus=0)
class Counter:
    """A number that everybody may add to."""

    def __init__(self) -> None:
        self.value = 0

    def add(self, amount: int) -> int:
        """Adds and gives the sum."""
        self.value += amount
        return self.value


@ray.remote(num_cpus=0.5)
def work(amount: int) -> int:
    """Has no handle: makes the actor, or gets the one that another has made."""
    counter = Counter.options(name="counter", get_if_exists=True, lifetime="detached").remote()
    return ray.get(counter.add.remote(amount))


ray.get([work.remote(amount) for amount in (1, 2, 3, 4)])
counter = ray.get_actor("counter")
print("counted by 4 tasks:", ray.get(counter.add.remote(0)))

try:
    Counter.options(name="counter").remote()
except ValueError as error:
    print("the name is taken:", isinstance(error, ValueError))

other = Counter.options(name="counter", namespace="elsewhere").remote()
assert ray.get_actor("counter", namespace="elsewhere") == other
print("in another namespace:", ray.get(other.add.remote(0)))

ray.kill(counter)  # a detached actor lives until then
try:
    ray.get_actor("nobody")
except ValueError as error:
    print("nobody has this name:", type(error).__name__)
