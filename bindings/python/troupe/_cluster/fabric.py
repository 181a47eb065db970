"""How nodes are connected, as they tell it by a label: read, and as text.

Pure.

View: any process. A worker finds it when it starts (`worker/devices/fabric.cc`);
`placement/fabric.h` has the label's form. What is of a form that is not known here is passed over,
for nodes of other versions may say more.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from troupe._cluster import selectors

_LAYERS = {"InfiniBand": "InfiniBand", "Ethernet": "RoCE"}
ACTIVE = "ACTIVE"


@dataclass(frozen=True)
class Interface:
    """A network interface; `mbit_s` 0: its speed is not known."""

    name: str
    up: bool
    mbit_s: int
    addresses: tuple[str, ...] = ()

    def networks(self) -> set[str]:
        """Return the networks of its addresses, such as "10.0.0.0/24"."""
        return {str(ipaddress.ip_interface(each).network) for each in self.addresses}


@dataclass(frozen=True)
class Port:
    """A port of an RDMA device, by the name that NCCL_IB_HCA has for it; `width`: "4X NDR";
    `networks`: those it is in, of InfiniBand the subnet's prefix."""

    name: str
    layer: str
    state: str
    mbit_s: int
    width: str
    interface: str
    networks: tuple[str, ...] = ()

    @property
    def active(self) -> bool:
        return self.state == ACTIVE

    @property
    def kind(self) -> str:
        """InfiniBand, RoCE, or what the system calls it."""
        return _LAYERS.get(self.layer, self.layer or "RDMA")


@dataclass(frozen=True)
class Links:
    """GPUs ("0-7") with so many NVLinks that are up, of `mbyte_s` one way each (0: not told)."""

    gpus: str
    links: int
    mbyte_s: int


@dataclass(frozen=True)
class Fabric:
    """All that a node tells."""

    interfaces: tuple[Interface, ...] = ()
    ports: tuple[Port, ...] = ()
    nvlinks: tuple[Links, ...] = ()
    gpudirect: str = ""
    known: bool = field(default=False, compare=False)  # true if the node has reported anything

    def active(self) -> list[Port]:
        """Ports that NCCL's own transport uses: InfiniBand's and RoCE's that are active."""
        return [port for port in self.ports if port.active and port.layer in _LAYERS]


def of_label(text: str) -> Fabric:
    """Parse the fabric from a node's label."""
    interfaces, ports, nvlinks, gpudirect = [], [], [], ""
    for record in text.split(";"):
        match record.split():
            case ["if", name, state, mbit_s, *addresses]:
                interfaces.append(
                    Interface(
                        name, state == "up", _number(mbit_s), tuple(filter(_is_address, addresses))
                    )
                )
            case ["rdma", name, layer, state, mbit_s, width, interface, *networks]:
                ports.append(
                    Port(
                        name,
                        _word(layer),
                        _word(state),
                        _number(mbit_s),
                        _word(width).replace("_", " "),
                        _word(interface),
                        tuple(networks),
                    )
                )
            case ["nvlink", gpus, links, mbyte_s]:
                nvlinks.append(Links(gpus, _number(links), _number(mbyte_s)))
            case ["gpudirect", how]:
                gpudirect = how
    return Fabric(tuple(interfaces), tuple(ports), tuple(nvlinks), gpudirect, bool(text))


def of_node(info: Mapping[str, Any]) -> Fabric:
    """Return the fabric of a NodeInfo."""
    return of_label(
        next((each["value"] for each in info["labels"] if each["key"] == selectors.FABRIC), "")
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _word(text: str) -> str:
    return "" if text == "-" else text


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return True


def as_dict(fabric: Fabric) -> dict[str, Any]:
    """As `state.list_nodes()` has it."""
    return {
        "interfaces": [
            {
                "name": each.name,
                "up": each.up,
                "mbit_s": each.mbit_s,
                "addresses": list(each.addresses),
            }
            for each in fabric.interfaces
        ],
        "rdma": [
            {
                "port": each.name,
                "kind": each.kind,
                "state": each.state,
                "mbit_s": each.mbit_s,
                "width": each.width,
                "interface": each.interface,
                "networks": list(each.networks),
            }
            for each in fabric.ports
        ],
        "nvlink": [
            {"gpus": each.gpus, "links": each.links, "mbyte_s": each.mbyte_s}
            for each in fabric.nvlinks
        ],
        "gpudirect": fabric.gpudirect,
    }


def rate(mbit_s: float) -> str:
    """`100 Gbit/s`."""
    if not mbit_s:
        return "unknown speed"
    return f"{mbit_s / 1000:g} Gbit/s" if mbit_s >= 1000 else f"{mbit_s:g} Mbit/s"


def lines(network: Mapping[str, Any]) -> list[str]:
    """Return the entries of `as_dict` as lines: one for the interfaces and one for each other kind;
    equal ports share one entry."""
    found = []
    if network["interfaces"]:
        found.append(
            "network: " + ", ".join(_interface_text(each) for each in network["interfaces"])
        )
    alike: dict[tuple[Any, ...], list[str]] = {}
    for port in network["rdma"]:
        alike.setdefault((port["kind"], port["state"], port["mbit_s"], port["width"]), []).append(
            port["port"]
        )
    parts = [
        f"{len(names)} x {kind} "
        f"{rate(mbit_s)}{f' ({width})' if width else ''}{'' if state == ACTIVE else f' {state}'}: "
        f"{', '.join(names)}"
        for (kind, state, mbit_s, width), names in alike.items()
    ]
    if parts:
        found.append("RDMA: " + "; ".join(parts))
    if network["nvlink"]:
        found.append(
            "NVLink: "
            + ", ".join(
                f"GPUs {each['gpus']}: {each['links']} links"
                + (
                    f", {each['links'] * each['mbyte_s'] / 1000:.0f} GB/s one way"
                    if each["mbyte_s"]
                    else ""
                )
                for each in network["nvlink"]
            )
        )
    if network["gpudirect"]:
        found.append(f"GPUDirect RDMA: {network['gpudirect']}")
    return found


def _interface_text(interface: Mapping[str, Any]) -> str:
    said = [interface["name"], *interface["addresses"]]
    if interface["mbit_s"]:
        said.append(rate(interface["mbit_s"]))
    if not interface["up"]:
        said.append("down")
    return " ".join(said)
