"""The caller's own tracking store, a folder or a database in a file, in a process beside the caller: `python -m troupe._tracking.local_store URI`.

It speaks over its stdin and stdout with the process that started it, and listens nowhere: frames of a length (4 bytes) and a JSON header, then the
body. MLflow's own handlers answer, so that the store is asked what a server would ask it. It ends with its stdin; runs of launches that are open
then belong to a caller that is gone, and with it the launches: they are marked as killed.
"""
from __future__ import annotations

import json
import os
import struct
import sys
from typing import Any, BinaryIO

FRAME_BYTES_MAX = 64 << 20


def write(to: BinaryIO, header: dict[str, Any], body: bytes) -> None:
    """One frame."""
    head = json.dumps(header).encode()
    to.write(struct.pack("!II", len(head), len(body)) + head + body)
    to.flush()


def read(source: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """The next frame; None at the end. Raises ValueError for one that is too large."""
    sizes = source.read(8)
    if len(sizes) < 8:
        return None
    head, body = struct.unpack("!II", sizes)
    if head + body > FRAME_BYTES_MAX:
        raise ValueError(f"a frame of {head + body} bytes; {FRAME_BYTES_MAX} is the limit")
    header, content = source.read(head), source.read(body)
    return (json.loads(header), content) if len(content) == body else None


def main() -> None:
    """Serves until the end of stdin."""
    uri = sys.argv[1]
    frames = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no frame
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    for name in [name for name in os.environ if name.startswith("_MLFLOW_SERVER_")]:
        del os.environ[name]
    client = _app(uri)
    opened: set[str] = set()
    while True:
        asked = read(sys.stdin.buffer)
        if asked is None:
            break
        header, body = asked
        answer = client.open(header["path"], method=header["method"], data=body, content_type=header["type"] or None)
        content = answer.get_data()
        _note(opened, header, body, content, answer.status_code)
        write(frames, {"status": answer.status_code, "type": answer.content_type or ""}, content)
    for run in opened:
        client.post("/api/2.0/mlflow/runs/update", json={"run_id": run, "status": "KILLED", "end_time": _now_ms()})


def _app(uri: str) -> Any:
    """MLflow's server without a server: an application that is called."""
    from mlflow.server import app, handlers

    handlers.initialize_backend_stores(uri, uri, _artifact_root(uri))
    return app.test_client()


def _artifact_root(uri: str) -> str:
    """As the client has it that uses such a store by itself."""
    from mlflow.store.tracking import DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH

    return DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH if uri.startswith("sqlite") else uri


def _note(opened: set[str], header: dict[str, Any], body: bytes, content: bytes, status: int) -> None:
    """Which runs of launches are open."""
    if status != 200 or header["method"] != "POST" or not header["path"].endswith(("/runs/create", "/runs/update")):
        return
    asked = json.loads(body)
    if header["path"].endswith("/runs/create"):
        if any(tag.get("key") == "troupe.launch" for tag in asked.get("tags", ())):
            opened.add(json.loads(content)["run"]["info"]["run_id"])
    elif asked.get("status", "RUNNING") not in ("RUNNING", 1):
        opened.discard(asked.get("run_id", ""))


def _now_ms() -> int:
    import time

    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main()
