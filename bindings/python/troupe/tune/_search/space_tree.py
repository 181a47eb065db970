"""Pure.

A `param_space` as a tree: what is wrong with it, how many grid points it has, and one configuration
of it.

A configuration is made in two steps: the grids' values take their places, then domains are drawn,
in the order in which they are written, and functions of the rest last. Values that hold domains
themselves are drawn in turn. A grid that a function returns is there for who draws (`variants`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from troupe._base.checks import or_nearest
from troupe.tune._search.domains import Categorical, Domain, Function, grid_values

Path = tuple[Any, ...]


def named(path: Path) -> str:
    """`model/lr`: a parameter as errors, tables and Optuna call it."""
    return "/".join(map(str, path))


def items(node: Any) -> Iterator[tuple[Any, Any]]:
    """The children of a dict, a list or a tuple, with their keys; nothing else has any."""
    if isinstance(node, Mapping):
        yield from node.items()
    elif isinstance(node, (list, tuple)):
        yield from enumerate(node)


def leaves(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """All that is no dict, list or tuple with something in it; grids are leaves."""
    inside = list(items(node)) if grid_values(node) is None else []
    if not inside:
        yield path, node
    for key, value in inside:
        yield from leaves(value, (*path, key))


def faults(
    node: Any, path: Path = (), *, in_choice: bool = False, above: tuple[int, ...] = ()
) -> Iterator[str]:
    """Yield the faults of a space, each with the parameter's path."""
    where = f"{named(path)}: " if path else ""
    if id(node) in above:
        yield f"{where}it contains itself"
        return
    above = (*above, id(node))
    values = grid_values(node)
    if values is not None:
        if in_choice:
            yield (
                f"{where}there is a grid inside a choice: a grid is for all trials, so make a "
                "grid of the choice too"
            )
        elif not values:
            yield f"{where}grid_search({node['grid_search']!r}) has no values"
        for value in values:
            yield from faults(value, path, above=above)
    elif isinstance(node, Domain):
        if fault := node.fault():
            yield f"{where}{node!r}: {fault}"
        elif isinstance(node, Categorical):
            for value in node.categories:
                yield from faults(value, path, in_choice=True, above=above)
    else:
        for key, value in items(node):
            yield from faults(value, (*path, key), in_choice=in_choice, above=above)


def check(space: Any, what: str = "param_space") -> None:
    """Raises TypeError or ValueError for what is no space, naming each parameter that is wrong."""
    if not isinstance(space, Mapping):
        raise TypeError(f"{what} must be a dict of parameters, not {space!r}")
    if found := list(dict.fromkeys(faults(space))):
        raise ValueError(
            f"{what}: {found[0]}" if len(found) == 1 else "\n  ".join([f"{what}:", *found])
        )


def size(node: Any) -> int:
    """How many grid points it has; 1 without a grid."""
    values = grid_values(node)
    if values is not None:
        return sum(size(value) for value in values)
    product = 1
    for _, value in items(node):
        product *= size(value)
    return product


def at_grid_point(node: Any, index: int, path: Path = ()) -> tuple[Any, list[Path]]:
    """The space at its grid point of that number, and the grids' paths; nothing of the other points
    is made.

    The grid whose path sorts first changes fastest.
    """
    grids = sorted(
        ((each, value) for each, value in leaves(node) if grid_values(value) is not None),
        key=lambda one: [str(key) for key in one[0]],
    )
    chosen: dict[Path, Any] = {}
    paths: list[Path] = []
    for place, grid in grids:
        values = grid_values(grid) or []
        index, inside = divmod(index, size(grid))
        for value in values:
            if inside < size(value):
                chosen[place], below = at_grid_point(value, inside, (*path, *place))
                paths += [(*path, *place), *below]
                break
            inside -= size(value)
    return replaced(node, chosen), paths


