"""Text for people has no sequence that a terminal obeys: V1 and V2 of troupe/_base/visible.py.

Method: texts made of the pieces that sequences consist of, at random from fixed seeds, and cut at
every place.
"""

from __future__ import annotations

import random
import re
import unicodedata

import pytest

from troupe._base import visible as _visible

PIECES = [
    "\x1b",
    "[",
    "]",
    "0;",
    "31",
    "m",
    "K",
    "2J",
    "\x07",
    "\x1b\\",
    "\x9b",
    "\x9d",
    "P",
    "_",
    "^",
    "X",
    "\r",
    "\n",
    "\t",
    "\b",
    "\0",
    "\x7f",
    "\u202e",
    "\u2066",
    "\u200f",
    "\u061c",
    "\u2028",
    "\ufeff",
    "\U000e0041",
    "\udc9b",
    "52;c;",
    "text",
    "é",
    "漢",
    "👩‍🔬",
    " ",
    "?25l",
    "(B",
    "c",
    "8;;http://x",
]
SGR = re.compile("\x1b\\[[0-9;:]*m")


def samples(count: int = 5000) -> list[str]:
    made = random.Random(17)
    return ["".join(made.choices(PIECES, k=made.randint(1, 12))) for _ in range(count)] + [
        chr(code) for code in range(0x3000)
    ]


def controls(shown: str) -> set[str]:
    """Return the characters that a terminal, or a layout program, obeys."""
    joiners = "\u200c\u200d\u00ad\u180e"  # joiners change only the shape of their neighbours
    return {
        each
        for each in shown
        if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp", "Cs")
        and each not in joiners
        and not 0x600 <= ord(each) <= 0x8E2
        or each == "\u061c"
    }


@pytest.mark.parametrize(
    ("clean", "kept"), [(_visible.name, ""), (_visible.text, "\n\t"), (_visible.output, "\n\t\r")]
)
def test_V1_no_control_comes_out_but_those_said(clean, kept: str) -> None:
    for sample in samples():
        shown = clean(sample)
        shown = SGR.sub("", shown) if clean is _visible.output else shown
        assert controls(shown) <= set(kept), (sample, shown)
        shown.encode()


@pytest.mark.parametrize("clean", [_visible.name, _visible.text, _visible.output])
def test_V2_pieces_put_together_are_as_harmless(clean) -> None:
    for sample in samples(500):
        assert clean(clean(sample)) == clean(sample)
        for at in range(len(sample) + 1):
            joined = clean(sample[:at]) + clean(sample[at:])
            assert clean(joined) == joined, (sample, at)


def test_what_people_write_stays_as_it_is() -> None:
    for kept in ("a line", "漢字 é 👩‍🔬 עברית", "a\tb"):
        assert _visible.output(kept) == _visible.text(kept) == kept
    assert (
        _visible.output("\x1b[1;31mred\x1b[0m 50 %|##  |\r") == "\x1b[1;31mred\x1b[0m 50 %|##  |\r"
    )
    assert _visible.text("\x1b[1;31mred\x1b[0m\nnext") == "red\nnext"
    assert _visible.name("a\x1b[2J\nb") == "a\\x1b[2J\\nb"
    assert _visible.output("\x1b]0;title\x07a\x1b[2Jb\x1b[Ac\x1b") == "abc\\x1b"
    assert _visible.output("\x1b]8;;http://x\x1b\\link") == "link"
