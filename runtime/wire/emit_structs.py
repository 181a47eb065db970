"""Emits messages.h: plain structs with defaults and equality, the Body variant, kind names."""
from schema import INTEGERS, Schema, Type, snake

PREAMBLE = '''// Generated from runtime/wire/schema by generate.py; do not edit.
// Plain structs of the control messages: copyable values with ==, no Cap'n Proto in sight. What each
// one means stands in the schema. C++17, because the codec is compiled as C++17.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"

namespace troupe::wire {
'''


# Copying, moving, destroying and comparing 90 alternatives costs seconds in every source that does
# it, so they stand in one source.
BODY = '''using BodyVariant = std::variant<@KINDS@>;

/// What a message says: one of the structs above. A std::variant (get, get_if, holds_alternative and
/// visit work on it); the index is the kind's number on the wire.
class Body : public BodyVariant {
 public:
  Body();
  ~Body();
  Body(const Body& other);
  Body(Body&& other) noexcept;
  Body& operator=(const Body& other);
  Body& operator=(Body&& other) noexcept;
  template <class T, class = std::enable_if_t<!std::is_base_of_v<Body, std::decay_t<T>>>>
  Body(T&& value)  // NOLINT: a body is any of its kinds
      : BodyVariant(std::in_place_type<std::decay_t<T>>, std::forward<T>(value)) {}
  template <class T, class = std::enable_if_t<!std::is_base_of_v<Body, std::decay_t<T>>>>
  Body& operator=(T&& value) {
    return *this = Body(std::forward<T>(value));
  }
};
bool operator==(const Body& a, const Body& b);
inline bool operator!=(const Body& a, const Body& b) { return !(a == b); }

/// One control message. `attachment` holds bulk bytes: it is the raw trailer of the frame and never
/// passes through Cap\'n Proto.
struct Message {
  std::uint64_t id = 0;        // of a request; 0: one-way
  std::uint64_t reply_to = 0;  // the request this answers
  Body body;
  std::string attachment;
};
bool operator==(const Message& a, const Message& b);
inline bool operator!=(const Message& a, const Message& b) { return !(a == b); }
'''

SOURCE = '''// Generated from runtime/wire/schema by generate.py; do not edit.
#include "runtime/wire/messages.h"

namespace troupe::wire {

Body::Body() = default;
Body::~Body() = default;
Body::Body(const Body& other) = default;
Body::Body(Body&& other) noexcept = default;
Body& Body::operator=(const Body& other) = default;
Body& Body::operator=(Body&& other) noexcept = default;

bool operator==(const Body& a, const Body& b) {
  return static_cast<const BodyVariant&>(a) == static_cast<const BodyVariant&>(b);
}
bool operator==(const Message& a, const Message& b) {
  return a.id == b.id && a.reply_to == b.reply_to && a.body == b.body && a.attachment == b.attachment;
}

}  // namespace troupe::wire
'''


def source(_: Schema) -> str:
    return SOURCE


def cpp_type(t: Type) -> str:
    if t.kind == "list":
        return f"std::vector<{cpp_type(t.item)}>"
    return {"bool": "bool", "float": "double", "text": "std::string", "data": "std::string",
            "int": INTEGERS.get(t.name), "id": f"troupe::{t.name}"}.get(t.kind, t.name)


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
    lines.append(f"  friend bool operator!=(const {struct.name}& a, const {struct.name}& b) "
                 "{ return !(a == b); }\n};\n")
    return "\n".join(lines)


def enum_text(enum) -> str:
    values = ", ".join(f"{constant(v)} = {i}" for i, v in enumerate(enum.values))
    cases = "".join(f'    case {enum.name}::{constant(v)}: return "{snake(v).rstrip("_")}";\n'
                    for v in enum.values)
    last = constant(enum.values[-1])
    return (f"enum class {enum.name} : std::uint16_t {{ {values} }};\n"
            f"inline constexpr {enum.name} k{enum.name}Last = {enum.name}::{last};\n"
            f"/// The value's name as users see it, e.g. in JSON.\n"
            f"inline const char* NameOf({enum.name} value) {{\n  switch (value) {{\n{cases}  }}\n"
            f'  return "?";\n}}\n')


def header(schema: Schema) -> str:
    parts = [PREAMBLE]
    parts += [enum_text(e) for e in schema.enums.values()]
    parts += [struct_text(s) for s in schema.structs.values()]
    kinds = ",\n                          ".join(struct for _, struct in schema.kinds)
    parts.append(BODY.replace("@KINDS@", kinds))
    names = ", ".join(f'"{struct}"' for _, struct in schema.kinds)
    parts.append(f"inline constexpr std::string_view kBodyNames[] = {{{names}}};\n"
                 "/// The kind of a body, e.g. \"SubmitLaunch\".\n"
                 "inline std::string_view NameOf(const Body& body) { return kBodyNames[body.index()]; }\n")
    events = ",\n                               ".join(struct for _, struct in schema.events)
    parts.append(f"/// What the head's journal says happened. The index is the kind's number in the journal.\n"
                 f"using EventBody = std::variant<{events}>;\n")
    parts.append("/// One row of the journal; `attachment` holds payloads, results and values.\n"
                 "struct Event {\n  EventBody body;\n  std::string attachment;\n"
                 "  friend bool operator==(const Event& a, const Event& b) {\n"
                 "    return a.body == b.body && a.attachment == b.attachment;\n  }\n};\n")
    names = ", ".join(f'"{struct}"' for _, struct in schema.events)
    parts.append(f"inline constexpr std::string_view kEventNames[] = {{{names}}};\n"
                 "inline std::string_view NameOf(const EventBody& body) { return kEventNames[body.index()]; }\n")
    parts.append("}  // namespace troupe::wire\n")
    return "\n".join(parts)
