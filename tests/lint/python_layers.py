"""Permitted imports in the Python package: rooms one above the other, and no circle of modules.

A module imports from its own room and from rooms below. All imports count, those inside functions
too: a lazy one says when a module is loaded, not that it is asked for by less. Those under `if
TYPE_CHECKING:` do not. A name of the package itself (`from troupe import get`, `troupe.get` after
`import troupe`) is asked of the module that the package takes it from. Modules that import each
other, however far around, are a finding with all of the circle's members.

Private modules stand in a room, not beside the public ones: of those only `_pickled` does.
"""

import ast
import pathlib

import tree

PACKAGE = "bindings/python/troupe"
EXTENSION = "troupe._native"  # in C++, below all

# Below all rooms: what each of them may use.
ROOTS = (
    "_base",
    "_pickled",
    "_tracing.record",
    "_typed",
    "_typed.option",
    "_typed.per_session",
    "_wire",
    "exceptions",
    "dag",  # public, and asks nothing of its nodes but what all calls have
)
# From below: a room, and what is in it: modules, and packages with all that is below them. What is
# in none is a face, above all.
ROOMS = (
    ("roots", ROOTS),
    ("_cluster", ("_cluster",)),
    (
        "stand_ins",
        (
            "ray_compat",
            "ray_compat._finder",
            "ray_compat._library_names",
            "ray_compat._missing",
            "ray_compat._missing_rows",
            "ray_compat._names",
            "ray_compat._starting",
            "ray_compat._words",
            "stand_ins",
            "stand_ins._finder",
            "stand_ins._packages",
        ),
    ),
    ("_code", ("_code",)),
    ("_actors", ("_actors",)),
    ("_tracking", ("_tracking",)),
    ("launch", ("launch",)),
    ("_tasks", ("_tasks",)),
    ("_process", ("_process",)),
)
PACKAGES = (
    "_base",
    "_cluster",
    "_code",
    "_actors",
    "_tracking",
    "launch",
    "_tasks",
    "_process",
)
FACES = "faces"

# Modules that import by a name which is no literal, and why that hides nothing.
BY_NAME = {
    "": "the package's names, of the module that has them",
    "_pickled": "names in pickles, of the module that has them today",
    "air": "its names, of the module that has them",
    "air.data": "its names, of the module that has them",
    "azure": "its names, of the module that has them",
    "cli": "commands, loaded when they are run",
    "data._arrow": "other projects' libraries, which are not always installed",
    "util": "its modules, without an import of their own",
    "job_submission": "its names, of the module that has them",
    "ray_compat._starting": "functions of `ray`, of what is Troupe's own",
    "stand_ins": "the package that stands on the import path, by the hook",
    "stand_ins._finder": "names of packages that Troupe stands in for, of what is its own",
    "tune": "its names and modules, when they are asked for",
    "tune.logger": "its names, of the module that has them",
    "tune.schedulers": "its names, of the module that has them",
    "tune.search": "its names, of the module that has them",
    "_code.runtime_env": "a function of the user's",
    "_process.preimports": "libraries, which are not always installed, and what processes of the "
    "runtime load of it",
    "_process.zygote": "modules of the user's",
}

# Private, and no module of a room: pickles name it.
LOOSE = ("_pickled",)

# (importer, imported) upward that are still there: the list may only shrink.
LEFT: set[tuple[str, str]] = set()


class Module:
    """A file of the package, by its name below it: "" is the package itself."""

    def __init__(self, path: pathlib.Path, root: pathlib.Path) -> None:
        parts = path.relative_to(root).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.path = path
        self.tree = ast.parse(path.read_text())

    def nodes(self) -> list[ast.AST]:
        """All of its code that runs."""
        found, rest = [], [self.tree]
        while rest:
            node = rest.pop()
            found.append(node)
            if isinstance(node, ast.If) and any(
                isinstance(each, ast.Name | ast.Attribute) and "TYPE_CHECKING" in ast.dump(each)
                for each in [node.test]
            ):
                rest += node.orelse
            else:
                rest += ast.iter_child_nodes(node)
        return found


