"""`pdsh` and `ssh` of a job that its first node drives: has command lines run on the job's nodes,
and shows what they print.

It is executed by its path, as `_remote.py pdsh|ssh WORDS...`, without the package: what it needs is
the socket in TROUPE_JOB_FOLDER. Of pdsh's options it knows those that launchers give, of ssh's all
that have a value. What runs there ends when this ends.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
import threading

_WITHOUT_VALUE = "SNbdq"  # options of pdsh
_WITH_VALUE = "wflutRx"
_SSH_WITH_VALUE = "BbcDEeFIiJLlmOoPpQRSWw"
_OF_DEEPSPEED = (
    "deepspeed.launcher.launch"  # if one node's processes fail, the others would wait for them
)
_FAILED = 255


def pdsh_words(words: list[str]) -> tuple[list[str], str, bool, bool]:
    """(hosts, the command, whether its code is the largest of all, whether lines have their host in
    front). Raises ValueError. Pure.

    >>> pdsh_words(["-S", "-f", "1024", "-w", "a,b", "echo", "%n"])
    (['a', 'b'], 'echo %n', True, True)
    """
    hosts: list[str] = []
    flags: set[str] = set()
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        option, value = rest[0][1:2], rest[0][2:]
        if option in _WITH_VALUE and option:
            rest = (
                rest[1:]
                if value
                else rest[2:]
                if len(rest) > 1
                else _refuse(f"pdsh: {rest[0]} has no value")
            )
            value = value or words[len(words) - len(rest) - 1]
            hosts = value.split(",") if option == "w" else hosts
        elif option in _WITHOUT_VALUE and option:
            flags.update(rest.pop(0)[1:])
        else:
            _refuse(
                f"pdsh: the option {rest[0]} is not known here; there are -S, -N, -f N, -w "
                "HOST,HOST"
            )
    if not hosts:
        _refuse("pdsh: -w says on which hosts of the job")
    if not rest:
        _refuse("pdsh: there is no command")
    return hosts, " ".join(rest), "S" in flags, "N" not in flags


def ssh_words(words: list[str]) -> tuple[list[str], str]:
    """([the host], the command). Raises ValueError. Pure.

    >>> ssh_words(["-o", "PasswordAuthentication=no", "-p22", "me@a", "hostname", "-I"])
    (['a'], 'hostname -I')
    """
    rest = list(words)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if len(rest[0]) == 2 and rest[0][1] in _SSH_WITH_VALUE else rest[1:]
    if len(rest) < 2:
        _refuse("ssh: a host of the job and a command are needed; there is no terminal on it")
    return [rest[0].rpartition("@")[2]], " ".join(rest[1:])


def _refuse(text: str) -> list[str]:
    raise ValueError(text)


class Lines:
    """Output of one host, by lines, with the host in front of each."""

    _writing = threading.Lock()

    def __init__(self, sink: object, front: str) -> None:
        self._sink, self._front, self._rest = sink, front.encode(), b""

    def write(self, data: bytes) -> None:
        """More of it; half a line waits for its end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._put(b"".join(self._front + each + b"\n" for each in lines))

    def close(self) -> None:
        """Nothing more comes."""
        if self._rest:
            self._put(self._front + self._rest + b"\n")

    def _put(self, data: bytes) -> None:
        with Lines._writing:
            self._sink.write(data)  # type: ignore[attr-defined]
            self._sink.flush()  # type: ignore[attr-defined]


def asked(folder: str) -> socket.socket:
    """A connection to the job's driver. The paths of sockets are limited to 108 bytes."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    inside = os.open(folder, os.O_PATH)
    try:
        found.connect(f"/proc/self/fd/{inside}/agent")
    finally:
        os.close(inside)
    return found


def run(connection: socket.socket, host: str, number: int, text: str, front: str) -> int:
    """Run the command on one host, wait for it, and return its exit code.

    `%n` and `%h` in it are the host's number and name.
    """
    out, err = Lines(sys.stdout.buffer, front), Lines(sys.stderr.buffer, front)
    code = _FAILED
    with connection.makefile("rb") as stream:
        try:
            connection.sendall(
                json.dumps(
                    {"host": host, "text": text.replace("%n", str(number)).replace("%h", host)}
                ).encode()
                + b"\n"
            )
            for line in stream:
                kind, data = line.split()
                if kind == b"0":
                    code = int(data)
                    break
                else:
                    (out if kind == b"1" else err).write(base64.b64decode(data))
        except (OSError, ValueError):
            pass  # ended from here
    out.close()
    err.close()
    return code


def main(words: list[str]) -> int:
    """Runs them all at once, and waits for their ends."""
    try:
        (hosts, text, largest, named) = (
            pdsh_words(words[1:]) if words[0] == "pdsh" else (*ssh_words(words[1:]), True, False)
        )
        folder = os.environ.get("TROUPE_JOB_FOLDER") or _refuse(
            f"{words[0]}: this is no process of a job's first node: TROUPE_JOB_FOLDER is not set"
        )
    except ValueError as error:
        print(f"troupe: {error}", file=sys.stderr)
        return 2
    connections = [asked(str(folder)) for _ in hosts]
    codes: dict[str, int] = {}

    def one(number: int, host: str) -> None:
        codes[host] = run(connections[number], host, number, text, f"{host}: " if named else "")
        if codes[host] and _OF_DEEPSPEED in text:
            for each in connections:
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the process has ended

    threads = [threading.Thread(target=one, args=each, daemon=True) for each in enumerate(hosts)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return _code(list(codes.values())) if largest else 0


def _code(codes: list[int]) -> int:
    """The largest, but that of what was ended because another one had failed."""
    own = [each for each in codes if each != _FAILED]
    return max(own) if any(own) else max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
