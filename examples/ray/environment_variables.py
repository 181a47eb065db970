"""Environments: variables for one task or actor, by its options, beside those of others and of the
    driver.

    troupe run-as-ray examples/ray/environment_variables.py

Prints:

    two tasks, two modes: ['fast', 'exact']
    an actor keeps its own: exact
    one made inside it has it too: exact
    the driver has none: None
"""

import os

import ray


@ray.remote(num_cpus=0.25)
def mode() -> str | None:
    """Return the variable of this process."""
    return os.environ.get("SOLVER_MODE")


@ray.remote(num_cpus=0.25)
class Solver:
    """Reads its mode once."""

    def __init__(self) -> None:
        self.mode = os.environ["SOLVER_MODE"]

    def what(self) -> str:
        """Return the actor's mode."""
        return self.mode

    def of_a_task(self) -> str | None:
        """Return the variable of a task that is started here without an environment of its own."""
        return ray.get(mode.remote())


def variables(value: str) -> dict:
    """A runtime environment with the mode."""
    return {"env_vars": {"SOLVER_MODE": value}}


print(
    "two tasks, two modes:",
    ray.get([mode.options(runtime_env=variables(value)).remote() for value in ("fast", "exact")]),
)
solver = Solver.options(runtime_env=variables("exact")).remote()
print("an actor keeps its own:", ray.get(solver.what.remote()))
print("one made inside it has it too:", ray.get(solver.of_a_task.remote()))
print("the driver has none:", os.environ.get("SOLVER_MODE"))
assert ray.get(mode.remote()) is None
