# Method: a ControlClient adopts one end of a socketpair; the test's own thread is the other end and
# speaks frames made by encode_message. Errors, deadlines, Ctrl-C and the peer's end are provoked.
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

import pytest

native = pytest.importorskip("troupe._native")


def read_frame(sock: socket.socket) -> bytes:
    header = sock.recv(16, socket.MSG_WAITALL)
    if len(header) < 16:
        return b""
    extension_words, body, attachment = struct.unpack("<HII", header[6:16])
    rest = sock.recv(8 * extension_words + body + attachment, socket.MSG_WAITALL)
    return header + rest


@pytest.fixture
def ends():
    here, there = socket.socketpair()
    client = native.ControlClient.adopt(here.detach(), peer="the worker")
    yield client, there
    client.close()
    there.close()


def test_messages_survive_the_round_trip():
    data = native.encode_message("ForkReply", {"pid": 42, "error": "näme"}, b"\x00bytes")
    assert native.decode_message(data) == (
        "ForkReply",
        {"process": "", "pid": 42, "error": "näme"},
        b"\x00bytes",
    )


def test_an_unknown_kind_or_key_is_named():
    with pytest.raises(ValueError, match="Nonsense"):
        native.encode_message("Nonsense", {})
    with pytest.raises(TypeError, match="pidd"):
        native.encode_message("ForkReply", {"pidd": 1})


def test_pushes_arrive_in_order_and_nothing_is_none(ends):
    client, there = ends
    assert client.next_push(0.01) is None
    for code in (3, 4):
        there.sendall(native.encode_message("ProcessEnd", {"exit_code": code}, b"a" * code))
    assert client.next_push(10)[1]["exit_code"] == 3
    kind, fields, attachment = client.next_push(10)
    assert (kind, fields["exit_code"], attachment) == ("ProcessEnd", 4, b"aaaa")


def test_one_way_messages_reach_the_peer(ends):
    client, there = ends
    client.send("StoreReady", {"port": 4711}, memoryview(b"tail"))
    assert native.decode_message(read_frame(there)) == (
        "StoreReady",
        {"port": 4711, "group_secret": b""},
        b"tail",
    )


def test_a_deadline_is_a_timeout_error_that_names_the_request(ends):
    client, _ = ends
    with pytest.raises(TimeoutError, match="the answer of the worker to Ok"):
        client.request("Ok", {}, timeout=0.05)


def test_a_lost_peer_ends_every_wait_with_a_connection_error(ends):
    client, there = ends
    errors = []

    def wait():
        try:
            client.next_push()
        except ConnectionError as error:
            errors.append(str(error))

    waiter = threading.Thread(target=wait)
    waiter.start()
    there.close()
    waiter.join(10)
    assert errors == ["the worker closed the connection"]
    with pytest.raises(ConnectionError):
        client.request("Ok", {})
    assert not client.connected


def test_ctrl_c_ends_a_wait(ends):
    client, _ = ends
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        client.request("Ok", {}, timeout=60)


def test_nobody_listens_is_said_at_once(tmp_path):
    with pytest.raises(ConnectionError, match="nobody listens on unix:"):
        native.ControlClient.connect_unix(str(tmp_path / "none"))
    with pytest.raises(ValueError, match="is not an address"):
        native.ControlClient.connect("no-port-here")


def test_a_damaged_token_is_refused_without_repeating_it():
    for text in ("", "rt1.worker.abc", "hello", "rt1.worker.aaaa.bbbb.00000000"):
        with pytest.raises(ValueError, match="the token cannot be used") as caught:
            native.check_token(text)
        assert not text or text not in str(caught.value)


def test_a_forked_child_has_an_inert_client(ends):
    client, _ = ends
    child = os.fork()
    if child == 0:
        try:
            client.request("Ok", {})
        except ConnectionError as error:
            os._exit(0 if "forked child" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


EXIT_WHILE_A_THREAD_READS = """
import atexit, socket, sys, threading
from troupe import _native
here, there = socket.socketpair()
client = _native.ControlClient.adopt(here.detach())
def read():
    try:
        client.next_push()
    except ConnectionError:
        pass
threading.Thread(target=read, daemon=True).start()
atexit.register(client.close)
"""


def test_an_interpreter_may_end_while_a_thread_waits_for_pushes():
    for _ in range(5):
        ended = subprocess.run(
            [sys.executable, "-c", EXIT_WHILE_A_THREAD_READS], capture_output=True, timeout=60
        )
        assert ended.returncode == 0, ended.stderr
