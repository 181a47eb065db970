"""Ray's `ray.experimental.tqdm_ray`: progress bars of actors and tasks, as lines of their output.

    for batch in tqdm_ray.tqdm(batches, desc="epoch 1"): ...
    epoch 1:  30% 30/100 it, 9.7 it/s

A line on stderr at most every `flush_interval_s` seconds and one at the end; what an actor prints
is shown by its program.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

_FLUSH_S = 1.0


class tqdm:  # noqa: N801
    """A bar over an iterable, or one that `update` moves.

    Takes what Ray's takes; `position` means nothing for lines.
    """

    def __init__(
        self,
        iterable: Iterable[Any] | None = None,
        desc: str | None = None,
        total: int | None = None,
        unit: str | None = None,
        position: int | None = None,
        flush_interval_s: float | None = None,
    ) -> None:
        if total is None and iterable is not None:
            try:
                total = len(iterable)  # type: ignore[arg-type]
            except TypeError:  # an iterator
                total = None
        self.total = total
        self.n: float = 0
        self._iterable, self._desc, self._unit = iterable, desc or "", unit or "it"
        self._flush_s = _FLUSH_S if flush_interval_s is None else flush_interval_s
        self._began_s, self._said_s = time.monotonic(), float("-inf")
        self._closed = False

    def __iter__(self) -> Iterator[Any]:
        if self._iterable is None:
            raise ValueError("this tqdm was made without an iterable: move it by update()")
        for each in self._iterable:
            yield each
            self.update(1)
        self.close()

    def __enter__(self) -> tqdm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set_description(self, desc: str) -> None:
        """The text before the bar."""
        self._desc = desc
        self.refresh()

    def update(self, n: float = 1) -> None:
        """So many more are done."""
        self.n += n
        self.refresh()

    def refresh(self) -> None:
        """Says where it is, unless it did so just now."""
        now = time.monotonic()
        if not self._closed and now - self._said_s >= self._flush_s:
            self._said_s = now
            self._say(now)

    def close(self) -> None:
        """Says where it ended. Idempotent."""
        if not self._closed:
            self._closed = True
            self._say(time.monotonic())

    def _say(self, now: float) -> None:
        done = (
            f"{self.n:g}"
            if self.total is None
            else (
                f"{100 * self.n / self.total if self.total else 100:3.0f}% "
                f"{self.n:g}/{self.total:g}"
            )
        )
        rate = self.n / (now - self._began_s) if now > self._began_s else 0.0
        safe_print(
            f"{self._desc}{': ' * bool(self._desc)}{done} {self._unit}, {rate:.3g} {self._unit}/s",
            file=sys.stderr,
            flush=True,
        )


def safe_print(*args: Any, **kwargs: Any) -> None:
    """print(): lines do not disturb each other."""
    print(*args, **kwargs)


__all__ = ["safe_print", "tqdm"]
