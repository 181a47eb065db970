"""Actor classes: what creates actors, looks them up and ends them.

`Counter.remote()` returns a handle at once; the class travels, the head places the actor, its
address comes by push. Calls made before that are kept in order and sent when the actor is there;
from then on they go straight to its process. A handle can be passed to other processes and looked
up by name.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from troupe import _pickled, exceptions
from troupe._actors import handle_counts, options as _actor_options, parameters
from troupe._actors.handle import ActorHandle, watched
from troupe._actors.handle_counts import Life
from troupe._actors.link import ActorLink
from troupe._actors.method_options import Remote, Traits
from troupe._actors.option_table import ActorOptions
from troupe._base import job as _job, words as _words
from troupe._base.identity import new_id
from troupe._cluster import infeasible, selectors, session as _session
from troupe._code import environment as _environment, main_import
from troupe._typed import ActorClassOf, ActorT, ConstructorT, option as _option

if TYPE_CHECKING:
    from typing import Never, Unpack

    from troupe._typed import DeclaredHandle

INLINE_BYTES_MAX = 64 << 10


class ActorClass(Remote, ActorClassOf[ActorT, ConstructorT]):
    """A class decorated with `@troupe.remote`.

    `remote(...)` creates an actor, `options(...)` changes how.
    """

    __class_getitem__: Any = classmethod(types.GenericAlias)  # ActorClass[A], for annotations

    def __init__(self, cls: type, options: Mapping[str, Any]) -> None:
        self._cls = cls
        self._options = _actor_options.check(selectors.of_group(options))
        self.__name__, self.__qualname__ = cls.__name__, cls.__qualname__
        self.__module__, self.__doc__ = cls.__module__, cls.__doc__

    def __call__(self, /, *args: object, **kwargs: object) -> Never:
        raise TypeError(
            f"Actors cannot be instantiated directly. Instead of '{self.__name__}()', use "
            f"'{self.__name__}.remote()'."
        )

    _shows_its_class = True

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the class: a constant, a static or class method, or a nested
        class, here and inside its actors."""
        cls = self.__dict__.get("_cls")
        own = cls is not None and (
            not name.startswith("__") or any(name in vars(each) for each in cls.__mro__[:-1])
        )
        if not own or not hasattr(cls, name):
            raise AttributeError(
                f"'ActorClass({cls.__name__ if cls is not None else '?'})' object has no attribute "
                f"{name!r}",
                name=name,
                obj=self,
            )
        return getattr(cls, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._cls)})

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        raise TypeError(
            f"a class cannot inherit from the actor class {self.__name__}: inherit from a plain "
            "class, and make what is "
            "derived from it an actor class with @remote"
        )

    def __repr__(self) -> str:
        return f"<actor class {self.__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.actor_class, (self._cls, self._options)

    @_option.documented(ActorOptions)
    def options(self, **options: Unpack[ActorOptions]) -> ActorClass[ActorT, ConstructorT]:
        """Return a copy of this class with other options for the actors it creates."""
        return ActorClass(self._cls, selectors.changed(self._options, options))

    if not TYPE_CHECKING:  # checkers read RemoteCall.remote

        def remote(self, /, *args: Any, **kwargs: Any) -> ActorHandle[ActorT]:
            """Creates an actor and returns its handle at once.

            Raises, before anything starts: LaunchError (arguments too large or unpicklable),
            PlacementError (no node can ever hold it), ActorAlreadyExistsError. What the constructor
            raises comes out of the first call, as ActorDiedError that is also of the exception's
            own type. So does the error of a ref among its arguments; where one is still to come the
            actor starts when it is there (one with a name is waited for here), and what would have
            been raised comes out of the first call too.
            """
            return create(self._cls, args, kwargs, self._options)

    def _remote(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[ActorOptions],
    ) -> ActorHandle[ActorT]:
        """Ray's other way to write `options(...).remote(*args, **kwargs)`."""
        made: Any = self.options(**options) if options else self
        handle: ActorHandle[ActorT] = made.remote(*(args or ()), **(kwargs or {}))
        return handle

    def bind(self, /, *args: Any, **kwargs: Any) -> Any:
        """An actor for each execution, as a node of a graph (troupe.dag)."""
        from troupe.dag import ClassNode

        return ClassNode(
            self, Traits.of_class(self._cls, self._options).methods or {}, args, kwargs
        )


