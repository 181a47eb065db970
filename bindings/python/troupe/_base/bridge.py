"""The native module, with the exceptions of this package in place of the built-in ones it would
raise.

Everything but the zygote imports it from here: `from troupe._base.bridge import native`.
"""

from __future__ import annotations

import sys

from troupe import _native as native, exceptions
from troupe._base.exception_pickles import dict_of
from troupe._base.tracebacks import with_source

__all__ = ["native", "raise_our_errors"]


def _task_error(
    cause: BaseException | None,
    type_name: str,
    text: str,
    traceback: str,
    method: str | None,
    description: str | None,
    of_argument: bool,
) -> BaseException:
    """Return the exception that get() raises when a method raised: of the exception's own type,
    with the remote traceback. With `of_argument` what made one of its arguments did, and the method
    did not run."""
    if cause is not None and dict_of(cause).pop("_passed_on", False):
        return cause
    kind = type(cause)  # the class may override what isinstance() sees
    where = f"{method}()" + (f" of {description}" if description else "") if method else "the call"
    if of_argument:
        where += " did not run: what makes one of its arguments"
    elif issubclass(
        kind, SystemExit
    ):  # any other non-zero code would be no answer, but the end of its process
        how = "exit_actor()" if issubclass(kind, exceptions.ActorExit) else "sys.exit()"
        if description is None or not description.startswith("actor "):
            return exceptions.WorkerCrashedError(f"{method}() ended its process by {how}")
        return exceptions.ActorDiedError(f"{description} ended itself by {how} in {method}()")
    traceback = with_source(traceback or "")
    text, type_name = text or "", type_name or "an exception"
    if issubclass(kind, exceptions.TaskError) and traceback:
        text = text.partition("\n")[0]  # the traceback ends with all of it
    body = "\n  ".join((traceback or f"{type_name}: {text}").rstrip().splitlines())
    base = exceptions.TaskError if cause is not None else exceptions.UnserializableException
    return exceptions.with_type_of(
        base,
        cause,
        f"{where} raised {type_name}: {text}\n  {body}",
        remote_traceback=traceback or "",
    )


def raise_our_errors() -> None:
    """Makes the native module raise this package's exceptions."""
    native.set_error_factory(exceptions.from_code)
    native.set_task_error_factory(_task_error)


def follow_ray() -> None:
    """Make small arrays read-only where they are got, as programs written for Ray expect."""
    native._make_small_arrays_read_only()


raise_our_errors()
if getattr(sys.modules.get("troupe.ray_compat"), "is_installed", bool)():
    follow_ray()


_borrowed_ref, _ref_by_hand = native._borrowed_ref, native._ref_by_hand  # for pickles: _pickled
