"""The sweep that sweep_kills.py kills: classifiers of handwritten digits, under promotion ASHA or
population based training.

    python digits_sweep.py FOLDER promotion|population fit|submit SEED

Begins the sweep FOLDER/sweep, or goes on with it, on the cluster of TROUPE_ADDRESS. Each trial
writes down, in FOLDER/said, what it is about to report and what it was answered: a witness that
does not come from the engine. Every second report has a checkpoint.
"""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from troupe import tune

NAME = "sweep"
EPOCHS = {"promotion": 9, "population": 10}
TRIALS = {"promotion": 9, "population": 5}
PASSES = 4
"""Over the data, in each epoch."""


def train(config: dict[str, Any]) -> None:
    """Train one trial, from whatever checkpoint it is given, its own or another's."""
    import numpy
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = numpy.load(Path(config["folder"], "digits.npz"))
    x, y = torch.tensor(digits["x"]), torch.tensor(digits["y"])
    net = torch.nn.Linear(64, 10)
    epoch, trial = 0, tune.get_context().get_trial_id()
    if (checkpoint := tune.get_checkpoint()) is not None:
        with checkpoint.as_directory() as kept:
            state = numpy.load(os.path.join(kept, "state.npz"))
        net.load_state_dict({name: torch.tensor(state[name]) for name in ("weight", "bias")})
        epoch = int(state["epoch"])
    optimizer = torch.optim.SGD(net.parameters(), lr=config["lr"])
    while epoch < config["epochs"]:
        for rows in (rows for _ in range(PASSES) for rows in torch.randperm(len(x)).split(32)):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
        epoch += 1
        with torch.no_grad():
            accuracy = (net(x).argmax(1) == y).float().mean().item()
        token = uuid.uuid4().hex
        metrics = {
            "accuracy": accuracy,
            "epoch": epoch,
            "token": token,
            "lr": config["lr"],
            "process": os.getpid(),
        }
        said(config["folder"], trial, "reports", token, epoch)
        if epoch % 2 == config["saves"]:
            with tempfile.TemporaryDirectory() as own:
                numpy.savez(
                    os.path.join(own, "state.npz"),
                    epoch=epoch,
                    token=token,
                    **{name: each.numpy() for name, each in net.state_dict().items()},
                )
                tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(own))
        else:
            tune.report(metrics)
        said(config["folder"], trial, "answered", token, epoch)


def said(folder: str, trial: str, *words: object) -> None:
    """A line of this trial's, whole whenever its process ends."""
    with open(Path(folder, "said", trial), "ab", buffering=0) as log:
        log.write((" ".join(map(str, words)) + "\n").encode())


def swept(folder: Path, which: str, seed: int) -> tune.SweepFunction:
    """The sweep, as it is begun."""
    scheduler: Any = tune.schedulers.ASHAScheduler(
        type="promotion", max_t=EPOCHS[which], reduction_factor=3
    )
    if which == "population":
        scheduler = tune.schedulers.PopulationBasedTraining(
            time_attr="training_iteration",
            perturbation_interval=2,
            hyperparam_mutations={"lr": tune.loguniform(1e-3, 1.0)},
            seed=seed,
        )

    @tune.sweep(
        remote=True,
        trials=TRIALS[which],
        metric="accuracy",
        mode="max",
        space={"lr": tune.loguniform(1e-4, 1.0)},
        stop_early=scheduler,
        seed=seed,
        max_failures=100,
        keep=1,
        name=NAME,
        storage=folder,
        quiet=True,
    )
    def digits(**config: Any) -> None:
        train(config)

    return digits


def write_digits(folder: Path) -> None:
    """Write the data that trials learn, once for all of them."""
    import numpy
    from sklearn.datasets import load_digits

    digits = load_digits()
    numpy.savez(folder / "digits.npz", x=(digits.data / 16.0).astype("float32"), y=digits.target)
    (folder / "said").mkdir()


def main() -> None:
    """Runs the sweep to its end, or has a process of the cluster run it."""
    folder, which, how, seed = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    constants = {
        "folder": str(folder),
        "epochs": EPOCHS[which],
        "saves": {"promotion": 1, "population": 0}[which],
    }
    if how == "submit":
        print(swept(folder, which, seed).submit(**constants).name, flush=True)
        return
    import troupe

    if tune.Tuner.can_restore(folder / NAME):
        troupe.init(os.environ["TROUPE_ADDRESS"])
        grid = tune.Tuner.restore(folder / NAME, train).fit()
    else:
        grid = swept(folder, which, seed).sweep(**constants)
    print(len(grid), grid.num_errors, flush=True)


if __name__ == "__main__":
    main()
