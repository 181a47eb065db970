"""Reads the subset of Cap'n Proto's schema language that the control messages use."""

import dataclasses
import pathlib
import re

INTEGERS = {
    f"{sign}Int{bits}": f"std::{'u' if sign else ''}int{bits}_t"
    for sign in ("U", "")
    for bits in (8, 16, 32, 64)
}
ORDER = ["types", "session", "node", "client", "process", "journal"]


@dataclasses.dataclass
class Type:
    kind: str  # bool, int, float, text, data, id, enum, struct, list
    name: str = ""  # a type of the schema: UInt32, NodeId, Failure
    item: "Type | None" = None


@dataclasses.dataclass
class Field:
    name: str  # as in the schema: camelCase
    type: Type
    default: str | None

    @property
    def snake(self) -> str:
        return snake(self.name)


@dataclasses.dataclass
class Struct:
    name: str
    file: str
    fields: list[Field]


@dataclasses.dataclass
class Enum:
    name: str
    file: str
    values: list[str]


@dataclasses.dataclass
class Schema:
    files: list[str]
    structs: dict[str, Struct]
    enums: dict[str, Enum]
    ids: list[str]
    kinds: list[tuple[str, str]]  # (union field, struct name), in wire order
    events: list[tuple[str, str]]  # members of the journal's Event


def snake(name: str) -> str:
    text = re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
    return text + "_" if text in ("namespace", "none") else text


def resolve(text: str, schema: Schema) -> Type:
    text = text.strip()
    match = re.fullmatch(r"List\((.+)\)", text)
    if match:
        return Type("list", item=resolve(match.group(1), schema))
    text = text.split(".")[-1]
    simple = {"Bool": "bool", "Float64": "float", "Text": "text", "Data": "data"}
    if text in simple:
        return Type(simple[text], text)
    if text in INTEGERS:
        return Type("int", text)
    if text in schema.ids:
        return Type("id", text)
    if text in schema.enums:
        return Type("enum", text)
    if text in schema.structs:
        return Type("struct", text)
    raise SystemExit(f"schema: unknown type {text!r} (declared before its use?)")


def parse_fields(body: str, schema: Schema, where: str) -> list[Field]:
    fields, numbers = [], []
    for part in filter(None, (p.strip() for p in body.split(";"))):
        match = re.fullmatch(r"(\w+)\s*@(\d+)\s*:\s*([\w.()]+)(?:\s*=\s*(\S+))?", part)
        if not match:
            raise SystemExit(f"schema: {where}: cannot read {part!r}")
        if not match.group(1).startswith("retired"):  # a number that is not given again
            fields.append(Field(match.group(1), resolve(match.group(3), schema), match.group(4)))
        numbers.append(int(match.group(2)))
    if sorted(numbers) != list(range(len(numbers))):
        raise SystemExit(f"schema: {where}: field numbers must be 0..{len(numbers) - 1}")
    return fields


def parse_file(text: str, file: str, schema: Schema) -> None:
    text = re.sub(r"#[^\n]*", "", text)
    schema.ids += re.findall(r"using (\w+) = Id;", text)
    for kind, name, body in re.findall(r"\b(struct|enum)\s+(\w+)\s*\{([^{}]*)\}", text):
        if kind == "enum":
            values = re.findall(r"(\w+)\s*@\d+\s*;", body)
            schema.enums[name] = Enum(name, file, values)
        elif name != "Id":
            # Registered before its fields are read: a struct may list itself.
            schema.structs[name] = Struct(name, file, [])
            schema.structs[name].fields = parse_fields(body, schema, f"{file}.{name}")


def union_of(text: str, file: str, first: int, schema: Schema) -> list[tuple[str, str]]:
    """(field, struct name) of the file's one union, whose numbers run from `first`."""
    union = re.search(r"union\s*\{([^{}]*)\}", re.sub(r"#[^\n]*", "", text)).group(1)
    kinds = []
    for name, number, type_name in re.findall(r"(\w+)\s*@(\d+)\s*:\s*([\w.]+)\s*;", union):
        struct = type_name.split(".")[-1]
        if struct not in schema.structs or int(number) != len(kinds) + first:
            raise SystemExit(f"schema: {file}.capnp: {name}: unknown struct or number out of order")
        kinds.append((name, struct))
    return kinds


def load(folder: pathlib.Path) -> Schema:
    schema = Schema(ORDER + ["message"], {}, {}, [], [], [])
    for file in ORDER:
        parse_file((folder / f"{file}.capnp").read_text(), file, schema)
    schema.kinds = union_of((folder / "message.capnp").read_text(), "message", 2, schema)
    schema.events = union_of((folder / "journal.capnp").read_text(), "journal", 0, schema)
    return schema
