"""The names of `azure.ai.ml.sweep`: what a sweep of command jobs varies, how it samples, and which
trials end early.

from troupe.azure.sweep import BanditPolicy, Choice, LogUniform

sweep = job(lr=LogUniform(-9, -2), batch=Choice([32, 64])).sweep(primary_metric="accuracy",
goal="maximize",
                                                                early_termination_policy=BanditPolicy(slack_factor=0.1))
"""

from troupe.azure._sweep_job import (
    BayesianSamplingAlgorithm,
    GridSamplingAlgorithm,
    Objective,
    RandomSamplingAlgorithm,
    SamplingAlgorithm,
    Sweep as SweepJob,
    SweepJobLimits,
)
from troupe.azure._sweep_spaces import (
    Choice,
    LogNormal,
    LogUniform,
    Normal,
    QLogNormal,
    QLogUniform,
    QNormal,
    QUniform,
    Randint,
    Uniform,
)
from troupe.tune.schedulers.early_termination import (
    BanditPolicy,
    MedianStoppingPolicy,
    TruncationSelectionPolicy,
)

__all__ = [
    "BanditPolicy",
    "BayesianSamplingAlgorithm",
    "Choice",
    "GridSamplingAlgorithm",
    "LogNormal",
    "LogUniform",
    "MedianStoppingPolicy",
    "Normal",
    "Objective",
    "QLogNormal",
    "QLogUniform",
    "QNormal",
    "QUniform",
    "Randint",
    "RandomSamplingAlgorithm",
    "SamplingAlgorithm",
    "SweepJob",
    "SweepJobLimits",
    "TruncationSelectionPolicy",
    "Uniform",
]
