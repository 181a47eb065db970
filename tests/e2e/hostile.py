"""Peers that mean harm, as raw sockets and TLS by Python's own `ssl`, and certificates of any kind.

door.connect()                   # a raw connection, from an address of its own, so that others are not counted with it
door.enter(files)                # the same, beyond the TLS handshake where there is one
ended(peer, 20)                  # what it was told until the other side ended it; fails after 20 s
authority.issue(...)  # a certificate of the cluster's own authority, by the command `openssl`
"""

from __future__ import annotations

import collections
import contextlib
import os
import select
import socket
import ssl
import struct
import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class Authority:
    """Issues what the head's authority could, good or bad; `openssl` must be there."""

    def __init__(self, head_folder: Path, cluster_id: str, folder: Path) -> None:
        self._ca = head_folder
        self._cluster = cluster_id
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def issue(self, role: str, *, days: int = 1, alone: bool = False) -> Path:
        """A key and its certificate, in one file, and the authority's.

        `days=-1`: it ended yesterday.
        """
        stem = self._folder / uuid.uuid4().hex
        names = f"subjectAltName=URI:troupe://{self._cluster}/{role}/{uuid.uuid4().hex}"
        (stem.with_suffix(".ext")).write_text(
            f"basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
            f"extendedKeyUsage=serverAuth,clientAuth\n{names}\n"
        )
        for args in (
            ["genpkey", "-algorithm", "ed25519", "-out", f"{stem}.key"],
            ["req", "-new", "-key", f"{stem}.key", "-subj", f"/CN={role}", "-out", f"{stem}.csr"],
            [
                "x509",
                "-req",
                "-in",
                f"{stem}.csr",
                "-CA",
                str(self._ca / "ca.crt"),
                "-CAkey",
                str(self._ca / "ca.key"),
                "-CAcreateserial",
                "-CAserial",
                f"{stem}.srl",
                "-days",
                str(days),
                "-extfile",
                f"{stem}.ext",
                "-out",
                f"{stem}.crt",
            ],
        ):
            done = subprocess.run(["openssl", *args], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, f"openssl {' '.join(args)}\n{done.stderr}"
        both = stem.with_suffix(".pem")
        parts = [
            Path(f"{stem}.key"),
            Path(f"{stem}.crt"),
            *([] if alone else [self._ca / "ca.crt"]),
        ]
        both.write_text("".join(part.read_text() for part in parts))
        return both


@dataclass
class Door:
    """A listener of a running process."""

    name: str
    pid: int
    address: str | tuple[str, int]  # a path: a Unix socket
    ordinary: Callable[
        [], None
    ]  # a new connection of a client that behaves; raises when it is not served
    server_name: str | None = None  # TLS: who is asked for
    kind: socket.SocketKind = socket.SOCK_STREAM
    source: str = "127.0.0.9"

    @property
    def tls(self) -> bool:
        return not isinstance(self.address, str)

    def connect(self) -> socket.socket:
        """A raw connection."""
        if isinstance(self.address, str):
            peer = socket.socket(socket.AF_UNIX, self.kind)
            peer.settimeout(60)
            peer.connect(self.address)
            return peer
        return socket.create_connection(self.address, timeout=60, source_address=(self.source, 0))

    def enter(self, certificate: Path | None = None) -> socket.socket:
        """A connection on which frames may be sent; SSLError or ConnectionError when it is refused
        before that."""
        peer = self.connect()
        if not self.tls:
            return peer
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context.wrap_socket(peer, server_hostname=self.server_name)

    def descriptors(self) -> int:
        """How many descriptors its process has, those by which a worker watches its children aside:
        it parks some when it likes."""
        return sum(self.kinds().values())

    def kinds(self) -> collections.Counter[str]:
        """Return the counts of descriptors by their kind."""
        links = []
        for each in os.listdir(f"/proc/{self.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink(f"/proc/{self.pid}/fd/{each}"))
        return collections.Counter(
            link.partition(":[")[0] for link in links if link != "anon_inode:[pidfd]"
        )


def client_hello(server_name: str | None) -> bytes:
    """How a TLS client begins that asks for this name."""
    sent, context = ssl.MemoryBIO(), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=server_name).do_handshake()
    return sent.read()


def say(peer: socket.socket, data: bytes) -> None:
    """Sends, to one who may have hung up."""
    with contextlib.suppress(OSError):
        peer.sendall(data)


def ended(peer: socket.socket, seconds: float) -> bytes:
    """Return the bytes from the other side until it ended this connection, which it must within
    `seconds`."""
    deadline, said = time.monotonic() + seconds, b""
    with peer:
        while True:
            left = deadline - time.monotonic()
            assert left > 0, (
                f"the connection has not been ended within {seconds:g} s; said was {said!r}"
            )
            peer.settimeout(left)
            try:
                data = peer.recv(65536)
            except TimeoutError:
                continue
            except OSError:  # reset, or a TLS alert
                return said
            if not data:
                return said
            said += data


def trickle(
    peers: dict[socket.socket, bytes], *, every: float, seconds: float
) -> list[socket.socket]:
    """Says a byte to each now and then, for so long; those that were ended by then."""
    deadline, over, said = time.monotonic() + seconds, [], 0
    while time.monotonic() < deadline and len(over) < len(peers):
        for peer, data in peers.items():
            if peer not in over:
                say(peer, data[said % len(data) :][:1])
        said += 1
        waiting = [peer for peer in peers if peer not in over]
        for peer in select.select(waiting, [], [], every)[0]:
            with contextlib.suppress(OSError):
                if peer.recv(65536):
                    continue
            over.append(peer)
    return over


def header(
    *,
    magic: int = 0x5254,
    version: int = 1,
    kind: int = 0,
    flags: int = 0,
    extensions: int = 0,
    body: int = 0,
    attachment: int = 0,
) -> bytes:
    """The 16 bytes at a frame's beginning (runtime/wire/frame.h)."""
    return struct.pack("<HBBHHII", magic, version, kind, flags, extensions, body, attachment)


def bombed(frame: bytes) -> bytes:
    """The frame, whose first list of structs says that it has 2^29 - 1 elements of no size: no byte
    longer, and half a billion steps to whoever walks it."""
    words = list(
        struct.unpack(f"<{(len(frame) - 16) // 8}Q", frame[16 : 16 + (len(frame) - 16) // 8 * 8])
    )
    for i, word in enumerate(words):
        low, high = word & 0xFFFFFFFF, word >> 32
        offset = (low >> 2) - (1 << 30 if low >> 31 else 0)
        tag = i + 1 + offset
        if low & 3 == 1 and high & 7 == 7 and 0 <= tag < len(words):
            words[i] = low | 7 << 32
            words[tag] = (2**29 - 1) << 2
            return frame[:16] + struct.pack(f"<{len(words)}Q", *words)
    raise AssertionError("the frame has no list of structs")


def looped(frame: bytes) -> bytes:
    """The frame, of whose largest struct every pointer leads back to that struct: nested without an
    end."""
    words = list(struct.unpack(f"<{(len(frame) - 16) // 8}Q", frame[16:]))
    place, pointers = max(
        (
            (i, word >> 48)
            for i, word in enumerate(words[1:], 1)
            if word & 3 == 0 and word >> 48 < 64
        ),
        key=lambda found: found[1],
    )
    first = place + 1 + (words[place] & 0xFFFFFFFF) // 4
    data = words[place] >> 32 & 0xFFFF
    for i in range(first + data, first + data + pointers):
        words[i] = ((first - i - 1) * 4 & 0xFFFFFFFF) | data << 32 | pointers << 48
    return frame[:16] + struct.pack(f"<{len(words)}Q", *words)
