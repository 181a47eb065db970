"""Blocks that are kept until all of them are there.

In this process they go to a file once they are many; those of the cluster are in its shared memory,
which does the same by itself.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from troupe.data._work import Block

MEMORY_BYTES = 256 << 20


def kept(source: Iterable[tuple[Block, int]]) -> list[tuple[Block, int]]:
    """All of them."""
    found, here = [], 0
    for block, rows in source:
        tables = block.value if isinstance(block.value, list) else [block.value]
        if isinstance(tables[0], pa.Table):
            here += block.size
            if here > MEMORY_BYTES:
                moved = _on_disk(tables)
                block = dataclasses.replace(
                    block, value=moved if isinstance(block.value, list) else moved[0]
                )
        found.append((block, rows))
    return found


def _on_disk(tables: list[Any]) -> list[Any]:
    """The tables over a file that has no name, so that the kernel frees it with the last who uses
    it, and keeps in memory what there is room for."""
    handle, path = tempfile.mkstemp(
        prefix="troupe-data-", dir="/var/tmp" if os.path.isdir("/var/tmp") else None
    )
    os.close(handle)
    try:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, tables[0].schema) as writer:
            for each in tables:
                writer.write_batch(
                    each.combine_chunks().to_batches()[0]
                    if each.num_rows
                    else pa.RecordBatch.from_pylist([], schema=each.schema)
                )
        reader = pa.ipc.open_file(pa.memory_map(path, "r"))
        return [pa.Table.from_batches([reader.get_batch(index)]) for index in range(len(tables))]
    finally:
        os.unlink(path)
