"""A tree of actors: supervisors make workers of their own, so that one handle stands for a whole branch.

    troupe run-as-ray examples/ray/actor_tree.py

Prints:

    branch words: {'letters': 17, 'words': 4}
    branch lines: {'letters': 24, 'words': 7}
    after the first branch ended, its workers end too
"""
import time

import ray


@ray.remote(num_cpus=0.1)
class Worker:
    """A leaf: counts in one piece of text."""

    def count(self, text: str) -> tuple[int, int]:
        """(letters, words) of the text."""
        return sum(each.isalpha() for each in text), len(text.split())


@ray.remote(num_cpus=0.1)
class Supervisor:
    """A branch: owns its workers, which end with it."""

    def __init__(self, name: str, workers: int) -> None:
        self.name = name
        self.workers = [Worker.options(name=f"{name}-{index}").remote() for index in range(workers)]

    def run(self, texts: list[str]) -> tuple[str, dict[str, int]]:
        """Spreads the texts over the workers and adds up what they say."""
        counts = ray.get([self.workers[index % len(self.workers)].count.remote(text) for index, text in enumerate(texts)])
        return self.name, {"letters": sum(each[0] for each in counts), "words": sum(each[1] for each in counts)}


branches = {"words": ["one two", "three", "fourth"], "lines": ["a line of text", "and another one"]}
supervisors = [Supervisor.remote(name, 2) for name in branches]
for name, totals in ray.get([each.run.remote(texts) for each, texts in zip(supervisors, branches.values())]):
    print(f"branch {name}: {totals}")

ray.kill(supervisors[0])
deadline = time.monotonic() + 60
while True:  # their names become free when they have ended
    try:
        ray.get_actor("words-0"), ray.get_actor("words-1")
    except ValueError:
        break
    assert time.monotonic() < deadline
    time.sleep(0.1)  # lint-ok: what a worker does meanwhile
assert ray.get(ray.get_actor("lines-0").count.remote("still here")) == (9, 2)
print("after the first branch ended, its workers end too")
