"""Results of `ray.get` and arguments in a program written for Ray: arrays of any size are
read-only.

Method: arrays of every shape through put, tasks and actors, in a program by `troupe run-as-ray`;
Ray answers the same.
"""

from __future__ import annotations

from pathlib import Path

from conftest import Home
from programs import run_as_ray

ARRAYS = """import numpy as np, ray
ray.init(num_cpus=2)
arrays = {
    "small": np.arange(4.0), "none": np.zeros(0), "scalar": np.array(5), "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "large": np.zeros(100_000), "structured": np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]), "bool": np.array([True, False]),
    "shaped": np.arange(24).reshape(2, 3, 4),
}
@ray.remote
def same(value):
    return value
@ray.remote
def writes(value):
    try:
        value[...] = 1
    except ValueError as error:
        return str(error)
@ray.remote
class Actor:
    def same(self, value):
        return value
actor = Actor.remote()
for name, array in arrays.items():
    for got in (ray.get(ray.put(array)), ray.get(same.remote(array)), ray.get(actor.same.remote(array)), ray.get(ray.put({"in": [array]}))["in"][0],
                ray.get(actor.same.remote(ray.put(array)))):
        assert not got.flags.writeable, name
        assert got.dtype == array.dtype and got.shape == array.shape and np.array_equal(got, array), name
        assert got.flags.f_contiguous == array.flags.f_contiguous, name
    assert array.flags.writeable
assert ray.get(writes.remote(arrays["small"])) == "assignment destination is read-only"
from troupe._code import arrays as _arrays
for name in ("small", "scalar", "fortran"):  # a collective may change what is this process's own, in place
    ref = ray.put(arrays[name])
    got, other = ray.get(ref), ray.get(ref)
    _arrays.writable(got)[...] = 7
    assert (got == 7).all() and np.array_equal(other, arrays[name]), name
copy = ray.get(ray.put(arrays["small"])).copy()
copy[0] = 7
objects = ray.get(ray.put(np.array([1, "x", None], dtype=object)))
assert objects.tolist() == [1, "x", None]
assert ray.get(ray.put(bytearray(b"ab"))) == bytearray(b"ab")
print("ok")
"""


def test_arrays_are_read_only(home: Home, tmp_path: Path) -> None:
    assert run_as_ray(home, tmp_path / "script.py", ARRAYS).stdout == "ok\n"


def test_without_it_a_small_array_is_the_callers_own(home: Home) -> None:
    done = home.python(
        "import numpy as np, troupe\ntroupe.init(num_cpus=1)\ngot = "
        "troupe.get(troupe.put(np.zeros(4)))\ngot[0] = 1\nprint(got.tolist())"
    )
    assert done.stdout == "[1.0, 0.0, 0.0, 0.0]\n", done.stderr
