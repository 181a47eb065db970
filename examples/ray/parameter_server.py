"""A parameter server: an actor keeps the weights, workers send gradients from their own data, as
fast as each can.

    troupe run-as-ray examples/ray/parameter_server.py

Prints:

    synchronous: found [3.0, -2.0, 0.5]
    asynchronous: found [3.0, -2.0, 0.5]
"""

import numpy as np
import ray

TRUE = np.array([3.0, -2.0, 0.5])


@ray.remote(num_cpus=0)
class Server:
    """The weights, and how they follow gradients."""

    def __init__(self) -> None:
        self.weights = np.zeros(3)

    def apply(self, *gradients: np.ndarray) -> np.ndarray:
        """A step by the mean of the gradients; the weights after it."""
        self.weights = self.weights - 0.1 * np.mean(gradients, axis=0)
        return self.weights

    def get(self) -> np.ndarray:
        """The weights."""
        return self.weights


@ray.remote(num_cpus=0.5)
class Worker:
    """Has a part of the data: points of a linear function."""

    def __init__(self, seed: int) -> None:
        self.points = np.random.default_rng(seed).normal(size=(200, 3))
        self.values = self.points @ TRUE

    def gradient(self, weights: np.ndarray) -> np.ndarray:
        """Return the gradient of the squared error at these weights."""
        return 2 * self.points.T @ (self.points @ weights - self.values) / len(self.points)


workers = [Worker.remote(seed) for seed in range(2)]

server = Server.remote()
weights = server.get.remote()
for _ in range(60):  # every step has the gradients of all; only refs pass through the driver
    weights = server.apply.remote(*[worker.gradient.remote(weights) for worker in workers])
print("synchronous: found", ray.get(weights).round(2).tolist())

server = Server.remote()
under_way = {worker.gradient.remote(server.get.remote()): worker for worker in workers}
for _ in range(120):  # a ready worker gets the current weights
    (ready,), _ = ray.wait(list(under_way), num_returns=1)
    worker = under_way.pop(ready)
    under_way[worker.gradient.remote(server.apply.remote(ready))] = worker
print("asynchronous: found", ray.get(server.get.remote()).round(2).tolist())
assert np.allclose(ray.get(server.get.remote()), TRUE, atol=0.01)
