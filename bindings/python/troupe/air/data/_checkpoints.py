"""Storage of `torch.distributed.checkpoint` in volumes: written to local disk first, then copied,
`.metadata` last."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.futures import Future

from troupe._cluster import folders
from troupe._code import disk

METADATA = ".metadata"
_STAGING = "TROUPE_CHECKPOINT_STAGING"


class UCVolumeWriter(FileSystemWriter):  # type: ignore[misc]
    """Writes a checkpoint to a directory that every node sees.

    For `dcp.save` and `dcp.async_save`.

    Each rank writes its files to local disk, then copies them to the directory under other names
    and renames them once they are whole. The file `.metadata` comes last, from the coordinator,
    after all ranks' files: a directory that has it holds a whole checkpoint.

    Args:
        path: Directory of the checkpoint, such as
        /Volumes/catalog/schema/volume/checkpoints/step_100. It is made where it is not there.
        staging_dir: Local directory for the files meanwhile. Default: $TROUPE_CHECKPOINT_STAGING,
            else the temporary directory.
        **more: Options of torch's FileSystemWriter.

    Raises:
        OutOfDiskError: while saving, if local disk or the volume has no room. Files of the
        checkpoint that were copied stay; `.metadata` does not come.

    Example:
        dcp.save(state, storage_writer=UCVolumeWriter("/Volumes/main/models/run/step_100"))
    """

    path: str | os.PathLike[str]

    def __init__(
        self,
        path: str | os.PathLike[str],
        staging_dir: str | os.PathLike[str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(path, **more)
        self._staging_parent = (
            os.fspath(staging_dir) if staging_dir is not None else os.environ.get(_STAGING)
        )

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **more: Any) -> None:
        """Begin a checkpoint.

        An earlier one in the directory stops being whole now, before any rank replaces a file of
        it.
        """
        super().set_up_storage_writer(is_coordinator, *args, **more)
        if is_coordinator:
            Path(self.path, METADATA).unlink(missing_ok=True)

    def write_data(self, plan: Any, planner: Any) -> Future[list[Any]]:
        """Write this rank's part of the plan, and return a future that is done once it is in the
        directory."""
        with tempfile.TemporaryDirectory(
            prefix="troupe-checkpoint-", dir=self._staging_parent
        ) as staging:
            there, self.path = self.path, Path(staging)
            try:
                written = super().write_data(plan, planner)
                results = written.wait()
            finally:
                self.path = there
            if len(results) != len(plan.items):  # torch drops what a thread of its own raises
                raise OSError(
                    f"checkpoint {there}: of {len(plan.items)} parts of this rank {len(results)} "
                    "were written"
                )
            for name in sorted(os.listdir(staging)):
                _bring(Path(staging, name), Path(there, name))
        return written


def _bring(file: Path, target: Path) -> None:
    """Copy a file to a name beside its target, sync it, and rename it."""
    with (
        disk.writing(
            f"checkpoint file {target}",
            target,
            needed=file.stat().st_size,
            remedy="free room there, or save elsewhere",
        ),
        folders.replacement(target) as partial,
    ):
        shutil.copyfile(file, partial)
        with partial.open("rb+") as written:
            os.fsync(written.fileno())


class UCVolumeReader(FileSystemReader):  # type: ignore[misc]
    """Reads a checkpoint that `UCVolumeWriter`, or torch's FileSystemWriter, wrote.

    For `dcp.load`.

    Args:
        path: Directory of the checkpoint.

    Raises:
        FileNotFoundError: if the directory is not there, or holds no `.metadata`: the checkpoint
        was never finished.

    Example:
        dcp.load(state, storage_reader=UCVolumeReader("/Volumes/main/models/run/step_100"))
    """

    def __init__(self, path: str | os.PathLike[str], **more: Any) -> None:
        if not os.path.isdir(path):
            raise FileNotFoundError(
                f"UCVolumeReader: there is no directory {os.fspath(path)} on {os.uname().nodename}"
            )
        if not os.path.exists(os.path.join(path, METADATA)):
            raise FileNotFoundError(
                f"UCVolumeReader: {os.fspath(path)} has no {METADATA}: its checkpoint was never "
                "finished; take an earlier one"
            )
        super().__init__(path, **more)
