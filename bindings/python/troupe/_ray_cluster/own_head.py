"""`python -m troupe._ray_cluster.own_head`: where the head is that `ray start` of Troupe has
started in this TROUPE_HOME, and a token to join it by.

Prints one line of JSON for the actor that started it, by a pipe.
"""

from __future__ import annotations

import json

from troupe.cli import _common
from troupe.ray_compat import _clusters

_TOKEN_S = 600  # the other nodes join at once


def main() -> None:
    """Prints {"address", "token"}."""
    address = _clusters.started_here()
    with _common.session(address, None, None) as session:
        fields = {
            "role": "worker",
            "ttl_s": _TOKEN_S,
            "single_use": False,
            "note": "a launch over a cluster of its own",
        }
        token = session.request("CreateToken", fields)[1]["token"]
    print(json.dumps({"address": address, "token": token}))


if __name__ == "__main__":
    main()
