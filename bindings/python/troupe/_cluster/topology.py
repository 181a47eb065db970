"""Positions of nodes as text, and reservations as a picture: pure functions over `state`'s data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from troupe._cluster import fabric, resources

LEVELS = ("block", "rack", "nvlink_domain")
"""Labels that say where a node stands, widest first."""
_COLOURS = ("#4878a8", "#c8743c", "#5a9a5a", "#b05a78", "#8068b0", "#8a7a4a", "#3c9a9a", "#a85048")
_CELL, _GAP, _HOST_WIDTH, _LINE = 16, 3, 172, 16
Path = tuple[tuple[str, str], ...]


def path_of(node: Mapping[str, Any]) -> Path:
    """The domains a node is in, widest first: (("rack", "r1"), ("nvlink_domain", "n3"))."""
    return tuple((level, node["labels"][level]) for level in LEVELS if node["labels"].get(level))


def text(nodes: Iterable[Mapping[str, Any]]) -> str:
    """A tree of domains with the nodes in them, what of each is free, and how it is connected."""
    lines: list[str] = []
    before: Path = ()
    for node in _in_order(nodes):
        path = path_of(node)
        same = 0
        while same < min(len(path), len(before)) and path[same] == before[same]:
            same += 1
        lines += [
            f"{'  ' * depth}{level} {name}" for depth, (level, name) in list(enumerate(path))[same:]
        ]
        lines.append(f"{'  ' * len(path)}{node['name']}  {node['state']}  {_free(node)}")
        lines += [f"{'  ' * len(path)}    {each}" for each in fabric.lines(node["network"])]
        before = path
    return "\n".join(lines)


def svg(info: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> str:
    """A picture of a reservation (a GroupInfo that is created): every domain it has bundles in,
    with all of its nodes.

    A node is a box with a square for each of its GPUs, coloured and numbered where a bundle has it,
    and a chip for each bundle. Domains without a bundle are counted.
    """
    bundles: dict[str, list[Mapping[str, Any]]] = {}
    for place in info["places"]:
        bundles.setdefault(place["node"], []).append(place)
    used = {path_of(node) for node in nodes if node["node_id"] in bundles}
    shown: dict[Path, list[Mapping[str, Any]]] = {}
    for node in _in_order(nodes):
        if path_of(node) in used:
            shown.setdefault(path_of(node), []).append(node)
    left_out = len({path_of(node) for node in nodes} - used)
    title = (
        f"{info['name'] or info['group'][:8]}: {len(info['places'])} bundles on {len(bundles)} "
        f"nodes in {len(used)} "
        f"domain{'s' * (len(used) != 1)}"
        + (f"; {left_out} without any not drawn" if left_out else "")
    )
    parts: list[str] = [_words(8, 18, title, bold=True)]
    top, width = 28, 8 * len(title)
    for path, hosts in shown.items():
        columns = min(len(hosts), 8)
        heights = [
            max(_host_height(node, bundles) for node in hosts[row : row + columns])
            for row in range(0, len(hosts), columns)
        ]
        box = (columns * (_HOST_WIDTH + 8) + 8, sum(heights) + 8 * len(heights) + 24)
        parts.append(_box(8, top, *box, "#f4f4f0", "#888"))
        parts.append(
            _words(
                16, top + 15, " / ".join(f"{level} {name}" for level, name in path) or "no labels"
            )
        )
        y = top + 22
        for row, height in enumerate(heights):
            for column, node in enumerate(hosts[row * columns : (row + 1) * columns]):
                parts += _host(
                    16 + column * (_HOST_WIDTH + 8),
                    y,
                    height,
                    node,
                    bundles.get(node["node_id"], []),
                )
            y += height + 8
        top += box[1] + 8
        width = max(width, box[0] + 16)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" viewBox="0 0 '
        f'{width} {top}" '
        'font-family="sans-serif" font-size="11">\n'
        + f'<rect width="{width}" height="{top}" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _in_order(nodes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(
        (node for node in nodes if node["state"] != "dead"),
        key=lambda node: (*(node["labels"].get(level, "") for level in LEVELS), node["name"]),
    )


def _free(node: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{node['free'].get(name, 0):g} of {total:g} {name} free"
        for name, total in node["resources"].items()
        if name != "memory"
    )


def _gpus(node: Mapping[str, Any]) -> int:
    return int(node["resources"].get("GPU", 0))


def _rows(count: int, each: int) -> int:
    return (count + each - 1) // each


def _host_height(node: Mapping[str, Any], bundles: Mapping[str, list[Mapping[str, Any]]]) -> int:
    cells = (_rows(_gpus(node), 8) + _rows(len(bundles.get(node["node_id"], [])), 8)) * (
        _CELL + _GAP
    )
    return 2 * _LINE + 8 + cells


def _host(
    x: int, y: int, height: int, node: Mapping[str, Any], places: list[Mapping[str, Any]]
) -> Iterator[str]:
    yield _box(x, y, _HOST_WIDTH, height, "white", "#444" if places else "#bbb")
    yield _words(x + 6, y + 13, node["name"], bold=bool(places))
    free = ", ".join(
        f"{node['free'].get(name, 0):g}/{node['resources'][name]:g} {name}"
        for name in ("GPU", "CPU")
        if node["resources"].get(name)
    )
    yield _words(x + 6, y + 13 + _LINE, f"free: {free}" if free else node["state"], size=9)
    top = y + 2 * _LINE + 2
    owners = {gpu: place["index"] for place in places for gpu in place["gpu_ids"]}
    for gpu in range(_gpus(node)):
        at = (x + 6 + gpu % 8 * (_CELL + _GAP), top + gpu // 8 * (_CELL + _GAP))
        yield from _cell(
            *at,
            owners.get(gpu),
            f"GPU {gpu}" + (f": bundle {owners[gpu]}" if gpu in owners else ""),
        )
    top += _rows(_gpus(node), 8) * (_CELL + _GAP)
    for number, place in enumerate(places):
        at = (x + 6 + number % 8 * (_CELL + _GAP), top + number // 8 * (_CELL + _GAP))
        what = resources.describe(resources.from_wire(place["resources"]))
        yield from _cell(*at, place["index"], f"bundle {place['index']}: {what}", round_=True)


def _cell(x: int, y: int, bundle: int | None, title: str, *, round_: bool = False) -> Iterator[str]:
    colour = "#e8e8e8" if bundle is None else _COLOURS[bundle % len(_COLOURS)]
    yield (
        f'<g><title>{escape(title)}</title><rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" '
        f'rx="{_CELL // 2 if round_ else 2}" fill="{colour}"/>'
    )
    if bundle is not None:
        yield (
            f'<text x="{x + _CELL // 2}" y="{y + 12}" fill="white" font-size="9" '
            f'text-anchor="middle">{bundle}</text>'
        )
    yield "</g>"


def _box(x: int, y: int, width: int, height: int, fill: str, line: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{fill}" '
        f'stroke="{line}"/>'
    )


def _words(x: int, y: int, words: str, *, bold: bool = False, size: int = 11) -> str:
    return (
        f'<text x="{x}" y="{y}" '
        f'font-size="{size}"{" font-weight=" + chr(34) + "bold" + chr(34) if bold else ""}>'
        f"{escape(words)}</text>"
    )
