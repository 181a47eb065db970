"""CSV and JSON are read as pyarrow reads them.

Method: 500 files made by chance, small ones with all that texts have at their ends and borders,
whole and in pieces, beside pyarrow's own readers.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pip install '.[data]'")

import pyarrow.csv  # noqa: E402
import pyarrow.json  # noqa: E402, F401

from troupe.data import DataError, _blocks  # noqa: E402
from troupe.data._sources import csv_rows, files, text  # noqa: E402

CELLS = [
    "1",
    "2",
    "2.5",
    "-3",
    "",
    "abc",
    "é",
    "true",
    "2020-01-02",
    "2020-01-02 03:04:05",
    "null",
    "NA",
    "1e3",
    " x ",
    "0001",
]
QUOTED = ['"a,b"', '"a\nb"', '"say ""x"""', '"1"', '""']
VALUES: list[Any] = [
    1,
    2,
    -3,
    2.5,
    None,
    "a",
    "é",
    'q"\\',
    True,
    False,
    [],
    [1],
    [None, 2],
    ["a"],
    {},
    {"k": 1},
    {"k": None, "l": [1.5]},
    "2020-01-02T03:04:05Z",
    "{[",
    1 << 60,
]


def csv_file(chance: random.Random) -> tuple[bytes, bool]:
    """A file, and whether it may be cut at any line's end."""
    plain = chance.random() < 0.6
    end = "\n" if plain else chance.choice(["\n", "\r\n", "\r"])
    columns = chance.randint(1, 3)
    kinds = [
        chance.sample(CELLS if plain else CELLS + QUOTED, chance.randint(1, 3))
        for _ in range(columns)
    ]
    rows = [",".join("xyz"[:columns])]
    for _ in range(chance.randint(0, 8)):
        rows.append(",".join(chance.choice(kind) for kind in kinds))
    if chance.random() < 0.2:
        rows.insert(chance.randint(1 if plain else 0, len(rows)), "")
    if not plain and chance.random() < 0.2:
        rows.insert(chance.randint(0, len(rows)), chance.choice(["1", "1,2,3,4", '"open', rows[0]]))
    content = end.join(rows) + (end if plain or chance.random() < 0.5 else "")
    return ("\ufeff" if chance.random() < 0.1 else "").encode() + content.encode(), plain


def json_file(chance: random.Random) -> tuple[bytes, bool]:
    plain = chance.random() < 0.7
    kinds = [
        chance.sample(VALUES, 1) * 2 + [None] if chance.random() < 0.9 else chance.sample(VALUES, 2)
        for _ in range(3)
    ]
    rows = [
        {"xyz"[index]: chance.choice(kinds[index]) for index in range(3) if chance.random() < 0.8}
        for _ in range(chance.randint(1, 8))
    ]
    indent = None if plain else chance.choice([None, 1])
    end = "\n" if plain else chance.choice(["\n", "\r\n", " ", "\n\n"])
    texts = [json.dumps(row, indent=indent, ensure_ascii=chance.random() < 0.5) for row in rows]
    if not plain and chance.random() < 0.2:
        texts.insert(chance.randint(0, len(texts)), chance.choice(["null", "1", "{", "[]", '"{"']))
    return end.join(texts).encode() + (end.encode() if chance.random() < 0.5 else b""), plain


def rows_of(path: Path, reader: text.TextReader, blocks: int | None) -> Any:
    """The table that the pieces give, or None for a DataError, which names the file."""
    found = files.find("read", str(path), None, None)
    try:
        pieces, reader = text.pieces_of(found, reader, blocks, lambda _, function: function())
        return _blocks.concat([reader.read(piece) for piece in pieces])
    except DataError as error:
        assert str(path) in str(error)
        return None


def of_pyarrow(path: Path, kind: str) -> Any:
    try:
        if kind == "csv":
            return pa.csv.read_csv(path)
        text.check_json(path.read_bytes())  # pyarrow crashes on others
        table = pa.json.read_json(path)
        table.validate(full=True)
        return table
    except (pa.ArrowException, ValueError):
        return None


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_files_are_read_as_pyarrow_reads_them(tmp_path: Path, kind: str) -> None:
    chance = random.Random(kind)
    refused = 0
    for number in range(250):
        content, plain = (csv_file if kind == "csv" else json_file)(chance)
        path = tmp_path / f"{number}.{kind}"
        path.write_bytes(content)
        want = of_pyarrow(path, kind)
        found = rows_of(path, text.TextReader(kind), None)
        assert found == want, (content, found, want)
        refused += want is None
        for blocks in (2, 5):
            cut = rows_of(path, text.TextReader(kind), blocks)
            assert cut == want or cut is None and not plain, (content, cut, want)
    assert refused < 100, "most files are right"