def room_of(name: str) -> str:
    for room, inside in ROOMS:
        for each in inside:
            if name == each or (each in PACKAGES and name.startswith(each + ".")):
                return room
    return FACES


def names_of_the_package(module: Module) -> dict[str, str]:
    """A public name of `troupe` -> the module that has it."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_WHERE":
            return ast.literal_eval(node.value)
    return {}


def imports(module: Module, known: set[str], where: dict[str, str]) -> list[tuple[str, int]]:
    """(imported, line) of one module, both by names below the package."""
    found: list[tuple[str, int]] = []

    def add(dotted: str, line: int) -> None:
        """Note the import of `dotted`, a module of the package or a name of one."""
        parts = dotted.split(".")[1:]
        if not parts:
            return
        if ".".join(["troupe", *parts[:1]]) == EXTENSION:
            return
        if parts[0] in where and parts[0] not in known:
            found.append((where[parts[0]], line))
            return
        end = next((end for end in range(len(parts), 0, -1) if ".".join(parts[:end]) in known), 0)
        found.append((".".join(parts[:end]), line))

    whole: set[str] = set()  # local names of `import troupe`
    nodes = module.nodes()
    for node in nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name == "troupe":
                    whole.add(each.asname or "troupe")
                    found.append(("", node.lineno))
                elif each.name.startswith("troupe."):
                    add(each.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                own = ["troupe", *filter(None, module.name.split("."))]
                above = own[: len(own) - node.level + (1 if module.is_package else 0)]
                base = ".".join([*above, *filter(None, [node.module])])
            if base.split(".")[0] == "troupe":
                for each in node.names:
                    add(f"{base}.{each.name}", node.lineno)
        elif isinstance(node, ast.Call) and module.name not in BY_NAME and is_import_call(node):
            literal = node.args[0] if node.args else None
            if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
                if literal.value.split(".")[0] == "troupe":
                    add(literal.value, node.lineno)
            else:
                found.append(("?", node.lineno))
    for node in nodes:
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in whole
        ):
            add(f"troupe.{node.attr}", node.lineno)
    return found


def is_import_call(node: ast.Call) -> bool:
    called = (
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    )
    return called in ("import_module", "__import__")


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module, and modules that import themselves
    (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph.get(name, ())):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            members = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(members) > 1 or name in graph.get(name, ()):
                found.append(sorted(members))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


def main() -> None:
    root = tree.root() / PACKAGE
    modules = {
        each.name: each
        for each in (Module(path, root) for path in tree.files(".py") if path.is_relative_to(root))
    }
    order = {room: height for height, room in enumerate([*(room for room, _ in ROOMS), FACES])}
    where = names_of_the_package(modules[""]) if "" in modules else {}
    findings, upward = [], set()
    findings += [
        f"{PACKAGE}: there is no module {name} any more: take it off this lint's lists"
        for name in (*(each for _, inside in ROOMS for each in inside), *BY_NAME)
        if name not in modules
    ]
    findings += [
        f"{tree.relative(module.path)}: a private module stands in a room (troupe/README.md)"
        for name, module in sorted(modules.items())
        if name.startswith("_")
        and "." not in name
        and not module.is_package
        and name not in ("__main__", *LOOSE)
    ]
    graph: dict[str, set[str]] = {}
    for name, module in sorted(modules.items()):
        file = tree.relative(module.path)
        for target, line in imports(module, set(modules), where):
            if target == "?":
                findings.append(
                    f"{file}:{line}: imports by a name that is no literal, which hides what it "
                    "imports"
                )
                continue
            graph.setdefault(name, set()).add(target)
            if order[room_of(target)] > order[room_of(name)]:
                upward.add((name, target))
                if (name, target) not in LEFT:
                    findings.append(
                        f"{file}:{line}: {room_of(name)} may not import {room_of(target)} "
                        f"(troupe.{target})"
                    )
    findings += [
        f"{importer} does not import {imported} any more: take it off LEFT"
        for importer, imported in sorted(LEFT - upward)
    ]
    for members in circles(graph):
        findings.append(
            "modules that import each other: "
            + ", ".join(f"troupe.{each}".rstrip(".") for each in members)
        )
    tree.finish(findings, len(modules))


if __name__ == "__main__":
    main()
