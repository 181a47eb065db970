"""Ray's `ray.dag`: graphs of calls that are described once, by `bind`, and run as often as one
likes.

    with dag.InputNode() as inp:
        graph = dag.MultiOutputNode([model.step.bind(inp), other.step.bind(inp)])
    troupe.get(graph.execute(batch))               # refs, of ordinary calls
    compiled = graph.experimental_compile()  # Ray's compiled graphs: the same calls, checked once
    troupe.get(compiled.execute(batch))

`bind` is of remote functions, actor classes (an actor for each execution) and methods of handles;
its arguments may be other nodes, also inside lists, tuples and dicts. A node that several others
take runs once. Calls are made in the order in which they were bound. View: the process that
executes; `execute` returns refs at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_numbers = itertools.count()
_COMPILE_OPTIONS = {
    "_submit_timeout",
    "_buffer_size_bytes",
    "enable_asyncio",
    "_max_inflight_executions",
    "_max_buffered_results",
    "_overlap_gpu_communication",
    "_default_communicator",
}


class DAGNode:
    """A step of a graph. Made by `bind`; usable in this process only."""

    def __init__(
        self,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        after: Sequence[DAGNode | None] = (),
    ) -> None:
        self._number = next(
            _numbers
        )  # a node's arguments were made before it: the order can be run
        self._args, self._kwargs = tuple(args), dict(kwargs or {})
        self._after = [each for each in after if each is not None]
        self._steps: list[DAGNode] | None = None
        inner = [
            each for each in (*self._args, *self._kwargs.values()) if not isinstance(each, DAGNode)
        ]
        self._flat = (
            next(_nodes_in(inner), None) is None
        )  # nodes are arguments themselves, not inside of any

    def _needs(self) -> Iterator[DAGNode]:
        yield from self._after
        for each in (*self._args, *self._kwargs.values()):
            yield from _nodes_in(each)

    def _plan(self) -> list[DAGNode]:
        """All that this one needs, and itself, in the order they were made."""
        if self._steps is None:
            found: dict[int, DAGNode] = {}
            rest: list[DAGNode] = [self]
            while rest:
                node = rest.pop()
                if node._number not in found:
                    found[node._number] = node
                    rest += node._needs()
            self._steps = [found[number] for number in sorted(found)]
        return self._steps

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph up to here: a ref of what this node returns, a list of them for a
        MultiOutputNode, a handle for an actor class. `args` and `kwargs` are what its InputNode
        stands for. Does not wait for the answers.

        Raises TypeError where the graph has no InputNode for what is given, or nothing is given for
        its own, and what the calls raise themselves.
        """
        return self._execute(_Given(args, kwargs, compiled=False))

    def _execute(self, given: _Given) -> Any:
        steps = self._plan()
        if given and not any(isinstance(step, InputNode | InputAttributeNode) for step in steps):
            raise TypeError(
                "execute() was given values, but the graph has no InputNode: build it inside "
                "`with InputNode() as inp:` and bind inp, or inp[0] and inp.name for several values"
            )
        values: dict[int, Any] = {}
        for step in steps:
            values[step._number] = step._run(values, given)
        return values[self._number]

    def experimental_compile(self, **options: Any) -> CompiledDAG:
        """The graph for many executions; all its calls must be of actors that are there.

        Ray's options are taken: calls need no buffers of their own here, and as many executions may
        be under way as their callers' memory holds.
        """
        return CompiledDAG(self, options)

    def with_tensor_transport(self, transport: Any = "auto", **_: Any) -> DAGNode:
        """ "auto", of a node that is a call of an actor: its tensors stay there
         (docs/guides/tensors.md). What other nodes return, and Ray's other
        ways ask for, travels as every result does."""
        if transport == "auto":
            self._keep_tensors()
        return self

    def _keep_tensors(self) -> None:
        """Keep the tensors that the node returns where they are."""

    def _run(self, values: Mapping[int, Any], given: _Given) -> Any:
        raise NotImplementedError

    def _filled(self, values: Mapping[int, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments, with the nodes among them replaced by their values."""
        fill = _top if self._flat else _deep
        return [fill(each, values) for each in self._args], {
            name: fill(each, values) for name, each in self._kwargs.items()
        }

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            f"{self!r} cannot be sent: a graph is executed by the process that bound it\n  send "
            "the actors' handles, and bind them there"
        )

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self!r} is run by execute(), not by calling it")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._number}>"


class FunctionNode(DAGNode):
    """A task: `function.bind(...)`."""

    def __init__(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        super().__init__(args, kwargs)
        self._function = function

    def _run(self, values: Mapping[int, Any], given: _Given) -> Any:
        args, kwargs = self._filled(values)
        return self._function.remote(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<task {self._function.__name__}, not run yet>"


class ClassNode(DAGNode):
    """An actor for each execution: `Class.bind(...)`.

    Its methods are bound as those of a handle: `node.method.bind(...)`.
    """

    def __init__(
        self,
        actor_class: Any,
        methods: Mapping[str, Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        super().__init__(args, kwargs)
        self._actor_class, self._methods = actor_class, methods
        self._last: DAGNode | None = None

    def _run(self, values: Mapping[int, Any], given: _Given) -> Any:
        args, kwargs = self._filled(values)
        return self._actor_class.remote(*args, **kwargs)

    def __getattr__(self, name: str) -> _Method:
        if name.startswith("_") or name not in self._methods:
            raise AttributeError(
                f"{self._actor_class.__name__} has no method {name!r}; it has "
                f"{', '.join(sorted(self._methods))}"
            )
        return _Method(self, name, self._methods[name], {})

    def __repr__(self) -> str:
        return f"<actor of {self._actor_class.__name__}, not made yet>"


class _Method:
    """A method of an actor that is not there yet."""

    def __init__(
        self, node: ClassNode, name: str, defined: Any, options: Mapping[str, Any]
    ) -> None:
        self._node, self._name, self._defined, self._options = node, name, defined, options
        self._returns = defined.with_given(options).num_returns

    def options(self, **options: Any) -> _Method:
        """See ActorMethod.options."""
        return _Method(self._node, self._name, self._defined, {**self._options, **options})

    def bind(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call of it, behind those bound before; a tuple of nodes with `num_returns`."""
        node = _LaterMethodNode(self._node, self._name, self._options, args, kwargs)
        self._node._last = node
        return node.outputs(self._returns)


class _CallNode(DAGNode):
    """A call of an actor's method."""

    def outputs(self, returns: Any) -> Any:
        """Return the result of `bind`: this node, or one node for each result."""
        if not isinstance(returns, int) or returns < 2:
            return self
        return tuple(_Output(self, index) for index in range(returns))


class ClassMethodNode(_CallNode):
    """A call of an actor that is there: `handle.method.bind(...)`."""

    def __init__(
        self, handle: Any, method: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        super().__init__(args, kwargs)
        self._handle, self._method = handle, method

    def _run(self, values: Mapping[int, Any], given: _Given) -> Any:
        args, kwargs = self._filled(values)
        return self._method.remote(*args, **kwargs)

    def _keep_tensors(self) -> None:
        self._method = self._method.options(tensor_transport="auto")

    def __repr__(self) -> str:
        return f"<call of {str(self._method).strip('<>')}, not made yet>"


class _LaterMethodNode(_CallNode):
    def __init__(
        self,
        node: ClassNode,
        name: str,
        options: Mapping[str, Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        super().__init__(args, kwargs, after=(node, node._last))
        self._node, self._name, self._options = node, name, options

    def _run(self, values: Mapping[int, Any], given: _Given) -> Any:
        args, kwargs = self._filled(values)
        method = getattr(values[self._node._number], self._name)
        return (method.options(**self._options) if self._options else method).remote(
            *args, **kwargs
        )

    def _keep_tensors(self) -> None:
        self._options = {**self._options, "tensor_transport": "auto"}

    def __repr__(self) -> str:
        return f"<call of {self._name} of {self._node!r}>"


class _Output(DAGNode):
    """A single result of a call with several."""

    def __init__(self, source: _CallNode, index: int) -> None:
        super().__init__((source,))
        self._source, self._index = source, index

    def _run(self, values: Mapping[int, Any], given: _Given) -> Any:
        return values[self._source._number][self._index]


class InputNode(DAGNode):
    """A placeholder for the arguments of `execute`: `inp` for one value, `inp[0]` and `inp.name`
    for several.

    Used in a `with` block.
    """

    def __enter__(self) -> InputNode:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def __getitem__(self, key: int | str) -> InputAttributeNode:
        if not isinstance(key, int | str):
            raise TypeError(f"an InputNode's part is named by a position or a name, not by {key!r}")
        return InputAttributeNode(key, attribute=False)

    def __getattr__(self, name: str) -> InputAttributeNode:
        if name.startswith("_"):
            raise AttributeError(name)
        return InputAttributeNode(name, attribute=True)

    def _run(self, values: Mapping[int, Any], given: _Given) -> Any:
        return given.whole()


class InputAttributeNode(DAGNode):
    """A part of the input."""

    def __init__(self, key: int | str, *, attribute: bool) -> None:
        super().__init__()
        self._key, self._attribute = key, attribute

    def _run(self, values: Mapping[int, Any], given: _Given) -> Any:
        return given.part(self._key, attribute=self._attribute)


class MultiOutputNode(DAGNode):
    """A graph with several results: `execute` returns the list of their refs."""

    def __init__(self, args: Sequence[DAGNode]) -> None:
        args = [args] if isinstance(args, DAGNode) else args
        if (
            not isinstance(args, list | tuple)
            or not args
            or not all(isinstance(each, DAGNode) for each in args)
        ):
            raise ValueError(f"MultiOutputNode takes a list of nodes, at least one, not {args!r}")
        super().__init__(args)

    def _run(self, values: Mapping[int, Any], given: _Given) -> Any:
        return self._filled(values)[0]


class CompiledDAG:
    """The result of `experimental_compile`: `execute` as of the graph; `await (await
    compiled.execute_async(x))` in coroutines."""

    def __init__(self, root: DAGNode, options: Mapping[str, Any]) -> None:
        for name in options:
            if name not in _COMPILE_OPTIONS:
                raise TypeError(
                    f"experimental_compile() has no parameter {name!r}; there are "
                    f"{', '.join(sorted(_COMPILE_OPTIONS))}"
                )
        steps = root._plan()
        for step in steps:
            if isinstance(step, FunctionNode | ClassNode | _LaterMethodNode):
                raise ValueError(
                    f"a compiled graph is of calls of actors that are there, not of {step!r}\n  "
                    "make actors with "
                    ".remote(), and bind their methods"
                )
        if not any(isinstance(step, ClassMethodNode) for step in steps):
            raise ValueError("a compiled graph calls at least one method of an actor")
        if not any(isinstance(step, InputNode | InputAttributeNode) for step in steps):
            raise ValueError(
                "a compiled graph has an InputNode: build it inside `with InputNode() as inp:`, "
                "and bind inp"
            )
        self._root, self._over = root, False
        self._actors = {step._handle for step in steps if isinstance(step, ClassMethodNode)}

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        """See DAGNode.execute. Raises RuntimeError after teardown()."""
        if self._over:
            raise RuntimeError("this compiled graph was torn down: compile it again")
        return self._root._execute(_Given(args, kwargs, compiled=True))

    async def execute_async(self, *args: Any, **kwargs: Any) -> Any:
        """Execute the graph; the result can be awaited, each one of a list."""
        return self.execute(*args, **kwargs)

    def teardown(self, kill_actors: bool = False) -> None:
        """Refuse further executions.

        What is under way goes on; with `kill_actors` its actors are ended. Idempotent.
        """
        if kill_actors and not self._over:
            for actor in self._actors:
                actor._link.kill()
        self._over = True


class _Given:
    """The arguments of one `execute`."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, compiled: bool) -> None:
        self._args, self._kwargs, self._compiled = args, kwargs, compiled

    def __bool__(self) -> bool:
        return bool(self._args or self._kwargs)

    def whole(self) -> Any:
        if len(self._args) == 1 and not self._kwargs:
            return self._args[0]
        raise TypeError(
            "the graph takes one value (its InputNode is bound as a whole); execute() was given "
            f"{self._count()}\n  "
            "bind inp[0] and inp.name for several"
        )

    def part(self, key: int | str, *, attribute: bool) -> Any:
        """Return one of several values; of a single value a part of it, as with Ray, whose compiled
        graphs alone take inp[0] for the first of one value too."""
        single = self._args[0] if len(self._args) == 1 and not self._kwargs else None
        if single is not None and attribute:
            return getattr(single, str(key))
        if (
            single is not None
            and hasattr(single, "__getitem__")
            and not (self._compiled and isinstance(key, int))
        ):
            return single[key]
        try:
            return self._args[key] if isinstance(key, int) else self._kwargs[key]
        except (IndexError, KeyError):
            raise TypeError(
                f"the graph takes {'position ' if isinstance(key, int) else ''}{key!r} of its "
                "input; execute() was "
                f"given {self._count()}"
            ) from None

    def _count(self) -> str:
        names = f" and {', '.join(self._kwargs)}" if self._kwargs else ""
        return f"{len(self._args)} value{'' if len(self._args) == 1 else 's'}{names}"


def _nodes_in(value: Any) -> Iterator[DAGNode]:
    """The nodes in a value, through lists, tuples and dicts."""
    if isinstance(value, DAGNode):
        yield value
    elif type(value) in (list, tuple):
        for each in value:
            yield from _nodes_in(each)
    elif type(value) is dict:
        for each in value.values():
            yield from _nodes_in(each)


def _top(value: Any, values: Mapping[int, Any]) -> Any:
    return values[value._number] if isinstance(value, DAGNode) else value


def _deep(value: Any, values: Mapping[int, Any]) -> Any:
    if isinstance(value, DAGNode):
        return values[value._number]
    if type(value) in (list, tuple):
        return type(value)(_deep(each, values) for each in value)
    if type(value) is dict:
        return {key: _deep(each, values) for key, each in value.items()}
    return value


__all__ = [
    "ClassMethodNode",
    "ClassNode",
    "CompiledDAG",
    "DAGNode",
    "FunctionNode",
    "InputAttributeNode",
    "InputNode",
    "MultiOutputNode",
]
