"""Lightning: a `Trainer` that finds its ranks by itself, with a checkpoint and a logged loss, on
scikit-learn's digits."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence

import pytorch_lightning as lightning
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Digits(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
        self.losses: list[str] = []

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], _: int) -> torch.Tensor:
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.losses.append(loss.item().hex())
        self.log("loss", loss, sync_dist=True)
        return loss

    def validation_step(self, batch: tuple[torch.Tensor, torch.Tensor], _: int) -> None:
        self.log(
            "validation", nn.functional.cross_entropy(self.net(batch[0]), batch[1]), sync_dist=True
        )

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=5e-3)


def train(epochs: int, batch: int) -> list[str]:
    lightning.seed_everything(0, workers=True)
    data = load_digits()
    digits = TensorDataset(
        torch.tensor(data.data / 16.0, dtype=torch.float32), torch.tensor(data.target)
    )
    learnt, kept = torch.utils.data.random_split(
        digits, [1500, len(digits) - 1500], torch.Generator().manual_seed(0)
    )
    model = Digits()
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=int(os.environ["LOCAL_WORLD_SIZE"]),
            strategy="ddp",
            max_epochs=epochs,
            deterministic=True,
            default_root_dir=folder,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(
            model,
            DataLoader(learnt, batch_size=batch, shuffle=True),
            DataLoader(kept, batch_size=batch),
        )
    ended = [trainer.callback_metrics[name].item().hex() for name in ("loss", "validation")]
    torch.distributed.destroy_process_group()
    return model.losses + ended


def main(words: Sequence[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    asked = parser.parse_args(words)
    losses = train(asked.epochs, asked.batch)
    return {"rank": int(os.environ["RANK"]), "losses": losses}


if __name__ == "__main__":
    print(json.dumps(main()), flush=True)
