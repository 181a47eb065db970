"""Emits messages.h: plain structs with defaults and equality, the kinds of messages and events."""

from schema import INTEGERS, Schema, Type, snake

PREAMBLE = """// Generated from runtime/wire/schema by generate.py; do not edit.
// Plain structs of the control messages: copyable values with ==, no Cap'n Proto in sight. What each
// one means stands in the schema. C++17, because the codec is compiled as C++17.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/wire/one_of.h"

namespace troupe::wire {
"""


MESSAGE = """/// One control message. `attachment` holds bulk bytes: it is the raw trailer of the frame and never
/// passes through Cap\'n Proto.
struct Message {
  std::uint64_t id = 0;        // of a request; 0: one-way
  std::uint64_t reply_to = 0;  // the request this answers
  Body body;
  std::string attachment;
};
bool operator==(const Message& a, const Message& b);
inline bool operator!=(const Message& a, const Message& b) { return !(a == b); }
"""


def family(name: str, says: str, structs: list[str]) -> str:
    """The declaration of a OneOf of these structs, `name`, with NameOf and Visit."""
    group = f"{name}Family"
    kinds = "".join(
        f"template <>\nstruct KindOf<{group}, {struct}> : std::integral_constant<std::size_t, {i}> "
        f"{{}};\n"
        for i, struct in enumerate(structs)
    )
    cases = "".join(
        f"    case {i}: return visitor(Get<{struct}>(one));\n" for i, struct in enumerate(structs)
    )
    names = ", ".join(f'"{struct}"' for struct in structs)
    sizes = ", ".join(f"sizeof({struct})" for struct in structs)
    return (
        f"struct {group} {{\n  static constexpr std::size_t kBytes = std::max({{{sizes}}});\n"
        "  static constexpr std::size_t kAlign = alignof(std::max_align_t);\n"
        f"  static const KindOperations kOperations[{len(structs)}];\n}};\n{kinds}"
        f"{says}\nusing {name} = OneOf<{group}>;\n\n"
        f"/// visitor(the struct in it); the visitor's answers are of one type.\n"
        f"template <class Visitor>\nauto Visit(Visitor&& visitor, const {name}& one) "
        f"-> decltype(visitor(Get<{structs[0]}>(one))) {{\n  switch (one.index()) {{\n{cases}"
        "    default: std::abort();\n  }\n}\n\n"
        f"inline constexpr std::string_view k{name}Names[] = {{{names}}};\n"
        f'/// The kind in it, e.g. "{structs[-1]}".\n'
        f"inline std::string_view NameOf(const {name}& one) {{ return k{name}Names[one.index()]; "
        f"}}\n"
    )


def operations(name: str, structs: list[str]) -> str:
    rows = "".join(f"    OperationsOf<{struct}>(),\n" for struct in structs)
    return f"const KindOperations {name}Family::kOperations[] = {{\n{rows}}};\n"


def source(schema: Schema) -> str:
    return (
        """// Generated from runtime/wire/schema by generate.py; do not edit.
#include "runtime/wire/messages.h"

namespace troupe::wire {

"""
        + operations("Body", [struct for _, struct in schema.kinds])
        + operations("EventBody", [struct for _, struct in schema.events])
        + """
bool operator==(const Message& a, const Message& b) {
  return a.id == b.id && a.reply_to == b.reply_to && a.body == b.body && a.attachment == b.attachment;
}
bool operator==(const Event& a, const Event& b) { return a.body == b.body && a.attachment == b.attachment; }

}  // namespace troupe::wire
"""
    )


def cpp_type(t: Type) -> str:
    if t.kind == "list":
        return f"std::vector<{cpp_type(t.item)}>"
    return {
        "bool": "bool",
        "float": "double",
        "text": "std::string",
        "data": "std::string",
        "int": INTEGERS.get(t.name),
        "id": f"troupe::{t.name}",
    }.get(t.kind, t.name)


def constant(value: str) -> str:
    return "k" + value[0].upper() + value[1:]


def default(field) -> str:
    if field.type.kind == "bool":
        return f" = {field.default or 'false'}"
    if field.type.kind in ("int", "float"):
        return f" = {field.default or '0'}"
    if field.type.kind == "enum":
        return "{}" if field.default is None else f" = {field.type.name}::{constant(field.default)}"
    return ""


def struct_text(struct) -> str:
    lines = [f"struct {struct.name} {{"]
    for field in struct.fields:
        lines.append(f"  {cpp_type(field.type)} {field.snake}{default(field)};")
    equal = " && ".join(f"a.{f.snake} == b.{f.snake}" for f in struct.fields) or "true"
    lines.append(f"  friend bool operator==(const {struct.name}& a, const {struct.name}& b) {{")
    lines.append(f"    return {equal};\n  }}")
    lines.append(
        f"  friend bool operator!=(const {struct.name}& a, const {struct.name}& b) "
        "{ return !(a == b); }\n};\n"
    )
    return "\n".join(lines)


def enum_text(enum) -> str:
    values = ", ".join(f"{constant(v)} = {i}" for i, v in enumerate(enum.values))
    cases = "".join(
        f'    case {enum.name}::{constant(v)}: return "{snake(v).rstrip("_")}";\n'
        for v in enum.values
    )
    last = constant(enum.values[-1])
    return (
        f"enum class {enum.name} : std::uint16_t {{ {values} }};\n"
        f"inline constexpr {enum.name} k{enum.name}Last = {enum.name}::{last};\n"
        f"/// The value's name as users see it, e.g. in JSON.\n"
        f"inline const char* NameOf({enum.name} value) {{\n  switch (value) {{\n{cases}  }}\n"
        f'  return "?";\n}}\n'
    )


def header(schema: Schema) -> str:
    parts = [PREAMBLE]
    parts += [enum_text(e) for e in schema.enums.values()]
    parts += [struct_text(s) for s in schema.structs.values()]
    parts.append(
        family(
            "Body",
            "/// What a message says; the index is the kind's number on the wire.",
            [struct for _, struct in schema.kinds],
        )
    )
    parts.append(MESSAGE)
    parts.append(
        family(
            "EventBody",
            "/// What the head's journal says happened; the index is the kind's number there.",
            [struct for _, struct in schema.events],
        )
    )
    parts.append(
        "/// One row of the journal; `attachment` holds payloads, results and values.\n"
        "struct Event {\n  EventBody body;\n  std::string attachment;\n};\n"
        "bool operator==(const Event& a, const Event& b);\n"
        "inline bool operator!=(const Event& a, const Event& b) { return !(a == b); }\n"
    )
    parts.append("}  // namespace troupe::wire\n")
    return "\n".join(parts)
