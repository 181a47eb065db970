"""The tables of the options of a node (`troupe-worker`) and of a head (`troupe-head`).

A new option is an entry here, and the flag of the program that takes it (worker/main.cc,
head/main.cc): flags of `troupe start` and `troupe run` with their help, the checks and the
program's command line are made of the tables.
"""

import json
import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypedDict

from troupe._base import checks as _checks
from troupe._cluster import resources as _resources
from troupe._typed.option import Option, table_of

PREIMPORTS_MAX = 4
_AMOUNT_MAX = 1e9
_OBJECT_MEMORY_MIN = 64 << 20  # values of less than a megabyte share segments of 8
_OWN_OPTIONS = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}


def _number(least: float, most: float) -> Any:
    def check(name: str, value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not least <= value <= most:
            raise ValueError(f"{name} must be a number from {least:g} to {most:g}, not {value!r}")
        return value

    return check


_amount = _number(0, _AMOUNT_MAX)


def _gpus(name: str, value: Any) -> Any:
    if _amount(name, value) != int(value):
        raise ValueError(f"num_gpus must be a whole number, not {value!r}")
    return value


def _custom(name: str, value: Any) -> dict[str, float]:
    for each, amount in value.items():
        if each in _OWN_OPTIONS:
            raise ValueError(f"give {each} as {_OWN_OPTIONS[each]}, not inside resources")
        _amount(each, amount)
    return dict(value)


def _labels(name: str, value: Any) -> Mapping[str, str]:
    for key, each in value.items():
        if not isinstance(key, str) or not isinstance(each, str):
            raise TypeError(f"label {key!r}={each!r}: a label's key and value are strings")
        if not key or "," in key + each or "=" in key:
            raise ValueError(
                f"label {key!r}={each!r}: a key is not empty, and neither has a comma or = in it"
            )
    found: Mapping[str, str] = value
    return found


def _preimports(name: str, value: Any) -> list[tuple[str, ...]]:
    lists = [_checks.check_preimport(modules) for modules in value]
    if not all(lists):
        raise ValueError("preimport: an empty list of modules")
    if len(lists) > PREIMPORTS_MAX:
        raise ValueError(
            f"preimport: {len(lists)} lists of modules; a node keeps at most {PREIMPORTS_MAX} such "
            "processes"
        )
    return lists


def _object_memory(name: str, memory: Any) -> int:
    number = isinstance(memory, (int, float)) and not isinstance(memory, bool)
    if not number or memory != int(memory) or memory < _OBJECT_MEMORY_MIN:
        raise ValueError(
            f"object_store_memory is a number of bytes, at least {_OBJECT_MEMORY_MIN} (64 "
            f"MiB), not {memory!r}"
        )
    return int(memory)


def _spilling_directory(name: str, folder: Any) -> str:
    if folder == "none":
        return "none"
    if not (os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        raise ValueError(
            f"object_spilling_directory: {folder!r} is no folder that can be written to (and "
            "not 'none')"
        )
    found: str = os.path.abspath(folder)
    return found


def _choice(*names: str) -> Any:
    def check(name: str, value: Any) -> Any:
        if value not in names:
            raise ValueError(f"{name} must be {' or '.join(map(repr, names))}, not {value!r}")
        return value

    return check


def _short(value: float) -> str:
    return f"{value:g}"


class NodeOptions(TypedDict, total=False):
    """Options of a node; None: not given."""

    num_cpus: Annotated[
        float | None,
        Option(
            None,
            "CPUs this node offers.",
            _amount,
            wire="num_cpus",
            sent=_short,
            flag="N",
            unsaid="those of the machine",
        ),
    ]
    num_gpus: Annotated[
        float | None,
        Option(
            None,
            "GPUs this node offers; more than there are: logical ones.",
            _gpus,
            wire="num_gpus",
            sent=_short,
            flag="N",
            unsaid="those of the machine",
        ),
    ]
    memory: Annotated[
        float | str | None,
        Option(
            None,
            "Memory that actors and tasks may ask for (`memory=`).",
            lambda name, value: _resources.bytes_of(value),
            wire="memory",
            flag="BYTES",
            unsaid="0.7 of the machine's",
        ),
    ]
    resources: Annotated[
        Mapping[str, float] | None,
        Option(
            None,
            "Other resources, as '{\"license\": 2}'.",
            _custom,
            wire="resources",
            sent=json.dumps,
            flag="JSON",
            unsaid="none",
        ),
    ]
    labels: Annotated[
        Mapping[str, str] | None,
        Option(
            None,
            "A label of this node, or several: K=V,K=V; may be repeated.",
            _labels,
            wire="labels",
            sent=lambda labels: ",".join(f"{key}={value}" for key, value in labels.items()),
            flag="K=V",
            repeats=True,
            unsaid="none",
        ),
    ]
    preimport: Annotated[
        Iterable[Iterable[str]] | None,
        Option(
            None,
            "Modules (lightning,transformers) that a process of this node imports at its start, "
            "for launches, actors and tasks with that `preimport=`; may be repeated.",
            _preimports,
            wire="preimport",
            sent=lambda lists: ";".join(",".join(modules) for modules in lists),
            flag="MODULES",
            repeats=True,
            unsaid="none",
        ),
    ]
    object_store_memory: Annotated[
        int | None,
        Option(
            None,
            "Memory for objects, of each process of this node.",
            _object_memory,
            wire="object_store_memory",
            flag="BYTES",
            unsaid="half of the machine's",
        ),
    ]
    object_spilling_directory: Annotated[
        str | None,
        Option(
            None,
            "Where objects go beyond that, or when the system is short of memory; on a disk; "
            "`none`: nowhere.",
            _spilling_directory,
            wire="object_spilling_directory",
            flag="FOLDER",
            unsaid="/var/tmp, or /tmp",
        ),
    ]
    log_days: Annotated[
        float | None,
        Option(
            None,
            "How many days logs of ended launches and actors are kept here.",
            _number(0, 36500),
            wire="log_days",
            sent=_short,
            flag="DAYS",
            unsaid="7",
        ),
    ]
    log_gib: Annotated[
        float | None,
        Option(
            None,
            "Disk for them; the oldest go first.",
            _number(0, 2**30),
            wire="ended_log_bytes_max",
            sent=lambda gib: int(gib * 2**30),
            flag="GIB",
            unsaid="4",
        ),
    ]
    log_file_mib: Annotated[
        float | None,
        Option(
            None,
            "A log file (a rank's, an actor's, the head's, the worker's) over this loses its "
            "older half.",
            _number(0.015625, 2**30),
            wire="log_bytes_max",
            sent=lambda mib: int(mib * 2**20),
            flag="MIB",
            unsaid="64",
        ),
    ]


class HeadOptions(TypedDict, total=False):
    """Options of a head; None: not given."""

    certificate_days: Annotated[
        float | None,
        Option(
            None,
            "Life of the nodes' certificates, renewed at two thirds.",
            _number(1e-9, 3650),
            wire="certificate_days",
            sent=repr,
            flag="DAYS",
            unsaid="7",
        ),
    ]
    preemption: Annotated[
        Literal["never", "restartable"] | None,
        Option(
            None,
            "Whom a request of higher priority may end so that it gets a place: nobody, or what "
            "can start again (launches with attempts, actors with restarts).",
            _choice("never", "restartable"),
            wire="preemption",
            flag="WHOM",
            unsaid="never",
        ),
    ]
    infeasible: Annotated[
        Literal["refuse", "wait"] | None,
        Option(
            None,
            "What no node can ever hold is refused at once, or waits for a node that joins and can "
            "(clusters that grow).",
            _choice("refuse", "wait"),
            wire="infeasible",
            flag="POLICY",
            unsaid="refuse",
        ),
    ]
    keep_place_after: Annotated[
        float | None,
        Option(
            None,
            "Of what waits, the first keeps the nodes it will go to once it has waited so long; "
            "until then whoever fits goes.",
            _number(0, 8760),
            wire="keep_place_after",
            sent=repr,
            flag="HOURS",
            unsaid="8",
        ),
    ]
    idle_gpu_after: Annotated[
        float | None,
        Option(
            None,
            "A GPU that is held and idle for so long is told of by `troupe status` and `troupe "
            "list events`; 0: never.",
            _number(0, 525_600),
            wire="idle_gpu_after",
            sent=repr,
            flag="MINUTES",
            unsaid="30",
        ),
    ]
    no_local_clients: Annotated[
        bool | None,
        Option(
            None,
            "Processes of this user on this host need a client token like all others; one is "
            "printed, once.",
            wire="no_local_clients",
            sent=lambda value: "true",
            flag="",
        ),
    ]


NODES = table_of(NodeOptions)
HEADS = table_of(HeadOptions)


def arguments(table: Mapping[str, Option], given: Mapping[str, Any]) -> list[str]:
    """Return the program's command line of the options that are given, checked.

    Raises:
        TypeError, ValueError: what a check raises; the message names the option.
    """
    return [
        f"--{each.wire}={each.sent(each.check(name, given[name]))}"
        for name, each in table.items()
        if given.get(name) is not None and given[name] is not False
    ]
