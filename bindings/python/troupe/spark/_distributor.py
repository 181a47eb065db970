"""TorchDistributor: what it is given, checked; a launch of the function or script, followed to its
end."""

from __future__ import annotations

import contextlib
import logging
import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NoReturn

from troupe import exceptions
from troupe._cluster import session as _session, status_lines, workers
from troupe.launch import _cpu_ranks, _function, _hints, _progress, _submit, _vendor_place
from troupe.spark import _errors, _training

_PATIENCE_S = 600.0  # for the rest of an output that is read more slowly than it was written


class TorchDistributor:
    """Runs a function or a script on `num_processes` ranks, as pyspark's TorchDistributor does,
    without Spark.

    `local_mode=True`: all ranks on this machine, on the cluster of `troupe.init()` without an
    address, else on one that is started for this process and ends with it. `local_mode=False`: on
    the cluster of `troupe.init("host:port")` or TROUPE_ADDRESS, else on the one that this user runs
    on this host, else as with `local_mode=True`. `use_gpu=True`: a GPU for each rank, held until
    the run has ended; LOCAL_RANK is its number there. Where no node has a GPU the ranks run on
    CPUs, and NCCL is Gloo there. Both are said on stderr.

    Raises TypeError and ValueError for what cannot be meant, RuntimeError where several clusters
    could be meant, and with TROUPE_CPU_RANKS=0 where there is no GPU. Of more processes than this
    machine has GPUs in local mode as many are left as it has GPUs, which a warning says.

        distributor = TorchDistributor(num_processes=2, local_mode=True, use_gpu=False)
        accuracy = distributor.run(train, 1e-3)
    """

    def __init__(
        self,
        num_processes: int = 1,
        local_mode: bool = True,
        use_gpu: bool = True,
        _ssl_conf: str = "pytorch.spark.distributor.ignoreSsl",
    ) -> None:
        self.num_processes = _positive("num_processes", num_processes)
        self.local_mode = _flag("local_mode", local_mode)
        self.use_gpu = _flag("use_gpu", use_gpu)
        self.ssl_conf = _ssl_conf
        self.logger = logging.getLogger(type(self).__name__)
        with _refusals():
            if use_gpu or not local_mode:
                session, found = _vendor_place.find_session(remote=not local_mode)
                _vendor_place.tell(found)
                if use_gpu and not _vendor_place.without_gpus(session):
                    self._look_at_gpus(session)

    @property
    def num_tasks(self) -> int:
        """As many as there are processes: each is a rank of its own."""
        return self.num_processes

    def run(
        self, train_object: Callable[..., Any] | str | os.PathLike[str], *args: Any, **kwargs: Any
    ) -> Any:
        """Runs a function with these arguments on every rank, and returns what it returns on rank
        0; or a Python script, given by its path, with these words as its command line, and returns
        None.

        Blocks; shows what the ranks write, each line with its rank. Raises ValueError for keyword
        arguments of a script, and else a DistributorError, which is a RuntimeError: for a rank that
        failed with the last 100 lines of its output, also of that rank's own exception type; for
        what cannot start, before any rank exists, also TypeError (arguments that the function does
        not take), FileNotFoundError, SyntaxError, PlacementError, or the pickler's own. Ctrl-C
        stops the ranks, which have 10 s for a last word; the end of this process ends them.

            TorchDistributor(num_processes=2, use_gpu=False).run("train.py", "--learning-rate=1e-3")
        """
        if isinstance(train_object, (str, os.PathLike)) and kwargs:
            raise ValueError(
                f"{type(self).__name__}.run: running a file takes no keyword arguments, and "
                f"{', '.join(kwargs)} was given\n"
                f"  its command line is given word by word: run({os.fspath(train_object)!r}, "
                f"'--{next(iter(kwargs))}=...')"
            )
        with _refusals():
            training = self._build_training(train_object, args, kwargs)
            _submit.refuse_inside_a_rank()
            session, found = _vendor_place.find_session(remote=not self.local_mode)
            _vendor_place.tell(found)
            handle = training.start(self._options(session), session)
        return self._followed(handle, training)

    def _build_training(
        self, train_object: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _training.Training:
        """Return the training that the ranks run."""
        if isinstance(train_object, (str, os.PathLike)):
            return _training.Script(os.fspath(train_object), tuple(map(str, args)))
        return _training.Function(train_object, args, kwargs, asked=f"{type(self).__name__}.run")

    def _followed(self, handle: Any, training: _training.Training) -> Any:
        tail = _errors.Tail()
        show = _progress.Display(
            handle, heard=tail.hear, patience_s=_PATIENCE_S, script=training.script
        )
        try:
            return _progress.run(handle, show=show, take=training.output)
        except _errors.DistributorError:
            raise
        except exceptions.TroupeError as error:
            raise _errors.of_end(
                handle, error, tail, training.command, is_program=bool(training.script)
            ) from None

    def _look_at_gpus(self, session: _session.Session) -> None:
        there = sum(_hints.gpus_of(workers.node_infos(session)).values())
        if there == 0:
            raise RuntimeError(self._without_gpus(session))
        if self.local_mode and there < self.num_processes:
            self.logger.warning(
                "num_processes=%d is more than the GPUs of %s, of which there are %d: "
                "num_processes is %d now",
                self.num_processes,
                platform.node(),
                there,
                there,
            )
            self.num_processes = there

    def _without_gpus(self, session: _session.Session) -> str:
        where = (
            f"this machine, {platform.node()}, has no GPU"
            if self.local_mode
            else f"no node of the cluster at {session.address} has a GPU"
        )
        other = (
            ", or local_mode=False the GPUs of a cluster "
            f"(TROUPE_ADDRESS={os.environ.get('TROUPE_ADDRESS', 'HOST:PORT')})"
            if self.local_mode
            else ""
        )
        return (
            f"{type(self).__name__} was given use_gpu=True, and {where}\n"
            f"  use_gpu=False trains on CPUs, where init_process_group() takes 'gloo'{other}\n"
            f"  without {_cpu_ranks.VARIABLE}=0, or with {_cpu_ranks.VARIABLE}=1, use_gpu=True "
            "means processes without GPUs"
        )

    def _options(self, session: _session.Session) -> Any:
        """LaunchOptions of one run."""
        reason = _vendor_place.without_gpus(session) if self.use_gpu else ""
        gpus = self.use_gpu and not reason
        asked: dict[str, Any] = {
            "gpus" if gpus else "processes": self.num_processes,
            "remote": not self.local_mode,
            "infeasible": "refuse",
        }
        if self.local_mode:
            asked.update(_training.of_this_machine(session, self.num_processes))
        options = replace(
            _function.options_of(type(self).__name__, asked),
            nodes=self._node_count() if session.embedded is None else 0,
            door="spark",
        )
        if reason:
            status_lines.say(
                f"troupe: {reason}: use_gpu=True of {type(self).__name__} means "
                f"{_vendor_place.describe_ranks(session, self.num_processes)}"
            )
            options = _vendor_place.on_cpus(options, session)
        return options

    def _node_count(self) -> int:
        """Return over how many nodes the ranks go; 0: wherever they fit."""
        return 0

    def _train_on_dataframe(
        self, train_function: Any, spark_dataframe: Any, *args: Any, **kwargs: Any
    ) -> NoReturn:
        """Refused: says how ranks read a table's shares."""
        raise _errors.refused(
            RuntimeError(
                f"{type(self).__name__}._train_on_dataframe trains on partitions of a Spark "
                "DataFrame, and there is no Spark here\n"
                "  write it once, df.write.parquet(path), and share it out to the ranks in the "
                "function that run() is given:\n"
                "    shards = "
                "troupe.data.read_parquet(path).streaming_split(int(os.environ['WORLD_SIZE']), "
                "equal=True)\n"
                "    for batch in "
                "shards[int(os.environ['RANK'])].iter_torch_batches(batch_size=256): ..."
            )
        )


def _positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} has to be a positive integer, not {value!r}")
    if value <= 0:
        raise ValueError(f"{name} has to be a positive integer, not {value}")
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} has to be True or False, not {value!r}")
    return value


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Turn errors raised before there are ranks into RuntimeErrors, as pyspark's are."""
    try:
        yield
    except Exception as error:
        if isinstance(error, _errors.DistributorError):
            raise
        raise _errors.refused(error) from None
