"""A training with DDP of which a rank is killed and replaced learns what an undisturbed one does.

Method: three ranks of Gloo train a small network, with a checkpoint after each epoch; once
undisturbed, once with a rank that is killed within an epoch. Ranks, data and steps of an epoch are
the same with the replacement, so the parameters at the end are too.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import Home

from troupe import train
from troupe.launch import current, distributed

LIMIT_S = 240
EPOCHS, STEPS, FATAL = 4, 6, (2, 3)


@distributed(processes=3, remote=True, on_rank_death="replace")
def learn(folder: str, victim: int | None) -> dict[str, Any]:
    """Parameters and loss at the end, as this rank has them."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    saved = Path(folder, "latest.pt")
    for attempt in train.attempts("gloo"):
        with attempt:
            torch.manual_seed(0)
            net = torch.nn.Sequential(
                torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)
            )
            optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
            begin = 0
            if saved.exists():
                state = torch.load(saved)
                net.load_state_dict(state["net"])
                optimizer.load_state_dict(state["optimizer"])
                begin = state["epoch"] + 1
            model = DistributedDataParallel(net)
            for epoch in range(begin, EPOCHS):
                data = torch.Generator().manual_seed(100 * epoch + attempt.rank)
                for step in range(STEPS):
                    if (epoch, step) == FATAL and attempt.rank == victim and not current().replaces:
                        os.kill(os.getpid(), signal.SIGKILL)
                    inputs = torch.randn(16, 8, generator=data)
                    optimizer.zero_grad()
                    loss = (model(inputs).squeeze(1) - inputs.sum(1)).square().mean()
                    loss.backward()
                    optimizer.step()
                if attempt.rank == 0:
                    torch.save(
                        {
                            "epoch": epoch,
                            "net": net.state_dict(),
                            "optimizer": optimizer.state_dict(),
                        },
                        f"{saved}.new",
                    )
                    os.replace(f"{saved}.new", saved)
            result = {
                "parameters": torch.cat(
                    [each.detach().flatten() for each in net.parameters()]
                ).tolist(),
                "loss": float(loss),
                "began": begin,
                "of": attempt.world_size,
            }
    return result


@pytest.mark.parametrize("victim", [0, 2])
def test_the_same_parameters_as_undisturbed(idle: Home, tmp_path: Path, victim: int) -> None:
    folders = [tmp_path / "undisturbed", tmp_path / "disturbed"]
    for folder in folders:
        folder.mkdir()
    undisturbed = learn.submit(str(folders[0]), None).result(LIMIT_S)
    disturbed = learn.submit(str(folders[1]), victim).result(LIMIT_S)
    assert [each["began"] for each in undisturbed] == [0, 0, 0]
    assert [(each["began"], each["of"]) for each in disturbed] == [(FATAL[0], 3)] * 3
    for before, after in zip(undisturbed, disturbed, strict=True):
        assert after["parameters"] == pytest.approx(before["parameters"], abs=1e-6)
        assert after["loss"] == pytest.approx(before["loss"], abs=1e-6)
