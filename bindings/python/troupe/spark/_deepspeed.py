"""DeepspeedTorchDistributor: ranks over nodes, and DeepSpeed's options on the command line of
each."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from troupe._code import option_files
from troupe.spark import _training
from troupe.spark._distributor import TorchDistributor, _positive

CONFIG = "--deepspeed_config"


class DeepspeedTorchDistributor(TorchDistributor):
    """Runs a function or script that uses DeepSpeed on `numGpus` ranks of each of `nnodes` nodes,
    as pyspark's does.

    `deepspeedConfig`: a dict, or the path of a file; each rank has `--deepspeed --deepspeed_config
    PATH` behind its other arguments in `sys.argv`, where deepspeed.add_config_arguments() and
    DeepSpeed itself look for it; the file of the caller travels. With `localMode=True` all ranks
    are on this machine. `useGpu=False`: ranks without GPUs, which DeepSpeed takes with
    DS_ACCELERATOR=cpu and gloo. Raises as TorchDistributor does.

        config = {"train_batch_size": 64}
        distributor = DeepspeedTorchDistributor(
            numGpus=4, nnodes=2, localMode=False, deepspeedConfig=config)
        distributor.run(train, 0.01)
    """

    def __init__(
        self,
        numGpus: int = 1,
        nnodes: int = 1,
        localMode: bool = True,
        useGpu: bool = True,
        deepspeedConfig: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    ) -> None:
        self._nodes = _positive("nnodes", nnodes)
        _positive("numGpus", numGpus)
        if not (
            deepspeedConfig is None or isinstance(deepspeedConfig, (str, os.PathLike, Mapping))
        ):
            raise TypeError(
                f"deepspeedConfig has to be a dict or the path of a file, not {deepspeedConfig!r}"
            )
        self.deepspeed_config = deepspeedConfig
        super().__init__(
            numGpus * nnodes, localMode, useGpu, _ssl_conf="deepspeed.spark.distributor.ignoreSsl"
        )

    def _build_training(
        self, train_object: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _training.Training:
        what = super()._build_training(train_object, args, kwargs)
        files = self._files()
        if isinstance(what, _training.Script):
            nodes = 1 if self.local_mode else self._nodes
            return replace(what, words=(*what.words, "--deepspeed"), files=files, nodes=nodes)
        return replace(what, words=("--deepspeed",), files=files)

    def _node_count(self) -> int:
        return 0 if self.local_mode else self._nodes

    def _files(self) -> _training.OptionFiles:
        """The configuration's text, by its option."""
        config = self.deepspeed_config
        if config is None or config == "":
            return ()
        if isinstance(config, Mapping):
            return ((CONFIG, json.dumps(dict(config))),)
        path = os.fspath(config)
        with open(path, encoding="utf-8") as file:
            text = file.read(option_files.TEXT_BYTES_MAX + 1)
        if len(text) > option_files.TEXT_BYTES_MAX:
            raise ValueError(
                f"deepspeedConfig {path!r} has more than {option_files.TEXT_BYTES_MAX >> 20} MiB: "
                "is it the configuration?"
            )
        return ((CONFIG, text),)
