"""Flags `co_await` expressions that g++ 12 miscompiles: it destroys some temporaries twice.

Inside one co_await expression: a lambda with by-value captures, a braced aggregate, an initializer
list. Name the object on the line above and move it. Opt out, with a reason: // co_await-ok: why
"""

import re

import tree

LAMBDA = re.compile(r"(?<![\w\])])\[(?P<captures>[^\[\]]*)\]\s*(?:\(|\{|<|mutable|->)")
BRACES = re.compile(r"(?:[(,]\s*|[\w>]\s*)\{")


def expression_at(code: str, start: int) -> str:
    """From `start` to the end of the full expression."""
    depth = 0
    for i in range(start, len(code)):
        if code[i] in "([{":
            depth += 1
        elif code[i] in ")]}":
            depth -= 1
            if depth < 0:
                return code[start:i]
        elif code[i] == ";" and depth == 0:
            return code[start:i]
    return code[start:]


def captures_by_value(captures: str) -> bool:
    return any(
        not item.strip().startswith("&") and item.strip() != "this"
        for item in captures.split(",")
        if item.strip()
    )


def check(text: str) -> list[tuple[int, str]]:
    """(line, what is wrong) for every bad co_await in a source text."""
    found, code, lines = [], tree.code_only(text), text.split("\n")
    for match in re.finditer(r"\bco_await\b", code):
        expression = expression_at(code, match.end())
        line = code.count("\n", 0, match.start()) + 1
        nearby = "\n".join(lines[max(0, line - 2) : line + expression.count("\n")])
        if "co_await-ok:" in nearby:
            continue
        lambdas = list(LAMBDA.finditer(expression))
        if any(captures_by_value(m.group("captures")) for m in lambdas):
            found.append((line, "a lambda with by-value captures; name it above, then std::move"))
        before_lambda = expression[: lambdas[0].start()] if lambdas else expression
        if BRACES.search(before_lambda):
            found.append((line, "a braced temporary; name it above, then std::move"))
    return found


def self_check() -> None:
    """The rule must still see what it is for."""
    bad = ["co_await f([s] { return s; });", "co_await open({.name = n});", "co_await g(T{1, 2});"]
    good = [
        "co_await f(std::move(job));",
        "co_await f([&s] { return s; });",
        "co_await g(T(1, 2));",
    ]
    assert all(check(text) for text in bad), "a broken shape is no longer seen"
    assert not any(check(text) for text in good), "a safe shape is refused"


def main() -> None:
    self_check()
    paths = [p for p in tree.files(".h", ".cc") if "co_await" in p.read_text()]
    findings = [
        f"{tree.relative(p)}:{line}: {why}" for p in paths for line, why in check(p.read_text())
    ]
    tree.finish(findings, max(1, len(paths)))


if __name__ == "__main__":
    main()
