"""Method: real actors in forked processes behind real Unix sockets, called through troupe._native.

Peers that break the protocol's rules, or read slowly. Every wait has a deadline: a hang is a
failure, not a stuck run.
"""

import socket
import struct
from pathlib import Path

import pytest
from call_support import MAYBE_EXECUTED, Counter, code_of, get, native

# ---- hostile peers -------------------------------------------------------------------------


def frame(body=b"", magic=0x5254, version=2, kind=1, flags=0, ext=0, size=None, attach=0, seq=1):
    size = len(body) if size is None else size
    return struct.pack("<HBBHHIIQQ", magic, version, kind, flags, ext, size, attach, seq, 0) + body


REPLIES = 400  # replies of 1 MiB
CALL_F = struct.pack("<HHHH", 0, 0, 0, 0) + struct.pack("<H", 1) + b"f" + b"\0" * 5


def overlapping_buffers():
    """A value whose 100 buffers are each all of it: copies would take a hundred times of what
    came."""
    head = b"\x07" + struct.pack("<I", 4) + b"\x80\x05N."
    size = 16 + 100 * 24 + len(head)
    value = (
        struct.pack("<IIQ", 0x626F5254, 100, len(head))
        + struct.pack("<QQQ", 0, size, 0) * 100
        + head
    )
    return (
        struct.pack("<HHHHH", 0, 1, 0, 0, 4) + b"echo" + b"\x09" + struct.pack("<I", size) + value
    )


HOSTILE = {
    "junk": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10,
    "magic": frame(magic=1),
    "version": frame(version=9),
    "kind": frame(kind=0),
    "oversize": frame(size=17 << 20),
    "odd size": frame(b"x" * 9),
    "attachment": frame(attach=8),
    "extension": frame(ext=1000),
    "empty": frame(b""),
    "reply": frame(CALL_F, flags=1),
    "sequence": frame(CALL_F, flags=2, seq=7),
    "shape": frame(struct.pack("<HHHH", 3, 0, 0, 0)),
    "big shape": frame(struct.pack("<HHHH", 999, 0, 0, 0)),
    "no names": frame(struct.pack("<HHHH", 0xFFFF, 0, 0, 0)),
    "many arguments": frame(struct.pack("<HHHH", 0, 60000, 0, 0), flags=2),
    "keywords": frame(struct.pack("<HHHH", 0, 1, 2, 0), flags=2),
    "name length": frame(struct.pack("<HHHHHHI", 0, 0, 0, 0, 60000, 0, 0), flags=2),
    "name utf8": frame(struct.pack("<HHHHH", 0, 0, 0, 0, 2) + b"\xff\xfe" + b"\0" * 4, flags=2),
    "no value": frame(struct.pack("<HHHHH", 0, 1, 0, 0, 4) + b"echo" + b"\x7f\0", flags=2),
    "value length": frame(
        struct.pack("<HHHHH", 0, 1, 0, 0, 4) + b"echo" + b"\x05\xff\xff\xff\xff" + b"\0" * 5,
        flags=2,
    ),
    "overlapping buffers": frame(
        (overlapping_buffers() + b"\0" * 7)[: (len(overlapping_buffers()) + 7) // 8 * 8], flags=2
    ),
    "tail": frame(CALL_F + b"\0" * 64, flags=2),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_broken_frame_ends_its_connection_alone(start, what):
    actor = start(Counter)
    c = actor.connect()
    assert get(c.call("inc"), 20) == 1
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(actor.path)
    s.sendall(HOSTILE[what])
    answer = b""
    while True:
        try:
            chunk = s.recv(65536)
        except ConnectionResetError:
            break
        if not chunk:
            break
        answer += chunk
    assert b"this connection sent" in answer
    assert get(c.call("inc"), 20) == 2
    assert actor.alive()


def test_a_good_frame_by_hand_is_answered(start):
    actor = start(Counter)
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(actor.path)
    s.sendall(frame(CALL_F, flags=2)[:20])
    s.sendall(frame(CALL_F, flags=2)[20:] + frame(struct.pack("<HHHH", 0, 0, 0, 0), seq=2))
    answer = b""
    while len(answer) < 80:
        answer += s.recv(65536)
    assert answer[16:24] == struct.pack("<Q", 1) and b"ok" in answer[32:40]
    assert answer[56:64] == struct.pack("<Q", 2)


def test_a_server_that_answers_nonsense_fails_its_callers_calls(tmp_path):
    path = str(tmp_path / "s.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    c = native.CallChannel(path, description="actor Liar(1)")
    peer, _ = listener.accept()
    ref = c.call("f")
    assert peer.recv(1000)
    peer.sendall(frame(flags=1, seq=99))
    code, text = code_of(ref)
    assert code == MAYBE_EXECUTED and "a reply to call 99" in text and "actor Liar(1)" in text


def resident_mib(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4 >> 10


def test_slow_reader_is_paused_and_others_are_served(start):
    actor = start(Counter)
    # The actor was forked from this process, whose memory it shares
    before = resident_mib(actor.pid)
    s = socket.socket(socket.AF_UNIX)
    s.connect(actor.path)
    s.settimeout(5)
    body = struct.pack("<HHHHH", 0, 1, 0, 0, 3) + b"big" + b"\x03" + struct.pack("<q", 1 << 20)
    body += b"\0" * (-len(body) % 8)
    again = struct.pack("<HHHH", 0, 1, 0, 0) + b"\x03" + struct.pack("<q", 1 << 20) + b"\0" * 7
    s.sendall(frame(body, flags=2) + b"".join(frame(again, seq=i) for i in range(2, REPLIES + 1)))
    c = actor.connect()
    assert [get(c.call("inc"), 20) for _ in range(100)] == list(range(1, 101))
    assert resident_mib(actor.pid) - before < REPLIES / 2, (
        "MiB: half of what it is asked for and nobody reads"
    )
    received = 0
    while received < REPLIES << 20:  # and the slow one gets everything, late
        received += len(s.recv(1 << 20))
    assert get(c.call("inc"), 20) == 101


def test_a_reply_is_not_held_by_the_long_call_behind_it(start, fifo):
    c = start(Counter).connect()
    assert get(c.call("inc"), 20) == 1
    refs = [c.call("inc") for _ in range(20)] + [c.call("read", str(fifo))]
    assert get(refs[:20], 60) == list(range(2, 22))
    fifo.write_text("the long one goes on")
    assert get(refs[20], 60) == "the long one goes on"


def test_a_peer_at_its_limits_is_always_resumed(start):
    """A reader as fast as the actor drains the replies just when the actor pauses it."""
    actor = start(Counter)
    c = actor.connect()
    for size in (1 << 18, 1 << 20, 3 << 20):
        refs = [c.call("big", size) for _ in range((128 << 20) // size)]
        assert all(len(v) == size for v in get(refs, 60))
