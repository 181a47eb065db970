"""Names of GPU types, as `accelerator_type` of actors and tasks and `gpu_type` of launches take them. Ray's names.

    @troupe.remote(num_gpus=1, accelerator_type=accelerators.NVIDIA_H100)
    class Trainer: ...

A node's type is that of its GPUs, found when it starts, or what `troupe start --labels gpu_type=...` says; upper and lower
case are alike.
"""
from __future__ import annotations

NVIDIA_TESLA_V100 = "V100"
NVIDIA_TESLA_P100 = "P100"
NVIDIA_TESLA_T4 = "T4"
NVIDIA_TESLA_P4 = "P4"
NVIDIA_TESLA_K80 = "K80"
NVIDIA_TESLA_A10G = "A10G"
NVIDIA_L4 = "L4"
NVIDIA_L40S = "L40S"
NVIDIA_A100 = "A100"
NVIDIA_H100 = "H100"
NVIDIA_H200 = "H200"
NVIDIA_H20 = "H20"
NVIDIA_B200 = "B200"
NVIDIA_B300 = "B300"
NVIDIA_GH200 = "GH200"
