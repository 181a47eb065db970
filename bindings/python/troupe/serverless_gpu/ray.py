"""`ray_launch` and RayMetricsMonitor, by the name of their module."""

from troupe import _pickled
from troupe.serverless_gpu._decorators import ray_launch
from troupe.serverless_gpu._metrics import RayMetricsMonitor

_pickled.named_in("troupe.serverless_gpu", RayMetricsMonitor)

__all__ = ["RayMetricsMonitor", "ray_launch"]
