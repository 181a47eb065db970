"""Objects by reference: put once, used by many; a ref that is an argument comes as its value, one
inside a list as a ref.

    troupe run-as-ray examples/ray/objects_by_reference.py

Prints:

    an argument: ndarray
    inside a list: ObjectRef, not fetched
    one array, four tasks: [0.0, 250000.0, 500000.0, 750000.0]
    a chain without the driver: 2000000.0
    a ref to a ref: 1000000.0
    the caller's own is as it was: 1.0
"""

import numpy as np
import ray


@ray.remote(num_cpus=0.25)
def kind(value) -> str:
    """Return the type of the argument as it arrives."""
    return type(value[0] if isinstance(value, list) else value).__name__


@ray.remote(num_cpus=0.25)
def part(array: np.ndarray, index: int) -> float:
    """The sum up to that quarter.

    The array is shared memory on its node: it is read, not copied, and cannot be written to.
    """
    assert not array.flags.writeable
    return float(array[: index * len(array) // 4].sum())


@ray.remote(num_cpus=0.25)
def double(array: np.ndarray) -> np.ndarray:
    """A new one."""
    return array * 2


@ray.remote(num_cpus=0.25)
def total(array: np.ndarray) -> float:
    """Return the sum of the array."""
    return float(array.sum())


@ray.remote(num_cpus=0.25)
def make() -> list[ray.ObjectRef]:
    """An object that this task owns, given on by its ref."""
    return [ray.put(np.ones(1_000_000))]


ones = np.ones(1_000_000)
ref = ray.put(ones)
print("an argument:", ray.get(kind.remote(ref)))
print(f"inside a list: {ray.get(kind.remote([ref]))}, not fetched")
print("one array, four tasks:", ray.get([part.remote(ref, index) for index in range(4)]))
print("a chain without the driver:", ray.get(total.remote(double.remote(ref))))
(inner,) = ray.get(make.remote())
print("a ref to a ref:", float(ray.get(inner).sum()))
ones[0] = 5.0  # put() made a copy
print("the caller's own is as it was:", float(ray.get(ref)[0]))
