"""Text that came from elsewhere, as a person may safely see it. Pure; used wherever something is
printed or is an error's text.

A terminal obeys escape sequences in what it shows: they move the cursor over other lines, set its
title, write to its clipboard, and controls of writing direction turn one name into another. Nothing
of that leaves here:

* `name`: one word or line of a table or a sentence. Each control is shown as `\\x1b`, line ends
  too.
* `text`: several lines, as of an error. Line ends and tabs stay; whole sequences are left out,
  other controls are shown.
* `output`: a line that a program wrote. As `text`, and colours (SGR sequences, and no others) and
  carriage returns stay.

V1: what comes out has no control but those said, whatever goes in. V2: what comes out goes through
unchanged, again and in any pieces put together: what is kept is whole or harmless, so that no
border between two pieces makes a sequence of them.
"""

from __future__ import annotations

import re

_SGR = re.compile("\x1b\\[[0-9;:]*m")
_SEQUENCE = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # CSI: cursor, erasing, colours
    "|\x1b[\\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)"  # OSC and the like, up to their end
    "|\x9b[0-?]*[ -/]*[@-~]"
)
# C0, DEL and C1; signs of direction; ends of lines of Unicode; marks without a shape that hide
# text; halves of characters.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def name(value: object) -> str:
    """Return `value` as one line with every control character shown."""
    return _CONTROL.sub(_shown, str(value))


def text(value: object) -> str:
    """Lines without sequences; controls that are none of one are shown."""
    return _cleaned(str(value), "\n\t", colours=False)


def output(line: str) -> str:
    """Return a program's output with its colours and carriage returns."""
    return _cleaned(line, "\n\t\r", colours=True)


def _cleaned(value: str, kept: str, *, colours: bool) -> str:
    parts, at = [], 0
    for found in _SEQUENCE.finditer(value):
        parts.append(_controls_shown(value[at : found.start()], kept))
        if colours and _SGR.fullmatch(found[0]):
            parts.append(found[0])
        at = found.end()
    parts.append(_controls_shown(value[at:], kept))
    return "".join(parts)


def _controls_shown(value: str, kept: str) -> str:
    return _CONTROL.sub(lambda found: found[0] if found[0] in kept else _shown(found), value)


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] in "\n\t\r":
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[found[0]]
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
