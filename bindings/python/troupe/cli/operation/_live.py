"""A live view of a cluster, redrawn until Ctrl-C."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from troupe._base import visible as _visible
from troupe.cli import _tables

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table


def repeat(show: Callable[[], None], interval_s: float) -> None:
    """Call `show` again and again. Ends by KeyboardInterrupt, by what `show` raises, and without an
    error once nobody reads stdout."""
    pause = threading.Event()
    while True:
        try:
            show()
            sys.stdout.flush()
        except BrokenPipeError:
            return
        pause.wait(interval_s)


def draw(parts: Callable[[], Sequence[str | Table]], interval_s: float) -> None:
    """Draw what `parts` returns, from above: on a terminal in place, on a screen of its own; in a
    pipe one after the other with an empty line between."""
    console = _tables.console()
    if not console.is_terminal:

        def show() -> None:
            console.print(_group(parts()))
            click.echo()

        repeat(show, interval_s)
        return
    from rich.live import Live

    with Live(console=console, screen=True, auto_refresh=False) as live:
        repeat(lambda: live.update(_group(parts()), refresh=True), interval_s)


def draw_once(parts: Sequence[str | Table]) -> None:
    """Print lines and tables."""
    _tables.console().print(_group(parts))


def _group(parts: Sequence[str | Table]) -> Group:
    from rich.console import Group
    from rich.text import Text

    return Group(*(Text(_visible.name(each)) if isinstance(each, str) else each for each in parts))
