#!/usr/bin/env python3
"""Generates plain structs, their Cap'n Proto codec and their Python conversion from the schema.

Usage: generate.py SCHEMA_DIR OUT_DIR
       generate.py SCHEMA_DIR --names FILE   the module of the enums' values, which the tree keeps

The schema is the only place a message is described. Written from it:
  messages.{h,cc}         plain C++ structs and the OneOf of them (C++17, no capnp in it)
  codec_internal.h, codec_<file>.cc   Cap'n Proto readers and builders
  inspect.h               random filling and text of any message, for tests and traces
  python_convert.{h,cc}   struct <-> dict, for the extension module
A schema construct this generator does not know is an error, never skipped.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import emit_codec  # noqa: E402
import emit_inspect  # noqa: E402
import emit_names  # noqa: E402
import emit_python  # noqa: E402
import emit_structs  # noqa: E402
from schema import load  # noqa: E402


def write(path: pathlib.Path, text: str) -> None:
    """Leaves an unchanged file alone, so that nothing is rebuilt for it."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main() -> int:
    schema = load(pathlib.Path(sys.argv[1]))
    if sys.argv[2] == "--names":
        write(pathlib.Path(sys.argv[3]), emit_names.source(schema))
        return 0
    out = pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    write(out / "messages.h", emit_structs.header(schema))
    write(out / "messages.cc", emit_structs.source(schema))
    write(out / "codec_internal.h", emit_codec.header(schema))
    for file in schema.files:
        write(out / f"codec_{file}.cc", emit_codec.source(schema, file))
    write(out / "inspect.h", emit_inspect.header(schema))
    write(out / "python_convert.h", emit_python.header(schema))
    write(out / "python_convert.cc", emit_python.source(schema))
    return 0


if __name__ == "__main__":
    sys.exit(main())
