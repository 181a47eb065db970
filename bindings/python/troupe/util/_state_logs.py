"""`list_logs` and `get_log` of Ray's `ray.util.state`: what actors, processes for tasks and ranks
wrote.

The text lies with the nodes. Its files are named here as Ray names them, by whose they are:
`worker-<actor id>.out` and `.err`, `launch-<id>-rank-<n>.out` and `.err`.
"""

from __future__ import annotations

import collections
import fnmatch
from collections.abc import Iterable, Iterator
from typing import Any

from troupe import state
from troupe._cluster import connect, logs, view
from troupe._cluster.logs import Source
from troupe.launch import _logs as _launch_logs

_SUFFIXES = {"out": False, "err": True}


def _files(session: Any) -> dict[str, Source]:
    """All by their names."""
    found = {}
    for actor in state.list_actors(session, tasks=True):
        for source in logs.of_actor(actor) if actor["node_id"] else ():
            found[f"worker-{actor['actor_id']}.{_suffix(source)}"] = source
    for info in view.iter_launches(session):
        for source in _launch_logs.sources(info, info["rank_infos"]):
            found[f"launch-{info['launch']}-rank-{source.label}.{_suffix(source)}"] = source
    return found


def _suffix(source: Source) -> str:
    return "err" if source.target["stderr"] else "out"


def _node_of(session: Any, node_id: str | None, node_ip: str | None) -> str | None:
    """The id of the node that is meant; None: any."""
    if node_ip is None:
        return node_id
    found = [
        each["node_id"]
        for each in state.list_nodes(session)
        if each["address"].rpartition(":")[0].strip("[]") == node_ip
    ]
    if len(found) != 1:
        raise ValueError(
            f"{'several nodes have' if found else 'no node has'} the address {node_ip}: name one "
            "by node_id="
        )
    result: str | None = found[0]
    return result


def list_logs(
    address: str | None = None,
    node_id: str | None = None,
    node_ip: str | None = None,
    glob_filter: str | None = None,
    timeout: int = 30,
) -> dict[str, list[str]]:
    """Names for `get_log` by what they are of: "worker_out", "worker_err", "job_out", "job_err".

    Of one node, or of all; `glob_filter`: those that match, e.g. "*7f3a*". View: the cluster;
    blocking.
    """
    _only_here(address)
    session = connect.session_here()
    node = _node_of(session, node_id, node_ip)
    kinds: dict[str, list[str]] = collections.defaultdict(list)
    for name, source in _files(session).items():
        if node in (None, source.node) and fnmatch.fnmatchcase(name, glob_filter or "*"):
            kinds[f"{'job' if 'launch' in source.target else 'worker'}_{_suffix(source)}"].append(
                name
            )
    return dict(kinds)


def get_log(
    address: str | None = None,
    node_id: str | None = None,
    node_ip: str | None = None,
    filename: str | None = None,
    actor_id: str | None = None,
    task_id: str | None = None,
    pid: int | None = None,
    follow: bool = False,
    tail: int = -1,
    timeout: int = 30,
    suffix: str = "out",
    encoding: str | None = "utf-8",
    errors: str | None = "strict",
    submission_id: str | None = None,
    attempt_number: int = 0,
) -> Iterator[str]:
    """Lines of what an actor (`actor_id`), a process (`pid`, of the node that is named), all ranks
    of a launch (`submission_id`) or a file of `list_logs` (`filename`) has written: to stdout, or
    with `suffix="err"` to stderr.

    `follow`: until it ends; `tail`: the last so many lines, -1 for all. Blocks while lines are
    taken. Raises ValueError, at once, for what is not there, ConnectionError when the node's worker
    cannot be reached.
    """
    _only_here(address)
    if suffix not in _SUFFIXES:
        raise ValueError(f"suffix is 'out' or 'err', not {suffix!r}")
    if task_id is not None:
        raise ValueError(
            "what a task writes is in the log of its process: actor_id= of one of list_workers(), "
            "or filename= of "
            "list_logs()"
        )
    given = {"filename": filename, "actor_id": actor_id, "pid": pid, "submission_id": submission_id}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise ValueError(
            f"one of {', '.join(given)} says which log is wanted, not "
            f"{' and '.join(named) or 'none'}"
        )
    session = connect.session_here()
    node = _node_of(session, node_id, node_ip)
    if filename is not None:
        source = _files(session).get(filename)
        if source is None:
            raise ValueError(f"there is no log {filename!r}; list_logs() has their names")
        chosen = [source]
    elif submission_id is not None:
        chosen = [
            source
            for source in _launch_sources(session, submission_id)
            if _suffix(source) == suffix
        ]
    else:
        chosen = logs.of_actor(_process(session, actor_id, pid, node), stderr=_SUFFIXES[suffix])
    if follow and len(chosen) > 1:
        return (line for _, _, line in logs.Follower(session, chosen))
    lines = (line for source in chosen for line in logs.lines(session, source, follow=follow))
    return lines if follow or tail < 0 else iter(_last(lines, tail))


def _launch_sources(session: Any, launch: str) -> list[Source]:
    for info in view.find_launches(session, launch):
        if info["launch"] == launch:
            return _launch_logs.sources(info, info["rank_infos"])
    raise ValueError(f"there is no launch {launch}; list_jobs() has their ids")


def _process(
    session: Any, actor_id: str | None, pid: int | None, node: str | None
) -> dict[str, Any]:
    """The actor, or process for tasks, of this id, or of this pid."""
    processes = state.list_actors(session, tasks=True)
    if actor_id is not None:
        found = [each for each in processes if each["actor_id"] == actor_id]
        if not found:
            raise ValueError(f"there is no actor {actor_id}; list_actors() has their ids")
        return found[0]
    found = [each for each in processes if each["pid"] == pid and node in (None, each["node_id"])]
    if len({each["node_id"] for each in found}) > 1:
        raise ValueError(f"process {pid} is on several nodes: name one by node_id= or node_ip=")
    if not found:
        raise ValueError(f"no actor or task has run in process {pid}; list_workers() has theirs")
    return max(found, key=lambda each: each["state"] == "alive")  # a pid comes again


def _last(lines: Iterable[str], count: int) -> Iterable[str]:
    return collections.deque(lines, maxlen=count)


def _only_here(address: str | None) -> None:
    if address not in (None, "auto"):
        raise ValueError(
            "address= is not for this call: it asks the cluster that init() connected this process "
            "to"
        )
