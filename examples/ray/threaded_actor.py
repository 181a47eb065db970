"""Threads in an actor: with max_concurrency its plain methods run at once, and share what it has,
behind a lock.

    troupe run-as-ray examples/ray/threaded_actor.py

Prints:

    met in one process: 4 threads
    added by 4 threads: 4000
    a thread of the actor's own has counted: True
"""

import threading

import ray


@ray.remote(num_cpus=0.5, max_concurrency=4)
class Shared:
    """State that four calls use at once, and a thread in the background."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.meeting = threading.Barrier(4)
        self.value = 0
        self.ticks = 0
        self.ticked = threading.Event()
        self.end = threading.Event()
        self.thread = threading.Thread(target=self._tick, daemon=True)
        self.thread.start()

    def _tick(self) -> None:
        while not self.end.wait(0.01):
            self.ticks += 1
            self.ticked.set()

    def meet(self) -> int:
        """Goes on when four calls are here, which only four threads can be; the thread's number."""
        self.meeting.wait(timeout=60)
        return threading.get_ident()

    def add(self, times: int) -> None:
        """Adds 1 that often."""
        for _ in range(times):
            with self.lock:
                self.value += 1

    def stop(self) -> tuple[int, int, bool]:
        """Ends the thread: (value, ticks, whether the thread has ended)."""
        self.ticked.wait(timeout=60)
        self.end.set()
        self.thread.join(timeout=60)
        return self.value, self.ticks, not self.thread.is_alive()


shared = Shared.remote()
print(f"met in one process: {len(set(ray.get([shared.meet.remote() for _ in range(4)])))} threads")
ray.get([shared.add.remote(1000) for _ in range(4)])
value, ticks, ended = ray.get(shared.stop.remote())
print("added by 4 threads:", value)
print("a thread of the actor's own has counted:", ticks > 0 and ended)
assert value == 4000
