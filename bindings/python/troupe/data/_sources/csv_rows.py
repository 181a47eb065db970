"""A search for row starts in a CSV file whose quoted values may have newlines: the file is read
once, a few MiB at a time.

A newline ends a row unless it is inside a quoted value. A value is quoted where a quote is its
first character, as pyarrow has it: a quote further on is a character like any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CHUNK_BYTES = 16 << 20
_MARK = b"\xef\xbb\xbf"  # mark of UTF-8 at the beginning of a file


@dataclass(frozen=True)
class RowEnds:
    """Finds ends of rows by the quotes before them.

    `begin`: matches what comes before a quoted value, with its quote; None: no value is quoted.
    """

    begin: re.Pattern[bytes] | None
    rest: re.Pattern[bytes]

    @classmethod
    def of(cls, options: Any) -> RowEnds | None:
        """Return it for these ParseOptions; None for escaped characters, by which any newline may
        be a value's."""
        if options.escape_char:
            return None
        quote = re.escape(options.quote_char or '"').encode()
        begin = re.compile(
            rb"(?:\A|[\r\n]|" + re.escape(options.delimiter).encode() + rb")" + quote
        )
        inside = rb"[^" + quote + rb"]*"
        doubled = rb"(?:" + quote + quote + inside + rb")*" if options.double_quote else b""
        after = rb"(?!" + quote + rb")" if options.double_quote else b""
        return cls(
            begin if options.quote_char else None, re.compile(inside + doubled + quote + after)
        )

    def last(self, data: bytes) -> int:
        """Return where the last row of `data` ends that is complete, from a row's beginning on; 0:
        none is."""
        return (
            max(
                (self._newlines(data, lambda first, end: data.rfind(b"\n", first, end))), default=-1
            )
            + 1
        )

    def _newlines(self, data: bytes, find: Callable[[int, int], int]) -> list[int]:
        """Return what `find` gives for each part of the data outside of quoted values, up to a
        value whose end is not there yet."""
        at, found = 0, []
        while True:
            quoted = self.begin.search(data, at) if self.begin is not None else None
            end = quoted.end() - 1 if quoted is not None else len(data)
            found.append(find(at, end))
            if quoted is None:
                return found
            closed = self.rest.match(data, quoted.end())
            if closed is None or closed.end() == len(data):  # a second quote may follow
                return found
            at = closed.end()

    def cuts(self, read: Callable[[int], bytes], each: int, most: int) -> list[int]:
        """Return where rows begin, one for about every `each` bytes of a file.

        Args:
            read: Returns the next bytes of the file, at most as many; b"": its end.
            each: Bytes between two of them, at least.
            most: Bytes of a row. It is an error where one has more.

        Raises:
            ValueError: for a row that is too long; a quote that is never closed makes one.
        """
        found: list[int] = []
        base, due = 0, each
        data = read(CHUNK_BYTES)
        if data.startswith(_MARK):
            base, data = len(_MARK), data[len(_MARK) :]

        def note(first: int, end: int) -> int:
            nonlocal due
            while (at := data.find(b"\n", max(first, due - base - 1), end)) >= 0:
                found.append(base + at + 1)
                due = found[-1] + each
            return data.rfind(b"\n", first, end)

        while data:
            ended = max(self._newlines(data, note), default=-1) + 1
            base, data = base + ended, data[ended:]
            if len(data) > most:
                raise ValueError(
                    f"the row at byte {base} has more than {most >> 20} MiB: is a quote in it not "
                    "closed?"
                )
            more = read(CHUNK_BYTES)
            if not more:
                return found
            data += more
        return found
