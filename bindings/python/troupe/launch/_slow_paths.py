"""Paths between the ranks of a launch that are slower than they need be: a line for each, with
numbers, nodes and what to do. Pure but for `of_launch` and `of_nodes`.

What nodes tell (`_cluster.fabric`) is of the time when their workers started. Where a speed is not
known nothing is said of it.
"""

from __future__ import annotations

import ipaddress
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from troupe._cluster import fabric, workers
from troupe._typed.per_session import PerSession

FASTER = 2.0  # another network is named from that on
_NAMES_MAX = 4
_NO_VERBS = "NO_VERBS_DEVICE"
_OFF = "NCCL_IB_DISABLE"


@dataclass(frozen=True)
class Place:
    """A node of a launch: its name, the address at which others reach it, what tells its host from
    others, how it is connected."""

    name: str
    address: str
    host: str
    fabric: fabric.Fabric


def of_launch(session: Any, info: dict[str, Any]) -> list[str]:
    """The lines for a launch whose ranks are placed."""
    from troupe._code import travelled

    off = _OFF in travelled.variables(info["travelled"]) and os.environ.get(_OFF) == "1"
    return of_nodes(
        session,
        {each["node"] for each in info["rank_infos"]},
        gpus=any(each["name"] == "GPU" for each in info["per_rank"]),
        off=off,
    )


_places: PerSession[dict[str, Place]] = PerSession("networks of nodes")


def of_nodes(session: Any, ids: set[str], *, gpus: bool, off: bool = False) -> list[str]:
    """The lines for ranks on nodes of these ids, which are asked for once per session. [] for ranks
    without GPUs on one node."""
    if not ids or (len(ids) == 1 and not gpus):
        return []
    known = _places.of(session, dict)
    if ids - set(known):
        for each in workers.node_infos(session):
            known[each["node"]] = Place(
                each["name"], each["listen_host"], each["boot_id"], fabric.of_node(each)
            )
    return lines(
        sorted((known[each] for each in ids if each in known), key=lambda place: place.name),
        gpus=gpus,
        off=off,
    )


def lines(places: Sequence[Place], *, gpus: bool, off: bool = False) -> list[str]:
    """Return notes on slow networks for a launch on these nodes; `gpus`: its ranks have GPUs, so
    that NCCL moves their data; `off`: RDMA is disabled."""
    told = [each for each in places if each.fabric.known]
    found: list[str] = []
    if gpus:
        found += _nvlinks(told)
    if len({each.host for each in told}) < 2:
        return found
    if gpus:
        fallback = _sockets_where_rdma_is(told)
        found += [*fallback, *_ports_down(told), *_ports_slower(told)]
        if not fallback and all(each.fabric.active() for each in told):
            if not off:
                return found + _staged_through_memory(told)
            found.append(
                f"{_OFF}=1, which came along from the caller: NCCL uses sockets, although "
                f"{_some([each.name for each in told])} have {_ports_text(told[0])}"
            )
    return found + _slower_interface(told)


def _slower_interface(places: Sequence[Place]) -> list[str]:
    """Return a note if all nodes share another network with faster interfaces."""
    chosen = [_interface_of(each, places) for each in places]
    if None in chosen:
        return []
    used = [each for each in chosen if each is not None]
    speed = _speed(used)
    best: tuple[int, str, list[fabric.Interface]] | None = None
    common = set.intersection(
        *(
            {network for each in place.fabric.interfaces if each.up for network in each.networks()}
            for place in places
        )
    )
    for network in sorted(common):
        there = [
            next(each for each in place.fabric.interfaces if each.up and network in each.networks())
            for place in places
        ]
        if best is None or _speed(there) > best[0]:
            best = (_speed(there), network, there)
    if best is None or not speed or best[0] < FASTER * speed:
        return []
    _, network, there = best
    names = {each.name for each in there}
    same = len(names) == 1
    remedy = (
        f'os.environ["NCCL_SOCKET_IFNAME"] = os.environ["GLOO_SOCKET_IFNAME"] = "{there[0].name}" '
        "before the launch, or "
        if same
        else ""
    )
    return [
        f"{_some([each.name for each in places])} reach each other by "
        f"{_some(sorted({each.name for each in used}))} at {fabric.rate(speed)}, and are all in "
        f"{network} too, by {_some(sorted(names))} at {fabric.rate(best[0])}: {remedy}start each "
        "node with --listen and its address in that network"
    ]


