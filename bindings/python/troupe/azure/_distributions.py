"""How a job's processes find each other, as people write it: typed objects, or dicts with `type`.

Pure.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping
from typing import Any, ClassVar

from troupe._ray_cluster import words
from troupe.azure import _schema

LAUNCHERS = ("deepspeed",)
"""Programs that start a job's processes themselves, from its first node."""


class Distribution:
    """A kind of distribution: a type, its own properties, and any others, which are kept as they
    are."""

    type: ClassVar[str] = ""
    known: ClassVar[
        Mapping[str, int]
    ] = {}  # properties that are numbers, and the least that each may be

    def __init__(self, **properties: Any) -> None:
        for name, value in properties.items():
            near = (
                difflib.get_close_matches(name, self.known, n=1, cutoff=0.8)
                if name not in self.known
                else []
            )
            if near:
                raise ValueError(
                    f"{type(self).__name__} has no {name!r}: did you mean {near[0]!r}?"
                )
            if name in self.known and value is not None:
                value = _schema.whole(f"distribution: {name}", value, least=self.known[name])
            setattr(self, name, value)
        self._names = tuple(properties)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._names)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """Return a dict with `type` and all properties, also those that are not its own."""
        return {"type": self.type, **{name: getattr(self, name) for name in self._names}}


class PyTorchDistribution(Distribution):
    """`process_count_per_instance` processes on each node, by default one, with RANK, LOCAL_RANK,
    WORLD_SIZE, NODE_RANK, MASTER_ADDR and MASTER_PORT.

    With the property `launcher="deepspeed"` the command runs once, on the first node, and
    `deepspeed` in it starts the processes of all nodes.

        PyTorchDistribution(process_count_per_instance=4)
        PyTorchDistribution(process_count_per_instance=4, launcher="deepspeed")
    """

    type = "pytorch"
    known: ClassVar = {"process_count_per_instance": 1}

    def __init__(self, *, process_count_per_instance: int | None = None, **properties: Any) -> None:
        if properties.get("launcher") is not None:
            properties["launcher"] = _schema.one_of(
                "distribution: launcher", properties["launcher"], LAUNCHERS
            )
        super().__init__(process_count_per_instance=process_count_per_instance, **properties)


class MpiDistribution(Distribution):
    """`process_count_per_instance` processes on each node, by default one, started by `mpirun`.

    MpiDistribution(process_count_per_instance=4)
    """

    type = "mpi"
    known: ClassVar = {"process_count_per_instance": 1}

    def __init__(self, *, process_count_per_instance: int | None = None, **properties: Any) -> None:
        super().__init__(process_count_per_instance=process_count_per_instance, **properties)


class TensorFlowDistribution(Distribution):
    """`worker_count` workers, by default as many as instances, and `parameter_server_count`
    parameter servers, with TF_CONFIG.

    `chief_count` and `evaluator_count` are processes of these types beside them, none by default.
    `chief_ends_job=True`: workers serve the chief, as with ParameterServerStrategy, where they wait
    in `server.join()`: once all chiefs have ended, they are ended as parameter servers are.

        TensorFlowDistribution(worker_count=2, parameter_server_count=1)
        TensorFlowDistribution(worker_count=2, parameter_server_count=1, chief_count=1, chief_ends_job=True)
    """

    type = "tensorflow"
    known: ClassVar = {
        "worker_count": 1,
        "parameter_server_count": 0,
        "chief_count": 0,
        "evaluator_count": 0,
    }

    def __init__(
        self,
        *,
        parameter_server_count: int | None = 0,
        worker_count: int | None = None,
        **properties: Any,
    ) -> None:
        if not isinstance(properties.get("chief_ends_job", False), bool):
            raise TypeError(
                "distribution: chief_ends_job must be True or False, not "
                f"{properties['chief_ends_job']!r}"
            )
        if properties.get("chief_ends_job") and not properties.get("chief_count"):
            raise ValueError(
                "distribution: chief_ends_job is of a job with a chief: chief_count is 0"
            )
        super().__init__(
            parameter_server_count=parameter_server_count, worker_count=worker_count, **properties
        )


class RayDistribution(Distribution):
    """A Ray cluster on the instances, its head on the first, where the command runs once as its
    driver.

    `api="troupe"`: the cluster is Troupe, and so is `import ray` in every Python of the command;
    `api="ray"`: Ray itself, which has to be on the nodes. `port`, `dashboard_port` None: any free
    one. The arguments are those of `ray start`, on the head and on the others. `address` is taken
    and means nothing.

        RayDistribution(include_dashboard=True, api="ray")
    """

    type = "ray"
    known: ClassVar = {"port": 1, "dashboard_port": 1}

    def __init__(
        self,
        *,
        port: int | None = None,
        address: str | None = None,
        include_dashboard: bool | None = None,
        dashboard_port: int | None = None,
        head_node_additional_args: str | None = None,
        worker_node_additional_args: str | None = None,
        api: str = words.TROUPE,
        **properties: Any,
    ) -> None:
        super().__init__(
            port=port,
            address=address,
            include_dashboard=include_dashboard,
            dashboard_port=dashboard_port,
            head_node_additional_args=head_node_additional_args,
            worker_node_additional_args=worker_node_additional_args,
            api=_schema.one_of("distribution: api", api, words.APIS),
            **properties,
        )
        if include_dashboard not in (None, True, False):
            raise TypeError(
                f"distribution: include_dashboard must be True or False, not {include_dashboard!r}"
            )
        self.wishes()

    def wishes(self) -> words.Wishes:
        """Return the settings of the Ray cluster that it describes.

        Raises ValueError for arguments that are none, or say what the launch itself says.
        """
        found = self.to_dict()
        extra = {}
        for name in ("head_node_additional_args", "worker_node_additional_args"):
            try:
                extra[name] = tuple(shlex.split(found[name] or ""))
            except (ValueError, AttributeError) as error:
                raise ValueError(
                    f"distribution: {name} must be a text of arguments as a shell has them, not "
                    f"{found[name]!r}: {error}"
                ) from None
            words.check_extra(f"distribution: {name}", extra[name])
        return words.Wishes(
            found["port"] or 0,
            bool(found["include_dashboard"]),
            found["dashboard_port"] or 0,
            *extra.values(),
        )


TYPES: dict[str, type[Distribution]] = {
    each.type: each
    for each in (PyTorchDistribution, MpiDistribution, TensorFlowDistribution, RayDistribution)
}


def of(given: Any) -> Distribution | None:
    """The object that a job was given, or that its dict means.

    Raises TypeError or ValueError, with the nearest.
    """
    if given is None or isinstance(given, Distribution):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(
            "distribution must be a mapping with 'type', or one of "
            f"{', '.join(each.__name__ for each in TYPES.values())}, not {given!r}"
        )
    if "type" not in given:
        raise ValueError(f"distribution has no 'type': it is one of {', '.join(TYPES)}")
    kind = _schema.one_of("distribution: type", given["type"], TYPES)
    fields = _schema.mapping("distribution", given)
    fields.pop("type")
    for name in fields.keys() - TYPES[kind].known.keys():
        owners = [each.type for each in TYPES.values() if name in each.known]
        if owners:
            raise ValueError(
                f"distribution: a distribution of type {kind} has no {name!r}, which is of type "
                f"{' or '.join(owners)}"
            )
    return TYPES[kind](**fields)
