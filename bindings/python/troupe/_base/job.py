"""State shared by all processes of a program: its job id, and the namespace in which it makes and
looks up names.

A program that does not say which namespace has one of its own, so that two runs of one script on a
cluster do not meet. Its actors, tasks and ranks, and what these start in turn, find both in the
environment.
"""

from __future__ import annotations

import os
import sys
import uuid
from typing import Any

from troupe._base.identity import new_id

NAMESPACE = "TROUPE_NAMESPACE"
JOB = "TROUPE_JOB_ID"
RUNTIME_ENV = "TROUPE_JOB_RUNTIME_ENV"
"""Variable of a job's processes: the runtime_env of the job, as JSON, which is that of all that
they start."""


def check_namespace(namespace: Any) -> str | None:
    """`namespace` as given by the user.

    Raises TypeError for what is no string, ValueError for an empty one.
    """
    if namespace is not None and not isinstance(namespace, str):
        raise TypeError(f"namespace={namespace!r}: a string, or None for the program's own")
    if namespace == "":
        raise ValueError('namespace="" is not a valid namespace: pass None for the program\'s own')
    return namespace


def namespace_of(given: Any) -> str:
    """Return the namespace of a program that called init() with `given`: that name, else
    TROUPE_NAMESPACE, else the notebook kernel's, else a new one.

    Raises as check_namespace().
    """
    return (
        check_namespace(given)
        or inherited_namespace()
        or _namespace_of_notebook()
        or str(uuid.uuid4())
    )


def _namespace_of_notebook() -> str:
    """A namespace that a notebook's next kernel has too, so that it finds what this one has named;
    "" in processes that are no kernel, or whose notebook is unknown."""
    path = os.environ.get("JPY_SESSION_NAME", "")  # as Jupyter's server sets it
    if not path or "ipykernel" not in sys.modules:
        return ""
    import hashlib

    whole = f"{os.getuid()}@{os.uname().nodename}:{path}"
    return f"notebook-{os.path.basename(path)}-{hashlib.sha256(whole.encode()).hexdigest()[:16]}"


def inherited_namespace() -> str:
    """Return the namespace of the program that started this process; empty if it set none."""
    return os.environ.get(NAMESPACE, "")


def follows_ray() -> bool:
    """Return True if `import ray` means Troupe in this process (`troupe.ray_compat`); False while
    that is being imported."""
    return bool(getattr(sys.modules.get("troupe.ray_compat"), "is_installed", bool)())


def job_of(launch: str) -> str:
    """Return the job id of a process: its launch's, its starting program's, or a new one of 8 hex
    digits as Ray's."""
    return launch or os.environ.get(JOB) or new_id()[:8]
