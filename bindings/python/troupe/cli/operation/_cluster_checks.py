"""Findings about a cluster: its nodes beside each other, and who reaches whom. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from troupe.cli.operation._machine_checks import Finding, Level
from troupe.cli.operation._machine_facts import MachineFacts

HERE = "this machine"
CLOCK_APART_S, CLOCK_WRONG_S = 2.0, 1800.0  # certificates are backdated by an hour
NEIGHBOURS = 8  # to each side: of many nodes not all pairs are tried
_MUST_BE_EQUAL = {
    "troupe": Level.ERROR,
    "Python": Level.ERROR,
    "cloudpickle": Level.WARNING,
    "torch": Level.WARNING,
    "NCCL": Level.WARNING,
}


@dataclass(frozen=True)
class NodeReport:
    """The known facts about one node of the cluster."""

    name: str
    address: tuple[str, int]
    state: str = "alive"
    why: str = ""
    silence: str = ""
    """Why it did not answer; "": it did"""
    facts: MachineFacts | None = None
    clock_ahead_s: float = 0.0
    clock_error_s: float = 0.0
    """Half of the time that asking for the clock took"""
    reached: Mapping[str, str] = field(default_factory=dict)
    """By name of another node: why it cannot be reached from this one; "": it can"""


def targets_of(number: int, nodes: Sequence[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """Return the nodes that node `number` tries to reach: all others, or of many its neighbours to
    both sides, so that each pair that is tried is tried both ways."""
    count = len(nodes)
    steps = [step for step in range(-NEIGHBOURS, NEIGHBOURS + 1) if step % count]
    return [nodes[each] for each in sorted({(number + step) % count for step in steps})]


def check_cluster(
    nodes: Sequence[NodeReport], here: MachineFacts, reached: Mapping[str, str]
) -> list[Finding]:
    """Return what is wrong with a cluster, errors first. `reached`: as NodeReport's, from here."""
    found = [each for node in nodes for each in _of_node(node)]
    found += _versions(nodes, here)
    found += _unreachable(nodes, reached)
    return sorted(found, key=lambda each: each.level is not Level.ERROR)


def _of_node(node: NodeReport) -> Iterable[Finding]:
    if node.state != "alive":
        yield Finding(
            "node_state",
            Level.WARNING if node.state == "draining" else Level.ERROR,
            node.name,
            f"the node is {node.state}" + (f": {node.why}" if node.why else ""),
            "see its worker's log on that host, under clusters/ in TROUPE_HOME; start it again: "
            "troupe start --address HEAD",
        )
    elif node.silence:
        yield Finding(
            "node_answers",
            Level.ERROR,
            node.name,
            f"an actor on the node did not answer: {node.silence}",
            f"see: troupe list events; troupe logs; on {node.name}: troupe doctor",
        )
    apart = abs(node.clock_ahead_s) - node.clock_error_s
    if apart > CLOCK_APART_S:
        direction = "ahead of" if node.clock_ahead_s > 0 else "behind"
        yield Finding(
            "clocks",
            Level.ERROR if apart > CLOCK_WRONG_S else Level.WARNING,
            node.name,
            f"its clock is {abs(node.clock_ahead_s):.1f} s {direction} the one here",
            "start chrony or systemd-timesyncd on both (timedatectl set-ntp true)",
        )


def _versions(nodes: Sequence[NodeReport], here: MachineFacts) -> Iterable[Finding]:
    machines = [(HERE, here), *((node.name, node.facts) for node in nodes if node.facts)]
    for library, level in _MUST_BE_EQUAL.items():
        holders: dict[str, list[str]] = {}
        for name, facts in machines:
            version = facts.versions.get(library, "")
            if version:
                holders.setdefault(_compared(library, version), []).append(name)
        if len(holders) > 1:
            told = "; ".join(f"{version}: {few_of(names)}" for version, names in holders.items())
            yield Finding(
                "versions",
                level,
                "cluster",
                f"{library} differs: {told}",
                f"install one version of {library} everywhere"
                + (" and start the workers again" if level is Level.ERROR else ""),
            )
    drivers: dict[str, list[str]] = {}
    for name, facts in machines:
        if facts.gpu_driver:
            drivers.setdefault(facts.gpu_driver, []).append(name)
    if len(drivers) > 1:
        told = "; ".join(f"{version}: {few_of(names)}" for version, names in drivers.items())
        yield Finding(
            "versions",
            Level.WARNING,
            "cluster",
            f"NVIDIA's driver differs: {told}",
            "install one version of the driver on all nodes",
        )


def _compared(library: str, version: str) -> str:
    """Return the part of a version that has to be equal: of Python the minor one."""
    return ".".join(version.split(".")[:2]) if library == "Python" else version


def _unreachable(nodes: Sequence[NodeReport], reached: Mapping[str, str]) -> Iterable[Finding]:
    """Yield a finding for each node that others cannot reach, with their names."""
    for node in nodes:
        failed: dict[str, list[str]] = {}
        for name, said in [(HERE, reached), *((other.name, other.reached) for other in nodes)]:
            if said.get(node.name):
                failed.setdefault(said[node.name], []).append(name)
        back = [other for other, error in node.reached.items() if not error]
        for error, names in failed.items():
            one_way = sorted(set(names) & set(back))
            only = f"; the other way works for {few_of(one_way)}" if one_way else ""
            host, port = node.address
            yield Finding(
                "reachability",
                Level.ERROR,
                node.name,
                f"{few_of(names)} cannot connect to {host}:{port}: {error}{only}",
                f"let TCP to {host}, all ports, through the firewall (security group) from there; "
                "a node with several addresses listens at the right one by: troupe start --listen",
            )


def few_of(names: Sequence[str]) -> str:
    """Return the first of these names, and how many there are beside them."""
    few = ", ".join(names[:4])
    return few if len(names) <= 4 else f"{few} and {len(names) - 4} more"
