"""`${{inputs.x}}`, `${{outputs.x}}` and `$[[...]]` of a command, taken apart and put together.

Pure.

A template is what a text becomes when it is read: pieces of text, places of a value, and parts that
stand there only where all that they name is given. Which path a place becomes is known on the node
alone, so it is put together there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from troupe._code import field_checks

_PLACE = re.compile(r"\$\{\{(.*?)\}\}", re.S)
_WORDS = re.compile(r"^(inputs|outputs|search_space)\.([A-Za-z_][A-Za-z0-9_-]*)$")
_ELSEWHERE = {
    "search_space": "a sweep's values: in the command they are inputs, ${{inputs.lr}}, and "
    "job(lr=Uniform(0.01, 0.1)).sweep(...) varies them",
    "parent": "a pipeline's value: a step binds an input to it, inputs: {x: ${{parent.inputs.x}}}, "
    "and has ${{inputs.x}} in its command",
}


@dataclass(frozen=True)
class Place:
    """The place of an input's or output's value in a template."""

    kind: str  # "inputs" or "outputs"
    name: str


@dataclass(frozen=True)
class Optional:
    """A part that is left out where one of its values is not given."""

    parts: tuple[str | Place, ...]


Template = tuple[str | Place | Optional, ...]


def read(
    text: str,
    what: str,
    inputs: Collection[str],
    outputs: Collection[str],
    space: Collection[str] | None = None,
) -> Template:
    """Return the template of a text, which errors call `what`.

    `space`: names of `${{search_space.NAME}}`, inputs of a sweep's trials; None: it is no trial.

    Raises ValueError for a name that is none, with the nearest, and for brackets without their end.
    """
    found: list[str | Place | Optional] = []
    rest = text
    while "$[[" in rest:
        before, _, rest = rest.partition("$[[")
        inside, end, rest = _inside(rest)
        if not end:
            raise ValueError(f"{what}: $[[ has no ]] after it: {inside[:60]!r}")
        found += _places(before, what, inputs, outputs, space)
        parts = tuple(_places(inside, what, inputs, outputs, space))
        if not any(isinstance(each, Place) for each in parts):
            raise ValueError(
                f"{what}: $[[{inside}]] names no input, so nothing says whether it is to stand "
                "there"
            )
        found.append(Optional(parts))
    return (*found, *_places(rest, what, inputs, outputs, space))


def _inside(text: str) -> tuple[str, str, str]:
    """Return (text before the part's own `]]`, that `]]` or "", text after it)."""
    at = text.find("]]")
    return (text, "", "") if at < 0 else (text[:at], "]]", text[at + 2 :])


def _places(
    text: str,
    what: str,
    inputs: Collection[str],
    outputs: Collection[str],
    space: Collection[str] | None,
) -> list[str | Place]:
    found: list[str | Place] = []
    end = 0
    for match in _PLACE.finditer(text):
        found += [text[end : match.start()], _place(match[1].strip(), what, inputs, outputs, space)]
        end = match.end()
    if "${{" in text[end:]:
        raise ValueError(
            f"{what}: ${{{{ has no }}}} after it: {text[text.index('${{', end) :][:60]!r}"
        )
    return [each for each in (*found, text[end:]) if each != ""]


def _place(
    words: str,
    what: str,
    inputs: Collection[str],
    outputs: Collection[str],
    space: Collection[str] | None,
) -> Place:
    match = _WORDS.match(words)
    if match is None or match[1] == "search_space" and space is None:
        instead = _ELSEWHERE.get(words.split(".")[0])
        raise ValueError(
            f"{what}: ${{{{{words}}}}} is {instead}"
            if instead
            else (
                f"{what}: ${{{{{words}}}}} is nothing that is known: there are "
                f"${{{{inputs.NAME}}}} and ${{{{outputs.NAME}}}}"
            )
        )
    kind, name = match.groups()
    if kind == "search_space":
        if name not in (space or ()):
            raise ValueError(
                f"{what}: ${{{{{words}}}}}: search_space has no "
                f"{name!r}{field_checks.or_nearest(name, space or ())}"
            )
        return Place("inputs", name)
    there = inputs if kind == "inputs" else outputs
    if name not in there:
        raise ValueError(
            f"{what}: ${{{{{words}}}}}: the job has no {kind[:-1]} "
            f"{name!r}{field_checks.or_nearest(name, there)}"
        )
    return Place(kind, name)


def named(template: Template, *, required: bool) -> set[Place]:
    """The places in it; `required`: only those outside of optional parts."""
    found = {each for each in template if isinstance(each, Place)}
    if not required:
        found |= {
            each
            for part in template
            if isinstance(part, Optional)
            for each in part.parts
            if isinstance(each, Place)
        }
    return found


def put_together(template: Template, value_of: Callable[[Place], str | None]) -> str:
    """The text, with the value of each place; an optional part with a place that has None is left
    out."""
    return "".join(_one(part, value_of) for part in template)


def _one(part: str | Place | Optional, value_of: Callable[[Place], str | None]) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Place):
        return value_of(part) or ""
    values: Mapping[Place, str | None] = {
        each: value_of(each) for each in part.parts if isinstance(each, Place)
    }
    if None in values.values():
        return ""
    return "".join(each if isinstance(each, str) else values[each] or "" for each in part.parts)
