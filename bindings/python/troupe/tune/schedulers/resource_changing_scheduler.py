"""ResourceChangingScheduler of `ray.tune.schedulers.resource_changing_scheduler`, which is
refused."""

from troupe.tune._core.refused import refused

ResourceChangingScheduler = refused(
    "ResourceChangingScheduler",
    "a trial keeps what it begins with; tune.with_resources(trainable, function of the "
    "configuration) gives each trial its own",
)
