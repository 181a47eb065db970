"""A process ends by its own code although a daemon thread of it is in the extension.

Method: the thread connects to a socket that never answers; the socket is closed by a finaliser that
runs when the interpreter is ending already, so that the thread comes back too late. (Without care
that was std::terminate.) Another thread is in Python code that the extension has called: a value is
pickled.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import os, socket, sys, threading
from troupe import _native

listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()

# No function of this module: the thread's frame would keep its names alive, and `keep` with them.
threading.Thread(target=_native.ControlClient.connect_unix, args=(sys.argv[1],), daemon=True).start()
peer = listener.accept()[0]
peer.recv(1)

class AtTheEnd:
    peer, nap, say = peer, threading.Event(), staticmethod(os.write)
    def __del__(self):
        self.peer.close()       # the thread has its error now, and wants the GIL
        self.nap.wait(0.3)      # which it may have
        self.say(1, b"finalised")

keep = AtTheEnd()
del peer
sys.exit(3)
"""


INSIDE = """
import os, sys, threading
import troupe
from troupe import _native

inside, back = threading.Event(), threading.Event()

# Of a namespace of its own, for the reason above. The extension has the value pickled.
apart = {"inside": inside, "back": back}
exec("class Value:\\n    def __reduce__(self):\\n        inside.set()\\n        back.wait()\\n        return int, ()", apart)
threading.Thread(target=_native.completed_ref, args=(apart["Value"](),), daemon=True).start()
inside.wait()

class AtTheEnd:
    back, nap, say = back, threading.Event(), staticmethod(os.write)
    def __del__(self):
        self.back.set()
        self.nap.wait(0.3)
        self.say(1, b"finalised")

keep = AtTheEnd()
del inside, apart
sys.exit(3)
"""


@pytest.mark.parametrize(
    "code", [CODE, INSIDE], ids=["the extension waits", "Python code that the extension has called"]
)
def test_a_thread_that_comes_back_while_the_interpreter_ends(code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "socket")],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ},
    )
    assert done.returncode == 3, (done.returncode, done.stderr)
    assert (done.stdout, done.stderr) == ("finalised", "")
