"""Pure. Grids times samples: which configurations a space has, each made when it is asked for, by its number.

A configuration is a function of the space, the seed and its number. So a grid of a million points costs nothing until it is run, and a
resumed sweep goes on with the same configurations without having drawn the earlier ones again.
"""
from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troupe.tune._core.deciding import End, Proposal, Report, Searcher
from troupe.tune._search import space_tree
from troupe.tune._search.domains import seed_of


@dataclass(frozen=True)
class Variant:
    """A configuration, and those of its parameters that differ between trials, by their names."""

    config: dict[str, Any]
    varied: dict[str, Any]


class Variants:
    """All configurations of a space, in their order: first the points that were given, then `samples` times the grid.

    `samples` None: without end. `constant_grid`: domains are drawn once for all points of a grid. Raises TypeError or ValueError for what is no
    space, and for points that are none of it.
    """

    def __init__(self, space: Mapping[str, Any], samples: int | None = 1, *, points: Sequence[Mapping[str, Any]] = (), seed: int = 0,
                 constant_grid: bool = False) -> None:
        space_tree.check(space)
        self._seed, self._constant_grid = seed, constant_grid
        self._blocks = [space_tree.overlaid(space, point, f"points_to_evaluate[{number}]") for number, point in enumerate(points)]
        self._sizes = [space_tree.size(block) for block in self._blocks]
        self._space, self._grid = space, space_tree.size(space)
        samples_left = None if samples is None else max(0, samples - len(self._blocks))
        self.total = None if samples_left is None else sum(self._sizes) + samples_left * self._grid

    def at(self, number: int) -> Variant:
        """The one of that number, counted from 0. Raises IndexError past the last."""
        if number < 0 or self.total is not None and number >= self.total:
            raise IndexError(f"there are {self.total} configurations, and none of number {number}")
        space, block, point = self._space, 0, number
        for block, size in enumerate(self._sizes):
            if point < size:
                space = self._blocks[block]
                break
            point -= size
        else:
            block, point = divmod(point, self._grid)
            block += len(self._sizes)
        at_point, chosen = space_tree.at_grid_point(space, point)
        drawn_by = block if self._constant_grid else number
        config, drawn = space_tree.draw(at_point, random.Random((self._seed << 64) + drawn_by))
        varied: dict[str, Any] = {}
        for path in [*chosen, *drawn]:
            for below, value in space_tree.leaves(space_tree.value_at(config, path)):
                varied[space_tree.named((*path, *below))] = value
        return Variant(config, varied)


class VariantSearcher(Searcher):
    """Proposes the configurations of a space one after the other; with `max_concurrent`, so many trials at a time at most."""

    def __init__(self, variants: Variants, max_concurrent: int = 0) -> None:
        self._variants, self._max_concurrent = variants, max_concurrent
        self._next = 0
        self._running: set[str] = set()

    def total(self) -> int | None:
        return self._variants.total

    def limit(self, most: int) -> None:
        """Proposes the first of them alone, so many at most."""
        total = self._variants.total
        self._variants.total = most if total is None else min(most, total)

    def propose(self, trial: str) -> Proposal | None:
        if self.finished() or 0 < self._max_concurrent <= len(self._running):
            return None
        variant = self._variants.at(self._next)
        proposal = Proposal(variant.config, {"variant": self._next})
        self.proposed(trial, proposal)
        return proposal

    def finished(self) -> bool:
        total = self._variants.total
        return total is not None and self._next >= total

    def proposed(self, trial: str, proposal: Proposal) -> None:
        number = proposal.extra.get("variant")
        if number is not None:  # a person's is none of these
            self._next = max(self._next, number + 1)
            self._running.add(trial)

    def ended(self, trial: str, end: End, last: Report | None) -> None:
        self._running.discard(trial)


def searcher(space: Mapping[str, Any], num_samples: int, *, points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
             max_concurrent: int = 0, constant_grid_search: bool = False, seed: Any = None) -> VariantSearcher:
    """What proposes grid and random configurations; `num_samples` -1: without end. Raises TypeError or ValueError."""
    if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples < 1 and num_samples != -1:
        raise ValueError(f"num_samples must be a whole number of at least 1, or -1 for no end, not {num_samples!r}")
    variants = Variants(space, None if num_samples == -1 else num_samples, points=list(points_to_evaluate or ()), seed=seed_of(seed),
                        constant_grid=constant_grid_search)
    return VariantSearcher(variants, max_concurrent)
