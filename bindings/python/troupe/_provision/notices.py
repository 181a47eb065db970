"""Notices that a machine will be taken away, as a command tells them: spot instances."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

INTERVAL_S = 5.0  # clouds give 30 to 120 s; their services are meant to be asked every 5 s
RUN_LIMIT_S = 20.0
_CANNOT_RUN = (126, 127)


class NoticeWatch:
    """Runs a shell command again and again until it exits with 0, which is a notice.

    `descriptor` becomes readable then. A thread of its own runs the command, at most `RUN_LIMIT_S`
    at a time.
    """

    def __init__(self, command: str, *, interval_s: float = INTERVAL_S) -> None:
        self._command = command
        self._interval_s = interval_s
        self._pause = threading.Event()
        self._has_complained = False
        self.descriptor, self._write_end = os.pipe()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="notices", daemon=True).start()

    def _run(self) -> None:
        while not self._has_notice():
            self._pause.wait(self._interval_s)
        os.write(self._write_end, b"x")

    def _has_notice(self) -> bool:
        """Run the command once; return True if it exited with 0."""
        try:
            code = subprocess.run(
                ["/bin/sh", "-c", self._command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=RUN_LIMIT_S,
            ).returncode
        except subprocess.TimeoutExpired:
            self._complain(f"took more than {RUN_LIMIT_S:g} s, and was ended")
            return False
        if code in _CANNOT_RUN:
            self._complain(f"could not be run (exit code {code})")
        return code == 0

    def _complain(self, what: str) -> None:
        """Say what is wrong with the command, the first time only."""
        if not self._has_complained:
            print(
                f"troupe start: --notice-command {self._command!r} {what}; it is tried again every "
                f"{self._interval_s:g} s",
                file=sys.stderr,
                flush=True,
            )
        self._has_complained = True
