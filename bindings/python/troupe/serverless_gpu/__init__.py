"""The serverless GPU API: `@distributed` and `@ray_launch` as programs for Databricks write them.

    from troupe.serverless_gpu import distributed, runtime as rt

    @distributed(gpus=8, gpu_type="H100")
    def hello(name):
        return rt.get_global_rank()

    hello.distributed("world")       # [0, 1, 2, 3, 4, 5, 6, 7]
    hello.submit("world")            # the same, without waiting: a troupe.launch.LaunchHandle
    hello("world")                   # here, in this process

`troupe run-as script.py` runs a script that imports `serverless_gpu` as it is. What differs:
docs/coming/serverless_gpu.md.
"""

from troupe.serverless_gpu import compute, launcher, ray, runtime
from troupe.serverless_gpu._decorators import ServerlessFunction, distributed, ray_launch
from troupe.serverless_gpu.compute import GPUType
from troupe.serverless_gpu.ray import RayMetricsMonitor

__all__ = [
    "GPUType",
    "RayMetricsMonitor",
    "ServerlessFunction",
    "compute",
    "distributed",
    "launcher",
    "ray",
    "ray_launch",
    "runtime",
]
