"""Images: pieces are files, decoded by Pillow, a row each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import fs

from troupe.data import _columns, _errors
from troupe.data._arrow import need
from troupe.data._plan import Travels
from troupe.data._sources import files
from troupe.data._sources.pieces import FilesPiece, grouped

_FILES_MOST = 32
_FILE_BYTES = 2 << 20  # files of about so many bytes are decoded one after the other
_GROWS = 10  # an image takes so much more when it is decoded, about


@dataclass(frozen=True)
class ImageReader(Travels):
    """Makes blocks of image files: a column "image", arrays of height x width, and channels where
    there are several."""

    size: tuple[int, int] | None = None
    mode: str | None = None
    filesystem: Any = None
    partitioning: Any = None
    include_paths: bool = False

    def with_columns(self, columns: Sequence[str]) -> None:
        """None: there is one column."""

    def read(self, piece: FilesPiece) -> pa.Table:
        """The block. Raises DataError naming the file."""
        arrays = [self._image(path) for path in piece.files]
        alike = self.size is not None and len({(each.shape, each.dtype) for each in arrays}) == 1
        column, field = (
            _columns.column_of(np.stack(arrays), "image")
            if alike
            else _columns.ragged_column(arrays, "image")
        )
        table = pa.Table.from_arrays([column], schema=pa.schema([field]))
        for name in [] if self.partitioning is None else self.partitioning.columns(piece.path):
            table = table.append_column(
                name, pa.array([self.partitioning.columns(path)[name] for path in piece.files])
            )
        return table.append_column("path", pa.array(piece.files)) if self.include_paths else table

    def _image(self, path: str) -> np.ndarray:
        image = need("PIL.Image", "read_images()")
        try:
            with (
                (self.filesystem or fs.LocalFileSystem()).open_input_file(path) as file,
                image.open(file) as opened,
            ):
                found = opened.convert(self.mode) if self.mode is not None else opened
                if self.size is not None:
                    found = found.resize(
                        (self.size[1], self.size[0]), resample=image.Resampling.BILINEAR
                    )
                result: np.ndarray = np.asarray(found)
                return result
        # Pillow's decoders raise whatever they meet: struct.error, SyntaxError,
        # DecompressionBombError
        except Exception as error:
            raise _errors.of_reading(
                path, error, "the file is damaged or no image: leave it out (partition_filter=)"
            ) from None


def pieces_of(found: files.Found, blocks: int | None) -> list[FilesPiece]:
    """Files, several in each piece."""
    sizes = [size for _, size in found.files]
    target = max(1, sum(sizes) // blocks) if blocks else _FILE_BYTES
    runs: list[tuple[int, int]] = []
    for first, end in grouped(sizes, target):
        runs += [(start, min(start + _FILES_MOST, end)) for start in range(first, end, _FILES_MOST)]
    return [
        FilesPiece(
            tuple(path for path, _ in found.files[first:end]), _GROWS * sum(sizes[first:end])
        )
        for first, end in runs
    ]
