"""A package that is not installed: every door that needs it says so in one line, with its `pip
install`.

Method: an interpreter that cannot import the package runs the door's line; the command-line
programs do so in a process of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S

DOORS = {
    "data": ("pyarrow", "import troupe.data", "pip install 'troupe[data]'"),
    "data for torch": (
        "torch",
        "from troupe.air.data import DataLoader",
        "pip install 'troupe[torch]'",
    ),
    "trainers": (
        "torch",
        "from troupe import train; from troupe.train.torch import TorchTrainer; "
        "train.torch.prepare_model(None)",
        "pip install 'troupe[torch]'",
    ),
    "searches": (
        "optuna",
        "from troupe.tune.search.optuna import OptunaSearch; OptunaSearch()",
        "pip install 'troupe[tune]'",
    ),
    "pruners": (
        "optuna",
        "from troupe.tune.schedulers import OptunaPruner; OptunaPruner(None)",
        "pip install 'troupe[tune]'",
    ),
    "loggers of MLflow": (
        "mlflow",
        "from troupe.tune.logger import MLflowLoggerCallback; MLflowLoggerCallback()",
        "pip install 'troupe[tracking]'",
    ),
    "loggers of TensorBoard": (
        "tensorboardX",
        "from troupe.tune.logger import TBXLoggerCallback; TBXLoggerCallback()",
        "pip install 'troupe[tune]'",
    ),
    "pictures": (
        "matplotlib",
        "from troupe.tune._search import plots; plots.figures([], {}, 'loss', 'min')",
        "pip install 'troupe[tune]'",
    ),
    "job files": (
        "yaml",
        "from troupe.cli import main; main(['azure', 'job', 'create', '-f', 'job.yml', "
        "'--stream'])",
        "pip install pyyaml",
    ),
    "workload files": (
        "yaml",
        "from troupe.cli import main; main(['air', 'run', '-f', 'job.yml', '--dry-run'])",
        "pip install pyyaml",
    ),
    "sweep files": (
        "optuna",
        "from troupe.cli import main; main(['azure', 'job', 'create', '-f', 'sweep.yml', "
        "'--stream'])",
        "pip install 'troupe[tune]'",
    ),
}
BLOCK = """
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] == {0!r} else self.finder.find_spec(name, path, target)
sys.meta_path[:] = [Without(each) for each in sys.meta_path]
"""
SWEEP = """type: sweep
trial: {command: "echo ${{search_space.lr}}", environment: azureml:any@latest}
search_space: {lr: {type: uniform, min_value: 0.1, max_value: 0.9}}
objective: {goal: minimize, primary_metric: loss}
sampling_algorithm: bayesian
limits: {max_total_trials: 2}
"""


@pytest.mark.parametrize("door", DOORS)
def test_a_missing_package_is_one_line_with_its_remedy(tmp_path: Path, door: str) -> None:
    package, line, remedy = DOORS[door]
    (tmp_path / "job.yml").write_text("command: echo hi\nenvironment: azureml:any@latest\n")
    (tmp_path / "sweep.yml").write_text(SWEEP)
    done = subprocess.run(
        [sys.executable, "-c", BLOCK.format(package) + line],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**os.environ, "TROUPE_HOME": str(tmp_path / "home")},
    )
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode != 0 and "not installed" in last and remedy in last, done.stderr
    if "cli" in line:
        assert "Traceback" not in done.stderr, done.stderr
    else:
        assert last.startswith("troupe.exceptions.MissingPackageError: "), done.stderr
