"""The node of a `troupe run` that this is, found in the launcher's environment.

Pure: environment in, Place out.

Each launcher is one function below; the first that finds itself answers. What is given by option
goes before all of them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

NODES_MAX = 65536


class PlaceError(ValueError):
    """The environment and the options do not say, or contradict each other; the text says what was
    read."""


@dataclass(frozen=True)
class Place:
    """This node's place in the run.

    `rank` None: found out by `--address` (the node that has it leads).
    """

    rank: int | None
    nodes: int
    host: str = ""  # host of the head; empty: this node alone
    port: int = 0  # 0: the one derived from the secret
    run: str = ""  # the launcher's name of the run: two runs are two clusters
    source: str = "--address"  # origin of the place, for people
    names: tuple[str, ...] = field(default=())  # names of all nodes by rank, where known

    def own_name(self, host: str) -> str:
        """Return the name of this node: the launcher's name for it, else the host's."""
        known = (
            self.names[self.rank] if self.rank is not None and self.rank < len(self.names) else host
        )
        return re.sub("[^A-Za-z0-9._-]", "-", known).lstrip("._-")[:63] or "node"

    def name_of(self, rank: int) -> str:
        """`node 3 (gpu-07)`."""
        return f"node {rank}" + (f" ({self.names[rank]})" if rank < len(self.names) else "")


@dataclass(frozen=True)
class _Found:
    """The facts one launcher gives."""

    source: str
    rank: int
    size: int | None
    host: str
    run: str
    local_rank: int = 0
    one_per_node: str = ""  # how this launcher starts one task per node
    names: tuple[str, ...] = ()


def read(
    env: Mapping[str, str],
    *,
    nodes: int | None = None,
    address: str | None = None,
    node_rank: int | None = None,
    run: str | None = None,
) -> Place:
    """This node's place.

    Options (None: not given) win over the environment.

    Raises PlaceError when neither says where the head is, when a second task runs on a node, or
    when `nodes` and the launcher disagree.
    """
    found = next((each for each in (reader(env) for reader in _READERS) if each is not None), None)
    if node_rank is None and env.get("TROUPE_NODE_RANK"):
        node_rank = _number(env, "TROUPE_NODE_RANK")
    count = nodes if nodes is not None else found.size if found is not None else None
    if count is None:
        raise PlaceError("--nodes N is needed: no launcher says how many nodes there are")
    host, port = _split(address) if address else (found.host if found else "", 0)
    name = run or env.get("TROUPE_RUN_ID") or (found.run if found else "")
    if node_rank is not None:
        _check_rank(
            node_rank,
            count,
            "--node-rank" if found is None or found.rank != node_rank else found.source,
        )
        rank: int | None = node_rank
    elif found is not None:
        _check_launcher(found, count)
        rank = found.rank
    else:
        rank = 0 if count == 1 else None
    if count > 1 and not host:
        raise PlaceError(_no_address(found))
    source = (
        found.source
        if found is not None and node_rank is None
        else "--node-rank"
        if node_rank is not None
        else "--address"
    )
    return Place(rank, count, host, port, name, source, found.names if found is not None else ())


def _check_rank(rank: int, count: int, source: str) -> None:
    if not 0 <= rank < count:
        raise PlaceError(
            f"node rank {rank} ({source}) is not one of 0 to {count - 1}: --nodes is {count}"
        )


def _check_launcher(found: _Found, count: int) -> None:
    if found.local_rank > 0:
        raise PlaceError(
            f"this is task {found.local_rank} of its node ({found.source}): troupe run is started "
            "once "
            f"per node\n  {found.one_per_node}"
        )
    if found.size is not None and found.size < count:
        raise PlaceError(
            f"--nodes is {count}, but {found.source} started {found.size}: the others would never "
            "come"
        )
    if found.rank >= count:
        raise PlaceError(
            f"this is node {found.rank} of the {found.size if found.size is not None else 'nodes'} "
            "that "
            f"{found.source} started, and --nodes is {count}: it is one too many and leaves"
        )


def _no_address(found: _Found | None) -> str:
    looked = {
        "torchrun": "MASTER_ADDR",
        "Open MPI": "MASTER_ADDR, AZ_BATCH_MASTER_NODE, SLURM_JOB_NODELIST",
        "Slurm": "SLURM_STEP_NODELIST, SLURM_JOB_NODELIST",
        "LeaderWorkerSet": "LWS_LEADER_ADDRESS",
    }
    if found is not None:
        where = looked.get(found.source, "MASTER_ADDR")
        return (
            f"{found.source} does not say where node 0 is ({where}: not set)\n"
            "  give it: troupe run --address HOST:PORT ..."
        )
    return (
        "where is node 0? No launcher was found in the environment (looked for GROUP_RANK of "
        "torchrun, "
        "OMPI_COMM_WORLD_RANK of Open MPI, SLURM_PROCID of Slurm, LWS_WORKER_INDEX of "
        "LeaderWorkerSet, NODE_RANK with "
        "MASTER_ADDR)\n  give its address on every node: troupe run --address HOST:PORT ..."
    )


def _number(env: Mapping[str, str], name: str) -> int:
    text = env[name].strip()
    if re.fullmatch("[0-9]{1,9}", text) is None:
        raise PlaceError(f"{name} is {text!r}, which is no number")
    return int(text)


def _optional(env: Mapping[str, str], *names: str) -> int | None:
    for name in names:
        if env.get(name):
            return _number(env, name)
    return None


def _first(env: Mapping[str, str], *names: str) -> str:
    return next((env[name] for name in names if env.get(name)), "")


_ADDRESS = re.compile(
    r"\[([^\]]+)\](?::([0-9]{1,9}))?|([^:\s]+)(?::([0-9]{1,9}))?"
    r"|([0-9a-fA-F:]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*)"
)


def _split(address: str) -> tuple[str, int]:
    """(host, port) of `host:port`, `host` or `[::1]:port`; port 0 where there is none."""
    match = _ADDRESS.fullmatch(address.strip())
    if match is None:
        raise PlaceError(f"{address!r} is no address; it looks like 10.0.0.1:6400 or node-a:6400")
    host = match[1] or match[3] or match[5]
    port = int(match[2] or match[4] or 0)
    if port > 65535:
        raise PlaceError(f"{address!r} is no address: ports end at 65535")
    return host, port


# ---- launchers ----


def _torchrun(env: Mapping[str, str]) -> _Found | None:
    if not env.get("GROUP_RANK") or not env.get("GROUP_WORLD_SIZE"):
        return None
    run = env.get("TORCHELASTIC_RUN_ID", "")
    return _Found(
        "torchrun",
        _number(env, "GROUP_RANK"),
        _number(env, "GROUP_WORLD_SIZE"),
        env.get("MASTER_ADDR", ""),
        ""
        if run in ("", "none")
        else f"torchrun {run} {env.get('TORCHELASTIC_RESTART_COUNT', '0')}",
        _optional(env, "LOCAL_RANK") or 0,
        "start it with: torchrun --nproc-per-node 1 --no-python troupe run ...",
    )


def _open_mpi(env: Mapping[str, str]) -> _Found | None:
    if not env.get("OMPI_COMM_WORLD_RANK"):
        return None
    # Azure adds a port that is for mpirun's own use.
    said = _first(env, "MASTER_ADDR", "AZ_BATCH_MASTER_NODE", "AZ_BATCHAI_MPI_MASTER_NODE")
    listed = expand(_first(env, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"))
    host = _split(said)[0] if said else listed[0] if listed else ""
    run = _first(env, "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")
    return _Found(
        "Open MPI",
        _number(env, "OMPI_COMM_WORLD_RANK"),
        _optional(env, "OMPI_COMM_WORLD_SIZE"),
        host,
        f"mpi {run}" if run else "",
        _optional(env, "OMPI_COMM_WORLD_LOCAL_RANK") or 0,
        "start it with: mpirun --map-by ppr:1:node troupe run ...",
    )


def _slurm(env: Mapping[str, str]) -> _Found | None:
    # Inside `salloc` the job's variables are there without a step; only a step has tasks.
    if not env.get("SLURM_PROCID"):
        return None
    names = expand(_first(env, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"))
    rank = _optional(env, "SLURM_NODEID")
    run = ".".join(
        part
        for part in (
            _first(env, "SLURM_JOB_ID", "SLURM_JOBID"),
            _first(env, "SLURM_STEP_ID", "SLURM_STEPID"),
            env.get("SLURM_RESTART_COUNT", ""),
        )
        if part
    )
    return _Found(
        "Slurm",
        _number(env, "SLURM_PROCID") if rank is None else rank,
        _optional(env, "SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
        names[0] if names else "",
        f"slurm {run}" if run else "",
        _optional(env, "SLURM_LOCALID") or 0,
        "start it with: srun --ntasks-per-node=1 troupe run ...",
        names,
    )


def _leader_worker_set(env: Mapping[str, str]) -> _Found | None:
    if not env.get("LWS_WORKER_INDEX"):
        return None
    leader = env.get("LWS_LEADER_ADDRESS", "")
    return _Found(
        "LeaderWorkerSet",
        _number(env, "LWS_WORKER_INDEX"),
        _optional(env, "LWS_GROUP_SIZE"),
        leader,
        f"lws {leader}" if leader else "",
    )


def _plain(env: Mapping[str, str]) -> _Found | None:
    if not env.get("NODE_RANK") or not env.get("MASTER_ADDR"):
        return None
    return _Found(
        "NODE_RANK and MASTER_ADDR",
        _number(env, "NODE_RANK"),
        _optional(env, "NNODES"),
        env["MASTER_ADDR"],
        "",
        _optional(env, "LOCAL_RANK") or 0,
        "start it once per node",
    )


# The innermost launcher first: torchrun and mpirun are started by Slurm, not the other way round.
_READERS: tuple[Callable[[Mapping[str, str]], _Found | None], ...] = (
    _torchrun,
    _open_mpi,
    _slurm,
    _leader_worker_set,
    _plain,
)


# ---- Slurm's lists of hosts ----


def expand(text: str) -> tuple[str, ...]:
    """The hosts of `rack[1-2]n[01-03,7],head`, in order; () for an empty text.

    Raises PlaceError for a list that is malformed or longer than 65,536.
    """
    hosts: list[str] = []
    for part in _top_level(text.strip()):
        pieces = re.split(r"\[([^\]]*)\]", part)
        if "[" in "".join(pieces[::2]) or "]" in "".join(pieces[::2]):
            raise PlaceError(f"the list of hosts {text!r} has a bracket that does not close")
        choices = [
            [piece] if index % 2 == 0 else _numbers(piece, text)
            for index, piece in enumerate(pieces)
        ]
        for combination in itertools.product(*choices):
            hosts.append("".join(combination))
            if len(hosts) > NODES_MAX:
                raise PlaceError(f"the list of hosts {text[:80]!r} names more than {NODES_MAX}")
    return tuple(hosts)


def _top_level(text: str) -> list[str]:
    """Parts between the commas that are in no bracket."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part for part in [*parts, text[start:]] if part]


def _numbers(ranges: str, text: str) -> list[str]:
    """`01-03,7` -> 01, 02, 03, 7."""
    numbers: list[str] = []
    for part in ranges.split(","):
        match = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", part.strip())
        if match is None:
            raise PlaceError(f"the list of hosts {text!r} has a range that is none: {part!r}")
        low, high = match[1], match[2] or match[1]
        if int(high) < int(low) or int(high) - int(low) >= NODES_MAX:
            raise PlaceError(f"the list of hosts {text!r} has a range that is none: {part!r}")
        numbers += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
    return numbers
