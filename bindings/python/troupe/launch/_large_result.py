"""A driver's value that is too large to travel with the marker: kept by its worker, fetched when
asked for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from troupe import _pickled

INLINE_BYTES_MAX = 1 << 20
CHUNK_BYTES = 4 << 20


@dataclass(frozen=True)
class KeptValue:
    """A reference that travels in place of a large value."""

    node: str
    sha256: bytes
    size_bytes: int

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.kept_value, (self.node, self.sha256, self.size_bytes)

    def fetch(self, session: Any) -> bytes:
        """The pickled value. Raises ObjectLostError when its worker is gone."""
        from troupe._cluster import blobs

        return blobs.get(
            session,
            self.node,
            self.sha256,
            self.size_bytes,
            what="the driver's result (the launch succeeded)",
        )


def keep(session: Any, node: str, data: bytes) -> bytes:
    """Puts a pickled value on this process's own worker; the pickle of what stands for it."""
    import cloudpickle

    digest = hashlib.sha256(data).digest()
    for offset in range(0, len(data), CHUNK_BYTES):
        session.request(
            "PutBlob",
            {"sha256": digest, "offset": offset, "size_bytes": len(data)},
            data[offset : offset + CHUNK_BYTES],
        )
    found: bytes = cloudpickle.dumps(KeptValue(node, digest, len(data)), protocol=5)
    return found


@_pickled.maker("kept_value")
def _kept_value(node: str, sha256: bytes, size_bytes: int) -> Any:
    """Stands for a driver's value that its worker keeps."""
    return KeptValue(node, sha256, size_bytes)
