"""The arguments of `ray start` on each node, the processes that must live, and the texts about
their ends.

Pure.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troupe import _pickled

OLDEST = (2, 60)
"""The oldest Ray that is started: it has token authentication, and each node of it a folder for
temporary files of its own."""
FOLDER_CHARS_MAX = 43
"""Of the folder for temporary files: paths of sockets are limited to 107 characters, and Ray's are
up to 64 longer than its folder's."""
TOO_SLOW = "timed out during startup"
"""What `ray start` says where its processes needed more than its 30 seconds, on a machine that is
busy or reads Ray from disk for the first time."""
RAY, TROUPE = "ray", "troupe"
APIS = (TROUPE, RAY)
"""Whose cluster it is: Ray's own, or Troupe's by Ray's names."""
_PROCESSES = {
    RAY: ("gcs_server", "raylet"),
    TROUPE: ("troupe-head", "troupe-worker"),
}  # variables of the head, of each node
_ALWAYS = tuple(
    name for names in _PROCESSES.values() for name in names
)  # without these there is no cluster, however they ended
_TERMINATED = (-signal.SIGTERM, 128 + signal.SIGTERM)
_OURS = ("--head", "--address", "--block", "--temp-dir")


@dataclass(frozen=True)
class Share:
    """The cluster's share of one node.

    `host`: the numeric address that it listens on, on the interface of the launch.
    """

    node: str
    name: str
    host: str
    cpus: float
    gpus: float
    memory: int
    api: str = RAY

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.ray_share, (_pickled.fields_of(self),)


@dataclass(frozen=True)
class Wishes:
    """Settings of the cluster that a person may give: numbers of ports, 0 for any free one, and
    further arguments for `ray start`."""

    port: int = 0
    dashboard: bool = False
    dashboard_port: int = 0
    head: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.ray_wishes, (_pickled.fields_of(self),)


def check_extra(what: str, words: Sequence[str]) -> None:
    """Raises ValueError for options of `ray start` that say what the launch itself decides.

    >>> check_extra("head_node_additional_args", ["--resources={}"])
    """
    found = next((word for word in words if word.partition("=")[0] in _OURS), None)
    if found is not None:
        raise ValueError(
            f"{what} has {found.partition('=')[0]}, which the launch says itself: it starts the "
            "head on its first node, has the others join "
            "it, and removes their temporary files"
        )


def start_words(
    share: Share, folder: str, wishes: Wishes, *, address: str = "", client: bool = False
) -> list[str]:
    """Return the arguments of `ray` on a node: the head's, or with `address` those of a node that
    joins it.

    All ports are any free ones, each asked of the kernel by the process that listens there, so that
    clusters of one host do not meet; a person's own words are last, where they count. `client`:
    whether Ray's client is installed, whose server would take a port of its own; without it Ray
    takes no word of it.
    """
    words = (
        ["start", f"--address={address}"]
        if address
        else [
            "start",
            "--head",
            f"--port={wishes.port}",
            f"--include-dashboard={str(wishes.dashboard).lower()}",
            f"--dashboard-port={wishes.dashboard_port}",
            "--disable-usage-stats",
            *(["--ray-client-server-port=0"] if client else []),
        ]
    )
    words += [
        f"--node-ip-address={share.host}",
        f"--node-name={share.name}",
        f"--temp-dir={folder}",
        f"--num-cpus={whole_cpus(share.cpus)}",
        f"--num-gpus={int(share.gpus)}",
        "--min-worker-port=0",
        "--max-worker-port=0",
        "--dashboard-agent-listen-port=0",
    ]
    if share.memory:
        words.append(f"--memory={share.memory}")
    return [*words, *(wishes.others if address else wishes.head)]


_OF_OTHERS = (
    "RAY_ADDRESS",
    "RAY_AUTH_TOKEN",
    "RAY_GCS_SERVER_PORT",
    "RAY_REDIS_ADDRESS",
    "TROUPE_ADDRESS",
    "TROUPE_TOKEN_FILE",
)


