"""Data and checkpoints in volumes, for torch: `databricks.air.data`.

A volume's path (`/Volumes/catalog/schema/volume/...`) is a path that every node sees; any other
directory is as good.

    from troupe.air.data import DataLoader, UCVolumeDataset, UCVolumeReader, UCVolumeWriter

    loader = DataLoader(Decode(UCVolumeDataset("/Volumes/main/data/photos/train")), batch_size=32)
    writer = UCVolumeWriter("/Volumes/main/data/photos/checkpoints/step_100")
    torch.distributed.checkpoint.save(state, storage_writer=writer)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from troupe.air.data._checkpoints import UCVolumeReader, UCVolumeWriter
    from troupe.air.data._dataset import UCVolumeDataset
    from troupe.air.data._loader import Checkpointable, DataLoader

__all__ = ["Checkpointable", "DataLoader", "UCVolumeDataset", "UCVolumeReader", "UCVolumeWriter"]
_MODULES = {
    "Checkpointable": "_loader",
    "DataLoader": "_loader",
    "UCVolumeDataset": "_dataset",
    "UCVolumeReader": "_checkpoints",
    "UCVolumeWriter": "_checkpoints",
}


def __getattr__(name: str) -> Any:
    """Load a name when it is asked for: all of them need torch, and programs that only launch do
    not."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    from troupe._code import extras

    with extras.needed("torch", f"troupe.air.data.{name}", "'troupe[torch]'"):
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
