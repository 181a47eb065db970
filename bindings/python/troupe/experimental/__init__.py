"""Ray's `ray.experimental`, as far as there is something of it: `collective`."""
from troupe.experimental import collective

__all__ = ["collective"]
