"""`troupe.launch.current()`: what a rank knows of its launch."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from troupe._cluster import resources
from troupe.launch import _arguments

if TYPE_CHECKING:
    from typing import TypeVar

    from troupe.launch._group import Gang, RankHandle

    T = TypeVar("T")


@dataclass
class LaunchContext:
    """The context of a rank: its view of the launch.

    In the driver of a `@ray_launch`, `run` reaches all ranks.

    Attributes are plain numbers and texts: `launch` (id), `name`, `epoch`, `rank`, `local_rank`,
    `world_size`, `local_world_size`, `node_rank`, `node_count`, `node_name`, `mode`; and the dict
    `resources_per_rank`. Where the launch goes on without ranks that died
    (docs/guides/recovery.md), `rank` and `world_size` are those in the group of `group_epoch`, and
    `launch_rank` stays; `replaces` says whether this process has taken the place of a rank that
    died.
    """

    launch: str
    name: str
    epoch: int
    rank: int
    local_rank: int
    world_size: int
    local_world_size: int
    node_rank: int
    node_count: int
    node: str
    node_name: str
    mode: str
    group: str = ""
    resources_per_rank: dict[str, float] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    rank_actors: list[dict[str, Any]] = field(default_factory=list)
    group_epoch: int = 1
    launch_rank: int = 0
    replaces: bool = False
    _gang: Gang | None = None
    _abort: Callable[[BaseException], None] | None = None

    @property
    def is_driver(self) -> bool:
        """True if this rank runs the function as the driver of the launch."""
        return self.mode == "driver" and self.rank == 0

    @property
    def ranks(self) -> list[RankHandle]:
        """The launch's ranks, for the driver: each has `rank`, `node` and `run(fn, *args,
        **kwargs)`."""
        return self._require_gang("ranks").ranks

    def run(
        self, fn: Callable[..., T], /, *args: object, timeout: float | None = None, **kwargs: object
    ) -> list[T]:
        """Runs `fn(*args, **kwargs)` on every rank and returns the list of values by rank.

        The ranks form a torch.distributed process group at the first use (nccl where each has a
        GPU, else gloo) and keep it. Rank 0's part runs in the calling thread. For its duration the
        ranks hold their share of the launch's resources: what the driver's actors and placement
        groups hold of it is waited for first, and they wait for this. Blocks; after `timeout`
        seconds GetTimeoutError, naming who holds the share or the rank that has not finished. The
        first failing rank's exception is raised as its own type; after a failure the group cannot
        be used again.
        """
        _arguments.refuse_unclear_timeout(fn, timeout)
        return self._require_gang("run").run(fn, args, kwargs, timeout)

    def _require_gang(self, what: str) -> Gang:
        if not self.is_driver:
            raise RuntimeError(
                f"current().{what} is for the driver, rank 0 of a @ray_launch; this is rank "
                f"{self.rank} of a launch in mode {self.mode!r}"
            )
        if self._gang is None:
            from troupe.launch._group import Gang

            self._gang = Gang(self)
        return self._gang

    def published(self, roster: dict[str, Any]) -> None:
        """All ranks are there: takes over what only the roster says."""
        self.rank_actors = roster["rank_actors"]
        self.nodes = roster["nodes"]

    def regrouped(self, formed: dict[str, Any]) -> None:
        """This rank is in another group: what it is there, here and in the environment.

        Its place on the node and its devices stay.
        """
        self.group_epoch, self.rank, self.world_size = (
            formed["group_epoch"],
            formed["rank"],
            formed["world_size"],
        )
        os.environ.update(
            RANK=str(self.rank),
            ROLE_RANK=str(self.rank),
            WORLD_SIZE=str(self.world_size),
            ROLE_WORLD_SIZE=str(self.world_size),
            TROUPE_GROUP_EPOCH=str(self.group_epoch),
            MASTER_ADDR=formed["master_host"],
            MASTER_PORT=str(formed["master_port"]),
        )


_current: LaunchContext | None = None


def current() -> LaunchContext:
    """The launch this process is a rank of. Raises RuntimeError elsewhere."""
    if _current is None:
        raise RuntimeError(
            "troupe.launch.current() is for code that runs inside a launch; this process is "
            "no rank of one"
        )
    return _current


def current_or_none() -> LaunchContext | None:
    """The launch this process is a rank of, or None."""
    return _current


def enter(begin: dict[str, Any]) -> LaunchContext:
    """Called once by a rank process: makes the context and the variables every rank has."""
    global _current
    names = (
        "launch",
        "name",
        "epoch",
        "rank",
        "local_rank",
        "world_size",
        "local_world_size",
        "node_rank",
        "node_count",
        "node",
        "node_name",
        "mode",
        "group",
    )
    _current = LaunchContext(
        **{name: begin[name] for name in names},
        resources_per_rank=resources.from_wire(begin["per_rank"]),
        launch_rank=begin["rank"],
        group_epoch=begin["life"] or 1,
        replaces=begin["life"] > 0,
    )
    for variable, name in (
        ("RANK", "rank"),
        ("LOCAL_RANK", "local_rank"),
        ("WORLD_SIZE", "world_size"),
        ("LOCAL_WORLD_SIZE", "local_world_size"),
        ("NODE_RANK", "node_rank"),
        ("GROUP_RANK", "node_rank"),
        ("TROUPE_EPOCH", "epoch"),
    ):
        os.environ.setdefault(variable, str(begin[name]))
    os.environ.setdefault("TORCHELASTIC_RESTART_COUNT", str(max(0, begin["epoch"] - 1)))
    return _current
