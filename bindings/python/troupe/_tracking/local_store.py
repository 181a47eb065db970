"""A process beside a program that makes runs for its launches: `python -P -m
troupe._tracking.local_store FOLDER`, the address in ADDRESS. MLflow is imported from FOLDER where
the interpreter has none.

It speaks over its stdin and stdout with the process that started it (`store_process`), and listens
nowhere: frames of a length (4 bytes) and a JSON header, then the body. The headers:
* `load`: MLflow is to be imported, which a busy machine takes long for;
* `open`: a run is to be made, as this Wish says;
* `over`: a launch has ended; its run gets this status where it has no end yet;
* `method`, `path`, `type`: a request of a rank's to a store that is a file of the program's.
  MLflow's own handlers answer, so that the store is asked what a server would ask it.
It ends with its stdin. Runs in a file that are open then belong to a caller that is gone, and with
it the launches: they are marked as killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys
from typing import Any, BinaryIO

from troupe._base.after_import import after_import
from troupe._cluster import home
from troupe._code import packages
from troupe._tracking import empty_store, rule, turns

ADDRESS = "TROUPE_TRACKING_STORE"
"""The variable with the address, which may hold a password: not among its arguments, which other
users see."""
FRAME_BYTES_MAX = 64 << 20


def write(to: BinaryIO, header: dict[str, Any], body: bytes) -> None:
    """Write one frame."""
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
    sys.path += [
        each for each in sys.argv[1:] if each and each not in sys.path
    ]  # last: what else is in there is the program's
    frames = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not be read as frames
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    for name in [name for name in os.environ if name.startswith("_MLFLOW_SERVER_")]:
        del os.environ[name]
    store = Store(os.environ.pop(ADDRESS))
    cache = os.fspath(packages.cache())
    after_import({"mlflow.store.db.utils": lambda utils: empty_store.install(utils, cache)})
    while True:
        asked = read(sys.stdin.buffer)
        if asked is None:
            break
        header, body = asked
        if "load" in header:
            write(frames, *store.load())
        elif "open" in header:
            write(frames, *store.open(rule.Wish(**header["open"])))
        elif "over" in header:
            write(frames, *store.over(**header["over"]))
        else:
            write(frames, *store.answer(header, body))
    store.end_all("KILLED")
    os._exit(0)  # threads of libraries do not keep it


class Store:
    """The store at an address, and which runs of launches are open there."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._local = turns.is_local(uri)
        self._server: Any = None
        self._open: dict[str, str] = {}  # run -> its launch, "" where that is not known
        os.environ[rule.URI] = (
            uri  # MLflow's fluent functions, which know how a workspace of Databricks is reached
        )

    def load(self) -> tuple[dict[str, Any], bytes]:
        """Import MLflow; what is wrong with it, a request that needs it says."""
        with contextlib.suppress(Exception):
            import mlflow  # noqa: F401
        return {"status": 200}, b""

    def open(self, wish: rule.Wish) -> tuple[dict[str, Any], bytes]:
        """Makes a run; its id, its experiment's, and where a person looks at it."""
        from troupe._tracking import runs

        runs.impatient()
        try:
            with turns.alone(self._uri, str(home.home())):
                run, experiment = runs.opened(runs.client(self._uri), wish)
        except Exception as error:
            return {"status": 500}, runs.words_of(error).encode()
        self._open[run] = ""
        link = (
            rule.link(wish.store, experiment, run)
            if self._local
            else runs.link_of(self._uri, experiment, run)
        )
        return {"status": 200}, json.dumps([run, experiment, link]).encode()

    def over(self, run: str, launch: str, status: str) -> tuple[dict[str, Any], bytes]:
        """Ends a run by its id, or those of a launch."""
        for each in [
            each for each, its in self._open.items() if each == run or its and its == launch
        ]:
            self._end(each, status)
        return {"status": 200}, b""

    def end_all(self, status: str) -> None:
        """Ends those that are open in a file; on a server a launch may outlive its caller, and its
        tracker ends its run."""
        for run in list(self._open) if self._local else ():
            self._end(run, status)

    def answer(self, header: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Return the answer of MLflow's server to a request."""
        answer = self._app().open(
            header["path"], method=header["method"], data=body, content_type=header["type"] or None
        )
        content = answer.get_data()
        self._note(header, body, content, answer.status_code)
        return {"status": answer.status_code, "type": answer.content_type or ""}, content

    def _end(self, run: str, status: str) -> None:
        self._open.pop(run, None)
        with contextlib.suppress(
            Exception
        ):  # raised for a store that is full or gone: there is nobody to tell
            from troupe._tracking import runs

            runs.client(self._uri).set_terminated(run, status)

    def _app(self) -> Any:
        """MLflow's server without a server: an application that is called."""
        if self._server is None:
            from mlflow.server import app, handlers

            with turns.alone(self._uri, str(home.home())):
                handlers.initialize_backend_stores(self._uri, self._uri, _artifact_root(self._uri))
            self._server = app.test_client()
        return self._server

    def _note(self, header: dict[str, Any], body: bytes, content: bytes, status: int) -> None:
        """Note which runs of launches are open."""
        if (
            status != 200
            or header["method"] != "POST"
            or not header["path"].endswith(("/runs/create", "/runs/update"))
        ):
            return
        asked = json.loads(body)
        if header["path"].endswith("/runs/create"):
            launch = next(
                (
                    tag.get("value", "")
                    for tag in asked.get("tags", ())
                    if tag.get("key") == "troupe.launch"
                ),
                None,
            )
            if launch is not None:
                self._open[json.loads(content)["run"]["info"]["run_id"]] = launch
        elif asked.get("status", "RUNNING") not in ("RUNNING", 1):
            self._open.pop(asked.get("run_id", ""), None)


def _artifact_root(uri: str) -> str:
    """As the client has it that uses such a store by itself."""
    from mlflow.store.tracking import DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH

    return DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH if uri.startswith("sqlite") else uri


if __name__ == "__main__":
    main()
