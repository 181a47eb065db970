"""Emits python_convert.{h,cc}: struct <-> dict, for the extension module.

In Python: ids are hex text ("" when nil), enums their lower-case names, Data bytes, lists lists,
structs dicts with snake_case keys. A key that no field has is a TypeError that names it.
"""

from schema import Schema, Type

HEADER = """// Generated from runtime/wire/schema by generate.py; do not edit.
// Python view of the control messages. Every function needs the GIL; on error a Python exception is
// set and null or false returned.
#pragma once

#include <Python.h>

#include <string>

#include "runtime/wire/messages.h"

namespace troupe::wire {

/// A new dict with the body's fields.
PyObject* BodyToPython(const Body& body);
/// The body named `kind` ("SubmitLaunch") filled from `fields`, a dict; absent keys keep defaults.
bool BodyFromPython(const std::string& kind, PyObject* fields, Body& out);

}  // namespace troupe::wire
"""


def header(schema: Schema) -> str:
    return HEADER


def to_call(t: Type, source: str) -> str:
    if t.kind == "list":
        return (
            f"ListToPython({source}, [](const auto& item) {{ return {to_call(t.item, 'item')}; }})"
        )
    return {
        "bool": f"PyBool_FromLong({source})",
        "float": f"PyFloat_FromDouble({source})",
        "int": f"IntToPython({source})",
        "text": f"TextToPython({source})",
        "data": f"DataToPython({source})",
        "id": f"IdToPython({source})",
        "enum": f"EnumToPython({source}, k{t.name}Last)",
    }.get(t.kind, f"ToPython({source})")


def from_call(t: Type, target: str) -> str:
    if t.kind == "list":
        return (
            f"ListFromPython(value, {target}, [](PyObject* value, auto& item) "
            f"{{ return {from_call(t.item, 'item')}; }})"
        )
    return {
        "bool": f"BoolFromPython(value, {target})",
        "float": f"FloatFromPython(value, {target})",
        "int": f"IntFromPython(value, {target})",
        "text": f"TextFromPython(value, {target})",
        "data": f"DataFromPython(value, {target})",
        "id": f"IdFromPython(value, {target})",
        "enum": f"EnumFromPython(value, {target}, k{t.name}Last)",
    }.get(t.kind, f"FromPython(value, {target})")


def struct_functions(struct) -> str:
    keys = "".join(
        f'  static PyObject* const {f.snake}_key = Interned("{f.snake}");\n' for f in struct.fields
    )
    sets = "".join(
        f"  if (!Put(dict, {f.snake}_key, {to_call(f.type, 'in.' + f.snake)})) return nullptr;\n"
        for f in struct.fields
    )
    gets = "".join(
        f'    if (name == "{f.snake}"sv) return {from_call(f.type, "out." + f.snake)};\n'
        for f in struct.fields
    )
    return (
        f"PyObject* ToPython(const {struct.name}& in) {{\n{keys}  PyObject* dict = PyDict_New();\n"
        f"  if (dict == nullptr) return nullptr;\n{sets}  return dict;\n}}\n\n"
        f"bool FromPython(PyObject* fields, {struct.name}& out) {{\n"
        f'  return EachItem(fields, "{struct.name}", [&](std::string_view name, PyObject* value) '
        f"{{\n"
        f'{gets}    return UnknownKey("{struct.name}", name);\n  }});\n}}\n'
    )


def in_messages(schema: Schema) -> list:
    """The structs that some message is or holds, in the order of the schema."""
    wanted: set[str] = set()

    def visit(name: str) -> None:
        if name in wanted:
            return
        wanted.add(name)
        for field in schema.structs[name].fields:
            inner = field.type.item if field.type.kind == "list" else field.type
            if inner.kind == "struct":
                visit(inner.name)

    for _, name in schema.kinds:
        visit(name)
    return [struct for name, struct in schema.structs.items() if name in wanted]


def source(schema: Schema) -> str:
    parts = [
        "// Generated from runtime/wire/schema by generate.py; do not edit.",
        '#include "runtime/wire/python_convert.h"',
        "",
        '#include "runtime/wire/python_support.h"',
        "",
        "namespace troupe::wire {",
        "namespace {",
        "",
        'using std::string_view_literals::operator""sv;',
        "",
    ]
    structs = in_messages(schema)
    for struct in structs:
        parts.append(
            f"PyObject* ToPython(const {struct.name}& in);\n"
            f"bool FromPython(PyObject* fields, {struct.name}& out);"
        )
    parts += [struct_functions(s) for s in structs]
    parts.append("}  // namespace\n")
    parts.append(
        "PyObject* BodyToPython(const Body& body) {\n"
        "  return Visit([](const auto& value) { return ToPython(value); }, body);\n}\n"
    )
    rows = "".join(
        f'  if (kind == "{struct}"sv) return FromPython(fields, out.Emplace<{struct}>());\n'
        for _, struct in schema.kinds
    )
    parts.append(
        f"bool BodyFromPython(const std::string& kind, PyObject* fields, Body& out) {{\n{rows}"
        '  PyErr_Format(PyExc_ValueError, "no control message is called %s", kind.c_str());\n'
        "  return false;\n}\n\n}  // namespace troupe::wire\n"
    )
    return "\n".join(parts)
