"""troupe.data in a cluster: functions run as tasks and in pools of actors, which may die; shares go
to other processes.

Method: functions write down the process they run in, and kill it once. Without a cluster:
test_data_here.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pyarrow.csv
import pytest
from e2e_conftest import Home

import troupe
from troupe import data

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def with_pid(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"id": batch["id"], "pid": np.full(len(batch["id"]), os.getpid())}


def dies_once(folder: Path) -> Any:
    """A function that kills its process at the block that has row 110, the first time."""

    def function(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        mark = folder / "died"
        if 110 in batch["id"] and not mark.exists():
            mark.write_text(str(os.getpid()))
            os.kill(os.getpid(), 9)
        return with_pid(batch)

    return function


class Adds:
    """A class of which each actor has an instance."""

    def __init__(self, k: int, die: Any = None) -> None:
        self.k, self.die, self.called = k, die, 0

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.called += 1
        if self.die is not None:
            self.die(batch)
        return {
            **with_pid(batch),
            "id": batch["id"] + self.k,
            "called": np.full(len(batch["id"]), self.called),
        }


@troupe.remote(num_cpus=0)
class Reader:
    """A process that goes through its share."""

    def ids(self, shard: data.DataIterator, epochs: int) -> list[list[int]]:
        return [[row["id"] for row in shard.iter_rows()] for _ in range(epochs)]


def read(folder: Path) -> data.Dataset:
    return data.read_parquet(str(folder), override_num_blocks=10)


def test_tasks_and_their_process_that_is_killed(idle: Home, numbers: Path, tmp_path: Path) -> None:
    """The rows are those of a run in which nobody died; plans without functions are read by the
    process itself."""
    rows = read(numbers).map_batches(dies_once(tmp_path)).take_all()
    assert [row["id"] for row in rows] == list(range(200)) and (tmp_path / "died").exists()
    assert os.getpid() not in {row["pid"] for row in rows}
    shuffled = [
        [
            row["id"]
            for row in read(numbers).map_batches(with_pid).random_shuffle(seed=4).iter_rows()
        ]
        for _ in range(2)
    ]
    assert shuffled[0] == shuffled[1] and sorted(shuffled[0]) == list(range(200))
    held = read(numbers).map_batches(with_pid).materialize()
    assert held.count() == 200 and {row["pid"] for row in held.take_all()} == {
        row["pid"] for row in held.take_all()
    }


def test_a_pool_of_actors_of_which_one_is_killed(idle: Home, numbers: Path, tmp_path: Path) -> None:
    rows = (
        read(numbers)
        .map_batches(
            Adds,
            fn_constructor_args=(1000,),
            fn_constructor_kwargs={"die": dies_once(tmp_path)},
            concurrency=2,
        )
        .take_all()
    )
    assert [row["id"] for row in rows] == list(range(1000, 1200)) and (tmp_path / "died").exists()
    assert (
        max(row["called"] for row in rows) > 1
        and int((tmp_path / "died").read_text()) != rows[110]["pid"]
    )
    both = (
        read(numbers)
        .map_batches(with_pid)
        .map_batches(
            Adds, fn_constructor_args=(1,), compute=data.ActorPoolStrategy(min_size=1, max_size=2)
        )
    )
    assert [row["id"] for row in both.iter_rows()] == list(range(1, 201))


def test_errors_of_functions_in_other_processes(idle: Home, numbers: Path) -> None:
    with pytest.raises(KeyError) as raised:
        read(numbers).map(lambda row: row["nothing"]).take_all()
    assert isinstance(
        raised.value, data.DataError
    ) and f"map(<lambda>) failed on row 0 of {numbers}/part-0.parquet" in str(raised.value)
    with pytest.raises(
        data.DataError,
        match=r"map_batches\(Adds\).__init__ failed on its way to the first block: TypeError",
    ):
        read(numbers).map_batches(Adds).take_all()
    with pytest.raises(troupe.PlacementError):
        read(numbers).map_batches(with_pid, num_gpus=1000).take_all()


@pytest.mark.parametrize("kind", ["known", "mapped", "filtered", "held"])
def test_shares_go_to_other_processes(idle: Home, numbers: Path, kind: str) -> None:
    ds = {
        "known": read(numbers),
        "mapped": read(numbers).map_batches(with_pid, udf_modifying_row_count=False),
        "filtered": read(numbers).filter(lambda row: row["id"] % 3 == 0),
        "held": read(numbers).map_batches(with_pid).materialize(),
    }[kind]
    rows = {row["id"] for row in ds.iter_rows()}
    readers = [Reader.remote() for _ in range(3)]
    found = troupe.get(
        [
            reader.ids.remote(shard, 2)
            for reader, shard in zip(readers, ds.streaming_split(3, equal=True), strict=True)
        ]
    )
    for epoch in range(2):
        mine = [each[epoch] for each in found]
        assert [len(one) for one in mine] == [len(rows) // 3] * 3
        assert len({row for one in mine for row in one} & rows) == len(rows) // 3 * 3
    for reader in readers:
        troupe.kill(reader)


class Dies:
    """Folders' names that kill the process which asks for them, as a parser does that crashes on a
    file."""

    def columns(self, path: str) -> dict[str, str]:
        os.kill(os.getpid(), 11)
        return {}


def test_text_is_read_by_tasks_which_a_file_may_kill(idle: Home, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,a")
    (tmp_path / "b.csv").write_text("id,name\n2,b\n")
    assert data.read_csv([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]).take_all() == [
        {"id": 1, "name": "a"},
        {"id": 2, "name": "b"},
    ]
    mapped = (
        data.read_csv(str(tmp_path / "a.csv"), include_paths=True)
        .map_batches(lambda batch: {**with_pid(batch), "path": batch["path"]})
        .take_all()
    )
    assert mapped[0]["path"] == str(tmp_path / "a.csv") and mapped[0]["pid"] != os.getpid()
    with pytest.raises(
        data.DataError, match=f"{tmp_path}/b.csv cannot be read: each process that read it died"
    ) as raised:
        data.read_csv(str(tmp_path / "b.csv"), partitioning=Dies()).take_all()
    assert isinstance(
        raised.value, troupe.exceptions.WorkerCrashedError
    ) and raised.value.path == str(tmp_path / "b.csv")
    (tmp_path / "c.csv").write_text(
        "id,name\n" + "".join(f'{row},"a\n{row}"\n' for row in range(300))
    )
    cut = data.read_csv(
        str(tmp_path / "c.csv"),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        override_num_blocks=6,
    ).materialize()
    assert cut.num_blocks() == 6 and cut.take_all() == [
        {"id": row, "name": f"a\n{row}"} for row in range(300)
    ]
    (tmp_path / "null.json").write_text("null\n")
    with pytest.raises(
        data.DataError, match=r"null.json cannot be read: ValueError: it begins with null"
    ):
        data.read_json([str(tmp_path / "null.json")] * 2)
