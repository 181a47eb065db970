"""Emits inspect.h, for tests and traces: random filling and a line-per-field text of any
message."""

from emit_structs import cpp_type
from schema import Schema, Type

PREAMBLE = """// Generated from runtime/wire/schema by generate.py; do not edit.
// Fill: any message with random values (property tests, fuzz corpora, golden frames). Lines: one
// "path = value" line for each field that is not empty or zero (golden frames, simulator traces).
#pragma once

#include <string>
#include <vector>

#include "runtime/base/random.h"
#include "runtime/wire/inspect_support.h"
#include "runtime/wire/messages.h"

namespace troupe::wire {
"""


def fill(t: Type, target: str) -> str:
    if t.kind == "list":
        return (
            f"FillList({target}, random, [](auto& item, Prng& random) "
            f"{{ {fill(t.item, 'item')} }});"
        )
    if t.kind == "enum":
        return (
            f"{target} = "
            f"static_cast<{t.name}>(random.Below(static_cast<unsigned>(k{t.name}Last) + 1));"
        )
    if t.kind == "bool":
        return f"{target} = random.Below(2) == 1;"
    if t.kind == "int":
        return f"{target} = static_cast<{cpp_type(t)}>(random.Next());"
    if t.kind == "float":
        return f"{target} = static_cast<double>(random.Below(1u << 30)) / 16;"
    if t.kind == "id":
        return f"{target} = {cpp_type(t)}::Random(random);"
    if t.kind in ("text", "data"):
        return f"FillText({target}, random);"
    return f"Fill({target}, random);"


def lines(t: Type, target: str, path: str) -> str:
    if t.kind == "list":
        return (
            f"for (std::size_t i = 0; i < {target}.size(); ++i) {{ const auto& item = {target}[i]; "
            f'const std::string at = {path} + "[" + std::to_string(i) + "]"; '
            f"{lines(t.item, 'item', 'at')} }}"
        )
    if t.kind == "struct":
        return f'AddLines({target}, {path} + ".", out);'
    if t.kind == "enum":
        return (
            f'if ({target} != {cpp_type(t)}{{}}) out.push_back({path} + " = " + NameOf({target}));'
        )
    if t.kind == "id":
        return f'if (!{target}.IsNil()) out.push_back({path} + " = " + {target}.Hex());'
    if t.kind in ("text", "data"):
        return f'if (!{target}.empty()) out.push_back({path} + " = " + Quoted({target}));'
    return f'if ({target} != 0) out.push_back({path} + " = " + std::to_string({target}));'


def header(schema: Schema) -> str:
    parts = [PREAMBLE]
    for struct in schema.structs.values():
        parts.append(
            f"inline void Fill({struct.name}& out, Prng& random) {{\n"
            + "".join(f"  {fill(f.type, 'out.' + f.snake)}\n" for f in struct.fields)
            + "}\n"
        )
        parts.append(
            f"inline void AddLines(const {struct.name}& in, const std::string& path, "
            "std::vector<std::string>& out) {\n"
            + "".join(
                "  " + lines(f.type, "in." + f.snake, f'path + "{f.snake}"') + "\n"
                for f in struct.fields
            )
            + "}\n"
        )
    cases = "".join(
        f"    case {i}: Fill(out.Emplace<{struct}>(), random); break;\n"
        for i, (_, struct) in enumerate(schema.kinds)
    )
    parts.append(
        f"/// The kind numbered `kind`, filled from `random`.\n"
        f"inline Body RandomBody(std::size_t kind, Prng& random) {{\n  Body out;\n"
        f"  switch (kind) {{\n{cases}    default: break;\n  }}\n  return out;\n}}\n\n"
        '/// Lines(message): "Heartbeat.sequence = 7", ...\n'
        "inline std::vector<std::string> Lines(const Message& message) {\n"
        "  std::vector<std::string> out;\n"
        "  const std::string name(NameOf(message.body));\n"
        '  Visit([&](const auto& body) { AddLines(body, name + ".", out); }, message.body);\n'
        "  return out;\n}\n"
    )
    parts.append("}  // namespace troupe::wire\n")
    return "\n".join(parts)
