"""Remote functions: tasks on processes that this process leases, for a while, and uses again and
again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from troupe import _pickled, exceptions
from troupe._actors import options as _actor_options, parameters
from troupe._actors.method_options import Remote
from troupe._actors.method_table import ReturnsOptions
from troupe._base import waiting as _waiting, words as _words
from troupe._base.bridge import native
from troupe._cluster import blobs, selectors, session as _session
from troupe._code import capture, main_import
from troupe._tasks import options as _task_options
from troupe._tasks.option_table import TaskOptions
from troupe._tasks.pool import note_bound
from troupe._typed import P, R, RemoteCall, option as _option

if TYPE_CHECKING:
    from typing import Literal, Never, Unpack

    from troupe._actors.streams import DynamicObjectRefGenerator, ObjectRefGenerator
    from troupe._typed import ObjectRef

INLINE_BYTES_MAX = 4 << 20


class RemoteFunction(Remote, RemoteCall[P, R]):
    """A function decorated with `@troupe.remote`.

    `remote(...)` starts a task: a ref of what it returns, a list of refs with `num_returns`, or an
    ObjectRefGenerator of a function that yields.

    `remote` of a function that was called before is the native call path itself. It raises
    LaunchError when the function cannot travel, TypeError or ValueError when its arguments cannot.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self._function = function
        self._options = dict(selectors.of_group(options))
        self._checked = _task_options.check(function, self._options)
        self._payload: bytes | None = None
        self._refs: Any = None  # refs that the payload names
        self.__name__ = getattr(function, "__name__", "task")
        self.__doc__ = function.__doc__

    def __call__(self, /, *args: object, **kwargs: object) -> Never:
        name = self._full_name
        raise TypeError(
            f"Remote functions cannot be called directly. Instead of running '{name}()', try "
            f"'{name}.remote()'."
        )

    @property
    def _full_name(self) -> str:
        return (
            f"{self._function.__module__}.{self.__name__}"
            if hasattr(self._function, "__module__")
            else self.__name__
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.remote_function, (self._function, self._options)

    def __repr__(self) -> str:
        return f"<remote function {self.__name__}>"

    @overload
    def options(
        self, *, num_returns: Literal["dynamic"], **options: Unpack[TaskOptions]
    ) -> RemoteFunction[P, ObjectRef[DynamicObjectRefGenerator[Any]]]: ...
    @overload
    def options(
        self, *, num_returns: Literal["streaming"], **options: Unpack[TaskOptions]
    ) -> RemoteFunction[P, ObjectRefGenerator[Any]]: ...
    @overload
    def options(
        self, *, num_returns: int, **options: Unpack[TaskOptions]
    ) -> RemoteFunction[P, list[ObjectRef[Any]]]: ...
    @overload
    def options(
        self, *, num_returns: None = None, **options: Unpack[TaskOptions]
    ) -> RemoteFunction[P, R]: ...
    @_option.documented(ReturnsOptions, TaskOptions)
    def options(self, **options: Any) -> RemoteFunction[P, Any]:
        """Return the same function with other options. Raises ValueError or TypeError."""
        return RemoteFunction(self._function, selectors.changed(self._options, options))

    def _remote(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[TaskOptions],
    ) -> R:
        """Ray's other way to write `options(...).remote(*args, **kwargs)`."""
        function = self.options(**options) if options else self
        return function.remote(*(args or ()), **(kwargs or {}))

    def bind(self, /, *args: Any, **kwargs: Any) -> Any:
        """A task of it as a node of a graph (troupe.dag)."""
        from troupe.dag import FunctionNode

        return FunctionNode(self, args, kwargs)

    def unbind(self) -> None:
        """The next task asks for the session anew; what names objects is of this process alone."""
        self.__dict__.pop("remote", None)
        if self._refs is not None:
            self._payload = self._refs = None

    if not TYPE_CHECKING:  # checkers read RemoteCall.remote

        def remote(self, /, *args: Any, **kwargs: Any) -> Any:
            """Starts a task.

            This is the first one's way; an attribute of the same name hides it from then on.
            """
            return self._first()(*args, **kwargs)

    def _first(self) -> Callable[..., Any]:
        """Return what starts tasks from now on, which is the attribute `remote` too."""
        from troupe._tasks.leases import Leases

        main_import.refuse()
        session = _session.current()
        if self._checked.returns.num_returns == "streaming":
            from troupe._actors import streams  # result of a streaming call
        with Leases.of(session).pool(
            _task_options.placing(_actor_options.captured(self._options))
        ) as pool:
            started = self._bind(session, pool)
        note_bound(self)
        if self._checked.returns.gathered:
            started = streams.gathering(started)
        if _waiting.around_wait is not None:
            started = _waiting.lending(started)
        self.__dict__["remote"] = started
        found: Callable[..., Any] = started
        return found

    def _bind(self, session: _session.Session, pool: Any) -> Any:
        """Return the starter of this function's tasks in a pool."""
        if self._payload is None:
            refs = native.TakenRefs()
            limit = _words.current.function_bytes_max(capture.LIMIT_BYTES)
            try:
                self._payload = refs.take(
                    lambda: capture.dumps(
                        self._function,
                        (),
                        {},
                        self._checked.name,
                        what=f"the function {self.__name__}",
                        limit=limit,
                    )
                )
            except exceptions.TooLargeError as error:
                raise _words.current.of_oversized(
                    "remote function", self._full_name, error
                ) from None
            self._refs = refs if len(refs) else None
        key = hashlib.sha256(self._payload).hexdigest()[:32]
        definition = self._payload
        if len(definition) > INLINE_BYTES_MAX:
            blob = blobs.put(session, definition)
            definition = json.dumps({**blob, "sha256": blob["sha256"].hex()}).encode()
        checked = self._checked
        classes = checked.retry_exceptions if isinstance(checked.retry_exceptions, tuple) else ()
        pool.retried.append(classes)
        return native.TaskFunction(
            pool.native,
            checked.target(key),
            checked.name or self.__name__,
            key,
            definition,
            checked.max_retries,
            checked.retried,
            checked.max_calls,
            len(pool.retried) - 1,
            self._refs,
            parameters.check_of(self.__name__, parameters.of_function(self._function)),
        )


@_pickled.maker("remote_function")
def _remote_function(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Rebuild the RemoteFunction of a function decorated with `@remote`."""
    return RemoteFunction(function, options)
