"""Population based training on handwritten digits: four trainings that go on from the best ones'
checkpoints with other learning rates.

    python examples/pbt_digits.py

Every second epoch the worst of the population takes the weights of the best, and a learning rate
near that one's. Each trial goes on from `tune.get_checkpoint()`, its own or another's, so that
nothing else is to be written for it.
"""

import os
import tempfile

from troupe import tune

POPULATION, EPOCHS = 4, 8


def train(config: dict) -> None:
    """Train one member: weights and optimizer are in its checkpoint, its learning rate in its
    configuration."""
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
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    epoch = 0
    if checkpoint := tune.get_checkpoint():
        with checkpoint.as_directory() as folder:
            state = torch.load(os.path.join(folder, "state.pt"))
        net.load_state_dict(state["net"])
        epoch = state["epoch"]
    optimizer = torch.optim.SGD(net.parameters(), lr=config["lr"])
    while epoch < EPOCHS:
        for rows in torch.randperm(len(x)).split(32):
            loss = torch.nn.functional.cross_entropy(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        epoch += 1
        with torch.no_grad():
            accuracy = (net(x_test).argmax(1) == y_test).float().mean().item()
        with tempfile.TemporaryDirectory() as folder:
            torch.save({"net": net.state_dict(), "epoch": epoch}, os.path.join(folder, "state.pt"))
            tune.report(
                {"accuracy": accuracy, "lr": config["lr"]},
                checkpoint=tune.Checkpoint.from_directory(folder),
            )


def main() -> None:
    """Runs the population; ends with an error where it has not learned, or nobody has gone on from
    another's weights."""
    with tempfile.TemporaryDirectory() as storage:
        grid = tune.Tuner(
            train,
            param_space={"lr": tune.grid_search([0.0003, 0.001, 0.1, 0.3])},
            tune_config=tune.TuneConfig(
                metric="accuracy",
                mode="max",
                scheduler=tune.schedulers.PopulationBasedTraining(
                    time_attr="training_iteration",
                    perturbation_interval=2,
                    hyperparam_mutations={"lr": tune.loguniform(1e-3, 1.0)},
                    seed=0,
                ),
            ),
            run_config=tune.RunConfig(
                name="population",
                storage_path=storage,
                checkpoint_config=tune.CheckpointConfig(num_to_keep=2),
            ),
        ).fit()
        rates = [[each["lr"] for each in result.metrics_history] for result in grid]
    for result, used in zip(grid, rates, strict=True):
        print(
            f"{result.trial_id}: accuracy {result.metrics['accuracy']:.3f}, learning rates "
            f"{', '.join(f'{rate:.4g}' for rate in dict.fromkeys(used))}"
        )
    assert not grid.errors, grid.errors[0]
    assert grid.get_best_result().metrics["accuracy"] >= 0.93, "the population has not learned"
    assert any(len(set(used)) > 1 for used in rates), "nobody has gone on from another's weights"


if __name__ == "__main__":
    main()