def create(
    cls: type[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Mapping[str, Any],
    *,
    session: _session.Session | None = None,
    shown: bool = True,
    environment: Mapping[str, Any] | None = None,
) -> ActorHandle:
    """See ActorClass.remote.

    `session`: None: the process's own; unless `shown`, what it prints is in its logs alone.
    `environment`: built before, for many actors of the same options.
    """
    from troupe._actors.constructor import LateStart, Package

    main_import.refuse()
    session = session or _session.current()
    options = _actor_options.captured(options)
    traits = Traits.of_class(cls, options)
    _actor_options.check_methods(traits.methods or {}, options)
    check = parameters.check_of(cls.__name__, parameters.of_method(cls, "__init__"))
    if check is not None:
        check(len(args), tuple(kwargs))
    elif (args or kwargs) and all(
        getattr(cls, each) is getattr(object, each) for each in ("__init__", "__new__")
    ):
        raise TypeError(f"{cls.__name__}() takes no arguments: the class has no __init__")
    package = Package(cls, args, kwargs, traits, _actor_options.running_of(options))
    if environment is None:
        environment = _environment.build(
            options.get("runtime_env"), session=session, preimport=options.get("preimport") or ()
        )
    spec = _actor_options.spec_of(options, session, cls.__name__, new_id(), dict(environment))
    if spec["name"]:
        spec["methods"] = traits.to_json()
    spec["shown"] = spec["shown"] and shown
    link, _ = ActorLink.of_or_new(
        session, spec["actor"], cls.__name__, traits.max_pending_calls, traits.ordered
    )
    link.keep(package.refs, restarts=spec["max_restarts"] != 0)
    if package.to_come and not spec["name"]:
        link.late = LateStart(
            package,
            lambda payload: _ask(session, spec, payload, link, traits, options),
            link.end,
            link.label,
        )
        return _counted(link, traits)
    return asked_for(session, spec, package.payload(), link, traits, options)


def asked_for(
    session: _session.Session,
    spec: dict[str, Any],
    payload: bytes,
    link: ActorLink,
    traits: Traits,
    options: Mapping[str, Any],
) -> ActorHandle:
    """Asks the head for the actor of `spec`, to which `link` leads; its handle.

    Raises what ActorClass.remote does.
    """
    if not spec["name"]:
        _ask(session, spec, payload, link, traits, options)
        return ActorHandle(link, traits) if spec["detached"] else _counted(link, traits)
    with handle_counts.naming:
        try:
            asked = _ask(session, spec, payload, link, traits, options)
        except BaseException:
            link.forget()
            raise
        if asked is not link:
            link.forget()
        mine = asked.is_maker or (asked is link and not spec["detached"])
        return _counted(asked, traits) if mine else ActorHandle(asked, traits)


def _counted(link: ActorLink, traits: Traits) -> ActorHandle:
    return ActorHandle(link, traits, Life.of_new(link))


def _ask(
    session: _session.Session,
    spec: dict[str, Any],
    payload: bytes,
    link: ActorLink,
    traits: Traits,
    options: Mapping[str, Any],
) -> ActorLink:
    """Asks the head for an actor; its link, which is another one where get_if_exists found an
    actor."""
    if len(payload) > INLINE_BYTES_MAX:
        from troupe._cluster import blobs

        spec["payload"], payload = blobs.put(session, payload), b""
    try:
        _, update, data = infeasible.request(
            session,
            "CreateActor",
            {"spec": spec},
            spec,
            payload,
            asked=options.get("infeasible"),
            what=link.label,
        )
    except exceptions.AlreadyExistsError as error:
        text = _words.current.of_taken_name(spec["name"], spec["namespace_"], str(error))
        raise exceptions.ActorAlreadyExistsError(text) from None
    except exceptions.PlacementError as error:
        raise exceptions.ActorUnschedulableError(str(error)) from None
    info = update["info"]
    if (
        info["actor"] != spec["actor"]
    ):  # link messages that arrived before this process had a link to the actor
        return watched(session, info["actor"], info["class_name"], traits)
    if not link.dead:  # a push was faster, and it is forgotten again
        session.board.post_reply("actor", info["actor"], info, data)
    return link


def get_actor(name: str, namespace: str | None = None) -> ActorHandle[Any]:
    """A handle of a named actor, which does not keep it alive; of this program's namespace, unless
    `namespace` says which.

    Raises ValueError when there is none of that name alive.
    """
    session = _session.current()
    where = _job.check_namespace(namespace) or session.namespace
    if not isinstance(name, str) or not name:
        raise ValueError(f"get_actor() takes the name of an actor, not {name!r}")
    try:
        _, update, _ = session.request("GetNamedActor", {"name": name, "namespace_": where})
    except exceptions.NotFoundError as error:
        raise ValueError(f"Failed to look up actor with name {name!r}: {error}") from None
    info = update["info"]
    if info["state"] == "dead":
        raise ValueError(f"Failed to look up actor with name {name!r}: it is dead")
    traits = Traits.from_json(info["methods"])
    return ActorHandle(watched(session, info["actor"], info["class_name"], traits), traits)


def find_actor(name: str, namespace: str) -> ActorHandle[Any] | None:
    """Return a handle of a named actor, as `get_actor`; None: there is none any more, or this
    process is connected to no cluster."""
    if _session.current_or_none() is None:
        return None
    try:
        return get_actor(name, namespace)
    except ValueError:
        return None


def kill(actor: DeclaredHandle[Any] | type[Any], *, no_restart: bool = True) -> None:
    """Ends an actor at once; its calls fail with ActorDiedError, those made here from now on
    too."""
    if not isinstance(actor, ActorHandle):
        raise ValueError(f"kill() takes an actor handle, not {type(actor).__name__}")
    actor._link.kill(no_restart=no_restart)


@_pickled.maker("actor_class")
def _actor_class(cls: type, options: Mapping[str, Any]) -> Any:
    """Build the ActorClass of a class decorated with `@remote`."""
    return ActorClass(cls, options)
