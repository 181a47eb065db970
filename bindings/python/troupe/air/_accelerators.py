"""Accelerator types as the API names them: `GPU_8xH100` is a node with eight H100 GPUs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_FORM = re.compile(r"GPU_([1-9][0-9]{0,3})x([A-Za-z0-9][A-Za-z0-9_.-]*)")


@dataclass(frozen=True)
class AcceleratorType:
    """A kind of node, by the number and the model of its GPUs."""

    gpus_per_node: int
    gpu_type: str

    def __str__(self) -> str:
        return f"GPU_{self.gpus_per_node}x{self.gpu_type}"


def parse(what: str, text: Any) -> AcceleratorType:
    """Return the accelerator type that `text` names.

    Args:
        what: The option or field that `text` was given for, for the error message.
        text: A name of the form `GPU_<GPUs per node>x<GPU model>`. Case matters.

    Raises:
        TypeError: if `text` is not a string.
        ValueError: if `text` has another form.
    """
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a string such as 'GPU_8xH100', not {text!r}")
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            f"{what} is {text!r}; its form is GPU_<GPUs per node>x<GPU model>, such as GPU_8xH100 "
            "or GPU_1xA10, and case matters"
        )
    return AcceleratorType(int(found[1]), found[2])


def count_nodes(what: str, accelerators: int, kind: AcceleratorType) -> int:
    """Return the number of nodes that `accelerators` GPUs of this type are.

    Raises:
        ValueError: if the number is not a multiple of the GPUs of one node.
    """
    nodes, rest = divmod(accelerators, kind.gpus_per_node)
    if rest or not nodes:
        near = sorted({max(1, nodes) * kind.gpus_per_node, (nodes + 1) * kind.gpus_per_node})
        raise ValueError(
            f"{what} is {accelerators}; {kind} has {kind.gpus_per_node} GPUs per node, so it must "
            "be a multiple of that: "
            f"{' or '.join(str(each) for each in near)}"
        )
    return nodes


def types_of(nodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the accelerator types of a cluster's nodes, sorted.

    Args:
        nodes: One mapping per node that is alive, with `gpus` (a number) and `gpu_type` (a string,
        "" where it is unknown).
    """
    return sorted(
        {
            str(AcceleratorType(int(each["gpus"]), each["gpu_type"]))
            for each in nodes
            if each["gpus"] >= 1 and each["gpu_type"]
        }
    )