def test_a_large_file_has_the_types_of_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "WHOLE_BYTES", 4096)
    monkeypatch.setattr(text, "PIECE_BYTES", 1024)
    path = tmp_path / "large.csv"
    path.write_text("x,y\n" + "".join(f"{index},a{index}\n" for index in range(2000)))
    found = files.find("read", str(path), None, None)
    pieces, reader = text.pieces_of(
        found, text.TextReader("csv"), None, lambda _, function: function()
    )
    assert len(pieces) > 10 and _blocks.concat(
        [reader.read(piece) for piece in pieces]
    ) == pa.csv.read_csv(path)
    path.write_text("x,y\n" + "".join(f'{index},"a\n{index}"\n' for index in range(2000)))
    pieces, reader = text.pieces_of(
        files.find("read", str(path), None, None),
        text.TextReader("csv"),
        None,
        lambda _, function: function(),
    )
    with pytest.raises(DataError, match="newlines_in_values=True"):
        for piece in pieces:
            reader.read(piece)


def rows_with_newlines(chance: random.Random, rows: int, delimiter: str) -> str:
    """Text of a CSV file whose values have newlines, quotes and delimiters, quoted where they are,
    and quotes that begin no value."""
    plain = ["1", "", 'a "word" in it', '5"', "é", "x'y"]
    quoted = [
        '"line\nline"',
        '"\r\n\n"',
        '"say ""x"",\nthen y"',
        '""',
        '"a,b;c"',
        '"ends"more',
        f'"{"long " * 50}\n{"row" * 100}"',
    ]
    lines = [delimiter.join(("x", '"y\nz"', "n"))]
    lines += [
        delimiter.join(
            (chance.choice(plain + quoted), chance.choice(quoted), str(chance.randint(0, 9)))
        )
        for _ in range(rows)
    ]
    return chance.choice(["\n", "\r\n"]).join(lines) + chance.choice(["", "\n"])


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_file_with_newlines_in_values_is_cut_where_rows_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delimiter: str
) -> None:
    """Looked through in chunks of any size; the pieces together are what pyarrow's reader gives of
    the whole."""
    chance = random.Random(7)
    parse = pa.csv.ParseOptions(newlines_in_values=True, delimiter=delimiter)
    monkeypatch.setattr(text, "WHOLE_BYTES", 1 << 10)
    for number in range(16):
        path = tmp_path / f"{number}.csv"
        mark = "\ufeff" if chance.random() < 0.2 else ""
        path.write_bytes(
            (mark + rows_with_newlines(chance, chance.choice([30, 200]), delimiter)).encode()
        )
        monkeypatch.setattr(csv_rows, "CHUNK_BYTES", chance.choice([3, 100, 1 << 20]))
        monkeypatch.setattr(text, "PIECE_BYTES", chance.choice([200, 3000]))
        reader = text.TextReader("csv", options={"parse_options": parse})
        assert rows_of(path, reader, None).equals(pa.csv.read_csv(path, parse_options=parse)), path


def test_a_large_file_with_newlines_in_values_is_read_in_pieces_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(1)
    path = tmp_path / "large.csv"
    path.write_text(rows_with_newlines(chance, 30_000, ","))
    monkeypatch.setattr(text, "WHOLE_BYTES", 1 << 20)
    monkeypatch.setattr(text, "PIECE_BYTES", 100 << 10)
    monkeypatch.setattr(csv_rows, "CHUNK_BYTES", 64 << 10)
    reader = text.TextReader(
        "csv", options={"parse_options": pa.csv.ParseOptions(newlines_in_values=True)}
    )
    pieces, reader = text.pieces_of(
        files.find("read", str(path), None, None), reader, None, lambda _, function: function()
    )
    assert len(pieces) > 20 and max(each.stop - each.start for each in pieces) < 102 << 10, [
        each.stop - each.start for each in pieces
    ]
    tables = [reader.read(each) for each in pieces]
    assert (
        max(each.nbytes for each in tables) < 300 << 10
        and len({each.schema for each in tables}) == 1
    )
    assert _blocks.concat(tables).equals(
        pa.csv.read_csv(
            path,
            parse_options=reader.options["parse_options"],
            read_options=pa.csv.ReadOptions(block_size=1 << 26),
        )
    )
    path.write_text('x,y\n1,"never closed\n' + "text\n" * 1000)
    monkeypatch.setattr(text, "LINE_MOST", 1 << 10)
    with pytest.raises(
        DataError,
        match=r"large.csv.*the row at byte 4 has more than 0 MiB: is a quote in it not closed",
    ):
        text.pieces_of(
            files.find("read", str(path), None, None),
            text.TextReader("csv", options=dict(reader.options)),
            4,
            lambda _, function: function(),
        )
