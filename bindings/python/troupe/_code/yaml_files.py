"""YAML files that a person writes, read by PyYAML. Errors name file and line."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_INSTALL = "pip install pyyaml"


def read(path: str) -> Any:
    """Return what a file holds.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no YAML, with the line; also for a key that stands in a mapping twice, and for bytes that are no UTF-8.
        ImportError: if PyYAML is not installed.
    """
    yaml = _module()
    with open(path, "rb") as file:
        data = file.read()
    try:
        return yaml.load(data, _loader(yaml))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark is not None else path
        line = data.splitlines()[mark.line] if mark is not None and mark.line < len(data.splitlines()) else b""
        tab = "\n  there is a tab: YAML is indented by spaces alone" if line.lstrip(b" ").startswith(b"\t") else ""
        raise ValueError(f"{where}: {getattr(error, 'problem', None) or error}{tab}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text: {error.reason} at byte {error.start}") from None


def value_of(text: str) -> Any:
    """Return the value that `text` stands for in a file: `3`, `true`, `[1, 2]`, or the text itself."""
    yaml = _module()
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def set_field(fields: dict[str, Any], path: str, value: Any) -> None:
    """Set the field at a dotted path, such as `inputs.data.path`. A literal on the way gives way to a mapping."""
    *folders, last = path.split(".")
    for each in folders:
        inside = fields.get(each)
        fields[each] = dict(inside) if isinstance(inside, Mapping) else {}
        fields = fields[each]
    fields[last] = value


def text_of(value: Any) -> str:
    """Return `value` as YAML text, its keys in their order."""
    return _module().safe_dump(value, sort_keys=False, allow_unicode=True)


def _module() -> Any:
    try:
        import yaml
    except ImportError:
        raise ImportError(f"YAML files need PyYAML, which is not installed: {_INSTALL}", name="yaml") from None
    return yaml


def _loader(yaml: Any) -> Any:
    """Return PyYAML's safe loader, changed to refuse a key that is there twice instead of taking the last."""
    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        pass

    def once(loader: Any, node: Any) -> Any:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is there twice", key.start_mark)
            seen.add(key.value if isinstance(key.value, str) else "")
        return yaml.SafeLoader.construct_yaml_map(loader, node)

    Loader.add_constructor("tag:yaml.org,2002:map", once)
    return Loader
