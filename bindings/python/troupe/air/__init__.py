"""The AI Runtime API by its newer name, `databricks.air`: launches from a notebook, and data of
volumes.

    from troupe.air import distributed

    @distributed(num_accelerators=8, accelerator_type="GPU_8xH100")
    def train(epochs): ...

    train.distributed(epochs=3)      # a list of results, one per rank

`troupe run-as script.py` runs a script that imports `databricks.air` as it is. Workloads in YAML
files: `troupe air run -f train.yaml`. What differs from the vendor's service:
docs/coming/databricks_air.md.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from troupe.air import data
    from troupe.air._decorators import AirFunction, distributed, ray_init, ray_launch

__all__ = ["AirFunction", "data", "distributed", "ray_init", "ray_launch"]


def __getattr__(name: str) -> Any:
    """Load a name when it is asked for: the command `troupe air` needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    if name == "data":
        return importlib.import_module("troupe.air.data")
    return getattr(importlib.import_module("troupe.air._decorators"), name)
