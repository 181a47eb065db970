"""Checkpoints: an actor that writes down what it has done goes on from there when its process is
    lost.

    troupe run-as-ray examples/ray/checkpointing.py

Prints:

    worked on 3 items, then its process ended
    started again: True, it knows 3 items
    all of them: {'apple': 5, 'fig': 3, 'kiwi': 4, 'pear': 4}
"""

import json
import os
import tempfile

import ray


@ray.remote(num_cpus=0.5, max_restarts=2, max_task_retries=2)
class Measurer:
    """Measures words.

    Its constructor runs again after a loss, and finds what was written before.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.done: dict[str, int] = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.done = json.load(file)

    def measure(self, word: str) -> int:
        """Return the word's length, after writing it to the checkpoint."""
        self.done[word] = len(word)
        part = f"{self.path}.part"
        with open(part, "w", encoding="utf-8") as file:
            json.dump(self.done, file)
        os.replace(part, self.path)  # whole or not at all: a loss in the middle leaves the last one
        return len(word)

    def state(self) -> tuple[bool, dict[str, int]]:
        """Return (this process is a later one, all lengths so far)."""
        return ray.get_runtime_context().was_current_actor_reconstructed, self.done

    @ray.method(max_task_retries=0)
    def crash(self) -> None:
        """Ends the process as a fault would."""
        os._exit(1)


with tempfile.TemporaryDirectory() as folder:
    measurer = Measurer.remote(os.path.join(folder, "checkpoint.json"))
    ray.get([measurer.measure.remote(word) for word in ("apple", "pear", "fig")])
    try:
        ray.get(measurer.crash.remote())
    except ray.exceptions.RayActorError:
        print("worked on 3 items, then its process ended")
    restarted, done = ray.get(measurer.state.remote())
    print(f"started again: {restarted}, it knows {len(done)} items")
    ray.get(measurer.measure.remote("kiwi"))
    done = ray.get(measurer.state.remote())[1]
    print("all of them:", dict(sorted(done.items())))
    assert len(done) == 4