def _interface_of(place: Place, places: Sequence[Place]) -> fabric.Interface | None:
    """The one by which a node reaches the others: in whose network their addresses are, else which
    has its own."""
    others = [each.address for each in places if each is not place]
    for interface in place.fabric.interfaces:
        for own in interface.addresses:
            network = ipaddress.ip_interface(own).network
            if (
                any(_is_in(other, network) for other in others)
                or own.partition("/")[0] == place.address
            ):
                return interface
    return None


def _is_in(address: str, network: Any) -> bool:
    try:
        return ipaddress.ip_address(address) in network
    except ValueError:
        return False


def _speed(interfaces: Sequence[fabric.Interface]) -> int:
    """Return the speed of the slowest; 0 if one is not known."""
    return min(each.mbit_s for each in interfaces)


def _sockets_where_rdma_is(places: Sequence[Place]) -> list[str]:
    """Return a note if NCCL cannot use RDMA between all nodes, although some have it."""
    with_it = [each for each in places if each.fabric.active()]
    without = [each for each in places if not each.fabric.active()]
    broken = [
        each
        for each in without
        if any(port.layer == "InfiniBand" or port.state == _NO_VERBS for port in each.fabric.ports)
    ]
    if not with_it and not broken:
        return []
    if without:
        has = (
            f"{_some([each.name for each in with_it])} {_have(with_it)} {_ports_text(with_it[0])}, "
            "and "
            if with_it
            else ""
        )
        return [
            f"{has}{_some([each.name for each in without])} {_have(without)} no RDMA port that is "
            f"active{_why(without)}: NCCL uses sockets between them"
        ]
    kinds = {place.name: {port.layer for port in place.fabric.active()} for place in places}
    shared = set.intersection(*kinds.values())
    if not shared:
        each_of = "; ".join(
            f"{place.name} has {_ports_text(place)}" for place in places[:_NAMES_MAX]
        )
        return [
            f"the nodes have no kind of RDMA in common ({each_of}): NCCL cannot use it between them"
        ]
    if shared == {"InfiniBand"}:
        subnets = [
            {
                network
                for port in place.fabric.active()
                if port.layer == "InfiniBand"
                for network in port.networks
            }
            for place in places
        ]
        if all(subnets) and not set.intersection(*subnets):
            each_of = "; ".join(
                f"{place.name} in {_some(sorted(of))}"
                for place, of in zip(places[:_NAMES_MAX], subnets, strict=False)
            )
            return [
                f"the nodes are in different InfiniBand subnets ({each_of}): no port of one "
                "reaches the others without a router"
            ]
    return []


def _have(places: Sequence[Place]) -> str:
    return "has" if len(places) == 1 else "have"


def _why(places: Sequence[Place]) -> str:
    """` (node-b: mlx5_0:1 DOWN)`; of a container what it lacks."""
    parts = []
    for place in places[:_NAMES_MAX]:
        states = [
            f"{port.name} {port.state}" for port in place.fabric.ports if port.state != _NO_VERBS
        ]
        if any(port.state == _NO_VERBS for port in place.fabric.ports):
            parts.append(f"{place.name}: its container lacks /dev/infiniband")
        elif states:
            parts.append(f"{place.name}: {_some(states)}")
    return f" ({'; '.join(parts)})" if parts else ""


def _ports_text(place: Place) -> str:
    """`8 x InfiniBand 400 Gbit/s`."""
    counted = Counter((port.kind, port.mbit_s) for port in place.fabric.active())
    return ", ".join(
        f"{count} x {kind} {fabric.rate(mbit_s)}"
        for (kind, mbit_s), count in sorted(counted.items(), key=lambda each: -each[0][1])
    )


