"""Map and reduce: words are counted in parts, each part is split by word, and each reducer adds up
its share of the words.

    troupe run-as-ray examples/ray/map_reduce.py

Prints:

    the most frequent: [('sea', 4), ('the', 3), ('and', 2)]
    words in all: 15
"""

import zlib
from collections import Counter

import ray

TEXTS = ["the sea and the sky", "the wind", "sea and salt", "sea sea sail", "rain on"]
REDUCERS = 2


@ray.remote(num_cpus=0.5, num_returns=REDUCERS)
def map_part(text: str) -> list[list[tuple[str, int]]]:
    """Counts the words of one text, sorted out by reducer.

    By a hash that is the same in all processes: Python's is not.
    """
    shares: list[list[tuple[str, int]]] = [[] for _ in range(REDUCERS)]
    for word, count in Counter(text.split()).items():
        shares[zlib.crc32(word.encode()) % REDUCERS].append((word, count))
    return shares


@ray.remote(num_cpus=0.5)
def reduce_share(*parts: list[tuple[str, int]]) -> dict[str, int]:
    """Adds up what all mappers have for this reducer; its arguments come straight from them, not by
    the driver."""
    totals: Counter[str] = Counter()
    for part in parts:
        for word, count in part:
            totals[word] += count
    return dict(totals)


mapped = [map_part.remote(text) for text in TEXTS]
reduced = ray.get(
    [reduce_share.remote(*[shares[index] for shares in mapped]) for index in range(REDUCERS)]
)
counts = {word: count for share in reduced for word, count in share.items()}
assert sum(len(share) for share in reduced) == len(counts)  # no word is with two reducers
assert counts == Counter(" ".join(TEXTS).split())
print("the most frequent:", sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:3])
print("words in all:", sum(counts.values()))
