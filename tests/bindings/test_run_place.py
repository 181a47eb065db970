"""Method: environments as launchers make them, line by line, through the pure reader; no process is
started."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from troupe._run import place

TORCHRUN = {
    "GROUP_RANK": "1",
    "GROUP_WORLD_SIZE": "2",
    "LOCAL_RANK": "0",
    "MASTER_ADDR": "gpu-a",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "job",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "RANK": "1",
    "WORLD_SIZE": "2",
}
MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "PMIX_NAMESPACE": "prterun-a-12@1",
}
SLURM = {
    "SLURM_PROCID": "3",
    "SLURM_NODEID": "3",
    "SLURM_LOCALID": "0",
    "SLURM_NNODES": "4",
    "SLURM_STEP_NUM_NODES": "4",
    "SLURM_JOB_ID": "77",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "gpu[08-10],head",
}
LWS = {"LWS_WORKER_INDEX": "1", "LWS_GROUP_SIZE": "3", "LWS_LEADER_ADDRESS": "run-0.run.default"}
PLAIN = {"NODE_RANK": "1", "MASTER_ADDR": "10.1.2.3"}

# environment, options, (rank, nodes, host, port, run, source)
TABLE = [
    (TORCHRUN, {}, (1, 2, "gpu-a", 0, "torchrun job 0", "torchrun")),
    (TORCHRUN | {"TORCHELASTIC_RUN_ID": "none"}, {}, (1, 2, "gpu-a", 0, "", "torchrun")),
    (MPI | {"MASTER_ADDR": "a"}, {}, (1, 2, "a", 0, "mpi prterun-a-12@1", "Open MPI")),
    (
        MPI | {"AZ_BATCH_MASTER_NODE": "10.0.0.4:6000"},
        {},
        (1, 2, "10.0.0.4", 0, "mpi prterun-a-12@1", "Open MPI"),
    ),
    (MPI | {"SLURM_JOB_NODELIST": "n[1-2]"}, {}, (1, 2, "n1", 0, "mpi prterun-a-12@1", "Open MPI")),
    (MPI, {"address": "b:1"}, (1, 2, "b", 1, "mpi prterun-a-12@1", "Open MPI")),
    (SLURM, {}, (3, 4, "gpu08", 0, "slurm 77.0", "Slurm")),
    (SLURM, {"nodes": 4, "run": "mine"}, (3, 4, "gpu08", 0, "mine", "Slurm")),
    (SLURM | {"SLURM_RESTART_COUNT": "2"}, {}, (3, 4, "gpu08", 0, "slurm 77.0.2", "Slurm")),
    (
        SLURM | {"SLURM_NODEID": ""},
        {"address": "[fe80::1]:99"},
        (3, 4, "fe80::1", 99, "slurm 77.0", "Slurm"),
    ),
    (
        SLURM | MPI | {"MASTER_ADDR": "a"},
        {"nodes": 2},
        (1, 2, "a", 0, "mpi prterun-a-12@1", "Open MPI"),
    ),
    (SLURM | TORCHRUN, {}, (1, 2, "gpu-a", 0, "torchrun job 0", "torchrun")),
    (LWS, {}, (1, 3, "run-0.run.default", 0, "lws run-0.run.default", "LeaderWorkerSet")),
    (PLAIN, {"nodes": 2}, (1, 2, "10.1.2.3", 0, "", "NODE_RANK and MASTER_ADDR")),
    (PLAIN | {"NNODES": "4"}, {}, (1, 4, "10.1.2.3", 0, "", "NODE_RANK and MASTER_ADDR")),
    ({}, {"nodes": 2, "address": "h:7"}, (None, 2, "h", 7, "", "--address")),
    ({}, {"nodes": 2, "address": "h"}, (None, 2, "h", 0, "", "--address")),
    ({}, {"nodes": 2, "address": "h:7", "node_rank": 1}, (1, 2, "h", 7, "", "--node-rank")),
    (
        {"TROUPE_NODE_RANK": "1", "TROUPE_RUN_ID": "x"},
        {"nodes": 2, "address": "h:7"},
        (1, 2, "h", 7, "x", "--node-rank"),
    ),
    ({}, {"nodes": 1}, (0, 1, "", 0, "", "--address")),
    (
        {"SLURM_JOB_ID": "77", "SLURM_NNODES": "4"},
        {"nodes": 1},
        (0, 1, "", 0, "", "--address"),
    ),  # salloc, no step
]


@pytest.mark.parametrize("env, options, expected", TABLE)
def test_launchers(env: dict, options: dict, expected: tuple) -> None:
    found = place.read(env, **options)
    assert (found.rank, found.nodes, found.host, found.port, found.run, found.source) == expected


REFUSED = [
    ({}, {}, "--nodes N is needed"),
    (
        {},
        {"nodes": 2},
        "looked for GROUP_RANK of torchrun, OMPI_COMM_WORLD_RANK of Open MPI, SLURM_PROCID of "
        "Slurm",
    ),
    (MPI, {}, "Open MPI does not say where node 0 is"),
    (LWS | {"LWS_LEADER_ADDRESS": ""}, {}, "LWS_LEADER_ADDRESS: not set"),
    (
        SLURM,
        {"nodes": 2},
        "this is node 3 of the 4 that Slurm started, and --nodes is 2: it is one too many",
    ),
    (SLURM, {"nodes": 8}, "--nodes is 8, but Slurm started 4"),
    (SLURM | {"SLURM_LOCALID": "1"}, {}, "srun --ntasks-per-node=1"),
    (TORCHRUN | {"LOCAL_RANK": "1"}, {}, "torchrun --nproc-per-node 1"),
    (SLURM | {"SLURM_NODEID": "x"}, {}, "SLURM_NODEID is 'x', which is no number"),
    (SLURM | {"SLURM_STEP_NODELIST": "gpu[1-"}, {}, "bracket that does not close"),
    ({}, {"nodes": 2, "address": "h:7", "node_rank": 2}, "not one of 0 to 1"),
    ({}, {"nodes": 2, "address": "h:x"}, "'h:x' is no address"),
    ({}, {"nodes": 2, "address": "h:70000"}, "65535"),
]


@pytest.mark.parametrize("env, options, text", REFUSED)
def test_what_is_refused(env: dict, options: dict, text: str) -> None:
    with pytest.raises(place.PlaceError) as caught:
        place.read(env, **options)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "text, hosts",
    [
        ("", ()),
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("n[08-10]", ("n08", "n09", "n10")),
        ("n[1,3-4]x", ("n1x", "n3x", "n4x")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("gpu[08-09],head,cpu-1", ("gpu08", "gpu09", "head", "cpu-1")),
    ],
)
def test_lists_of_hosts(text: str, hosts: tuple) -> None:
    assert place.expand(text) == hosts


def test_names_of_nodes() -> None:
    found = place.read(SLURM)
    assert found.own_name("host") == "head" and place.read(LWS).own_name("h/1") == "h-1"
    assert found.name_of(1) == "node 1 (gpu09)" and place.read(LWS).name_of(2) == "node 2"


@settings(deadline=None)  # reads the wall clock: a busy machine is no defect
@given(st.text(alphabet="ab[]-,019 ", max_size=30))
def test_any_list_of_hosts_is_read_or_refused(text: str) -> None:
    try:
        assert all(isinstance(host, str) for host in place.expand(text))
    except place.PlaceError:
        pass


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(sorted(SLURM | TORCHRUN | MPI | LWS | PLAIN)), st.text(max_size=12)
    ),
    st.one_of(st.none(), st.text(max_size=12)),
)
def test_any_environment_is_read_or_refused(env: dict, address: str | None) -> None:
    try:
        found = place.read(env, nodes=2, address=address)
        assert found.nodes == 2 and (found.rank is None or 0 <= found.rank < 2)
    except place.PlaceError:
        pass
