"""Public parameters and results that are Any: counted, by a ratchet that may only shrink.

Counted are the functions and classes that a public module lists, as checkers read them: parameters,
results and fields of their public methods, by overloads where there are some, and what their bases
in the package give them. One that has no type counts as Any. any_share.ratchet says how many each
module may have; a number that allows more than there are is a finding: lower it, or write all anew
with `--write`. `--list` prints which they are.
"""

import ast
import dataclasses
import functools
import json
import pathlib
import sys
from collections.abc import Iterator

import tree

PACKAGE = "bindings/python"
MODULES = ("troupe", "troupe.data", "troupe.launch", "troupe.train", "troupe.tune", "troupe.util")
RATCHET = "tests/lint/any_share.ratchet"
SPECIAL = ("__init__", "__call__", "__getitem__", "__iter__", "__len__")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclasses.dataclass(frozen=True)
class Name:
    """A definition: where it stands, and its nodes, several for overloads."""

    module: str
    name: str
    nodes: tuple[ast.stmt, ...]


@functools.cache
def parsed(module: str) -> ast.Module | None:
    """The module as checkers read it, from a stub where there is one; None: not the package's."""
    base = pathlib.Path(tree.root(), PACKAGE, *module.split("."))
    for path in (base / "__init__.pyi", base.with_suffix(".pyi"), base / "__init__.py"):
        if path.exists():
            return ast.parse(path.read_text())
    path = base.with_suffix(".py")
    return ast.parse(path.read_text()) if path.exists() else None


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The module's own statements, and those for checkers alone."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from node.body if ast.unparse(node.test) == "TYPE_CHECKING" else []
        else:
            yield node


def public(module: str) -> list[str]:
    """The names that a module lists in `__all__`, or else all that it imports from the package."""
    names = []
    found = parsed(module)
    assert found is not None, f"{module} is not there"
    for node in statements(found.body):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            try:
                return list(ast.literal_eval(node.value))
            except ValueError:
                continue  # aliases of tables: the version for checkers is equal
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("troupe"):
            names += [each.asname or each.name for each in node.names]
    return [name for name in names if not name.startswith("_")]


def resolve(module: str, name: str) -> Name | None:
    """The class or function that a name of a module means; None: something else."""
    found = parsed(module)
    if found is None:
        return None
    own = [each for each in statements(found.body) if getattr(each, "name", None) == name]
    if own:
        return Name(module, name, tuple(own))
    for node in statements(found.body):
        if isinstance(node, ast.ImportFrom) and node.module not in (None, module):
            for each in node.names:
                if (each.asname or each.name) == name:
                    return resolve(str(node.module), each.name)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return resolve(module, node.value.id) if isinstance(node.value, ast.Name) else None
    return None


def is_any(annotation: ast.expr | None) -> bool:
    """True for Any, Any | None and no type at all."""
    text = "Any" if annotation is None else ast.unparse(annotation).strip("'\"")
    return "Any" in [part.strip() for part in text.split("|")]


def of_function(nodes: list[Function], *, is_method: bool) -> Iterator[tuple[str, bool]]:
    """Each parameter, and the result, of a function or its overloads: whether it is Any."""
    overloads = [each for each in nodes if "overload" in map(ast.unparse, each.decorator_list)]
    for node in overloads or nodes:
        arguments = node.args
        plain = [*arguments.posonlyargs, *arguments.args]
        if is_method and "staticmethod" not in map(ast.unparse, node.decorator_list):
            plain = plain[1:]
        rest = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
        for each in [*plain, *arguments.kwonlyargs, *rest]:
            yield f"{node.name}({each.arg})", is_any(each.annotation)
        if node.name != "__init__":
            yield f"{node.name}() ->", is_any(node.returns)


def of_class(module: str, node: ast.ClassDef, seen: set[str]) -> Iterator[tuple[str, bool]]:
    """Yield the parameters of a class's public methods and fields, and of its bases in the
    package."""
    methods: dict[str, list[Function]] = {}
    for each in statements(node.body):
        if isinstance(each, Function) and (each.name[0] != "_" or each.name in SPECIAL):
            methods.setdefault(each.name, []).append(each)
        elif isinstance(each, ast.AnnAssign) and not ast.unparse(each.target).startswith("_"):
            if ast.unparse(each.target) not in seen:
                yield ast.unparse(each.target), is_any(each.annotation)
                seen.add(ast.unparse(each.target))
    for name, nodes in methods.items():
        if name not in seen:
            yield from of_function(nodes, is_method=True)
            seen.add(name)
    for base in node.bases:
        found = resolve(module, ast.unparse(base).partition("[")[0])
        if found is not None and isinstance(found.nodes[0], ast.ClassDef):
            yield from of_class(found.module, found.nodes[0], seen)


def counted(module: str) -> Iterator[tuple[str, bool]]:
    """Each parameter, result and field of a module's public names: whether it is Any."""
    for name in sorted(set(public(module))):
        found = resolve(module, name)
        if found is None:
            continue
        first = found.nodes[0]
        if isinstance(first, ast.ClassDef):
            rows = of_class(found.module, first, set())
        elif isinstance(first, Function):
            rows = of_function(list(found.nodes), is_method=False)  # type: ignore[arg-type]
        else:
            continue
        yield from ((f"{module}.{name}: {each}", unknown) for each, unknown in rows)


def main() -> None:
    rows = {module: list(counted(module)) for module in MODULES}
    found = {module: sum(unknown for _, unknown in each) for module, each in rows.items()}
    total = sum(map(len, rows.values()))
    if "--list" in sys.argv:
        print(*(name for each in rows.values() for name, unknown in each if unknown), sep="\n")
    ratchet = tree.root() / RATCHET
    if "--write" in sys.argv:
        ratchet.write_text(json.dumps(found, indent=1) + "\n")
    allowed = json.loads(ratchet.read_text())
    findings = [
        f"{module}: {found[module]} public parameters and results are Any; {RATCHET} allows "
        f"{allowed.get(module, 0)}"
        + ("" if found[module] > allowed.get(module, 0) else ": lower that")
        for module in MODULES
        if found[module] != allowed.get(module, 0)
    ]
    share = 100 * sum(found.values()) / total
    print(f"{sum(found.values())} of {total} public parameters and results are Any: {share:.1f} %")
    tree.finish(findings, len(rows))


if __name__ == "__main__":
    main()
