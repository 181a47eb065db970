"""From a function and its arguments to a submitted launch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from troupe import exceptions
from troupe._base import checks as _checks, job as _job
from troupe._base.identity import new_id, short
from troupe._cluster import connect, infeasible, resources, session as _session, status_lines, view
from troupe._code import capture, environment, main_import, runtime_env, travelled
from troupe._tracking import begin
from troupe._typed import option as _option
from troupe.launch import _context, _hints, _over_ray
from troupe.launch._handle import LaunchHandle, handle_of_known
from troupe.launch._options import table as _launches

INLINE_BYTES_MAX = 64 << 10
_MEANS_TROUPE: dict[str | None, str | bool] = {
    "troupe": runtime_env.WHEN_IMPORTED,
    "ray": False,
}  # the meaning of `import ray` in a launch; without an api, as it is here


def session_for(remote: bool) -> _session.Session:
    """The cluster a launch goes to: the connected one, or the embedded one of this process; in an
    actor or a task the one that it is in.

    Raises ConnectionError for `remote=True` with neither init() nor TROUPE_ADDRESS.
    """
    current = _session.current_or_none()
    if not remote:
        if current is not None and (current.embedded is not None or current.in_process):
            return current
        return connect.from_environment() if _session.is_of_a_cluster() else connect.embedded()
    if current is not None:
        return current
    return connect.from_environment()


def refuse_inside_a_rank() -> None:
    main_import.refuse()
    context = _context.current_or_none()
    if context is not None:
        raise RuntimeError(
            f"this is rank {context.rank} of launch {context.launch[:4]} already: a launch inside "
            "a launch would "
            "wait for resources its own ranks hold. Use torch.distributed's groups here, or in a "
            "@ray_launch "
            "troupe.launch.current().run(...)"
        )
    session = _session.current_or_none()
    if session is not None and session.launch:
        raise RuntimeError(
            f"this actor belongs to launch {session.launch[:4]}: a launch inside a launch would "
            "wait for "
            "resources that launch holds. Use actors here, or let the driver call "
            "current().run(...)"
        )


def submit(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Any,
    *,
    place: Callable[[Any], tuple[Any, Any]],
    without_place: Callable[[Any], str],
) -> LaunchHandle[Any]:
    """See DistributedFunction.submit.

    `place`, of the options: the session of this launch, and its options there. `without_place`, of
    the session: what to say where no node can hold ranks with GPUs.
    """
    refuse_inside_a_rank()
    session, options = place(options)
    if (
        options.mode == "driver"
        and options.api is None
        and not _job.follows_ray()
        and _hints.imports_ray(function)
    ):
        status_lines.say(
            f"troupe: {getattr(function, '__name__', 'the driver')} imports ray, which is Ray "
            f"itself, beside this cluster: {_hints.RAY}",
            quiet=options.quiet,
        )
    payload = capture.dumps(
        _over_ray.OverRay(function) if options.api == "ray" else function,
        args,
        kwargs,
        what="the function",
    )
    travels = environment.build(
        options.runtime_env,
        options.inherit_env,
        session=session,
        ray_compat=_MEANS_TROUPE.get(options.api),
        preimport=options.preimport,
        as_now=True,
    )
    if options.api == "ray":
        travels["env"] = _over_ray.settled(travels["env"])
    spec = spec_of(options, getattr(function, "__name__", "launch"), travels)
    spec["function_name"] = f"{function.__module__}.{getattr(function, '__qualname__', 'function')}"
    return send(session, spec, payload, options, without_place)


def spec_of(options: Any, name: str, travels: dict[str, Any]) -> dict[str, Any]:
    """The LaunchSpec of these options; `name` where they have none, `travels` its
    RuntimeEnvironment."""
    spec = {
        "name": options.name or name,
        "function_name": name,
        "mode": options.mode,
        "ranks": options.ranks,
        "nodes": options.nodes,
        "per_rank": resources.to_wire(
            {
                "CPU": options.cpus_per_rank,
                "GPU": 1 if options.gpus else 0,
                "memory": options.memory,
            }
        ),
        "where": options.where,
        "environment": travels,
        **_option.message_of(_launches.ALL, vars(options)),
    }
    travels["travelled"] += [travelled.of_door(options.door), *travelled.of_about(options.about)]
    if options.backend:
        travels["env"].append({"name": _checks.TORCH_BACKEND, "value": options.backend})
    if status_lines.is_quiet(options.quiet):  # rank 0's marker line too
        travels["env"].append({"name": status_lines.QUIET, "value": "1"})
    return spec


def send(
    session: _session.Session,
    spec: dict[str, Any],
    payload: bytes,
    options: Any,
    without_place: Callable[[Any], str] | None = None,
    source: str = "",
    request: str = "",
) -> LaunchHandle:
    """Submits it.

    `without_place`: see submit; None: what is said of GPUs. `source`: the file that its ranks run,
    where it is not this program's. `request`: the id of the submission, "" for a new one; the head
    takes each once, and answers a repeat with the launch of the first. Raises PlacementError for
    what the cluster can never hold.
    """
    request = request or (
        request_of(options.idempotency_key) if options.idempotency_key else new_id()
    )
    if options.idempotency_key:
        known = submitted_before(session, options)
        if known is not None:
            return known
        spec["environment"]["travelled"].append(travelled.of_request(request))
    if len(payload) > INLINE_BYTES_MAX:
        from troupe._cluster import blobs

        spec["payload"], payload = blobs.put(session, payload), b""
    returns = session.returns
    tracked = begin.tracked(session, spec, options, source)
    try:
        _, accepted, _ = infeasible.request(
            session,
            "SubmitLaunch",
            {"spec": spec, "request": request},
            spec,
            payload,
            asked=options.infeasible,
            what=f"the launch {spec['name']}",
            cpus="cpus_per_rank={}",
        )
    except BaseException as error:
        if tracked is not None:
            tracked.refused()
        if not isinstance(error, exceptions.PlacementError):
            raise
        hint = f"\n  {(without_place or _hints.of_gpus)(session)}" if options.gpus else ""
        raise exceptions.PlacementError(f"{error}{hint}") from None
    if tracked is not None:
        tracked.submitted(accepted["launch"])
    return LaunchHandle(
        session,
        accepted["launch"],
        waiting_for=accepted["waiting_for"],
        returns=returns,
        stop_grace=options.stop_grace,
        ends_with_program=not options.detach,
        tracked=tracked,
    )


def request_of(key: str) -> str:
    """Return the id that every submission with this idempotency key has.

    The head takes a request once, also after a restart.
    """
    return hashlib.sha256(b"troupe idempotency key\0" + key.encode()).hexdigest()[:32]


def submitted_before(session: _session.Session, options: Any) -> LaunchHandle | None:
    """Return the launch that was submitted with the options' idempotency key, which is said; None
    without a key or such a launch."""
    if not options.idempotency_key:
        return None
    request = request_of(options.idempotency_key)
    launches = view.find_launches(session, request=request)
    text = travelled.of_request(request)
    known = next((each["launch"] for each in launches if text in each["travelled"]), None)
    if known is None:
        return None
    status_lines.say(
        f"troupe: launch {short(known)} was submitted with this idempotency key before; no other "
        "one is started",
        quiet=options.quiet,
    )
    return handle_of_known(
        session, known, stop_grace=options.stop_grace, ends_with_program=not options.detach
    )
