"""Pure.

Grids times samples: which configurations a space has, each made when it is asked for, by its
number.

A configuration is a function of the space, the seed and its number. So a grid of a million points
costs nothing until it is run, and a resumed sweep goes on with the same configurations without
having drawn the earlier ones again.

A function of `sample_from` may return a grid. Then the configuration of that number is followed by
others, one for each further point of that grid, with the same values of all that was drawn before
it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troupe.tune._core.deciding import End, Proposal, Report, Searcher
from troupe.tune._search import space_tree
from troupe.tune._search.domains import seed_of


@dataclass(frozen=True)
class Variant:
    """A configuration, and those of its parameters that differ between trials, by their names.

    `left`: how many more are known of the same number, because functions returned grids; 0 at the
    last one.
    """

    config: dict[str, Any]
    varied: dict[str, Any]
    left: int = 0


class Variants:
    """All configurations of a space, in their order: first the points that were given, then
    `samples` times the grid.

    `total` counts those that the space itself says, without grids that functions return. `samples`
    None: without end. `constant_grid`: domains are drawn once for all points of a grid. Raises
    TypeError or ValueError for what is no space, and for points that are none of it.
    """

    def __init__(
        self,
        space: Mapping[str, Any],
        samples: int | None = 1,
        *,
        points: Sequence[Mapping[str, Any]] = (),
        seed: int = 0,
        constant_grid: bool = False,
    ) -> None:
        space_tree.check(space)
        self._seed, self._constant_grid = seed, constant_grid
        self._blocks = [
            space_tree.overlaid(space, point, f"points_to_evaluate[{number}]")
            for number, point in enumerate(points)
        ]
        self._sizes = [space_tree.size(block) for block in self._blocks]
        self._space, self._grid = space, space_tree.size(space)
        samples_left = None if samples is None else max(0, samples - len(self._blocks))
        self.total = None if samples_left is None else sum(self._sizes) + samples_left * self._grid

    def at(self, number: int) -> Variant:
        """The first of that number, counted from 0. Raises IndexError past the last."""
        return next(self.each_at(number))

    def each_at(self, number: int) -> Iterator[Variant]:
        """All of that number: one, or each point of the grids that functions returned.

        Raises IndexError past the last.
        """
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
        yield from _expanded(at_point, chosen, random.Random((self._seed << 64) + drawn_by), 0)


def _expanded(
    space: Any, paths: list[space_tree.Path], generator: random.Random, left: int
) -> Iterator[Variant]:
    """Each configuration of a space without grids; `paths` has what was chosen before, and `left`
    says how many come after these."""
    config, drawn = space_tree.draw_to_grids(space, generator)
    paths = [*paths, *drawn]
    if not space_tree.grid_paths(config):
        varied: dict[str, Any] = {}
        for path in paths:
            for below, value in space_tree.leaves(space_tree.value_at(config, path)):
                varied[space_tree.named((*path, *below))] = value
        yield Variant(config, varied, left)
        return
    size = space_tree.size(config)
    for index in range(size):
        at_point, chosen = space_tree.at_grid_point(config, index)
        yield from _expanded(at_point, [*paths, *chosen], generator, left + size - 1 - index)


class VariantSearcher(Searcher):
    """Proposes the configurations of a space one after the other; with `max_concurrent`, so many
    trials at a time at most."""

    def __init__(self, variants: Variants, max_concurrent: int = 0) -> None:
        self._variants, self._max_concurrent = variants, max_concurrent
        self._number, self._point, self._left = (
            0,
            0,
            0,
        )  # the next one, and how many more are known after those of this number
        self._open: Iterator[Variant] | None = None
        self._count, self._beyond = (
            0,
            0,
        )  # numbers of all proposals, and of those that the space itself does not give
        self._most: int | None = None
        self._running: set[str] = set()

    def total(self) -> int | None:
        """How many are known by now: a grid that a function returns counts from its first point
        on."""
        total = self._variants.total
        if total is not None:
            total += self._beyond + (self._point + self._left - 1 if self._point else 0)
        return (
            total if self._most is None else self._most if total is None else min(self._most, total)
        )

    def limit(self, most: int) -> None:
        """Proposes the first of them alone, so many at most."""
        self._most = most

    def propose(self, trial: str) -> Proposal | None:
        if 0 < self._max_concurrent <= len(self._running) or (variant := self._following()) is None:
            return None
        of_grid = (
            {"point": self._point, "left": variant.left} if self._point or variant.left else {}
        )
        proposal = Proposal(variant.config, {"variant": self._number, **of_grid})
        self.proposed(trial, proposal)
        return proposal

    def _following(self) -> Variant | None:
        while not self.finished():
            if self._open is None:
                self._open = itertools.islice(
                    self._variants.each_at(self._number), self._point, None
                )
            if (found := next(self._open, None)) is not None:
                return found
            self._go_past(
                self._number, self._point - 1
            )  # after a restart a function returned a smaller grid than before
        return None

    def _go_past(self, number: int, point: int) -> None:
        self._number, self._point, self._left, self._open = number + 1, 0, 0, None
        self._beyond += point

    def finished(self) -> bool:
        total = self._variants.total
        return (
            total is not None
            and self._number >= total
            or self._most is not None
            and self._count >= self._most
        )

    def proposed(self, trial: str, proposal: Proposal) -> None:
        number = proposal.extra.get("variant")
        if number is None:  # a person's is none of these
            return
        self._running.add(trial)
        point, left = proposal.extra.get("point", 0), proposal.extra.get("left", 0)
        if (number, point) < (self._number, self._point):  # a proposal that is tried again
            return
        self._count += 1
        if left:
            self._number, self._point, self._left = number, point + 1, left
        else:
            self._go_past(number, point)

    def ended(self, trial: str, end: End, last: Report | None) -> None:
        self._running.discard(trial)


def searcher(
    space: Mapping[str, Any],
    num_samples: int,
    *,
    points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
    max_concurrent: int = 0,
    constant_grid_search: bool = False,
    seed: Any = None,
) -> VariantSearcher:
    """Return a searcher that proposes grid and random configurations; `num_samples` -1: without
    end.

    Raises TypeError or ValueError.
    """
    if (
        isinstance(num_samples, bool)
        or not isinstance(num_samples, int)
        or num_samples < 1
        and num_samples != -1
    ):
        raise ValueError(
            "num_samples must be a whole number of at least 1, or -1 for no end, not "
            f"{num_samples!r}"
        )
    variants = Variants(
        space,
        None if num_samples == -1 else num_samples,
        points=list(points_to_evaluate or ()),
        seed=seed_of(seed),
        constant_grid=constant_grid_search,
    )
    return VariantSearcher(variants, max_concurrent)
