"""A tree of actors: supervisors make workers of their own, so that one handle stands for a whole
branch.

    troupe run-as-ray examples/ray/actor_tree.py

Prints:

    branch words: {'letters': 17, 'words': 4}
    branch lines: {'letters': 24, 'words': 7}
    after the first branch ended, its workers end too
"""

import threading

import ray


@ray.remote(num_cpus=0.1)
class Worker:
    """A leaf: counts in one piece of text."""

    def count(self, text: str) -> tuple[int, int]:
        """(letters, words) of the text."""
        return sum(each.isalpha() for each in text), len(text.split())

    def wait(self) -> None:
        """As long as it lives."""
        threading.Event().wait()


@ray.remote(num_cpus=0.1)
class Supervisor:
    """A branch: owns its workers, which end with it."""

    def __init__(self, name: str, workers: int) -> None:
        self.name = name
        self.workers = [Worker.options(name=f"{name}-{index}").remote() for index in range(workers)]

    def run(self, texts: list[str]) -> tuple[str, dict[str, int]]:
        """Spreads the texts over the workers and adds up what they say."""
        counts = ray.get(
            [
                self.workers[index % len(self.workers)].count.remote(text)
                for index, text in enumerate(texts)
            ]
        )
        return self.name, {
            "letters": sum(each[0] for each in counts),
            "words": sum(each[1] for each in counts),
        }


branches = {"words": ["one two", "three", "fourth"], "lines": ["a line of text", "and another one"]}
supervisors = [Supervisor.remote(name, 2) for name in branches]
for name, totals in ray.get(
    [each.run.remote(texts) for each, texts in zip(supervisors, branches.values())]
):
    print(f"branch {name}: {totals}")

leaf = ray.get_actor("words-0")  # found by its name, it is the supervisor's all the same
unanswered = leaf.wait.remote()
ray.kill(supervisors[0])
try:
    ray.get(unanswered, timeout=60)
except ray.exceptions.RayActorError:
    print("after the first branch ended, its workers end too")
assert ray.get(ray.get_actor("lines-0").count.remote("still here")) == (9, 2)
