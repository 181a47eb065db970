"""Plain tables: aligned by rich on a terminal and in a pipe alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from troupe._base import visible as _visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def show(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints rows under a header; cells are texts, never markup."""
    console().print(table_of(header, rows))


def console() -> Console:
    """Return where tables are printed: as wide as the terminal, or wide enough for a pipe."""
    from rich.console import Console

    found = Console(soft_wrap=False, highlight=False)
    return found if found.is_terminal else Console(width=240, highlight=False)


def table_of(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return the table that `show` prints."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in header:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_visible.name(cell)) for cell in row))
    return table


def ago(seconds: float) -> str:
    """`41 min`."""
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.1f} s"


def amount(value: float, name: str = "") -> str:
    """`4` or `0.5` of a resource; of memory, which is bytes, `1.5 GiB`."""
    return f"{value:g}" if name != "memory" else f"{value / 2**30:.4g} GiB"
