"""The function of a rank in function mode: only rank 0's value is sent back."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from troupe import _pickled
from troupe._code import option_files
from troupe.launch import _context


class RankZero:
    """A function whose value is rank 0's; on other ranks None, whatever it returns there.

    As under torchrun the program's arguments are not the function's process's: `sys.argv` has only
    `arguments`, and for each of `files` an option with a file of that text (`_code.option_files`).
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[str] = (),
        files: Sequence[tuple[str, str]] = (),
    ) -> None:
        functools.update_wrapper(self, function)
        self.__func__ = getattr(
            function, "__func__", function
        )  # the captured values are looked up there
        self._function, self._arguments, self._files = function, tuple(arguments), tuple(files)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        sys.argv[1:] = [*self._arguments, *option_files.placed(self._files)]
        value = self._function(*args, **kwargs)
        return value if _context.current().rank == 0 else None

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.rank_zero, (self._function, self._arguments, self._files)


@_pickled.maker("rank_zero")
def _rank_zero(
    function: Callable[..., Any],
    arguments: Sequence[str] = (),
    files: Sequence[tuple[str, str]] = (),
) -> Any:
    """A function of which only rank 0's value travels."""
    return RankZero(function, arguments, files)
