"""The generator of grid and random configurations, which a sweep without `search_alg` has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from troupe.tune._search import variants
from troupe.tune._search.domains import seed_of


class BasicVariantGenerator:
    """Grids times samples, as `param_space` says; for `TuneConfig(search_alg=...)`, where more is
    to be said of it.

    `points_to_evaluate`: values that are tried first, one sample each; what a point does not name
    is drawn, or runs through its grid. `max_concurrent`: how many trials run at a time, 0: as many
    as fit. `constant_grid_search`: what is drawn is drawn once for all points of a grid.
    `random_state`: a seed, or a generator that one is drawn from: the same seed makes the same
    configurations, on every machine. Raises TypeError or ValueError.

        search = BasicVariantGenerator(points_to_evaluate=[{"lr": 0.1}], random_state=7)
        TuneConfig(search_alg=search, num_samples=20)
    """

    def __init__(
        self,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        max_concurrent: int = 0,
        constant_grid_search: bool = False,
        random_state: Any = None,
    ) -> None:
        if points_to_evaluate is not None and (
            isinstance(points_to_evaluate, (str, Mapping))
            or not isinstance(points_to_evaluate, Sequence)
        ):
            raise TypeError(
                f"points_to_evaluate must be a list of dicts, not {points_to_evaluate!r}"
            )
        if (
            isinstance(max_concurrent, bool)
            or not isinstance(max_concurrent, int)
            or max_concurrent < 0
        ):
            raise ValueError(
                f"max_concurrent must be a whole number, 0 for no limit, not {max_concurrent!r}"
            )
        self.points_to_evaluate = list(points_to_evaluate or ())
        self.max_concurrent = max_concurrent
        self.constant_grid_search = constant_grid_search
        self.seed = seed_of(random_state)
        self.most: int | None = None  # configurations, of a grid too; None: all

    def searcher(self, space: Mapping[str, Any], num_samples: int) -> variants.VariantSearcher:
        """Return the searcher that the engine asks.

        Raises TypeError or ValueError for a space, or points, that are none.
        """
        found = variants.searcher(
            space,
            num_samples,
            points_to_evaluate=self.points_to_evaluate,
            max_concurrent=self.max_concurrent,
            constant_grid_search=self.constant_grid_search,
            seed=self.seed,
        )
        if self.most is not None:
            found.limit(self.most)
        return found
