"""Searches the hyperparameters of a classifier of handwritten digits: 64 trials, of which ASHA
stops the bad ones early.

    python examples/sweep_digits.py                              # on this machine
    TROUPE_ADDRESS=10.0.0.1:6400 python examples/sweep_digits.py   # on a cluster
    # with the best accuracy by then, trial after trial, as a picture
    python examples/sweep_digits.py --picture best.png

`troupe sweep show digits --storage FOLDER` has what it does meanwhile, where --storage FOLDER was
given.
"""

import argparse
import os
import tempfile

from troupe import tune

TRIALS, EPOCHS = 64, 9


def train(lr: float, batch: int, hidden: int, momentum: float, epochs: int) -> None:
    """Run one trial: an epoch, then a report, at which ASHA may end it."""
    import torch
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = load_digits()
    x, x_test, y, y_test = (
        torch.tensor(each)
        for each in train_test_split(
            (digits.data / 16.0).astype("float32"),
            digits.target,
            test_size=0.25,
            random_state=0,
            stratify=digits.target,
        )
    )
    net = torch.nn.Sequential(
        torch.nn.Linear(64, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=momentum)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(batch):
            loss = torch.nn.functional.cross_entropy(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            tune.report({"accuracy": (net(x_test).argmax(1) == y_test).float().mean().item()})


SPACE = {
    "lr": tune.loguniform(1e-3, 1.0),
    "batch": tune.choice([16, 32, 64]),
    "hidden": tune.lograndint(16, 257),
    "momentum": tune.uniform(0.0, 0.95),
}


def draw(best: list[float], path: str) -> None:
    """The best accuracy after each trial, as a picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4))
    axes = figure.add_subplot()
    axes.step(range(1, len(best) + 1), best, where="post")
    axes.set(xlabel="trials", ylabel="best accuracy", title="digits")
    figure.savefig(path, bbox_inches="tight")


def main() -> None:
    """Runs the sweep; ends with an error where it has not found what it should."""
    options = argparse.ArgumentParser()
    options.add_argument("--picture")
    options.add_argument("--storage")
    options.add_argument("--trials", type=int, default=TRIALS)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        swept = tune.sweep(
            trials=given.trials,
            metric="accuracy",
            mode="max",
            space=SPACE,
            stop_early="asha",
            max_t=EPOCHS,
            grace_period=1,
            reduction_factor=3,
            seed=0,
            name="digits",
            storage=given.storage or folder,
            reuse=True,
            remote=bool(os.environ.get("TROUPE_ADDRESS")),
        )(train)
        grid = swept.sweep(epochs=EPOCHS)
        best = grid.get_best_result()
        reports = [each.metrics["training_iteration"] for each in grid]
        by_then = [
            max(each.metrics["accuracy"] for each in list(grid)[:count])
            for count in range(1, len(grid) + 1)
        ]
        if given.picture:
            draw(by_then, given.picture)
    print(
        f"{len(grid)} trials, {sum(count < EPOCHS for count in reports)} stopped early, "
        f"{sum(reports)} epochs of {EPOCHS * len(grid)}"
    )
    print(f"best accuracy {best.metrics['accuracy']:.3f} with {best.config}")
    assert not grid.errors, grid.errors[0]
    assert best.metrics["accuracy"] >= 0.95, (
        f"test accuracy {best.metrics['accuracy']} is below 0.95"
    )
    assert sum(reports) < EPOCHS * len(grid) * 0.8, "few trials were stopped early"


if __name__ == "__main__":
    main()
