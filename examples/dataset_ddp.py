"""Trains a classifier of handwritten digits with PyTorch DDP on two ranks, from a dataset of
Parquet files.

    python examples/dataset_ddp.py  # on an embedded cluster of this machine
    # on a cluster whose nodes see the folder of the files
    TROUPE_ADDRESS=10.0.0.1:6400 python examples/dataset_ddp.py

The digits are written as Parquet once, scaled as they are read, and dealt to the ranks: each has
equally many rows, in each epoch those of other files. Needs `pip install 'troupe[examples,data]'`.
"""

import os
import sys
import tempfile

import numpy as np

from troupe import data
from troupe.launch import distributed

RANKS = 2


def scaled(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Pixels from 0 to 1; run for each block by whoever reads it."""
    return {"pixels": batch["pixels"].astype(np.float32) / 16, "digit": batch["digit"]}


def train(shards: list[data.DataIterator], epochs: int) -> tuple[int, float]:
    """Train as one rank; return how many rows it was dealt in an epoch, and the accuracy on its
    rows of the last one."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    shard = shards[dist.get_rank()]
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    )
    optimizer, loss_of = torch.optim.AdamW(model.parameters(), lr=5e-3), torch.nn.CrossEntropyLoss()
    rows = right = 0
    for epoch in range(1, epochs + 1):
        rows = right = 0
        for batch in shard.iter_torch_batches(batch_size=32):
            found = model(batch["pixels"])
            loss = loss_of(found, batch["digit"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rows, right = (
                rows + len(batch["digit"]),
                right + int((found.argmax(1) == batch["digit"]).sum()),
            )
        if dist.get_rank() == 0:
            print(f"epoch {epoch:2d}  accuracy {right / rows:.3f}", flush=True)
    return rows, right / rows


def main() -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    with tempfile.TemporaryDirectory(prefix="troupe-digits-") as folder:
        data.from_arrow([data_of_part(digits, part) for part in range(8)]).write_parquet(folder)
        ds = data.read_parquet(folder, shuffle="files").map_batches(
            scaled, udf_modifying_row_count=False
        )
        launch = distributed(processes=RANKS, remote=bool(os.environ.get("TROUPE_ADDRESS")))(train)
        found = launch.distributed(ds.streaming_split(RANKS, equal=True), epochs=6)
    print(f"{len(digits.target)} digits: {found}")
    if {rows for rows, _ in found} != {len(digits.target) // RANKS} or min(
        accuracy for _, accuracy in found
    ) < 0.9:
        sys.exit("the ranks did not have equal shares, or did not learn")


def data_of_part(digits: object, part: int):
    """An eighth of the digits as a pyarrow Table; pixels are arrays."""
    import pyarrow as pa

    images, target = digits.data[part::8], digits.target[part::8]  # type: ignore[attr-defined]
    return pa.table(
        {
            "pixels": pa.FixedSizeListArray.from_arrays(pa.array(images.reshape(-1)), 64),
            "digit": target,
        }
    )


if __name__ == "__main__":
    main()
