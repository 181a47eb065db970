"""Why a host did not come, of the exit code and the output of its ssh client. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_SSH_FAILED, _USAGE, _NOT_EXECUTABLE, _NOT_FOUND = 255, 2, 126, 127
_LINES_MAX, _LINE_CHARS_MAX = 3, 400


def document_of(stdout: bytes) -> dict[str, Any] | None:
    """Return the JSON document that `troupe start` printed.

    Whole lines that are no such document, as a shell's start-up files print them, are skipped.
    """
    for line in stdout.split(b"\n")[:-1]:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and ("error" in value or "cluster_id" in value):
            return value
    return None


def last_lines(stderr: bytes) -> list[str]:
    """Return the last lines of a stderr that are not blank, cut to a sensible length."""
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines()]
    return [line[:_LINE_CHARS_MAX] for line in lines if line][-_LINES_MAX:]


def cause_of_end(code: int, document: dict[str, Any] | None, stderr: Sequence[str]) -> str:
    """Return the cause for a client that ended before its node had joined.

    Args:
        code: the client's exit code; negative: the signal that killed it.
        document: what `troupe start` printed as JSON, if anything.
        stderr: the client's last lines, ssh's own or the far side's.
    """
    said = "".join(f"\n  {line}" for line in stderr)
    if document is not None and "error" in document:
        return f"troupe start failed there: {document['error']}: {document.get('text', '')}"
    if code == _SSH_FAILED:
        return f"ssh failed (exit code {_SSH_FAILED}):{said or ' it said nothing'}"
    if code == _NOT_FOUND:
        return (
            f"the command was not found there (exit code {code}):{said}\n"
            "  name it in the file, as command: /opt/venv/bin/troupe"
        )
    if code == _NOT_EXECUTABLE:
        return f"the command could not be run there (exit code {code}):{said}"
    if code == _USAGE:
        return (
            f"its troupe does not understand this one's command line (exit code {code}); it is "
            f"another version, or the file has a wrong option:{said}"
        )
    if code < 0:
        return f"the ssh client was killed by signal {-code}:{said or ' it said nothing'}"
    return f"the command there ended with exit code {code}:{said or ' it said nothing'}"


def cause_of_silence(timeout_s: float, stderr: Sequence[str]) -> str:
    """Return the cause for a client whose node had not joined in time."""
    said = "".join(f"\n  {line}" for line in stderr)
    return f"its node did not join within {timeout_s:g} s; ssh was ended{said and ':'}{said}"
