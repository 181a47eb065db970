"""Hugging Face's Trainer: a GPT-2 of two layers, made from its config, on the pixels of
scikit-learn's digits as tokens."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence

import torch
from sklearn.datasets import load_digits
from torch.utils.data import Dataset
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
    set_seed,
)


class Pixels(Dataset):
    """A digit as 64 tokens, of 17 shades."""

    def __init__(self) -> None:
        self.tokens = torch.tensor(load_digits().data, dtype=torch.long)

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


class Said(Trainer):
    """Keeps each loss of this rank."""

    losses: list[str]

    def compute_loss(self, *args, **kwargs):
        loss = super().compute_loss(*args, **kwargs)
        self.losses.append((loss[0] if isinstance(loss, tuple) else loss).item().hex())
        return loss


def train(steps: int, batch: int) -> list[str]:
    set_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=17,
            n_positions=64,
            n_embd=32,
            n_layer=2,
            n_head=2,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            use_cpu=True,
            max_steps=steps,
            per_device_train_batch_size=batch,
            learning_rate=2e-3,
            logging_steps=steps,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            seed=0,
        )
        trainer = Said(model=model, args=arguments, train_dataset=Pixels())
        trainer.losses = []
        trainer.train()
        learnt = trainer.state.log_history[-1]["train_loss"]
    torch.distributed.destroy_process_group()
    return [*trainer.losses, learnt.hex()]


def main(words: Sequence[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch", type=int, default=8)
    asked = parser.parse_args(words)
    return {"rank": int(os.environ["RANK"]), "losses": train(asked.steps, asked.batch)}


if __name__ == "__main__":
    print(json.dumps(main()), flush=True)
