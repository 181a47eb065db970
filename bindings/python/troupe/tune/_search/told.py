"""Pure. What a searcher of Ray's interface is told when a sweep goes on after a restart."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any


def suggestion_again(
    search: Any, trial: str, config: Mapping[str, Any], extra: Mapping[str, Any]
) -> None:
    """The trial had this configuration.

    A searcher that has no `on_trial_proposed` is asked again, and should answer as before.
    """
    if callable(told := getattr(search, "on_trial_proposed", None)):
        told(trial, config, extra)
        return
    again = search.suggest(trial)
    if not isinstance(again, Mapping) or not _is_part(again, config):
        warnings.warn(
            f"after the restart {type(search).__name__}.suggest({trial!r}) is {again!r}, which it "
            "was not before; the trial keeps its "
            f"configuration, {dict(config)!r}. Does the searcher draw without a seed?",
            stacklevel=2,
        )


def _is_part(part: Any, whole: Any) -> bool:
    if isinstance(part, Mapping) and isinstance(whole, Mapping):
        return all(key in whole and _is_part(value, whole[key]) for key, value in part.items())
    return part is whole or bool(part == whole)