def replaced(node: Any, values: Mapping[Path, Any], path: Path = ()) -> Any:
    """A copy of its dicts, lists and tuples with these values at their paths."""
    if path in values:
        return values[path]
    if isinstance(node, Mapping):
        return {key: replaced(value, values, (*path, key)) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        made = [replaced(value, values, (*path, key)) for key, value in enumerate(node)]
        return made if isinstance(node, list) else _tuple(node, made)
    return node


def _tuple(like: tuple[Any, ...], values: list[Any]) -> tuple[Any, ...]:
    return type(like)(*values) if hasattr(like, "_fields") else tuple(values)


class _Needs(LookupError):
    """A function has asked for a parameter that has no value yet."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{named(path)} has no value yet")
        self.path = path


class Spec(Mapping[str, Any]):
    """The configuration so far, as functions of `sample_from` see it: `spec.config.x`, `spec["x"]`,
    `spec.x`."""

    def __init__(self, raw: Mapping[str, Any], path: Path = ()) -> None:
        self._raw, self._path = raw, path

    def __getitem__(self, key: Any) -> Any:
        value = self._raw[key]
        for place, each in leaves(value, (*self._path, key)):
            if (isinstance(each, Domain) or grid_values(each) is not None) and (
                each is value or not isinstance(value, Mapping)
            ):
                raise _Needs(place)
        return Spec(value, (*self._path, key)) if isinstance(value, Mapping) else value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "config" and not self._path:
            return self
        if name not in self._raw:
            raise AttributeError(
                f"there is no parameter {named((*self._path, name))!r}{or_nearest(name, self._raw)}"
            )
        return self[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


def draw(
    space: Mapping[str, Any], generator: random.Random, what: str = "param_space"
) -> tuple[dict[str, Any], list[Path]]:
    """A configuration of a space without grids, and the paths of what was drawn.

    Raises ValueError for functions that fail, or that need each other, and for one that returns a
    grid.
    """
    config, drawn = draw_to_grids(space, generator, what)
    if grids := grid_paths(config):
        raise ValueError(
            f"{what}: {named(grids[0])}: a function of sample_from returned a grid, of which a "
            "searcher cannot propose each point: take "
            "tune.choice() there, or no search_alg"
        )
    return config, drawn


def grid_paths(config: Any) -> list[Path]:
    """Return the paths of all grids."""
    return [path for path, node in leaves(config) if grid_values(node) is not None]


def draw_to_grids(
    space: Mapping[str, Any], generator: random.Random, what: str = "param_space"
) -> tuple[dict[str, Any], list[Path]]:
    """Draw all that can be drawn.

    Functions may return grids: these, and functions that need their values, are left in the
    configuration.

    Return the configuration and the paths of what was drawn. Raises ValueError for functions that
    fail, that need each other, or that return a grid with something wrong.
    """
    config: Any = dict(space)
    drawn: dict[Path, None] = {}
    while found := [(path, node) for path, node in leaves(config) if isinstance(node, Domain)]:
        plain = [(path, node) for path, node in found if not isinstance(node, Function)]
        values = (
            {path: node.draw(generator) for path, node in plain}
            if plain
            else _of_functions(config, found, generator, what)
        )
        if not values:
            break
        drawn.update(dict.fromkeys(values))
        config = replaced(config, values)
    for path in grid_paths(config):
        for fault in faults(value_at(config, path), path):
            raise ValueError(f"{what}: {fault}")
    return replaced(config, {}), list(drawn)


def _of_functions(
    config: Any, found: list[tuple[Path, Any]], generator: random.Random, what: str
) -> dict[Path, Any]:
    """The values of those functions that need none of the others; none where they all wait for
    grids. Raises ValueError."""
    values: dict[Path, Any] = {}
    needs: list[str] = []
    for path, function in found:
        try:
            value = function.draw(generator, Spec(config))
        except _Needs as missing:
            needs.append(f"{named(path)} needs {named(missing.path)}")
        except Exception as error:
            raise ValueError(
                f"{what}: {named(path)}: {function!r} raised {type(error).__name__}: {error}"
            ) from error
        else:
            values[path] = value._raw if isinstance(value, Spec) else value
    if not values and not grid_paths(config):
        raise ValueError(f"{what}: functions need each other's values: {', '.join(needs)}")
    return values


def value_at(config: Any, path: Path) -> Any:
    """Return the value at a path."""
    for key in path:
        config = config[key]
    return config


def overlaid(space: Mapping[str, Any], point: Any, what: str) -> dict[str, Any]:
    """The space with the values of a point instead of what stands there.

    Raises TypeError, and ValueError for a name that the space has not.
    """
    if not isinstance(point, Mapping):
        raise TypeError(f"{what}: a point is a dict of parameters' values, not {point!r}")
    return _overlaid(space, point, (), what)


def _overlaid(space: Any, point: Mapping[str, Any], path: Path, what: str) -> dict[str, Any]:
    made = dict(space)
    for key, value in point.items():
        if key not in made:
            raise ValueError(
                f"{what}: {named((*path, key))!r} is no parameter of "
                f"param_space{or_nearest(key, made)}"
            )
        inside = (
            isinstance(made[key], Mapping)
            and grid_values(made[key]) is None
            and isinstance(value, Mapping)
        )
        made[key] = _overlaid(made[key], value, (*path, key), what) if inside else value
    return made
