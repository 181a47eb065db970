"""Pictures of a sweep by Optuna's matplotlib functions: how the best came, which parameters go with
it, which of them matter.

They need no display: figures are made with a backend that draws into files, whatever the program's
own is, and nothing is shown.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from troupe import exceptions
from troupe._base.checks import or_nearest
from troupe.tune._search.optuna_space import import_optuna

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from troupe.tune._search.optuna_storage import TrialRecord

KINDS = {
    "history": "plot_optimization_history",
    "parallel": "plot_parallel_coordinate",
    "importance": "plot_param_importances",
}
FORMATS = ("png", "svg", "pdf")


def figures(
    records: Iterable[TrialRecord],
    space: Mapping[str, Any],
    metric: str,
    mode: str,
    *,
    name: str = "sweep",
    kinds: Sequence[str] = tuple(KINDS),
) -> dict[str, Figure]:
    """A matplotlib figure of each kind, of the trials so far; a kind of which there is not enough
    is left out with a warning.

    "history": values in their order, and the best until then. "parallel": a line for each trial
    through its parameters. "importance": how much of the differences each parameter makes. Raises
    ImportError, and ValueError for a kind that is none, and where no trial has a number.
    """
    import_optuna("plot()")
    try:
        import matplotlib
    except ImportError:
        raise exceptions.MissingPackageError(
            "plot() needs matplotlib, which is not installed: pip install 'troupe[tune]'",
            name="matplotlib",
        ) from None
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"plot(): there is no picture {kind!r}{or_nearest(kind, KINDS)}")
    study = _study(list(records), space, mode, name)
    if not any(trial.state.name == "COMPLETE" for trial in study.get_trials(deepcopy=False)):
        raise ValueError(
            f"plot(): no trial of {name} has ended with a number as {metric!r}, so there is "
            "nothing to see yet"
        )
    made: dict[str, Any] = {}
    missing: list[str] = []
    with _without_display(matplotlib):
        for kind in kinds:
            try:
                made[kind] = _drawn(kind, study, metric, name)
            except (ValueError, RuntimeError) as error:
                missing.append(f"plot(): there is no picture of {kind} yet: {error}")
    for text in missing:
        warnings.warn(text, stacklevel=2)
    return made


def _study(records: list[TrialRecord], space: Mapping[str, Any], mode: str, name: str) -> Any:
    import optuna

    from troupe.tune._search.optuna_storage import SweepStorage

    storage = SweepStorage(lambda: [records.pop(0) for _ in range(len(records))])
    storage.follow(name, [mode], space)
    return optuna.load_study(study_name=name, storage=storage)


def _drawn(kind: str, study: Any, metric: str, name: str) -> Figure:
    import optuna
    from matplotlib import pyplot

    if (
        kind == "importance"
        and len(
            {
                trial.value
                for trial in study.get_trials(deepcopy=False)
                if trial.state.name == "COMPLETE"
            }
        )
        < 2
    ):
        raise ValueError(f"it needs two trials that have ended with another {metric!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings that these functions are experimental
        arguments = {} if kind == "importance" else {"target_name": metric}
        found = getattr(optuna.visualization.matplotlib, KINDS[kind])(study, **arguments)
    figure = found.figure
    figure.suptitle(name, fontsize="small")
    figure.set_size_inches(9, 5)
    pyplot.close(figure)
    result: Figure = figure
    return result


@contextmanager
def _without_display(matplotlib: Any) -> Iterator[None]:
    from matplotlib import pyplot

    before = matplotlib.get_backend()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pyplot.switch_backend("agg")
        try:
            # Optuna's functions set a style, which is the program's again after them.
            with matplotlib.rc_context():
                yield
        finally:
            if before.lower() != "agg":
                pyplot.switch_backend(before)


def written(
    made: Mapping[str, Figure], folder: str | os.PathLike[str], format: str = "png"
) -> list[str]:
    """Writes each figure into the folder, which is made where it is not there: `history.png` and so
    on. Raises ValueError for a format that is none."""
    if format not in FORMATS:
        raise ValueError(f"plot(): there is no format {format!r}{or_nearest(format, FORMATS)}")
    os.makedirs(folder, exist_ok=True)
    paths = []
    for kind, figure in made.items():
        paths.append(os.path.join(folder, f"{kind}.{format}"))
        figure.savefig(paths[-1], format=format, bbox_inches="tight")
    return paths
