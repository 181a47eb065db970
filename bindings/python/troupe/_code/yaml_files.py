"""YAML files that a person writes, read by PyYAML with the position of each value.

Errors name file, line and column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from troupe import exceptions

_ERRORS_SHOWN_MAX = 40

Place = tuple[Any, ...]
"""Keys and indexes that lead to a value from the top of its file: ("inputs", "data", "path")."""


@dataclass(frozen=True)
class Document:
    """A file that was read.

    Lines and columns begin at 1. `set_to`: places whose values were given by the caller instead of
    by the file.
    """

    name: str
    value: Any
    keys: Mapping[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)
    values: Mapping[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)
    set_to: set[tuple[str, ...]] = field(default_factory=set)

    def position(self, place: Place = (), *, key: bool = False) -> tuple[int, int]:
        """Return (line, column) of a value, or of its key; where the file has neither, of the
        nearest mapping or list around it."""
        place = _as_texts(place)
        while place:
            first, second = (self.keys, self.values) if key else (self.values, self.keys)
            found = first.get(place) or second.get(place)
            if found is not None:
                return found
            place, key = place[:-1], False
        return self.values.get((), (1, 1))

    def where(self, place: Place = (), *, key: bool = False) -> str:
        """Return `FILE:LINE:COLUMN`; of a value that the caller gave, `FILE with FIELD set`."""
        for length in range(1, len(place) + 1):
            if _as_texts(place[:length]) in self.set_to:
                return f"{self.name} with {'.'.join(_as_texts(place[:length]))} set"
        line, column = self.position(place, key=key)
        return f"{self.name}:{line}:{column}"

    def set(self, path: str, value: Any) -> None:
        """Set the field at a dotted path, such as `inputs.data.path`.

        A literal on the way gives way to a mapping.
        """
        set_field(self.value, path, value)
        self.set_to.add(tuple(path.split(".")))


class Recorder(Protocol):
    """Records errors of values of a file, each at its place."""

    def __len__(self) -> int:
        """Return how many errors are recorded."""

    def add(self, error: Exception, *place: Any, key: bool = False) -> None:
        """Record an error of the value at `place`, or of its key."""

    def at(self, *place: Any, key: bool = False) -> AbstractContextManager[None]:
        """Record what the block raises."""

    def inside(self, *place: Any) -> Recorder:
        """Return a recorder of errors below `place`."""


class Faults:
    """Errors in a file, gathered by `at`, until `raise_any` raises one ValueError with all of them
    in the file's order."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._found: dict[str, tuple[tuple[int, int], Exception]] = {}  # by what is said of each

    def __len__(self) -> int:
        return len(self._found)

    def add(self, error: Exception, *place: Any, key: bool = False) -> None:
        """Record an error of the value at `place`, or of its key."""
        self._found.setdefault(
            f"{self._document.where(place, key=key)}: {error}",
            (self._document.position(place, key=key), error),
        )

    @contextmanager
    def at(self, *place: Any, key: bool = False) -> Iterator[None]:
        """Record what the block raises instead of raising it: TypeError, ValueError,
        NotImplementedError and FileNotFoundError."""
        try:
            yield
        except (TypeError, ValueError, NotImplementedError, FileNotFoundError) as error:
            self.add(error, *place, key=key)

    def inside(self, *place: Any) -> FaultsInside:
        """Return a recorder of errors below `place`."""
        return FaultsInside(self, place)

    def raise_any(self, *others: Faults) -> None:
        """Raise what was recorded: FileNotFoundError where nothing else is wrong than files that
        are not there, else ValueError.

        `others`: errors in files that this one names, which are raised with it.
        """
        found = [
            item
            for each in (self, *others)
            for item in sorted(each._found.items(), key=lambda item: item[1][0])
        ]
        if not found:
            return
        lines = list(dict.fromkeys(text for text, _ in found))
        kind = (
            FileNotFoundError
            if all(isinstance(error, FileNotFoundError) for _, (_, error) in found)
            else ValueError
        )
        if len(lines) == 1:
            raise kind(lines[0]) from None
        shown = [
            *lines[:_ERRORS_SHOWN_MAX],
            *(
                [f"and {len(lines) - _ERRORS_SHOWN_MAX} more"]
                if len(lines) > _ERRORS_SHOWN_MAX
                else []
            ),
        ]
        raise kind(
            "\n  ".join([f"{self._document.name} has {len(lines)} errors", *shown])
        ) from None


