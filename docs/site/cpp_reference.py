"""Writes the reference pages of the public C++ headers, from their declarations and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import markdown

ORDER = "cluster actor ref value register placement_group launch train error"
INTERNAL = re.compile(
    r"\b(?:Throw\w+|ClassEntry|MethodEntry|RegisterClass|RegisterFunction|ClassNameIn|MethodNamesIn"
    r"|TakeArgument|MethodTraits|MethodName|NextName|WaitFor|TimeLeft|state|Issue)\b"
)
"""Names that headers need and programs do not use."""
ACCESS = re.compile(r"(public|private|protected)\s*:(?!:)")


@dataclass
class Item:
    """A declaration with its comment; `inside` is the text between a class's braces."""

    comment: str
    head: str
    inside: str | None


def write(folder: Path, headers: Path) -> None:
    """Write a page for each header into a folder, and `index.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ORDER.split():
        (folder / f"{name}.md").write_text(page(name, (headers / f"{name}.h").read_text()))
    entries = "\n".join(f"<troupe/{name}.h> <{name}>" for name in ORDER.split())
    (folder / "index.md").write_text(
        "# C++\n\n`#include <troupe/troupe.h>` includes all of these headers. "
        "How to write an actor: [](../../guides/cpp.md).\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"
    )


def page(name: str, text: str) -> str:
    """Return the page of a header."""
    opening = re.match(r"(?://[^\n]*\n)*", text)
    top = re.sub(r"^// ?", "", opening[0] if opening else "", flags=re.M)
    parts = [f"# <troupe/{name}.h>", markdown.prose(top), ":::{cpp:namespace} troupe\n:::"]
    parts += _macros(text)
    for space, body in _namespaces(text):
        for item in items(body):
            if _is_public(item):
                parts.append(_directive(item, space))
    return "\n\n".join(parts) + "\n"


def _macros(text: str) -> Iterator[str]:
    """Yield the macros that have a comment."""
    for found in re.finditer(r"((?:^///[^\n]*\n)+)#define (\w+\([\w, .]*\))", text, re.M):
        comment = re.sub(r"^/// ?", "", found[1], flags=re.M)
        yield f":::{{c:macro}} {found[2]}\n\n{markdown.prose(comment)}\n:::"


def _namespaces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the text of `troupe` and of the namespaces in it."""
    found = re.search(r"^namespace troupe \{$", text, re.M)
    if found is None:
        return
    body = text[found.end() : _closing(text, found.end() - 1)]
    inner = re.search(r"^namespace (\w+) \{$", body, re.M)
    if inner is None:
        yield "", body
        return
    end = _closing(body, inner.end() - 1)
    yield "", body[: inner.start()] + body[end + 1 :]
    yield f"{inner[1]}::", body[inner.end() : end]


def _closing(text: str, opened: int) -> int:
    """Return the position of the bracket that closes the one at `opened`."""
    pairs, depth = {"{": "}", "(": ")"}, 0
    bracket = text[opened]
    plain = re.sub(r"//[^\n]*", lambda found: " " * len(found[0]), text)
    for at in range(opened, len(plain)):
        depth += {bracket: 1, pairs[bracket]: -1}.get(plain[at], 0)
        if depth == 0:
            return at
    return len(text)


def items(text: str, access: str = "public") -> Iterator[Item]:
    """Yield the public declarations of a namespace or a class."""
    at, comment = 0, ""
    while at < len(text):
        rest = text[at:]
        if found := re.match(r"[ \t]*\n[ \t]*\n", rest):
            comment, at = "", at + found.end() - 1
        elif found := re.match(r"\s+", rest):
            at += found.end()
        elif found := re.match(r"///? ?([^\n]*)\n?", rest):
            comment, at = f"{comment}{found[1]}\n", at + found.end()
        elif found := re.match(r"#(?:[^\n]*\\\n)*[^\n]*", rest):
            comment, at = "", at + found.end()
        elif found := ACCESS.match(rest):
            access, at = found[1], at + found.end()
        elif rest.startswith("}"):
            at += 1
        else:
            item, at = _read(text, at, comment)
            comment = ""
            if access == "public":
                yield item


