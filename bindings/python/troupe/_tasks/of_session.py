"""The processes for tasks that a session holds, for modules below the one that makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troupe._typed.per_session import PerSession

if TYPE_CHECKING:
    from troupe._tasks.leases import Leases

LEASES: PerSession[Leases] = PerSession("task leases")
