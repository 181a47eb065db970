"""A rank, actor or store in a fresh interpreter: `python -m troupe._process --fd N`.

Used while a worker's zygote is not ready, or where a variable of the environment is read at import
time. The first message on the control channel is a ForkRequest; from then on it is what a forked
child does (`_process.bootstrap`).
"""
from __future__ import annotations

import os
import sys


def main() -> None:
    """Reads the request, applies it, becomes the process."""
    if len(sys.argv) != 3 or sys.argv[1] != "--fd" or not sys.argv[2].isdigit():
        raise SystemExit("usage: python -m troupe._process --fd N (started by troupe-worker)")
    descriptor = int(sys.argv[2])
    os.set_inheritable(descriptor, False)
    from troupe._process import bootstrap
    from troupe._process.channel import ProcessChannel

    base_path = bootstrap.base_path_of_interpreter(os.getcwd())
    channel = ProcessChannel(descriptor)
    kind, request, _ = channel.first()
    if kind != "ForkRequest":
        raise SystemExit(f"the worker's first message is {kind}, not ForkRequest")
    bootstrap.prepare(os.getppid())
    bootstrap.apply_request(request, base_path)
    bootstrap.become(channel, request["kind"])


if __name__ == "__main__":
    main()
