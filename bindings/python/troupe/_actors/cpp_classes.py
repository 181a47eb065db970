"""Actor classes of C++: their processes are executables that register them (`actors/api`), not
interpreters.

Arguments and results are plain values: None, bool, int of 64 bits, float, str, bytes, and lists,
tuples and dicts of them. They travel as they do between actors of Python; the other side reads no
more of a pickle than that.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from typing import Any

from troupe import exceptions
from troupe._actors import classes, options as _actor_options
from troupe._actors.handle import ActorHandle
from troupe._actors.link import ActorLink
from troupe._actors.method_options import Remote, Traits
from troupe._base import calls as _calls
from troupe._base.identity import new_id
from troupe._cluster import selectors, session as _session
from troupe._code import capture, environment as _environment

_NOT_OF_CPP = {
    "max_concurrency": "its methods run one after the other",
    "concurrency_groups": "its methods run one after the other",
    "preimport": "its process is no interpreter",
    "exit_grace": "its process is no interpreter",
}
_DEPTH_MAX = 200


class CppActorClass(Remote):
    """A class that an executable registers with TROUPE_ACTOR.

    `remote(...)` creates an actor, `options(...)` changes how.
    """

    def __init__(self, executable: str, class_name: str, options: Mapping[str, Any]) -> None:
        for name, why in _NOT_OF_CPP.items():
            if options.get(name) not in (None, 1, {}, ()):
                raise ValueError(f"{name}={options[name]!r} is no option of a C++ actor: {why}")
        environment = options.get("runtime_env") or {}
        if set(environment) - {"env_vars"}:
            raise ValueError(
                "a C++ actor takes the env_vars of a runtime_env, not "
                f"{', '.join(sorted(set(environment) - {'env_vars'}))}: put what "
                "its executable needs where it runs"
            )
        self._options = _actor_options.check(selectors.of_group(options))
        self._executable, self._class_name = executable, class_name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"Actors cannot be instantiated directly. Instead of '{self._class_name}()', use "
            f"'{self._class_name}.remote()'."
        )

    def __repr__(self) -> str:
        return f"<actor class {self._class_name} of {self._executable}>"

    def options(self, **options: Any) -> CppActorClass:
        """Return a copy of this class with other options for the actors it creates: those of an
        actor class of Python, but for what an interpreter does."""
        return CppActorClass(
            self._executable, self._class_name, selectors.changed(self._options, options)
        )

    def remote(self, /, *args: Any) -> ActorHandle:
        """Creates an actor and returns its handle at once; its methods are called as those of any
        actor, by places.

        Raises, before anything starts: FileNotFoundError (no such executable, where all nodes are
        on this host), TypeError (an argument that C++ does not take), TooLargeError,
        PlacementError, ActorAlreadyExistsError. An executable that is missing on the node, crashes
        or does not register the class, and what the constructor throws, come out of the first call,
        as ActorDiedError. A ref among the arguments is waited for.
        """
        return _create(self._executable, self._class_name, args, self._options)


def cpp_actor_class(executable: str | os.PathLike[str], class_name: str) -> CppActorClass:
    """The class of that name that an executable registers: `cpp_actor_class("build/hello_actor",
    "Counter").remote(5)`.

    `executable`: its path on the nodes where it is to run; a relative one is of this program's
    directory. Nothing is started or looked for yet. Raises TypeError for what is no text.
    """
    path = os.fspath(executable)
    if not isinstance(path, str) or not isinstance(class_name, str) or not path or not class_name:
        raise TypeError(
            f"cpp_actor_class({executable!r}, {class_name!r}): the path of an executable, and the "
            "name of a class that it registers"
        )
    return CppActorClass(os.path.abspath(path), class_name, {})


def _create(
    executable: str, class_name: str, args: tuple[Any, ...], options: Mapping[str, Any]
) -> ActorHandle:
    session = _session.current()
    if session.same_host and not os.access(executable, os.X_OK):
        problem = (
            "is no program that this user may execute"
            if os.path.exists(executable)
            else "does not exist"
        )
        raise FileNotFoundError(
            f"the executable {executable} of the C++ class {class_name} {problem}"
        )
    options = _actor_options.captured(options)
    payload = _payload(class_name, args)
    environment = {
        **_environment.build(options.get("runtime_env"), session=session),
        "program": executable,
        "import_path": [],
        "python_version": "",
        "fresh_interpreter": False,
        "preimport": [],
        "setup": "",
        "preimport_installed": False,
    }
    spec = _actor_options.spec_of(options, session, class_name, new_id(), environment)
    traits = Traits(
        None, options.get("max_task_retries") or 0, options.get("max_pending_calls") or -1
    )
    link, _ = ActorLink.of_or_new(
        session, spec["actor"], class_name, traits.max_pending_calls, traits.ordered
    )
    return classes.asked_for(session, spec, payload, link, traits, options)


def _payload(class_name: str, args: tuple[Any, ...]) -> bytes:
    values = [_calls.get(each) if type(each) is _calls.Ref else each for each in args]
    for number, value in enumerate(values, 1):
        _check(value, f"argument {number} of {class_name}()", 0)
    payload = pickle.dumps(values, protocol=5)
    if len(payload) > capture.LIMIT_BYTES:
        raise exceptions.TooLargeError(
            f"the arguments of {class_name}() take {capture.size_text(len(payload))}; "
            f"{capture.size_text(capture.LIMIT_BYTES)} "
            "is the limit: give large values by a call"
        )
    return payload


def _check(value: Any, what: str, depth: int) -> None:
    """Raises TypeError for what C++ does not take."""
    if depth > _DEPTH_MAX:
        raise TypeError(f"{what} has more than {_DEPTH_MAX} lists or dicts inside each other")
    kind = type(value)
    if kind in (list, tuple):
        for each in value:
            _check(each, what, depth + 1)
    elif kind is dict:
        for key, each in value.items():
            _check(key, what, depth + 1)
            _check(each, what, depth + 1)
    elif kind is int and not -(2**63) <= value < 2**63:
        raise TypeError(f"{what} holds the int {value}, of more than 64 bits: give it as a str")
    elif value is not None and kind not in (bool, int, float, str, bytes):
        raise TypeError(
            f"{what} holds a {kind.__module__}.{kind.__qualname__}; C++ takes None, bool, int, "
            "float, str, bytes, and lists, tuples and "
            "dicts of them"
        )
