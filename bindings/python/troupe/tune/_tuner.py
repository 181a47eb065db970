"""Tuner: what a sweep is given, checked; begun, or gone on with."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from troupe import _pickled, stand_ins
from troupe._base.identity import new_id
from troupe._cluster import session, status_lines
from troupe._code import capture
from troupe.train import RunConfig as OfTrain
from troupe.tune import _trainable
from troupe.tune._config import DEFAULT_STORAGE, RunConfig, TuneConfig
from troupe.tune._results import ResultGrid

if TYPE_CHECKING:
    from collections.abc import Callable


class Tuner:
    """Runs a function with many configurations, as many at once as there is room for, and gives the
    results of all.

    `trainable`: a function of its configuration that calls `troupe.tune.report`, or a Trainable
    class. `param_space`: a dict of what is searched and of constants. `tune_config`, `run_config`:
    see TuneConfig, RunConfig. Raises TypeError or ValueError for what can never be right; starts
    nothing. As Ray's `ray.tune.Tuner`.

        grid = Tuner(
            train,
            param_space={"lr": tune.loguniform(1e-4, 1e-1)},
            tune_config=TuneConfig(metric="acc", mode="max", num_samples=64),
        ).fit()
        print(grid.get_best_result().config)
    """

    def __init__(
        self,
        trainable: Callable[..., Any],
        *,
        param_space: Mapping[str, Any] | None = None,
        tune_config: TuneConfig | None = None,
        run_config: RunConfig | None = None,
    ) -> None:
        self._trainable = _trainable.given(trainable)
        _trainable.as_function(self._trainable)
        if param_space is not None and not isinstance(param_space, Mapping):
            raise TypeError(
                f"Tuner(param_space={param_space!r}): a dict of what is searched and of constants"
            )
        self._space = dict(param_space or {})
        self._tune = _of(TuneConfig, "tune_config", tune_config)
        self._run = _of(RunConfig, "run_config", _of_train(run_config))
        self._folder: Path | None = None
        self._trial_name = _trainable.name_of(self._trainable.function)
        self._sweep_id = new_id()[:5]
        self._resume = (True, "")
        self._asks: Any = None
        self._grid: ResultGrid | None = None

    @property
    def _path(self) -> Path:
        """The sweep's folder; where nobody has named it, by the time at which this was first asked
        for."""
        from troupe.tune._run.folder import absolute

        if self._folder is not None:
            return self._folder
        if self._run.name is None:
            name = f"{self._trial_name}_{time.strftime('%Y-%m-%d_%H-%M-%S')}_{self._sweep_id}"
            self._run = dataclasses.replace(self._run, name=name)
        return absolute(self._run.storage_path or DEFAULT_STORAGE) / str(self._run.name)

    def fit(self) -> ResultGrid:
        """Runs the sweep to its end and returns its ResultGrid.

        Blocks.

        A program that is connected to no cluster is from then on, as by `troupe.init()`. A trial
        that fails is no error of this: its Result has it, unless
        `FailureConfig(fail_fast="raise")`. Ctrl-C ends the trials, KeyboardInterrupt is raised, and
        the sweep can be gone on with; again: at once. Raises PlacementError (a TuneError too) where
        no node can ever hold a trial, TuneError where all trials lack the metric, LaunchError where
        the function cannot travel, FileExistsError for a name that is taken (under Ray's names the
        new sweep's trials are beside those of the former one, as in Ray), BlockingIOError where
        another process is at the sweep, OSError where its folder cannot be written.
        """
        from troupe.tune._run import deciders, fit
        from troupe.tune._run.folder import ABOUT, SweepFolder

        _connect(quiet=self._run.verbose == 0)
        new, path = self._folder is None, self._path
        tune = deciders.complete(self._tune) if new else self._tune
        decide = deciders.of(tune, self._space, self._run.stop)
        plan = fit.plan_of(
            path.name, self._trial_name, self._sweep_id, self._trainable, tune, self._run, decide
        )
        folder = SweepFolder(path, new=new, served=self._asks is not None, beside=_is_ray_program())
        with contextlib.closing(folder):
            if new:
                folder.keep_trainable(self._trainable)
                folder.keep_about(fit.about(plan, tune, self._space))
                folder.keep_tuner(
                    {
                        "space": self._space,
                        "tune": tune,
                        "run": _without_what_cannot_be_kept(self._run),
                        "sweep_id": self._sweep_id,
                        "trial_name": self._trial_name,
                    }
                )
                self._folder, self._tune = path, tune
            elif not (path / ABOUT).exists():
                folder.keep_about(fit.about(plan, tune, self._space))
            self._grid = fit.run(
                plan, folder, self._run, decide, fit.Resumption(*self._resume), self._asks
            )
        return self._grid

    def get_results(self) -> ResultGrid:
        """Return the results of `fit`. Raises RuntimeError before it has returned."""
        if self._grid is None:
            raise RuntimeError("get_results(): fit() has not returned yet")
        return self._grid

    @classmethod
    def restore(
        cls,
        path: str | os.PathLike[str],
        trainable: Callable[..., Any],
        *,
        param_space: Mapping[str, Any] | None = None,
        resume_unfinished: bool = True,
        resume_errored: bool = False,
        restart_errored: bool = False,
        storage_filesystem: None = None,
    ) -> Tuner:
        """The Tuner of a sweep that was begun, in its folder: `fit()` goes on with it.

        `trainable`: the same function; `param_space`: the same, where it has objects that cannot be
        kept. `resume_unfinished`: whether trials that are not over go on; `resume_errored`,
        `restart_errored`: whether those that failed are tried again, from their latest checkpoints
        or from their beginnings, each as a new trial in its place. Raises FileNotFoundError where
        there is no sweep, ValueError for another space.
        """
        from troupe.tune._run.folder import absolute, tuner_of

        if storage_filesystem is not None:
            raise ValueError(
                "Tuner.restore(storage_filesystem=...) is not a part of Troupe: the path is a "
                "folder, of a mounted file system perhaps"
            )
        kept = tuner_of(absolute(path))
        if param_space is not None and set(param_space) != set(kept["space"]):
            raise ValueError(
                f"Tuner.restore(param_space=...) has {', '.join(sorted(param_space))}, and the "
                "sweep was begun with "
                f"{', '.join(sorted(kept['space']))}: a sweep goes on with the space that it has"
            )
        found = cls(
            trainable,
            param_space=param_space or kept["space"],
            tune_config=kept["tune"],
            run_config=kept["run"],
        )
        found._resume = (
            resume_unfinished,
            "restart" if restart_errored else "resume" if resume_errored else "",
        )
        found._folder, found._sweep_id, found._trial_name = (
            absolute(path),
            kept["sweep_id"],
            kept["trial_name"],
        )
        return found

    def _served(self, asks: Any, resume: tuple[Any, ...] | None) -> ResultGrid:
        """`fit` where others ask for things meanwhile; `resume`: see restore, of a sweep that was
        begun in the folder of this one."""
        self._asks = asks
        if resume is None:
            return self.fit()
        again = Tuner.restore(self._path, self._trainable)
        again._asks, again._resume = asks, resume
        return again.fit()

    @classmethod
    def can_restore(cls, path: str | os.PathLike[str], storage_filesystem: None = None) -> bool:
        """Return True if there is a sweep in that folder."""
        from troupe.tune._run.folder import absolute, is_sweep

        return is_sweep(absolute(path))


def _without_what_cannot_be_kept(run: RunConfig) -> RunConfig:
    """Callbacks may hold files and connections: a sweep that is restored goes on without those that
    cannot be pickled."""
    kept = copy.copy(run)
    kept.callbacks = [each for each in run.callbacks or () if capture.goes(each)] or None
    return kept


def _is_ray_program() -> bool:
    """Return True if this program was written for Ray, and `ray` is Troupe's in it."""
    return "ray" in sys.modules and stand_ins.RAY in stand_ins.installed()


def _connect(*, quiet: bool) -> None:
    """A program that is connected to no cluster yet is from now on: as `troupe.init()` does it."""
    import troupe

    session.ensure()
    if not troupe.is_initialized():
        context = troupe.init()
        held = ", ".join(
            f"{amount:g} {name}"
            for name, amount in troupe.cluster_resources().items()
            if name in ("CPU", "GPU")
        )
        status_lines.say(
            f"troupe.tune: on {context.address or 'this machine'}: {held}", quiet=quiet
        )


def _of_train(given: Any) -> Any:
    """A RunConfig of `troupe.train`, which programs written for Ray give too, as the one of
    sweeps."""
    if not isinstance(given, OfTrain):
        return given
    shared = ("name", "storage_path", "failure_config", "checkpoint_config", "verbose")
    return RunConfig(**{name: getattr(given, name) for name in shared})


def _of(cls: type, name: str, given: Any) -> Any:
    if given is not None and not isinstance(given, cls):
        raise TypeError(f"Tuner({name}={given!r}): a {cls.__name__}")
    return cls() if given is None else given


_pickled.named_in("troupe.tune", Tuner)
