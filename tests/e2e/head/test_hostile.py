"""Hostile peers at every listener: each is ended within its limit, others are served meanwhile and
after, and no descriptor is left.

Method: a head and a worker with an actor, all three real processes; hostile.py plays the peers.
Listeners: the head's TCP port and Unix socket, the worker's TCP port and Unix socket (where logs
and payloads are read too), an actor's door behind the worker's port, and the socket by which the
worker hands connections over to it. An actor's own call socket, for processes of this user, is in
tests/actors/test_call_hostile.py.
"""

from __future__ import annotations

import os
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest
from conftest import Home, eventually
from hostile import Authority, Door, bombed, client_hello, ended, header, looped, say, trickle
from tcp_cuts import cut_tcp

import troupe
from troupe._base.bridge import native
from troupe._cluster import session

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # actors would not find this file

HANDSHAKE_S = 5.0  # and a Hello
LIMIT_S = 10 * HANDSHAKE_S
TRIES = 5  # tries for steps that a busy machine may be too slow for
SPEAKING = [
    "head-tcp",
    "head-unix",
    "worker-tcp",
    "worker-unix",
]  # ports that speak control messages
TLS = ["head-tcp", "worker-tcp", "actor"]
ALL = [*SPEAKING, "actor", "handover"]
BLOB = {"sha256": bytes(32), "offset": 0}


class Echo:
    def echo(self, value: object) -> object:
        return value


def hello(**fields: object) -> bytes:
    return native.encode_message(
        "Hello", {"version": 1, "version_min": 1, "role": "client", "name": "stranger", **fields}
    )


@pytest.fixture(scope="module")
def authority(
    doors: dict[str, Door], shared_home: Home, tmp_path_factory: pytest.TempPathFactory
) -> Authority:
    if shutil.which("openssl") is None:
        pytest.skip(
            "the command `openssl` is not installed: there is nothing to make hostile certificates "
            "with"
        )
    [cluster] = (shared_home.path / "clusters").iterdir()
    return Authority(cluster / "head", cluster.name, tmp_path_factory.mktemp("certificates"))


def start_node(home: Home, address: str) -> None:
    """Start a node that its head reaches over TLS, as do all of its actors."""
    home.run(
        "start",
        "--address",
        address,
        "--token-file",
        home.token(),
        "--node-name",
        "one",
        "--num-cpus",
        "4",
        "--force-tcp",
    )


@pytest.fixture(scope="module")
def doors(shared_home: Home) -> Iterator[dict[str, Door]]:
    """Every listener by name; this process is connected as a driver that reaches the actor over
    TLS."""
    started = shared_home.json("start", "--head", "--no-worker", "--port", "0")
    token = shared_home.token("--role", "client")
    start_node(shared_home, started["address"])
    troupe.init(started["address"])
    eventually(
        lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()), what="the zygote"
    )
    actor = troupe.remote(Echo).remote()
    assert troupe.get(actor.echo.remote(0), timeout=60) == 0
    status = session.current().request("GetStatus", {})[1]
    [node] = status["nodes"]
    [place] = [info["address"] for info in session.current().request("ListActors", {})[1]["actors"]]
    head_host, _, head_port = started["address"].rpartition(":")
    node_port = (node["listen_host"], node["listen_port"])
    sockets = Path(os.environ["XDG_RUNTIME_DIR"], "troupe", f"n-{node['pid']}")
    node_socket = str(sockets / "worker.sock")
    [handover] = (str(path) for path in sockets.glob("*.tls"))

    def at_head() -> None:
        control = native.ControlClient.connect(
            started["address"], token_file=token, timeout=LIMIT_S
        )
        assert control.request("GetStatus", {}, b"", LIMIT_S)[1]["pid"] == status["pid"]
        control.close()

    def at_head_locally() -> None:
        control = native.ControlClient.connect_unix(status_socket, timeout=LIMIT_S)
        assert control.request("GetStatus", {}, b"", LIMIT_S)[1]["pid"] == status["pid"]
        control.close()

    def at_worker() -> None:
        control = session.current().control.connect_worker(
            *node_port, node["node"], timeout=LIMIT_S
        )
        assert not control.request("GetBlob", BLOB, b"", LIMIT_S)[1]["found"]
        control.close()

    def at_worker_locally() -> None:
        control = native.ControlClient.connect_unix(node_socket, timeout=LIMIT_S, certificate=False)
        assert not control.request("GetBlob", BLOB, b"", LIMIT_S)[1]["found"]
        control.close()

    def at_actor() -> None:
        assert cut_tcp({node_port[1]}) >= 1  # the worker dials again
        assert troupe.get(actor.echo.remote("there"), timeout=LIMIT_S) == "there"

    status_socket = str(started["socket"])
    yield {
        door.name: door
        for door in (
            Door("head-tcp", status["pid"], (head_host, int(head_port)), at_head),
            Door("worker-tcp", node["pid"], node_port, at_worker),
            Door(
                "actor",
                place["pid"],
                node_port,
                at_actor,
                server_name=place["process"],
                source="127.0.0.10",
            ),
            Door("handover", place["pid"], handover, at_actor, kind=socket.SOCK_SEQPACKET),
            Door("head-unix", status["pid"], status_socket, at_head_locally),
            Door("worker-unix", node["pid"], node_socket, at_worker_locally),
        )
    }
    troupe.shutdown()


