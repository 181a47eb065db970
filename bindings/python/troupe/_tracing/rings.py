"""Rings of spans read from their files, and packed for whoever asked a worker for them.

Run by a worker as `python -m troupe._tracing.rings OPTIONS FOLDER...`; writes what `pack` returns.
The file's form is `runtime/obs/trace.h`'s. The processes run on: a record that is being written, or
is overwritten meanwhile, is left out and counted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import struct
import sys
import zlib
from typing import Any, NamedTuple

from troupe._tracing import record

HEADER = struct.Struct("<8sIIIiqqQQqIIQ")
COUNT, BACKED = 7, 12
"""Places of TraceHeader's `next` and `backed`."""
HEADER_BYTES = 4096
RECORD = struct.Struct("<QqqQQIBBH48s")
MAGIC = b"troupetr"
CALLS_UNTIL_AT = 56
"""Where TraceHeader has calls_until_ns, and behind it calls_every."""
CALLS = struct.Struct("<qI")
RINGS_MAX = 4096
SPANS_EACH_MIN = 1000
BYTES_EACH = RECORD.size // 2
"""Of a record, packed: compressing makes them about half as long."""


class Span(NamedTuple):
    """A record of a ring."""

    number: int
    begin_ns: int
    end_ns: int
    flow: int
    value: int
    track: int
    kind: int
    name: str


class Ring(NamedTuple):
    """A process's record of what it did. `ended_ns` 0: it runs, or ended without its worker."""

    label: dict[str, Any]
    pid: int
    began_ns: int
    ended_ns: int
    dropped: int
    spans: list[Span]


def read(path: str, since_ns: int = 0) -> Ring | None:
    """Return the spans of a file that ended at `since_ns` or later, the oldest first; None where
    the file is no ring.

    Raises OSError.
    """
    with open(path, "rb") as file:
        data = file.read(HEADER_BYTES)
        if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
            return None
        backed = HEADER.unpack_from(data)[BACKED]  # the rest of the file is a hole
        data += file.read(max(0, backed - HEADER_BYTES))
        file.seek(0)
        count = HEADER.unpack(file.read(HEADER.size))[COUNT]  # once the records were read
        return parse(data, count, since_ns)


def parse(data: bytes, next_after: int | None = None, since_ns: int = 0) -> Ring | None:
    """Return the ring whose file held `data`, as `read` does.

    Args:
        data: The file's bytes.
        next_after: The number of records once all of `data` was read; None: as in `data`.
        since_ns: Spans that ended before it are left out.
    """
    if len(data) < HEADER_BYTES:
        return None
    magic, version, each, capacity, pid, began, ended, count, dropped, _, _, label_bytes, _ = (
        HEADER.unpack_from(data)
    )
    if magic != MAGIC or version != 1 or each != RECORD.size or not capacity:
        return None
    text = data[record.LABEL_AT : record.LABEL_AT + min(label_bytes, record.LABEL_BYTES_MAX)]
    count = max(count, next_after or 0)
    oldest = max(0, count - capacity)
    held = (len(data) - HEADER_BYTES) // RECORD.size * RECORD.size
    spans, whole = [], 0
    for fields in RECORD.iter_unpack(data[HEADER_BYTES : HEADER_BYTES + held]):
        number, begin_ns, end_ns, flow, value, track, kind, name_bytes, _, name = fields
        if not oldest < number <= count:
            continue
        whole += 1
        if end_ns >= since_ns:
            shown = name[:name_bytes].decode(errors="replace")
            spans.append(Span(number, begin_ns, end_ns, flow, value, track, kind, shown))
    spans.sort()
    lost = max(dropped, count - whole)
    return Ring(_label(text), pid, began, ended, lost, spans)


def _label(text: bytes) -> dict[str, Any]:
    try:
        label = json.loads(text)
    except ValueError:  # the record was cut off
        return {}
    return label if isinstance(label, dict) else {}


def sample_calls(path: str, every: int, until_ns: int) -> None:
    """Have the process of a ring record one actor call in `every` until then.

    Raises OSError.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.pwrite(fd, CALLS.pack(until_ns, every), CALLS_UNTIL_AT)
    finally:
        os.close(fd)


def is_wanted(label: dict[str, Any], launch: str, actor: str) -> bool:
    """Return True if a process with this label is asked for: it is of the launch, the actor, or,
    without either, any. Programs are always wanted: they make the calls that others run."""
    if label.get("kind") == "program" or not (launch or actor):
        return True
    if actor:
        return bool(label.get("actor") == actor)
    return bool(label.get("launch") == launch)


def pack(rings: list[Ring], bytes_max: int) -> bytes:
    """Return the rings compressed, within `bytes_max`: where that is too little each gives up its
    oldest spans, which are counted as dropped."""
    most = max(bytes_max // BYTES_EACH // max(len(rings), 1), 1)
    while True:
        cut = [_latest(ring, most) for ring in rings]
        packed = zlib.compress(json.dumps(cut).encode(), 1)
        if len(packed) <= bytes_max or most == 1:
            return packed
        most //= 2


def _latest(ring: Ring, most: int) -> Ring:
    """Return the ring with its latest spans alone; the others count as dropped."""
    lost = max(len(ring.spans) - most, 0)
    return ring._replace(spans=ring.spans[-most:], dropped=ring.dropped + lost)


def unpack(packed: bytes) -> list[Ring]:
    """Return what was packed."""
    return [
        Ring._make([*ring[:-1], [Span._make(span) for span in ring[-1]]])
        for ring in json.loads(zlib.decompress(packed))
    ]


def files(folders: list[str]) -> list[str]:
    """Return the paths of rings, the latest first; a folder that is not there has none."""
    found = []
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_file(follow_symlinks=False):
                        found.append((entry.stat().st_mtime, entry.path))
    return [path for _, path in sorted(found, reverse=True)[:RINGS_MAX]]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--since-ms", type=int, required=True)
    parser.add_argument("--bytes-max", type=int, required=True)
    parser.add_argument("--launch", default="")
    parser.add_argument("--actor", default="")
    parser.add_argument("--calls-every", type=int, default=0)
    parser.add_argument("--calls-for-ms", type=int, default=0)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    return parser.parse_args()


def main() -> None:
    """Reads what is asked for and writes it."""
    options = _options()
    now_ns = record.now_ns()
    since_ns = now_ns - options.since_ms * 1_000_000
    until_ns = now_ns + options.calls_for_ms * 1_000_000
    found = []
    paths = files(options.folders)
    most = max(options.bytes_max // BYTES_EACH // max(len(paths), 1), SPANS_EACH_MIN)
    for path in paths:
        with contextlib.suppress(OSError):  # the process's worker has just removed it
            ring = read(path, since_ns)
            if ring is None or not is_wanted(ring.label, options.launch, options.actor):
                continue
            if ring.ended_ns and ring.ended_ns < since_ns:
                continue
            found.append(_latest(ring, most))
            if options.calls_every:
                sample_calls(path, options.calls_every, until_ns)
    sys.stdout.buffer.write(pack(found, options.bytes_max))


if __name__ == "__main__":
    main()
