"""Ray's `ray.experimental`, as far as there is something of it: `collective`, `tqdm_ray`, where
values are, tensors that stay in actors."""

from troupe.experimental import collective, tqdm_ray
from troupe.experimental.locations import get_local_object_locations, get_object_locations
from troupe.experimental.tensors import wait_tensor_freed

__all__ = [
    "collective",
    "get_local_object_locations",
    "get_object_locations",
    "tqdm_ray",
    "wait_tensor_freed",
]
