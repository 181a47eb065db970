"""The table of the options of actor methods and their calls.

A new option is an entry here, and the code that uses it: what `@troupe.method` and
`handle.m.options()` take and say, the checks, and what type checkers see are made of the table.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

from troupe._typed.option import FOR_RAY, Option, table_of

STREAMING = "streaming"
DYNAMIC = "dynamic"
RETURNS_MAX = 1 << 16
_TRANSPORTS = {"auto": True, "gloo": True, "cuda_ipc": True, "object_store": False, "none": None}
"""Transports by name, each with whether tensors stay in the actor (docs/guides/tensors.md).

Ray's names for its ways between processes mean "auto", which finds the way.
"""


def keeps_tensors(name: str, transport: Any) -> bool | None:
    """Return whether tensors stay in their actor by this `tensor_transport=`; None: it says nothing.

    Raises ValueError for what is no transport.
    """
    known = str(transport).lower()
    if known not in _TRANSPORTS:
        raise ValueError(
            f"tensor_transport={transport!r} is not supported: 'auto' leaves tensors in their "
            "actor and finds the way to whoever "
            "takes them, 'object_store' sends them with the value; groups over NCCL: "
            "troupe.util.collective"
        )
    return _TRANSPORTS[known]


def _num_returns(name: str, value: Any) -> int | str:
    if value is None:
        return 1
    if value in (STREAMING, DYNAMIC):
        return STREAMING
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= RETURNS_MAX:
        return value
    raise ValueError(
        f"num_returns must be a whole number from 0 to {RETURNS_MAX}, 'streaming' or 'dynamic', "
        f"not {value!r}"
    )


def _group(name: str, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and value):
        return value
    raise ValueError(f"concurrency_group must be a group's name, not {value!r}")


def _retries(name: str, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= -1):
        return value
    raise ValueError(
        f"max_task_retries must be a whole number, or -1 for any number, not {value!r}"
    )


def _exceptions(name: str, value: Any) -> bool | tuple[type[BaseException], ...]:
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, list | tuple) and all(
        isinstance(one, type) and issubclass(one, BaseException) for one in value
    ):
        return tuple(value)
    raise ValueError(
        f"retry_exceptions must be True, False or a list of exception classes, not {value!r}"
    )


def _backpressure(name: str, value: Any) -> int | None:
    if value in (None, -1):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= RETURNS_MAX:
        return value
    raise ValueError(
        "_generator_backpressure_num_objects must be a whole number from 1 to "
        f"{RETURNS_MAX}, or -1 for none, not {value!r}"
    )


def _one_per_yield(name: str, value: Any) -> int:
    if value != 1:
        raise ValueError(f"the method option {name}={value!r} is not supported by this version")
    return 1


class ReturnsOptions(TypedDict, total=False):
    """The option on which the type of a call's result depends, by overloads."""

    num_returns: Annotated[
        int | Literal["streaming", "dynamic"] | None,
        Option(
            None,
            "How many refs a call gives: a list of so many, or one ref (1). "
            '"streaming", of what yields the default: an ObjectRefGenerator. '
            '"dynamic": one ref of all refs of what was yielded.',
            _num_returns,
            told="num_returns",
        ),
    ]


class CallOptions(TypedDict, total=False):
    """Options that calls of methods and tasks have in common."""

    retry_exceptions: Annotated[
        bool | Sequence[type[BaseException]] | None,
        Option(
            None,
            "Exceptions that are a reason to run it again: all (True), or those of these classes.",
            _exceptions,
            told="retry_exceptions",
        ),
    ]
    tensor_transport: Annotated[
        str | None,
        Option(
            None,
            '"auto": tensors in the value of an actor\'s method stay in the actor, while their ref '
            'travels (docs/guides/tensors.md). "object_store": they go with the value.',
            keeps_tensors,
            told="keeps_tensors",
        ),
    ]
    _generator_backpressure_num_objects: Annotated[
        int | None,
        Option(
            None,
            "How many values what yields is ahead of who takes them, at most. "
            "None, -1: up to 262,144.",
            _backpressure,
            told="backpressure",
        ),
    ]


class MethodOptions(CallOptions, total=False):
    """Options of an actor's method, `num_returns` aside."""

    concurrency_group: Annotated[
        str | None,
        Option(
            None,
            "Which of the actor's `concurrency_groups` the calls run in. None: the default one.",
            _group,
            told="concurrency_group",
        ),
    ]
    max_task_retries: Annotated[
        int | None,
        Option(
            None,
            "How often a call is made again when its process is lost; -1: always. "
            "None: as the actor says.",
            _retries,
            told="max_task_retries",
        ),
    ]
    name: Annotated[str | None, Option(None, "Name, for people.")]
    enable_task_events: Annotated[bool | None, Option(None, FOR_RAY)]
    _num_objects_per_yield: Annotated[int | None, Option(1, FOR_RAY, _one_per_yield)]


METHODS = table_of(ReturnsOptions, MethodOptions)
