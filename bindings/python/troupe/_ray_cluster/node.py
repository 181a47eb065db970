"""Ray's part of one node: an actor whose children Ray's processes are.

`ray start` leaves its processes behind, and they become children of this one (a subreaper): it sees each end as it happens, with its code
or signal. All that Ray writes on the node is in one folder. Both end with this process: it kills what is left below it and removes the folder when it is
told to stop, and when its own end is near, whoever ended; the worker kills what is left where this process itself was killed.
"""
from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from troupe import __version__, _pickled, exceptions
from troupe._cluster import scratch, session as _session
from troupe._cluster.logs import last_lines
from troupe._code import environment
from troupe._process import os_calls, stopping
from troupe._ray_cluster import words

_FOLDER = "troupe-raynode-"
_TOKEN, _OUTPUT, _FILES, _SOCKETS, _BIN = "token", "start.log", "r", "s", "bin"
_ADDRESS = "ray_current_cluster"  # a file of Ray's: the address of the head
_COMMANDS = {words.RAY: ("-c", "import sys; from ray.scripts.scripts import main; sys.argv[0] = 'ray'; main()"),
             words.TROUPE: ("-m", "troupe.ray_compat._command")}
_TAIL_BYTES = 16 << 10
_SEEN_S = 10.0


class RayNode:
    """Its methods run in threads of the actor: `ended` waits in one of them for as long as the cluster lives. View: one node of one launch."""

    def __init__(self, share: words.Share) -> None:
        self._share = share
        self._folder: scratch.Folder | None = None
        self._path: list[str] = []  # in front of the import path
        self._names: dict[int, str] = {}
        self._death: dict[str, Any] | None = None
        self._stopping = False
        self._changed = threading.Condition()

    def prepare(self, enter: Callable[[], None] | None) -> dict[str, str]:
        """Makes the folder; `enter` makes this process what the cluster's processes on this node are to come from. The folder, the host, the version.

        Raises RuntimeEnvSetupError without a Ray that can be used, and what `enter` does.
        """
        host = os.uname().nodename
        version = __version__ if self._share.api == words.TROUPE else _installed(host)
        if enter is not None:
            enter()
            self._path = [os.getcwd()]
        _session.current().store["before_end"](self._before_the_end)
        os_calls.adopt_orphans()
        short = len(tempfile.gettempdir()) + len(_FOLDER) + 12 <= words.FOLDER_CHARS_MAX
        self._folder = scratch.Folder(_FOLDER, within=None if short else "/tmp")
        for name in (_FILES, _SOCKETS, _BIN):
            (self._folder.path / name).mkdir(mode=0o700)
        if self._share.api == words.TROUPE:
            from troupe.ray_compat import _command

            _command.put_into(self._folder.path / _BIN)
        return {"folder": str(self._folder.path), "host": host, "version": version}

    def variables(self, address: str) -> dict[str, str]:
        """Of a process on this node that is to use the cluster."""
        assert self._folder is not None
        path = self._folder.path
        if self._share.api == words.TROUPE:
            return {"RAY_ADDRESS": address, "TROUPE_HOME": str(path / _FILES), "XDG_RUNTIME_DIR": str(path / _SOCKETS),
                    "PATH": os.pathsep.join([str(path / _BIN), *filter(None, [os.environ.get("PATH")])])}
        return {"RAY_ADDRESS": address, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(path / _TOKEN), "RAY_USAGE_STATS_ENABLED": "0"}

    def start(self, wishes: words.Wishes, address: str, token: str) -> tuple[str, str]:
        """Starts the head, or with an address a node that joins it; blocks until it is in the cluster. The head's address, and the token to join it by.

        Raises TroupeError with what `ray start` said where it did not.
        """
        assert self._folder is not None
        path, head = self._folder.path, not address
        if token:
            file = os.open(path / _TOKEN, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(file, "w", encoding="ascii") as out:
                out.write(token)
        line = words.start_words(self._share, str(path / _FILES), wishes, address=address, client=importlib.util.find_spec("grpc") is not None)
        now = self._environment(token)
        with open(path / _OUTPUT, "wb") as out:
            code = subprocess.run([sys.executable, *_COMMANDS[self._share.api], *line], env=now, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT, check=False).returncode
        self._names = {pid: words.process_name(_words_of(pid)) for pid in os_calls.children()}
        gone = words.missing(list(self._names.values()), api=self._share.api, head=head)
        if code or gone:
            what = f"ray start {words.exit_text(code)}" if code else f"{gone[0]} had ended when ray start returned"
            said = "\n".join(f"    {each}" for each in last_lines(_end_of(path / _OUTPUT)))
            raise exceptions.TroupeError(f"Ray could not be started on {self._share.name} (host {os.uname().nodename}): {what}\n  the last it said:\n{said}")
        if not head:
            return address, token
        if self._share.api == words.RAY:
            return (path / _FILES / _ADDRESS).read_text(encoding="ascii").strip(), token
        told = subprocess.run([sys.executable, "-m", "troupe._ray_cluster.own_head"], env=now, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        about = json.loads(told.stdout)
        return about["address"], about["token"]

    def _environment(self, token: str) -> dict[str, str]:
        """Of the cluster's processes: as this one's, with its import path, and nothing that says where another cluster is."""
        now = words.environment(os.environ, self.variables(""))
        del now["RAY_ADDRESS"]
        if self._share.api == words.TROUPE and token:
            assert self._folder is not None
            now["TROUPE_TOKEN_FILE"] = str(self._folder.path / _TOKEN)
        before = filter(None, now.get("PYTHONPATH", "").split(os.pathsep))
        now["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*self._path, *environment.import_path(), *before]))
        return now

    def ended(self) -> dict[str, Any] | None:
        """Blocks until a process ends without which there is no cluster: which, and how. None once this node is told to stop."""
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED)
            except ChildProcessError:
                return self._ended(words.of_a_node(self._share.api), 0, 1) if not self._stopping and self._death is None else None
            if self._stopping or found is None:
                return None
            name = self._names.get(found.si_pid, "")
            code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
            if name and words.ends_the_cluster(name, code):
                return self._ended(name, found.si_pid, code)

    def _ended(self, name: str, pid: int, code: int) -> dict[str, Any]:
        death = {"process": name, "pid": pid, "code": code, "node": self._share.name, "host": os.uname().nodename, "log_tail": self._said_by(name)}
        with self._changed:
            self._death = death
            self._changed.notify_all()
        return death

    def look(self) -> dict[str, Any] | None:
        """What `ended` says, or None where all processes live now: what has just ended is waited for."""
        if any(words.ends_the_cluster(name, 1) and not _lives(pid) for pid, name in list(self._names.items())):
            with self._changed:
                self._changed.wait_for(lambda: self._death is not None or self._stopping, _SEEN_S)
        return self._death

    def _before_the_end(self, _: dict[str, Any]) -> None:
        stopping.finished()  # no signal takes the rest of its time from this process
        self.stop()

    def stop(self) -> None:
        """Kills all of Ray's processes here, and removes the folder. Idempotent; any thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        os_calls.kill_below()
        if self._folder is not None:
            self._folder.empty()
        os_calls.kill_children(set())
        if self._folder is not None:
            self._folder.remove()

    def _said_by(self, name: str) -> str:
        """The last that a process wrote to stderr, which Ray has put into a file; of one that wrote nothing there, what it logged of its troubles."""
        assert self._folder is not None
        logs = self._folder.path / _FILES / "session_latest" / "logs"
        return _end_of(logs / f"{name}.err") or words.telling(_end_of(logs / f"{name}.out") or _end_of(logs / f"{name}.log"))


_pickled.named_in("troupe._pickled", RayNode)


def _installed(host: str) -> str:
    """Ray's version here."""
    try:
        version = importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        raise exceptions.RuntimeEnvSetupError(
            f"api='ray' starts a real Ray cluster, and Ray is not installed on {host} for {sys.executable}\n  pip install ray there, or "
            "runtime_env={'pip': ['ray']}; api='troupe' needs none: `import ray` is Troupe then") from None
    if words.too_old(version):
        wanted = ".".join(map(str, words.OLDEST))
        raise exceptions.RuntimeEnvSetupError(
            f"Ray {version} on {host} is not started: before {wanted} it has no token authentication, or puts files of all nodes where the head has its own\n"
            f"  pip install 'ray>={wanted}' there; api='troupe' needs none")
    return version


def _words_of(pid: int) -> Sequence[str]:
    try:
        return [os.fsdecode(word) for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    except OSError:
        return []


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _end_of(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""
