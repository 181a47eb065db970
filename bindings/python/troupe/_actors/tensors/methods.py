"""Methods whose tensors stay in their actor: what they give is answered as values that name
them."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from troupe._actors.tensors.value import carried


def keeping(method: Callable[..., Any], name: str, returns: int) -> Callable[..., Any]:
    """The method, as a call of it runs that asks for so many values: plain, a coroutine, or one
    that yields."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return _given(method(*args, **kwargs), name, returns)

    return run


def _given(result: Any, name: str, returns: int) -> Any:
    if inspect.iscoroutine(result):
        return _awaited(result, name, returns)
    if inspect.isgenerator(result):
        return _yielded(result, name)
    if inspect.isasyncgen(result):
        return _yielded_later(result, name)
    if returns == 1:
        return carried(result, name)
    return (
        [carried(each, name) for each in result]
        if returns and isinstance(result, Iterable)
        else result
    )


async def _awaited(result: Any, name: str, returns: int) -> Any:
    return _given(await result, name, returns)


def _yielded(result: Iterator[Any], name: str) -> Iterator[Any]:
    for each in result:
        yield carried(each, name)


async def _yielded_later(result: AsyncGenerator[Any, Any], name: str) -> AsyncIterator[Any]:
    async with contextlib.aclosing(result):
        async for each in result:
            yield carried(each, name)