def _read(text: str, at: int, comment: str) -> tuple[Item, int]:
    """Return the declaration at a position, and where it ends."""
    start, inside = at, None
    while at < len(text) and text[at] not in ";{":
        at = _closing(text, at) + 1 if text[at] == "(" else at + 1
    head = text[start:at]
    if at < len(text) and text[at] == "{":
        end = _closing(text, at)
        inside, at = text[at + 1 : end], end + 1
        if found := re.match(r"\s*;", text[at:]):
            at += found.end()
    else:
        at += 1
    if found := re.match(r"[ \t]+// ?([^\n]*)", text[at:]):
        comment, at = f"{comment}{found[1]}\n", at + found.end()
    return Item(comment, " ".join(head.split()), inside), at


def _is_public(item: Item) -> bool:
    """Return True for what programs use: what has a comment, and exported classes."""
    exported = "class TROUPE_API" in item.head or re.search(
        r"Ref : public|struct \w+Options", item.head
    )
    forward = item.inside is None and re.match(r"(?:template <.*> )?(?:class|struct) ", item.head)
    name = re.split(r"[(:]", item.head)[0]
    special = "Convert" in item.head or "friend" in item.head
    return bool((item.comment or exported) and not (forward or special or INTERNAL.search(name)))


def _directive(item: Item, space: str, depth: int = 6) -> str:
    """Return the directive of a declaration, with those of its members."""
    kind, name = _declaration(item, space)
    body = [markdown.prose(item.comment)]
    if kind in ("class", "struct") and item.inside is not None:
        for member in items(item.inside, "private" if kind == "class" else "public"):
            if _is_member(member, item):
                body.append(_directive(member, "", depth - 1))
    elif kind == "enum-class" and item.inside is not None:
        names = ", ".join(f"`{each.split('=')[0].strip()}`" for each in item.inside.split(","))
        body.append(f"Values: {names}.")
    fence = ":" * depth
    return f"{fence}{{cpp:{kind}}} {name}\n\n" + "\n\n".join(filter(None, body)) + f"\n{fence}"


def _is_member(member: Item, owner: Item) -> bool:
    name = re.split(r"[(:]", member.head)[0]
    skipped = re.match(
        r"using |friend |static_assert|~|explicit |.*~\w+\(|.*= default", member.head
    )
    own = re.search(r"(?:class|struct) (?:TROUPE_API )?(\w+)", owner.head)
    constructor = own is not None and re.match(rf"{own[1]}\s*\(", member.head)
    return not (skipped or constructor or INTERNAL.search(name))


def _declaration(item: Item, space: str) -> tuple[str, str]:
    """Return the kind of the C++ domain's directive, and its argument."""
    head = re.sub(r"\bTROUPE_API\s+|\[\[\w+\]\]\s*", "", item.head)
    template = ""
    if found := re.match(r"template <([^<>]*(?:<[^<>]*>[^<>]*)*)> ", head):
        template, head = f"template<{found[1]}> ", head[found.end() :]
    if found := re.match(r"(class|struct) (\w+)", head):
        return found[1], f"{template}{space}{found[2]}"
    if found := re.match(r"enum class (\w+)", head):
        return "enum-class", f"{space}{found[1]}"
    if found := re.match(r"using (\w+) = (.*)", head):
        return "type", f"{space}{found[1]} = {found[2]}"
    if "(" in head.split(" = ")[0]:
        head = re.sub(r"\)\s*:\s.*$", ")", head)
        head = re.sub(r"^(.*?)(\w+\()", rf"\1{space}\2", head, count=1)
        return "function", template + head
    return "member", head.split("=")[0].strip()