def environment(now: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that uses or forms the cluster found by `variables`:
    variables that name another cluster are left out.

    >>> environment({"RAY_ADDRESS": "a:1", "HOME": "/h"}, {"RAY_AUTH_MODE": "token"})
    {'HOME': '/h', 'RAY_AUTH_MODE': 'token'}
    """
    return {**{name: value for name, value in now.items() if name not in _OF_OTHERS}, **variables}


def whole_cpus(cpus: float) -> int:
    """Ray counts whole CPUs; with none of them it would run no task.

    >>> whole_cpus(2.5), whole_cpus(0)
    (2, 1)
    """
    return max(1, int(cpus))


def too_old(version: str) -> bool:
    """Return True if a version of Ray is older than OLDEST.

    >>> too_old("2.9.3"), too_old("2.60.0"), too_old("3.0.0.dev0")
    (True, False, False)
    """
    numbers = [int(part) if part.isdigit() else 0 for part in version.split(".")[:2]]
    return tuple(numbers) < OLDEST


def process_name(words: Sequence[str]) -> str:
    """Return the name of a process that `ray start` leaves behind, from its command line.

    >>> process_name(["/ray/core/src/ray/gcs/gcs_server", "--log_dir=/tmp/x"])
    'gcs_server'
    >>> process_name(["python", "-u", "/ray/_private/log_monitor.py", "--logs-dir=/tmp/x"])
    'log_monitor'
    """
    for word in words:
        name = word.rpartition("/")[2]
        if name.endswith(".py"):
            return name.removesuffix(".py")
    return words[0].rpartition("/")[2] if words else ""


def ends_the_cluster(name: str, code: int) -> bool:
    """Return True if the end of a process ends the cluster: always for its own processes, for
    others unless they exited normally, as with `ray start --block`.

    `code`: negative for a signal.
    """
    return name in _ALWAYS or code != 0 and code not in _TERMINATED


def of_a_node(api: str) -> str:
    """The process that each node has.

    >>> of_a_node(RAY)
    'raylet'
    """
    return _PROCESSES[api][1]


def missing(names: Sequence[str], *, api: str, head: bool) -> list[str]:
    """Processes that a node has to have, and has not."""
    return [name for name in _PROCESSES[api][0 if head else 1 :] if name not in names]


def exit_text(code: int) -> str:
    """How a process ended, for people; `code` negative for a signal.

    >>> exit_text(-9), exit_text(1)
    ('was killed by SIGKILL', 'exited with code 1')
    """
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


_OF_A_LOG = re.compile(r"\[\d{4}-\d\d-\d\d [^\]]* ([A-Z]) \d+ \d+\]")
_TELLING = ("W", "E", "F", "C")


def telling(log: str) -> str:
    """The warnings and errors at the end of a log of Ray's, with the lines that go on from them.

    The rest counts what goes well.

    >>> telling("[2026-01-01 10:00:00,1 I 7 7] (raylet) fine\\n[2026-01-01 10:00:00,2 E 7 7] (raylet) bad\\n  why")
    '[2026-01-01 10:00:00,2 E 7 7] (raylet) bad\\n  why'
    """
    kept, tells = [], False
    for line in log.splitlines():
        begins = _OF_A_LOG.match(line)
        if begins is not None:
            tells = begins[1] in _TELLING
        if tells:
            kept.append(line)
    return "\n".join(kept)


def differing(versions: Mapping[str, str]) -> str:
    """Return the message about nodes (name: version) with different versions of Ray; "" if all are
    equal."""
    if len(set(versions.values())) < 2:
        return ""
    return (
        "the nodes of the launch have different versions, which Ray does not connect: "
        + ", ".join(f"{node} has {version}" for node, version in versions.items())
    )


@_pickled.maker("ray_share")
def _ray_share(fields: Mapping[str, Any]) -> Any:
    """Rebuild a Ray cluster's share of one node."""
    return _pickled.of_fields(Share, fields)


@_pickled.maker("ray_wishes")
def _ray_wishes(fields: Mapping[str, Any]) -> Any:
    """Rebuild the settings of such a cluster."""
    return _pickled.of_fields(Wishes, fields)