@pytest.fixture
def door(request: pytest.FixtureRequest, doors: dict[str, Door]) -> Iterator[Door]:
    """The listener by the test's parameter.

    After the test an ordinary client is served, and its process has no more descriptors than
    before.
    """
    here = doors[request.param]
    here.ordinary()
    before = here.descriptors()
    yield here
    here.ordinary()
    eventually(
        lambda: here.descriptors() <= before,
        timeout=LIMIT_S,
        what=f"the return of descriptors ({before})",
    )


def every(names: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("door", names, indirect=True)


@pytest.fixture
def every_door(doors: dict[str, Door]) -> Iterator[list[Door]]:
    """All of them, those behind TLS first; after the test as `door`."""
    for door in doors.values():
        door.ordinary()
    before = {name: door.descriptors() for name, door in doors.items()}
    yield list(doors.values())
    for name, door in doors.items():
        door.ordinary()
        eventually(
            lambda: door.descriptors() <= before[name],
            timeout=LIMIT_S,
            what=f"the return of descriptors ({name}: {before[name]})",
        )


def test_the_slow_are_ended_at_the_limit(every_door: list[Door], authority: Authority) -> None:
    """Silent; with half a beginning; with a byte now and then; and the same beyond TLS."""
    peers, trickling = [], {}
    known = authority.issue(
        "client"
    )  # a worker's handshake needs one; that its holder may do what it does is not said yet
    for door in every_door:
        beginning = client_hello(door.server_name) if door.tls else hello()
        peers += [door.connect(), door.connect()]
        say(peers[-1], beginning[: len(beginning) // 2])
        trickling[door.connect()] = beginning
        if door.name in ("head-tcp", "worker-tcp"):
            peers += [door.enter(known), door.enter(known)]
            say(peers[-1], hello()[:5])
            trickling[door.enter(known)] = hello()
    for door in every_door:
        door.ordinary()
    over = trickle(trickling, every=0.3, seconds=LIMIT_S)
    assert len(over) == len(trickling), (
        f"after {LIMIT_S:g} s there are {len(trickling) - len(over)} that say a byte now and then"
    )
    for peer in over:
        peer.close()
    for peer in peers:
        ended(peer, LIMIT_S)


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """This process may have a descriptor for every peer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE,
        (hard if hard < 4096 and hard != resource.RLIM_INFINITY else 4096, hard),
    )
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def silent(door: Door, count: int) -> list[socket.socket]:
    """So many that say nothing, or as much as it takes for the worker to hold them: whom they ask
    for."""
    peers = []
    for _ in range(count):
        peers.append(door.connect())
        if door.server_name is not None:
            say(peers[-1], client_hello(door.server_name))
    return peers


def few_are_held(door: Door, most: int) -> tuple[bool, list[socket.socket]]:
    """Return whether the acceptor comes to hold fewer descriptors than `most` of 120 silent peers,
    before any of these can have been silent for too long; and the peers. Blocks for HANDSHAKE_S at
    most, beside the peers' connecting."""
    too_long = time.monotonic() + HANDSHAKE_S
    peers = silent(door, 120)
    door.ordinary()  # a later peer is served: the earlier ones have been seen
    while time.monotonic() < too_long:
        if door.descriptors() < most:
            return True, peers
    return False, peers


def test_of_hundreds_of_half_open_ones_few_are_held_and_all_are_ended(
    many_descriptors: None, every_door: list[Door]
) -> None:
    """16 of an address are held at a time; of a Unix socket, where all are this user, 256."""
    peers = []
    for door in every_door:
        before = door.descriptors()
        if door.name in (
            "actor",
            "handover",
        ):  # workers' processes accept everything that is handed over, and check it afterwards
            peers += silent(door, 120)
        elif not door.tls:
            peers += silent(door, 300)
            door.ordinary()
            assert door.descriptors() - before < 256 + 24, f"{door.name}: {door.kinds()}"
        else:
            # Each has a duplicate, by which it is replaced by another (runtime/net/admission.h).
            for _ in range(TRIES):
                few, came = few_are_held(door, before + 2 * 16 + 24)
                peers += came
                if few:
                    break
            else:
                pytest.fail(
                    f"{door.name} holds more than 16 that have said nothing: {door.kinds()}"
                )
    for door in every_door:
        door.ordinary()
    for peer in peers:
        ended(peer, LIMIT_S)


JUNK = {
    "words": b"GET / HTTP/1.1\r\nHost: example\r\n\r\n" * 10,
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
    "a TLS record of no sense": b"\x16\x03\x01\x40\x00" + b"\x01" * 20000,
}


@every(ALL)
@pytest.mark.parametrize("what", JUNK)
def test_junk(door: Door, what: str) -> None:
    peer = door.connect()
    say(peer, JUNK[what])
    door.ordinary()
    assert len(ended(peer, LIMIT_S)) < 1000


def unauthenticated() -> dict[str, bytes]:
    """Return frames that must not be a peer's first; the worst of them need not even be decoded."""
    return {
        "another version": header(version=9),
        "no control frame": header(kind=1),
        "a frame of 4 KiB and 8 bytes": header(body=4104),
        "a frame of 16 MiB": header(body=16 << 20),
        "a frame of 4 GiB": header(body=0xFFFFFFF8, attachment=0xFFFFFFFF),
        "an attachment": header(body=64, attachment=8),
        "65 extensions": header(extensions=65),
        "no multiple of 8": header(body=9),
        "an empty body": header(),
        "4 billion segments": header(body=16) + b"\xff" * 16,
        "100 segments": header(body=800) + (99).to_bytes(4, "little") + bytes(796),
        "another message": native.encode_message("GetStatus", {}),
        "a list that grows": bombed(
            native.encode_message("ClusterStatus", {"nodes": [{"name": "one"}]})
        ),
        "nested without an end": looped(hello(name="a", host="b", csr=b"c")),
    }


@every(SPEAKING)
@pytest.mark.parametrize("what", unauthenticated())
def test_a_stranger_may_say_hello_and_nothing_else(door: Door, what: str) -> None:
    peer = door.enter()
    say(peer, unauthenticated()[what])
    said = ended(peer, LIMIT_S)
    if said:  # a word of refusal, and nothing else
        assert native.decode_message(said)[0] == "Refused"


def peers_frames() -> dict[str, bytes]:
    """Return frames that end the connection even of a known peer."""
    return {
        "a body over 16 MiB": header(body=(16 << 20) + 8),
        "an attachment over 16 MiB": header(body=64, attachment=(16 << 20) + 1),
        "another version": header(version=9),
        "a call": header(kind=1, body=64) + bytes(64),
        "4 billion segments": header(body=16) + b"\xff" * 16,
        "no body": header(),
        "words": b"GET / HTTP/1.1\r\n\r\n",
        "a list that grows": bombed(
            native.encode_message("ClusterStatus", {"nodes": [{"name": "one"}]})
        ),
        "nested without an end": looped(hello(name="a", host="b", csr=b"c")),
    }


@every(SPEAKING)
@pytest.mark.parametrize("what", peers_frames())
def test_a_known_peer_that_breaks_a_limit_is_ended(
    door: Door, authority: Authority, what: str
) -> None:
    peer = door.enter(authority.issue("client") if door.tls else None)
    say(peer, hello())
    peer.settimeout(LIMIT_S)
    assert native.decode_message(peer.recv(65536))[0] == "Welcome"
    say(peer, peers_frames()[what])
    ended(peer, LIMIT_S)


@every(SPEAKING)
def test_a_known_peer_that_says_what_is_not_its_to_say_is_answered(
    door: Door, authority: Authority
) -> None:
    peer = door.enter(authority.issue("client") if door.tls else None)
    say(peer, hello())
    peer.settimeout(LIMIT_S)
    peer.recv(65536)
    request = bytearray(native.encode_message("RegisterNode", {}))
    request[32:40] = (7).to_bytes(8, "little")  # the request id, without which nobody is answered
    say(peer, bytes(request))
    kind, fields, _ = native.decode_message(peer.recv(65536))
    peer.close()
    assert kind == "ErrorReply" and fields["text"]


def refused(door: Door, certificate: Path | None, greeting: bytes) -> str:
    """The words with which it was refused; "" when the handshake was."""
    try:
        peer = door.enter(certificate)
    except (ssl.SSLError, ConnectionError):
        return ""
    say(peer, greeting)
    said = ended(peer, LIMIT_S)
    if not said:
        return ""
    kind, fields, _ = native.decode_message(said)
    assert kind == "Refused", kind
    return fields["text"]


@every(TLS[:2])
def test_tokens_that_are_none(door: Door) -> None:
    at_head = (
        door.name == "head-tcp"
    )  # a worker takes no tokens: without a certificate the handshake fails
    text = refused(door, None, hello())
    assert "neither a token" in text and "troupe token create" in text if at_head else not text
    unknown = refused(door, None, hello(token_id="01" * 16, proof=bytes(32)))
    assert "token" in unknown if at_head else not unknown


def test_tokens_of_every_wrong_kind(doors: dict[str, Door], shared_home: Home) -> None:
    """By the real client, since a proof is bound to its connection."""
    door = doors["head-tcp"]
    before = door.descriptors()
    once = shared_home.token("--role", "client", "--single-use")
    address = f"{door.address[0]}:{door.address[1]}"
    native.ControlClient.connect(address, token_file=once, timeout=LIMIT_S).close()
    short = shared_home.token("--role", "client", "--ttl", "1s")
    wrong = {once: "used", shared_home.token("--role", "worker"): "worker", short: "expired"}
    for token, text in wrong.items():
        with pytest.raises(troupe.exceptions.TroupeError, match=text):
            eventually(lambda: not accepted(address, token), what="the end of the token")
            native.ControlClient.connect(address, token_file=token, timeout=LIMIT_S)
    door.ordinary()
    eventually(
        lambda: door.descriptors() <= before, timeout=LIMIT_S, what="the return of descriptors"
    )


def accepted(address: str, token: str) -> bool:
    try:
        native.ControlClient.connect(address, token_file=token, timeout=LIMIT_S).close()
    except troupe.exceptions.TroupeError:
        return False
    return True


@every(TLS)
def test_certificates_that_are_out_of_date_or_of_somebody_else(
    door: Door, authority: Authority, tmp_path: Path
) -> None:
    at_head = door.name == "head-tcp"  # the others refuse in the handshake
    expired = refused(door, authority.issue("client", days=-1), hello())
    assert "expired" in expired if at_head else not expired
    stranger = tmp_path / "stranger"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ed25519",
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=troupe",
            "-keyout",
            str(stranger),
            "-out",
            f"{stranger}.crt",
            "-addext",
            "subjectAltName=URI:troupe://" + "a" * 32 + "/client/" + "b" * 32,
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    with open(stranger, "a") as file:
        file.write(Path(f"{stranger}.crt").read_text())
    of_another = refused(door, stranger, hello())
    assert "belongs to cluster" in of_another if at_head else not of_another
    without_the_authority = refused(door, authority.issue("client", alone=True), hello())
    assert "did not issue" in without_the_authority if at_head else not without_the_authority
    wrong_role = refused(door, authority.issue("observer"), hello(role="worker"))
    assert "observer" in wrong_role if door.name != "actor" else not wrong_role


@every(["handover"])
def test_what_is_handed_over_must_be_a_connection(door: Door) -> None:
    with socket.socketpair()[0] as one, open("/dev/null") as other:
        for descriptors in ([other.fileno()], [one.fileno()], [one.fileno()] * 3):
            peer = door.connect()
            socket.send_fds(peer, [b"x"], descriptors)
            ended(peer, LIMIT_S)


@every(["head-tcp", "worker-tcp"])
def test_silent_connections_of_an_address_keep_nobody_of_it_out(
    door: Door, many_descriptors: None
) -> None:
    """More of them than an address may have, and new ones whenever some are sent away: who speaks
    gets in each time."""
    assert isinstance(door.address, tuple)
    silent = [socket.create_connection(door.address, timeout=60) for _ in range(64)]
    try:
        for _ in range(12):
            silent += [socket.create_connection(door.address, timeout=60) for _ in range(4)]
            door.ordinary()
    finally:
        for each in silent:
            each.close()
