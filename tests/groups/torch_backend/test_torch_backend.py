"""init_process_group("troupe"): DDP and FSDP2 learn bitwise what they learn over Gloo, and a killed
rank is named where the others waited for it.

Method: real ranks; the library is built for this torch by the first test that needs it, and kept in
the user's cache.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cloudpickle
import group_programs
import pytest
from e2e_conftest import Home

import troupe
from troupe._process.torch_backend import build
from troupe.launch import distributed

cloudpickle.register_pickle_by_value(group_programs)
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module", autouse=True)
def library() -> Path:
    """Built before any test counts its time."""
    return build.ensure()


@pytest.mark.parametrize("how", ["ddp", "fsdp2"])
def test_a7_what_is_learnt_is_bitwise_what_is_learnt_over_gloo(idle: Home, how: str) -> None:
    found = {}
    for backend in ("gloo", "troupe"):
        ranks = distributed(processes=2, remote=True, quiet=True)(
            group_programs.learns
        ).distributed(backend, how)
        assert [served for served, _, _ in ranks] == [backend] * 2
        found[backend] = [(digest, loss) for _, digest, loss in ranks]
    assert found["troupe"] == found["gloo"]
    assert len({digest for digest, _ in found["troupe"]}) == 1


def test_d5_a_killed_rank_is_named_in_the_others_backward(idle: Home, tmp_path: Path) -> None:
    with pytest.raises(
        troupe.exceptions.LaunchError, match="rank 2 was killed by SIGKILL"
    ) as caught:
        distributed(processes=3, remote=True, quiet=True)(group_programs.loses_rank_2).distributed(
            str(tmp_path)
        )
    assert caught.value.rank == 2
    for rank in (0, 1):
        said = (tmp_path / str(rank)).read_text()
        assert said.startswith(
            f"DistBackendError: group 0, epoch 1, rank {rank} of 3: stopped: rank 2 on "
        ), said
        assert "SIGKILL" in said, said
    assert "too: DistBackendError" not in str(caught.value), "the others' ends are rank 2's doing"


def test_every_operation_and_type_is_as_over_gloo(idle: Home) -> None:
    for differences in distributed(processes=3, remote=True, quiet=True)(
        group_programs.like_gloo
    ).distributed():
        assert differences == []


def test_lists_objects_anybody_and_a_group_made_anew(idle: Home) -> None:
    ranks = distributed(processes=2, remote=True, quiet=True)(
        group_programs.lists_and_objects
    ).distributed()
    objects, apart = [{"rank": 0}, {"rank": 1}], [0.0, 11.0, 2.0, 13.0, 4.0, 15.0]
    assert ranks == [
        ([[0.0, 0.0], [10.0, 10.0]], objects, -1, apart, 2.0),
        ([[1.0, 1.0], [11.0, 11.0]], objects, 0, apart, 2.0),
    ]


def test_a_rank_that_does_not_come_is_named_after_the_groups_time(idle: Home) -> None:
    said, _ = distributed(processes=2, remote=True, quiet=True)(
        group_programs.waits_in_vain
    ).distributed()
    assert (
        "was not done after 0.2 s, counted from its beginning on rank 0: rank 1 has not come to it"
        in said
    )


def test_torchs_options_name_the_backend_for_groups_that_name_none(idle: Home) -> None:
    def served() -> str:
        import torch
        import torch.distributed as dist

        dist.init_process_group()
        dist.all_reduce(torch.ones(1))
        return (
            dist.get_default_backend_for_device("cpu")
            + " "
            + type(dist.group.WORLD._get_backend(torch.device("cpu"))).__name__
        )

    ranks = distributed(processes=2, backend="troupe", remote=True, quiet=True)(
        served
    ).distributed()
    assert all(each.startswith("troupe ") for each in ranks), ranks


def test_the_store_of_a_launch_has_no_secret_of_its_groups(idle: Home) -> None:
    @distributed(processes=2, remote=True)
    def job() -> list[str]:
        import torch.distributed as dist

        dist.init_process_group("troupe")
        dist.barrier()
        store = dist.distributed_c10d._world.pg_map[dist.group.WORLD][1]
        while hasattr(store, "underlying_store"):
            store = store.underlying_store
        keys = [each if isinstance(each, str) else each.decode() for each in store.list_keys()]
        dist.barrier()
        return [each for each in keys if "troupe/" in each]

    for keys in job.submit().result(120):
        assert any(each.endswith("troupe/card/0") for each in keys) and not any(
            "secret" in each for each in keys
        ), keys