class FaultsInside:
    """Records errors below a place of a file, as its Faults do."""

    def __init__(self, faults: Faults, place: Place) -> None:
        self._faults, self._place = faults, place

    def __len__(self) -> int:
        return len(self._faults)

    def add(self, error: Exception, *place: Any, key: bool = False) -> None:
        """See Faults."""
        self._faults.add(error, *self._place, *place, key=key)

    @contextmanager
    def at(self, *place: Any, key: bool = False) -> Iterator[None]:
        """See Faults."""
        with self._faults.at(*self._place, *place, key=key):
            yield

    def inside(self, *place: Any) -> FaultsInside:
        """See Faults."""
        return FaultsInside(self._faults, (*self._place, *place))


def read(path: str) -> Any:
    """Return what a file holds. Raises as `read_document`."""
    return read_document(path).value


def read_document(path: str) -> Document:
    """Return what a file holds, with positions.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no YAML, with line and column; also for a key that stands in a mapping
            twice, and for bytes that are no UTF-8.
        MissingPackageError: if PyYAML is not installed.
    """
    yaml = _module()
    with open(path, "rb") as file:
        data = file.read()
    try:
        loader = _loader(yaml)(data)
        try:
            node = loader.get_single_node()
            document = (
                Document(path, None)
                if node is None
                else Document(path, loader.construct_document(node), *_positions(node))
            )
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark is not None else path
        line = (
            data.splitlines()[mark.line]
            if mark is not None and mark.line < len(data.splitlines())
            else b""
        )
        tab = (
            "\n  there is a tab: YAML is indented by spaces alone"
            if line.lstrip(b" ").startswith(b"\t")
            else ""
        )
        raise ValueError(f"{where}: {getattr(error, 'problem', None) or error}{tab}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text: {error.reason} at byte {error.start}") from None
    except (
        ValueError,
        TypeError,
        RecursionError,
    ) as error:  # a date that is none, a key that is a mapping, nesting without end
        raise ValueError(f"{path} is no YAML that can be read: {error}") from None
    return document


def _as_texts(place: Place) -> tuple[str, ...]:
    return tuple(map(str, place))


def _positions(
    node: Any,
) -> tuple[dict[tuple[str, ...], tuple[int, int]], dict[tuple[str, ...], tuple[int, int]]]:
    """Return (those of keys, those of values) of a document.

    What an alias names again has the positions of its first place alone.
    """
    keys: dict[tuple[str, ...], tuple[int, int]] = {}
    values: dict[tuple[str, ...], tuple[int, int]] = {}
    seen: set[int] = set()
    left: list[tuple[tuple[str, ...], Any]] = [((), node)]
    while left:
        place, each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        values[place] = (each.start_mark.line + 1, each.start_mark.column + 1)
        if each.id == "sequence":
            left += [((*place, str(index)), inside) for index, inside in enumerate(each.value)]
        elif each.id == "mapping":
            for key, inside in each.value:
                name = key.value if key.id == "scalar" else ""
                keys[*place, name] = (key.start_mark.line + 1, key.start_mark.column + 1)
                left.append(((*place, name), inside))
    return keys, values


def value_of(text: str) -> Any:
    """Return the value that `text` stands for in a file: `3`, `true`, `[1, 2]`, or the text
    itself."""
    yaml = _module()
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def set_field(fields: dict[str, Any], path: str, value: Any) -> None:
    """Set the field at a dotted path, such as `inputs.data.path`.

    A literal on the way gives way to a mapping.
    """
    *folders, last = path.split(".")
    for each in folders:
        inside = fields.get(each)
        fields[each] = dict(inside) if isinstance(inside, Mapping) else {}
        fields = fields[each]
    fields[last] = value


def text_of(value: Any) -> str:
    """Return `value` as YAML text, its keys in their order."""
    return str(_module().safe_dump(value, sort_keys=False, allow_unicode=True))


def _module() -> Any:
    try:
        import yaml
    except ImportError:
        raise exceptions.MissingPackageError(
            "YAML files need PyYAML, which is not installed: pip install pyyaml", name="yaml"
        ) from None
    return yaml


def _loader(yaml: Any) -> Any:
    """Return PyYAML's safe loader, changed to refuse a key that is there twice instead of taking
    the last."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        pass

    def once(loader: Any, node: Any) -> Any:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value!r} is there twice", key.start_mark
                )
            seen.add(key.value if isinstance(key.value, str) else "")
        return yaml.SafeLoader.construct_yaml_map(loader, node)

    Loader.add_constructor("tag:yaml.org,2002:map", once)
    return Loader
