"""A pool of actors: each has something that is dear to make, and calls go to whichever is free.

    troupe run-as-ray examples/ray/actor_pool.py

Prints:

    in order: [2, 3, 5, 7, 11, 13, 17, 19]
    3 of 40 numbers up to 100 are left: [83, 89, 97]
    the pool has free actors: True
"""

import ray
from ray.util import ActorPool


@ray.remote(num_cpus=0.5)
class Sieve:
    """Knows the primes up to a limit; making it is the dear part."""

    def __init__(self, limit: int) -> None:
        marks = [True] * (limit + 1)
        for number in range(2, limit + 1):
            if marks[number]:
                for multiple in range(number * number, limit + 1, number):
                    marks[multiple] = False
        self.primes = [number for number in range(2, limit + 1) if marks[number]]

    def nth(self, index: int) -> int:
        """The prime of that index."""
        return self.primes[index]

    def is_prime(self, number: int) -> tuple[int, bool]:
        """The number, and whether it is prime."""
        return number, number in self.primes


pool = ActorPool([Sieve.remote(1000) for _ in range(2)])
print("in order:", list(pool.map(lambda sieve, index: sieve.nth.remote(index), range(8))))

# Answers in the order in which they come: each says which question it is of.
answers = dict(
    pool.map_unordered(lambda sieve, number: sieve.is_prime.remote(number), range(61, 101))
)
assert sorted(answers) == list(range(61, 101))
late = sorted(number for number, prime in answers.items() if prime and number > 80)
print(f"{len(late)} of {len(answers)} numbers up to 100 are left: {late}")

# By hand: submit calls one by one, and take results while there are some.
for index in range(3):
    pool.submit(lambda sieve, value: sieve.nth.remote(value), index)
taken = []
while pool.has_next():
    taken.append(pool.get_next())
assert taken == [2, 3, 5]
print("the pool has free actors:", pool.has_free())
