"""Payloads and results too large for a control message, in chunks to and from a worker."""

from __future__ import annotations

import hashlib
from typing import Any

from troupe import exceptions
from troupe._cluster import workers

CHUNK_BYTES = 4 << 20


def put(session: Any, data: bytes) -> dict[str, Any]:
    """Puts bytes on the nearest worker; returns the BlobRef that names them."""
    info = workers.nearest(session)
    return {**put_on(workers.link(session, info["node"]), data), "holder": info["node"]}


def put_on(link: workers.Link, data: bytes) -> dict[str, Any]:
    """Puts bytes on this worker; their digest and size."""
    digest = hashlib.sha256(data).digest()
    for offset in range(0, len(data), CHUNK_BYTES):
        link.request(
            "PutBlob",
            {"sha256": digest, "offset": offset, "size_bytes": len(data)},
            data[offset : offset + CHUNK_BYTES],
        )
    return {"sha256": digest, "size_bytes": len(data)}


def has(link: workers.Link, digest: bytes, size: int) -> bool:
    """Return True if this worker keeps these bytes now; asking counts as a use of them."""
    return bool(digest) and bool(
        link.request("GetBlob", {"sha256": digest, "offset": size})[1]["found"]
    )


def get(session: Any, node: str, digest: bytes, size: int, *, what: str) -> bytes:
    """Fetches bytes kept by a worker.

    Raises ObjectLostError saying `what` is lost when the worker is gone or has it no more, or what
    came does not have the digest.
    """
    parts, offset = [], 0
    try:
        link = workers.link(session, node)
        while offset < size:
            _, chunk, data = link.request("GetBlob", {"sha256": digest, "offset": offset})
            if not chunk["found"] or not data:
                raise exceptions.ObjectLostError(
                    f"{what} is lost: node {link.name} does not have it any more"
                )
            parts.append(data)
            offset += len(data)
    except exceptions.ConnectionError as error:
        raise exceptions.ObjectLostError(f"{what} is lost: {error}") from error
    joined = b"".join(parts)
    if hashlib.sha256(joined).digest() != digest:
        raise exceptions.ObjectLostError(
            f"{what} is lost: what node {link.name} sent is not what was kept"
        )
    return joined
