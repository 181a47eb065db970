"""Emits troupe/_wire/__init__.py: the values of the schema's enums as they stand in Python's dicts.

The file is kept in the tree, because the package is read without a build; `tests/lint/facts.py`
compares it with the schema.
"""

from schema import Schema, snake

HEADER = '''"""Values of the enums of the wire schema, as messages have them in Python.

Generated from runtime/wire/schema by `generate.py SCHEMA_DIR --names FILE`; do not edit.
"""

from typing import Final
'''


def constants(name: str, values: list[str]) -> str:
    """Return an enum as a class of constants: a constant costs nothing at import, and a message
    holds the plain string."""
    names = [snake(value).rstrip("_") for value in values]
    lines = "".join(f'    {each.upper()}: Final = "{each}"\n' for each in names)
    return f'\n\nclass {name}:\n    """Values of the schema\'s enum {name}."""\n\n{lines}'


def source(schema: Schema) -> str:
    return HEADER + "".join(constants(each.name, each.values) for each in schema.enums.values())
