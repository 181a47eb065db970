"""HyperBandForBOHB of `ray.tune.schedulers.hb_bohb`, which is refused."""

from troupe.tune._core.refused import refused

HyperBandForBOHB = refused(
    "HyperBandForBOHB",
    "take scheduler=HyperBandScheduler(...) or ASHAScheduler(...) with "
    "search_alg=OptunaSearch(...), whose "
    "TPE sampler learns from every report as BOHB does",
)