def _by_port(places: Sequence[Place]) -> dict[tuple[str, str], list[tuple[Place, fabric.Port]]]:
    """Ports of one name and layer: of nodes that are alike, the same place in the network."""
    found: dict[tuple[str, str], list[tuple[Place, fabric.Port]]] = {}
    for place in places:
        for port in place.fabric.ports:
            found.setdefault((port.name, port.layer), []).append((place, port))
    return found


def _ports_down(places: Sequence[Place]) -> list[str]:
    """Ports that are down on a node with active ones, and active on another node of the launch."""
    found = []
    for (name, _), each in _by_port(places).items():
        up = [port for _, port in each if port.active]
        down = [(place, port) for place, port in each if not port.active and place.fabric.active()]
        if up and down:
            states = ", ".join(f"{port.state} on {place.name}" for place, port in down[:_NAMES_MAX])
            found.append(
                f"{name} is {states}{_more(len(down))}, and {up[0].kind} "
                f"{fabric.rate(up[0].mbit_s)} elsewhere: its share goes through the "
                f"other ports there (`ibstat`, `ip link`: cable, switch port, driver)"
            )
    return found


def _ports_slower(places: Sequence[Place]) -> list[str]:
    """Ports that run at a lower rate than those of the same name, or with one lane of four."""
    found = []
    for (name, _), each in _by_port(places).items():
        active = [(place, port) for place, port in each if port.active]
        fastest = max((port.mbit_s for _, port in active), default=0)
        slow = [(place, port) for place, port in active if port.mbit_s < fastest]
        one_lane = [
            (place, port)
            for place, port in active
            if port.layer == "InfiniBand" and port.width.startswith("1X") and port.mbit_s == fastest
        ]
        for what, those in (
            (f"{fabric.rate(fastest)} elsewhere", slow),
            ("which is one lane of four", one_lane),
        ):
            if those:
                at = ", ".join(
                    f"{fabric.rate(port.mbit_s)}{f' ({port.width})' if port.width else ''} on "
                    f"{place.name}"
                    for place, port in those[:_NAMES_MAX]
                )
                found.append(
                    f"{name} runs at {at}{_more(len(those))}, {what}: an all-reduce goes at the "
                    "pace of the slowest (`ibstat`: cable, switch port)"
                )
    return found


def _staged_through_memory(places: Sequence[Place]) -> list[str]:
    without = [each.name for each in places if not each.fabric.gpudirect]
    if not without:
        return []
    return [
        f"{_some(without)}: neither nvidia_peermem nor dma-buf is there, so that network cards do "
        "not read the GPUs' memory and data goes through the host's: "
        f"`modprobe nvidia_peermem` there"
    ]


def _nvlinks(places: Sequence[Place]) -> list[str]:
    """GPUs of one node with fewer links than the others, and nodes of one launch of which some have
    none."""
    found = []
    for place in places:
        links = place.fabric.nvlinks
        most = max((each.links for each in links), default=0)
        fewer = [each for each in links if each.links < most]
        if fewer:
            others = ", ".join(f"{each.gpus} {each.links}" for each in fewer)
            found.append(
                f"{place.name}: of its GPUs "
                f"{_some([each.gpus for each in links if each.links == most])} have {most} NVLinks "
                "that are up, "
                f"{others}: `nvidia-smi nvlink --status` there"
            )
    with_it = [each.name for each in places if each.fabric.nvlinks]
    without = [each.name for each in places if not each.fabric.nvlinks]
    if with_it and without:
        found.append(
            f"the GPUs of {_some(with_it)} are joined by NVLink, those of {_some(without)} are "
            "not: all go at the pace of the latter"
        )
    return found


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMES_MAX]) + _more(len(names))


def _more(count: int) -> str:
    return f" and {count - _NAMES_MAX} more" if count > _NAMES_MAX else ""
