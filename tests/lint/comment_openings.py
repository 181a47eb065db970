"""Comment openings: each docstring and comment stands alone.

None begins with a pronoun ("It", "Those"), a relative ("What", "Whether"), a bare participle
("Told") or a word that leans on the text before ("Of", "Likewise"): a reader would have to look for
what the word stands for. Begin with a verb or with the noun that names the thing.

A comment begins after code, and on a line whose neighbour above is no comment.
"""

import ast
import io
import pathlib
import re
import tokenize
import typing

import tree

RELATIVES = "what whatever which whichever who whoever whom whose whether where wherever"
PRONOUNS = "it its they their them he that those such one"
LEANING = "of likewise otherwise same"
PARTICIPLES = "told made kept held sent said gone asked lent heard shown done seen brought taken"
WORDS = "|".join(f"{RELATIVES} {PRONOUNS} {LEANING} {PARTICIPLES}".split())
OPENING = re.compile(rf"(?:the same|this is|these are|{WORDS})\b(?![-'`=(:])", re.I)
COMMENT = re.compile(r"(?<!:)//+[!<]*\s*(.*)")
STRINGS = re.compile(r'"(?:\\.|[^"\\\n])*"')
AS_VENDORS_WRITE = re.compile(r"tests/guides/\w+/")  # programs of guides, word for word

Opening = tuple[int, str]  # (line, text of the first line)


def docstrings(text: str) -> typing.Iterator[Opening]:
    """Yield the first line of each docstring."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if found := ast.get_docstring(node):
                yield node.body[0].lineno, found.split("\n")[0]


def python_comments(text: str) -> typing.Iterator[Opening]:
    """Yield the first line of each comment of a Python source."""
    last, column = -1, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, begins = token.start
            goes_on = line == last + 1 and begins == column
            if not goes_on or not token.line.lstrip().startswith("#"):
                yield line, token.string.lstrip("#:! ")
            last, column = line, begins


def cpp_comments(text: str) -> typing.Iterator[Opening]:
    """Yield the first line of each comment of a C++ source."""
    last, column = -1, 0
    for number, line in enumerate(text.split("\n"), 1):
        if not (found := COMMENT.search(STRINGS.sub(lambda each: "x" * len(each[0]), line))):
            continue
        goes_on = number == last + 1 and found.start() == column
        if not goes_on or not line.lstrip().startswith("//"):
            yield number, line[found.start(1) :]
        last, column = number, found.start()


def openings(name: str, text: str) -> list[Opening]:
    """Return the docstrings and comments of a source that begin with a forbidden word."""
    texts = cpp_comments(text)
    if name.endswith((".py", ".pyi")):
        texts = (each for of in (docstrings, python_comments) for each in of(text))
    return sorted(each for each in texts if OPENING.match(each[1].lstrip("([ ")))


def sources() -> list[pathlib.Path]:
    """Return the sources the rule reads."""
    return [
        path
        for path in tree.files(".h", ".cc", ".py", ".pyi")
        if not AS_VENDORS_WRITE.match(tree.relative(path))
    ]


def main() -> None:
    paths = sources()
    findings = [
        f"{tree.relative(path)}:{line}: begins with {text[:60]!r}: begin with a verb, or with the "
        "noun that names the thing"
        for path in paths
        for line, text in openings(tree.relative(path), path.read_text())
    ]
    tree.finish(findings, len(paths))


if __name__ == "__main__":
    main()
