"""Searchers that have another one propose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe.tune.search.searcher import Searcher


class WrappingSearcher(Searcher):
    """Optimizes what `searcher` does, and is asked where that one is.

    What it passes on of questions and news, and when, is its own to say.
    """

    def __init__(self, searcher: Searcher) -> None:
        super().__init__(searcher.metric, searcher.mode)
        self.searcher = searcher
        self.where = searcher.where

    @property
    def metric(self) -> Any:
        return self.searcher.metric

    @property
    def mode(self) -> Any:
        return self.searcher.mode

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: Mapping[str, Any], **spec: Any
    ) -> bool:
        return self.searcher.set_search_properties(metric, mode, config, **spec)

    def flush(self) -> None:
        self.searcher.flush()
