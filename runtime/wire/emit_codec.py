"""Emits the codec: plain struct <-> Cap'n Proto. C++17; the only sources that see capnp headers.

Getters count towards Cap'n Proto's traversal limit each time, so each is called once. A list longer
than kListMax is refused: an amplification a frame's size alone does not bound.
"""

from emit_structs import cpp_type
from schema import Schema, Type


def header(schema: Schema) -> str:
    lines = [
        "// Generated from runtime/wire/schema by generate.py; do not edit.",
        "#pragma once",
        "",
        "#include <capnp/message.h>",
        "#include <capnp/serialize.h>",
        "",
    ]
    lines += [f'#include "runtime/wire/schema/{file}.capnp.h"' for file in schema.files]
    lines += [
        '#include "runtime/wire/codec_support.h"',
        '#include "runtime/wire/messages.h"',
        "",
        "namespace troupe::wire {",
        "",
    ]
    for struct in schema.structs.values():
        lines.append(f"void Read({struct.name}& out, schema::{struct.name}::Reader in);")
        lines.append(f"void Write(const {struct.name}& in, schema::{struct.name}::Builder out);")
    lines += [
        "void Read(Message& out, schema::Message::Reader in);",
        "void Write(const Message& in, schema::Message::Builder out);",
        "void Read(Event& out, schema::Event::Reader in);",
        "void Write(const Event& in, schema::Event::Builder out);",
        "",
        "}  // namespace troupe::wire",
        "",
    ]
    return "\n".join(lines)


def upper(name: str) -> str:
    return name[0].upper() + name[1:]


def read_value(t: Type, target: str, source: str) -> str:
    if t.kind in ("bool", "int", "float"):
        return f"{target} = {source};"
    if t.kind == "text":
        return f"ReadText({target}, {source});"
    if t.kind == "data":
        return f"ReadData({target}, {source});"
    if t.kind == "id":
        return f"ReadId({target}, {source});"
    if t.kind == "enum":
        return f"{target} = ReadEnum({source}, k{t.name}Last);"
    return f"Read({target}, {source});"


def read_field(field) -> str:
    getter = f"in.get{upper(field.name)}()"
    t = field.type
    if t.kind != "list":
        return f"  {read_value(t, 'out.' + field.snake, getter)}\n"
    item = t.item
    body = (
        f"    {cpp_type(item)} value{{}};\n    {read_value(item, 'value', 'item')}\n"
        f"    out.{field.snake}.push_back(std::move(value));\n"
    )
    return (
        f"  {{\n  const auto list = {getter};\n  CheckListSize(list.size());\n"
        f"  out.{field.snake}.clear();\n  out.{field.snake}.reserve(list.size());\n"
        f"  for (const auto item : list) {{\n{body}  }}\n  }}\n"
    )


def write_value(t: Type, source: str, setter: str, init: str, get: str) -> str:
    """Text of the statement that stores `source`; setter/init/get are call prefixes."""
    if t.kind in ("bool", "int", "float"):
        return f"{setter}{source});"
    if t.kind == "text":
        return f"{setter}TextOf({source}));"
    if t.kind == "data":
        return f"{setter}DataOf({source}));"
    if t.kind == "enum":
        return f"{setter}static_cast<schema::{t.name}>({source}));"
    if t.kind == "id":
        return f"WriteId({source}, {init});"
    return f"Write({source}, {init});"


def write_field(field) -> str:
    name, t, source = upper(field.name), field.type, f"in.{field.snake}"
    if t.kind != "list":
        empty = {
            "text": f"if (!{source}.empty()) ",
            "data": f"if (!{source}.empty()) ",
            "id": f"if (!{source}.IsNil()) ",
        }.get(t.kind, "")
        return f"  {empty}{write_value(t, source, f'out.set{name}(', f'out.init{name}()', '')}\n"
    element = write_value(t.item, f"{source}[i]", "list.set(i, ", "list[i]", "")
    return (
        f"  if (!{source}.empty()) {{\n  CheckListSize({source}.size());\n"
        f"  auto list = out.init{name}(static_cast<unsigned>({source}.size()));\n"
        f"  for (unsigned i = 0; i < {source}.size(); ++i) {element}\n  }}\n"
    )


def union_functions(kinds: list[tuple[str, str]], type_name: str, read: str, write: str) -> str:
    """Read and Write of a struct whose `body` is one of several kinds; `read` and `write` are its
    other fields."""
    reads, writes = [], []
    for index, (name, struct) in enumerate(kinds):
        reads.append(
            f"    case schema::{type_name}::{constant_case(name)}:\n"
            f"      Read(out.body.Emplace<{struct}>(), in.get{upper(name)}());\n      break;"
        )
        writes.append(
            f"    case {index}: Write(Get<{struct}>(in.body), out.init{upper(name)}()); break;"
        )
    return (
        f"void Read({type_name}& out, schema::{type_name}::Reader in) {{\n"
        f"{read}  switch (in.which()) {{\n"
        + "\n".join(reads)
        + "\n    default: RefuseKind(static_cast<unsigned>(in.which()));\n  }\n}\n\n"
        f"void Write(const {type_name}& in, schema::{type_name}::Builder out) {{\n"
        f"{write}  switch (in.body.index()) {{\n"
        + "\n".join(writes)
        + "\n    default: break;\n  }\n}\n"
    )


def constant_case(name: str) -> str:
    return "".join("_" + c if c.isupper() else c for c in name).upper()


def source(schema: Schema, file: str) -> str:
    parts = [
        "// Generated from runtime/wire/schema by generate.py; do not edit.",
        '#include "runtime/wire/codec_internal.h"',
        "",
        "#include <utility>",
        "",
        "namespace troupe::wire {",
        "",
    ]
    if file == "message":
        parts.append(
            union_functions(
                schema.kinds,
                "Message",
                "  out.id = in.getId();\n  out.reply_to = in.getReplyTo();\n",
                "  out.setId(in.id);\n  out.setReplyTo(in.reply_to);\n",
            )
        )
    if file == "journal":
        parts.append(union_functions(schema.events, "Event", "", ""))
    for struct in schema.structs.values():
        if struct.file != file:
            continue
        parts.append(
            f"void Read({struct.name}& out, schema::{struct.name}::Reader in) {{\n"
            + "".join(read_field(f) for f in struct.fields)
            + "}\n"
        )
        parts.append(
            f"void Write(const {struct.name}& in, schema::{struct.name}::Builder out) {{\n"
            + "".join(write_field(f) for f in struct.fields)
            + "}\n"
        )
    parts.append("}  // namespace troupe::wire\n")
    return "\n".join(parts)
