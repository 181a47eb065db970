"""A rank, actor or store in a fresh interpreter: `python -P -m troupe._process --fd N [--request-fd
M]`.

Used while a worker's zygote is not ready, where a variable of the environment is read at import
time, and where a program has modules of its own in place of what the zygote has loaded. The first
message on the control channel is a ForkRequest, unless it is in the file M; from then on it is what
a forked child does (`_process.bootstrap`).
"""

from __future__ import annotations

import argparse
import os
import sys


def main() -> None:
    """Reads the request, applies it, becomes the process."""
    parser = argparse.ArgumentParser(
        prog="python -m troupe._process", description="Started by troupe-worker."
    )
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--request-fd", type=int)
    asked = parser.parse_args()
    os.set_inheritable(asked.fd, False)
    from troupe import _native
    from troupe._process import bootstrap, preimports
    from troupe._process.channel import ProcessChannel

    preimports.preimport(
        preimports.STANDARD
    )  # runtime modules, not looked for in the program's folders
    base_path = list(sys.path)
    channel = ProcessChannel(asked.fd)
    if asked.request_fd is None:
        kind, request, _ = channel.first()
    else:
        with open(asked.request_fd, "rb") as file:
            kind, request = _native.decode_message(file.read())[:2]
    if kind != "ForkRequest":
        raise SystemExit(f"the worker's first message is {kind}, not ForkRequest")
    bootstrap.prepare(os.getppid())
    bootstrap.apply_request(request, base_path)
    bootstrap.become(channel, request["kind"])


if __name__ == "__main__":
    main()
