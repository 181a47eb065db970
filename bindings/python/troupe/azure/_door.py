"""A socket in the job's directory, which is this user's alone, by which programs of a job's first
node ask its driver for something on other nodes."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

SOCKET = "agent"
_REQUEST_BYTES_MAX = 1 << 20
_BACKLOG = 128

Answer = Callable[[dict[str, Any], socket.socket], None]
"""(request, the connection): answers one; runs in a thread of its own."""


class Door:
    """A context: requests are answered until it is left.

    What an answer raises is said on stderr, and its asker's connection ends.
    """

    def __init__(self, folder: Path, answer: Answer) -> None:
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path = folder / SOCKET
        self._path.unlink(missing_ok=True)
        inside = os.open(folder, os.O_PATH)
        try:  # the paths of sockets are limited to 108 bytes
            self._listener.bind(f"/proc/self/fd/{inside}/{SOCKET}")
        finally:
            os.close(inside)
        self._listener.listen(_BACKLOG)

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, name="troupe-door", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while True:
            try:
                asked, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(
                target=self._one, args=(asked,), name="troupe-door-asked", daemon=True
            ).start()

    def _one(self, asked: socket.socket) -> None:
        with asked, asked.makefile("rb") as stream:
            try:
                request = stream.readline(_REQUEST_BYTES_MAX)
                if request:  # else who asked has ended before it said what
                    self._answer(json.loads(request), asked)
            except OSError:
                return  # the asking program has ended
            except BaseException as error:
                print(
                    "troupe: what was asked for on another node could not be run: "
                    f"{type(error).__name__}: {error}",
                    file=sys.stderr,
                    flush=True,
                )
