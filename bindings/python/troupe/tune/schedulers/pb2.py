"""PB2 of `ray.tune.schedulers.pb2`, which is refused."""

from troupe.tune._core.refused import refused

PB2 = refused(
    "PB2",
    "PopulationBasedTraining explores the same parameters, with hyperparam_mutations={name: "
    "tune.uniform(lower, upper)} for "
    "hyperparam_bounds={name: [lower, upper]}",
)
