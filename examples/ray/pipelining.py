"""Pipelining: a worker asks for its next item before it works on this one, so that fetching and
    working overlap.

    troupe run-as-ray examples/ray/pipelining.py

Prints:

    one after the other: [0, 1, 4, 9, 16, 25]
    overlapped: [0, 1, 4, 9, 16, 25]
    fetched before the first was done: 2
"""

import ray


@ray.remote(num_cpus=0.1)
class Source:
    """Hands out items, one a call, and None when there are no more."""

    def __init__(self, items: list[int]) -> None:
        self.items = list(items)
        self.given = 0

    def next(self) -> int | None:
        """The next item."""
        self.given += bool(self.items)
        return self.items.pop(0) if self.items else None

    def how_many_given(self) -> int:
        """How many items it has handed out."""
        return self.given


@ray.remote(num_cpus=0.1)
class Worker:
    """Squares what the source hands out."""

    def __init__(self, source: "ray.actor.ActorHandle") -> None:
        self.source = source

    def plain(self) -> list[int]:
        """Fetches, works, fetches, works..."""
        done = []
        while (item := ray.get(self.source.next.remote())) is not None:
            done.append(item * item)
        return done

    def pipelined(self) -> tuple[list[int], int]:
        """Has the fetch of the next item under way while it works; also how many had been handed
        out before the first was done."""
        done, ahead = [], 0
        coming = self.source.next.remote()
        while (item := ray.get(coming)) is not None:
            coming = self.source.next.remote()
            if (
                not done
            ):  # calls of one caller run in order: this one after the fetch of the second item
                ahead = ray.get(self.source.how_many_given.remote())
            done.append(item * item)
        return done, ahead


print("one after the other:", ray.get(Worker.remote(Source.remote(list(range(6)))).plain.remote()))
squares, ahead = ray.get(Worker.remote(Source.remote(list(range(6)))).pipelined.remote())
print("overlapped:", squares)
print("fetched before the first was done:", ahead)
assert ahead == 2
