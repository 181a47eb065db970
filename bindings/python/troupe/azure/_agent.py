"""mpirun's remote agent, as `agent HOST WORDS...`: has the job's driver run the words there, and
ends with their code.

It is executed by its path, without the package: what it needs is the socket in its directory, which
is the job's.
"""

import json
import socket
import sys


def main() -> int:
    """Asks, and waits for the end."""
    host, words = sys.argv[1], sys.argv[2:]
    asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    asked.connect("agent")
    with asked, asked.makefile("rwb") as stream:
        stream.write(json.dumps({"host": host, "text": " ".join(words)}).encode() + b"\n")
        stream.flush()
        return int(stream.readline() or b"1")  # no answer: the driver has ended


if __name__ == "__main__":
    sys.exit(main())
