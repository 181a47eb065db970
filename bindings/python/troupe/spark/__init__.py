"""TorchDistributor as programs for Spark write it, without Spark: functions and scripts on many
ranks.

    from troupe.spark import TorchDistributor

    def train(learning_rate, use_gpu):
        torch.distributed.init_process_group("nccl" if use_gpu else "gloo")
        ...
        return model

    model = TorchDistributor(num_processes=2, local_mode=False, use_gpu=True).run(train, 1e-3, True)
    distributor = TorchDistributor(num_processes=2, local_mode=False, use_gpu=True)
    distributor.run("/path/train.py", "--learning_rate=0.001")

`troupe run-as script.py` runs a script that imports `pyspark.ml.torch.distributor` as it is. What
differs: docs/coming/torch_distributor.md.
"""

from troupe import _pickled
from troupe.spark._deepspeed import DeepspeedTorchDistributor
from troupe.spark._distributor import TorchDistributor
from troupe.spark._errors import DistributorError

_pickled.named_in(__name__, DeepspeedTorchDistributor, DistributorError, TorchDistributor)

__all__ = ["DeepspeedTorchDistributor", "DistributorError", "TorchDistributor"]
