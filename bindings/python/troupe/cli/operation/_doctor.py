"""`troupe doctor`: what is wrong with this machine and with a cluster, and what to do about it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import click

from troupe import exceptions
from troupe._cluster import home, session as _session
from troupe.cli import _common
from troupe.cli.operation import _cluster_checks, _machine_checks, _machine_facts
from troupe.cli.operation._cluster_checks import NodeReport
from troupe.cli.operation._machine_checks import Finding, Level
from troupe.cli.operation._machine_facts import MachineFacts

ANSWER_S = 60.0  # for a process of a node to start and to answer
NODES_MAX = 256  # nodes that are asked


@click.command()
@click.option("--local", is_flag=True, help="Look at this machine alone.")
@_common.cluster_options
def doctor(
    local: bool, address: str | None, token_file: str | None, cluster: str | None, as_json: bool
) -> int:
    """Look for what is wrong: limits, /dev/shm, disk, clocks, ports, versions, GPUs, settings of
    NCCL, and whether the nodes of a cluster reach each other both ways.

    Looks at this machine, and, where a cluster is known, at each of its nodes by an actor that
    holds nothing. The exit code is 1 where there is an error, 0 where there are warnings at most.
    """
    here = _machine_facts.gather()
    findings = _machine_checks.check_machine(here)
    reports: list[NodeReport] = []
    if not local and _is_known(address, cluster, here):
        with _connected(address, token_file, cluster) as session:
            reports, reached = _examine(session)
        for report in reports:
            findings += _of_node(report, here, findings)
        findings += _cluster_checks.check_cluster(reports, here, reached)
    if as_json:
        _common.echo_json(
            {
                "findings": [asdict(each) for each in findings],
                "here": asdict(here),
                "nodes": [asdict(each) for each in reports],
            }
        )
    else:
        _show(findings, here, reports)
    return 1 if any(each.level is Level.ERROR for each in findings) else 0


def _of_node(report: NodeReport, here: MachineFacts, known: Sequence[Finding]) -> list[Finding]:
    """Return what is wrong with a node's machine; of one on this host only what is of its worker
    alone, as limits of a systemd unit."""
    if report.facts is None:
        return []
    same = {(each.check, each.what) for each in known if each.where == here.host}
    return [
        replace(each, where=report.name)
        for each in _machine_checks.check_machine(report.facts)
        if report.facts.host != here.host or (each.check, each.what) not in same
    ]


def _is_known(address: str | None, cluster: str | None, here: MachineFacts) -> bool:
    """A damaged home is a finding, and no reason to find nothing else."""
    if here.home_error and not (address or cluster):
        return False
    return _common.is_cluster_known(address, cluster)


@contextlib.contextmanager
def _connected(
    address: str | None, token_file: str | None, cluster: str | None
) -> Iterator[_session.Session]:
    """A session by which this process makes actors."""
    with _common.session(address, token_file, cluster) as session:
        before = _session.set_current(session)
        try:
            yield session
        finally:
            _session.set_current(before)


class Examiner:
    """An actor that gathers the facts of its node."""

    def facts(self) -> MachineFacts:
        return _machine_facts.gather(home=False)

    def time(self) -> float:
        return time.time()

    def reach(self, targets: list[tuple[str, str, int]]) -> dict[str, str]:
        return _machine_facts.reach(targets)


def _examine(session: _session.Session) -> tuple[list[NodeReport], dict[str, str]]:
    """Return what the nodes say of themselves and of each other, and which this process reaches."""
    import troupe
    from troupe import state

    nodes = sorted(state.list_nodes(session), key=lambda each: each["name"])[:NODES_MAX]
    places = [_place(each) for each in nodes]
    alive = [each for each, node in zip(places, nodes, strict=True) if node["state"] == "alive"]
    actor = troupe.remote(num_cpus=0)(Examiner)
    actors = {
        node["name"]: actor.options(
            scheduling_strategy=troupe.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                node["node_id"]
            )
        ).remote()
        for node in nodes
        if node["state"] == "alive"
    }
    facts = {name: each.facts.remote() for name, each in actors.items()}
    reached = {
        place[0]: actors[place[0]].reach.remote(_cluster_checks.targets_of(number, alive))
        for number, place in enumerate(alive)
        if len(alive) > 1
    }
    deadline = time.monotonic() + ANSWER_S
    reports = []
    for node, place in zip(nodes, places, strict=True):
        report = NodeReport(node["name"], place[1:], node["state"], node["why"])
        if node["name"] in actors:
            report = _ask(report, actors[report.name], facts, reached, deadline)
        reports.append(report)
    return reports, _machine_facts.reach(alive)


def _place(node: dict[str, Any]) -> tuple[str, str, int]:
    host, port = home.host_and_port(node["address"])
    return node["name"], host, port


def _ask(
    report: NodeReport, actor: Any, facts: dict[str, Any], reached: dict[str, Any], deadline: float
) -> NodeReport:
    """Return the report with what the node's actor answers until the deadline."""
    import troupe

    def answer(ref: Any) -> Any:
        return troupe.get(ref, timeout=max(deadline - time.monotonic(), 0.1))

    try:
        told = answer(facts[report.name])
        others = answer(reached[report.name]) if report.name in reached else {}
        before = time.time()
        there = answer(actor.time.remote())
        after = time.time()
    except (exceptions.TroupeError, OSError) as error:
        return replace(report, silence=str(error).partition("\n")[0])
    return replace(
        report,
        facts=told,
        reached=others,
        clock_ahead_s=there - (before + after) / 2,
        clock_error_s=(after - before) / 2,
    )


def _show(findings: Sequence[Finding], here: MachineFacts, reports: Sequence[NodeReport]) -> None:
    places: dict[Finding, list[str]] = {}
    for each in sorted(findings, key=lambda each: each.level is not Level.ERROR):
        places.setdefault(replace(each, where=""), []).append(each.where)
    for each, where in places.items():
        _common.echo_line(f"{each.level:<8}{_cluster_checks.few_of(where)}: {each.what}")
        _common.echo_line(f"        {each.remedy}")
    errors = sum(each.level is Level.ERROR for each in findings)
    nodes = f" and {len(reports)} node{'s' * (len(reports) != 1)}" if reports else ""
    _common.echo_line(
        f"{here.host}{nodes}: {errors} error{'s' * (errors != 1)}, {len(findings) - errors} "
        f"warning{'s' * (len(findings) - errors != 1)}"
    )
