"""A cluster's part of one node: an actor, and below it the process that keeps the cluster's
processes (`keeper`).

All that Ray writes on the node is in one folder. Processes and folder go when the actor is told to
stop, and when its own end is near, whoever ended: the keeper ends them when the actor is gone.
Where the keeper was killed, its processes are the actor's, which kills them.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from troupe import __version__, _pickled, exceptions
from troupe._cluster import executables, home, scratch, session as _session
from troupe._cluster.logs import last_lines
from troupe._code import environment
from troupe._process import os_calls, stopping
from troupe._ray_cluster import words
from troupe.launch import _over_ray

_FOLDER = "troupe-raynode-"
_TOKEN, _OUTPUT, _FILES, _SOCKETS, _BIN = "token", "start.log", "r", "s", "bin"
_ADDRESS = "ray_current_cluster"  # a file of Ray's: the address of the head
_COMMANDS = {
    words.RAY: (
        "-P",
        "-c",
        "import sys; from ray.scripts.scripts import main; sys.argv[0] = 'ray'; main()",
    ),
    words.TROUPE: ("-P", "-m", "troupe.ray_compat._command"),
}
_TAIL_BYTES = 16 << 10
_SEEN_S = 10.0


def _of_own_process(now: dict[str, str]) -> dict[str, str]:
    """Return `now` for a Python process of the runtime's own: the cluster's import path is for the
    nodes that it starts."""
    own = environment.of_own_process().get("PYTHONPATH", "")
    return {**now, "PYTHONPATH": own, executables.NODE_PYTHON_PATH: now["PYTHONPATH"]}


class RayNode:
    """The actor of one node of a launch. Its methods run in threads: `ended` waits in one of them
    for as long as the cluster lives. View: one node of one launch."""

    def __init__(self, share: words.Share) -> None:
        self._share = share
        self._folder: scratch.Folder | None = None
        self._path: list[str] = []  # in front of the import path
        self._keeper: subprocess.Popen[str] | None = None
        self._names: dict[int, str] = {}
        self._death: dict[str, Any] | None = None
        self._stopping = False
        self._changed = threading.Condition()

    def prepare(self, enter: Callable[[], None] | None) -> dict[str, str]:
        """Makes the folder; `enter` makes this process what the cluster's processes on this node
        are to come from. The folder, the host, the version.

        Raises RuntimeEnvSetupError without a Ray that can be used, and what `enter` does.
        """
        host = os.uname().nodename
        version = __version__ if self._share.api == words.TROUPE else _installed(host)
        if enter is not None:
            enter()
            self._path = [os.getcwd()]
        _session.current().before_end(self._before_the_end)
        os_calls.adopt_orphans()
        short = len(tempfile.gettempdir()) + len(_FOLDER) + 12 <= words.FOLDER_CHARS_MAX
        self._folder = scratch.Folder(_FOLDER, within=None if short else "/tmp")
        for name in (_FILES, _SOCKETS, _BIN):
            (self._folder.path / name).mkdir(mode=0o700)
        if self._share.api == words.TROUPE:
            from troupe.ray_compat import _command_path

            _command_path.put_into(self._folder.path / _BIN)
        return {"folder": str(self._folder.path), "host": host, "version": version}

    def variables(self, address: str) -> dict[str, str]:
        """Return the environment variables of a process on this node that uses the cluster."""
        assert self._folder is not None
        path = self._folder.path
        if self._share.api == words.TROUPE:
            return {
                "RAY_ADDRESS": address,
                "TROUPE_HOME": str(path / _FILES),
                "XDG_RUNTIME_DIR": str(path / _SOCKETS),
                "PATH": os.pathsep.join(
                    [str(path / _BIN), *filter(None, [os.environ.get("PATH")])]
                ),
            }
        return {
            "RAY_ADDRESS": address,
            "RAY_AUTH_TOKEN_PATH": str(path / _TOKEN),
            **_over_ray.VARIABLES,
        }

    def start(self, wishes: words.Wishes, address: str, token: str) -> tuple[str, str]:
        """Starts the head, or with an address a node that joins it; blocks until it is in the
        cluster. The head's address, and the token to join it by.

        Raises TroupeError with what `ray start` said where it did not.
        """
        assert self._folder is not None
        path, head = self._folder.path, not address
        if token:
            file = os.open(path / _TOKEN, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(file, "w", encoding="ascii") as out:
                out.write(token)
        line = words.start_words(
            self._share,
            str(path / _FILES),
            wishes,
            address=address,
            client=importlib.util.find_spec("grpc") is not None,
        )
        now = self._environment(token)
        said = self._keep([sys.executable, *_COMMANDS[self._share.api], *line], now)
        self._names = {
            int(pid): words.process_name(each) for pid, each in said["processes"].items()
        }
        gone = words.missing(list(self._names.values()), api=self._share.api, head=head)
        if said["code"] or gone:
            what = (
                f"ray start {words.exit_text(said['code'])}"
                if said["code"]
                else f"{gone[0]} had ended when ray start returned"
            )
            last = "\n".join(f"    {each}" for each in last_lines(_end_of(path / _OUTPUT)))
            raise exceptions.TroupeError(
                f"Ray could not be started on {self._share.name} (host {os.uname().nodename}): "
                f"{what}\n  the last it said:\n{last}"
            )
        if not head:
            return address, token
        if self._share.api == words.RAY:
            return (path / _FILES / _ADDRESS).read_text(encoding="ascii").strip(), token
        told = subprocess.run(
            [sys.executable, "-P", "-m", "troupe._ray_cluster.own_head"],
            env=_of_own_process(now),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        about = json.loads(told.stdout)
        return about["address"], about["token"]

    def _environment(self, token: str) -> dict[str, str]:
        """Return the environment of the cluster's processes: this process's, with its import path,
        and without variables that name another cluster."""
        now = words.environment(os.environ, self.variables(""))
        del now["RAY_ADDRESS"]
        if self._share.api == words.TROUPE and token:
            assert self._folder is not None
            now["TROUPE_TOKEN_FILE"] = str(self._folder.path / _TOKEN)
        before = filter(None, now.get("PYTHONPATH", "").split(os.pathsep))
        now["PYTHONPATH"] = os.pathsep.join(
            dict.fromkeys([*self._path, *environment.import_path(), *before])
        )
        return now

    def _keep(self, line: list[str], now: dict[str, str]) -> dict[str, Any]:
        """Has the keeper run `line`; what it says once that has ended.

        Raises TroupeError where the keeper is gone before, as when this node is told to stop.
        """
        assert self._folder is not None
        with self._changed:
            if self._stopping:
                raise exceptions.TroupeError(
                    f"the cluster's node on {self._share.name} was told to stop before it was "
                    "started"
                )
            self._keeper = subprocess.Popen(
                [sys.executable, "-P", "-m", "troupe._ray_cluster.keeper"],
                env=_of_own_process(now),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._keeper.stdin is not None
        path = self._folder.path
        order = {
            "line": line,
            "python_path": now["PYTHONPATH"] if self._share.api == words.RAY else "",
            "folder": str(path),
            "output": str(path / _OUTPUT),
            "files": str(path / _FILES),
            "slow": words.TOO_SLOW,
        }
        print(json.dumps(order), file=self._keeper.stdin, flush=True)
        said = self._heard()
        if said is None:
            raise exceptions.TroupeError(
                f"what keeps Ray's processes on {self._share.name} ended while it started them"
            )
        return said

    def _heard(self) -> dict[str, Any] | None:
        """The keeper's next word; None where there will be none."""
        assert self._keeper is not None and self._keeper.stdout is not None
        line = self._keeper.stdout.readline()
        return json.loads(line) if line else None

    def ended(self) -> dict[str, Any] | None:
        """Blocks until a process ends without which there is no cluster: which, and how.

        None once this node is told to stop.
        """
        while True:
            said = self._heard()
            if self._stopping:
                return None
            if said is None:
                assert self._keeper is not None
                return self._ended("keeper", self._keeper.pid, self._keeper.wait())
            name = self._names.get(said["pid"], "")
            if name and words.ends_the_cluster(name, said["code"]):
                return self._ended(name, said["pid"], said["code"])

    def _ended(self, name: str, pid: int, code: int) -> dict[str, Any]:
        death = {
            "process": name,
            "pid": pid,
            "code": code,
            "node": self._share.name,
            "host": os.uname().nodename,
            "log_tail": self._said_by(name),
        }
        with self._changed:
            self._death = death
            self._changed.notify_all()
        return death

    def look(self) -> dict[str, Any] | None:
        """Return the result of `ended`, or None if all processes live now; waits for the details of
        an end that just happened."""
        if any(
            words.ends_the_cluster(name, 1) and not home.is_running(pid)
            for pid, name in list(self._names.items())
        ):
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
            keeper = self._keeper
        if keeper is not None and keeper.stdin is not None:
            with contextlib.suppress(OSError):
                keeper.stdin.close()
            keeper.wait()
        os_calls.kill_children(set())
        if self._folder is not None:
            self._folder.remove()

    def _said_by(self, name: str) -> str:
        """The last that a process wrote to stderr, which Ray has put into a file; of one that wrote
        nothing there, what it logged of its troubles."""
        assert self._folder is not None
        logs = self._folder.path / _FILES / "session_latest" / "logs"
        return _end_of(logs / f"{name}.err") or words.telling(
            _end_of(logs / f"{name}.out") or _end_of(logs / f"{name}.log")
        )


_pickled.named_in("troupe._pickled", RayNode)


def _installed(host: str) -> str:
    """Ray's version here."""
    try:
        version = importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        raise exceptions.RuntimeEnvSetupError(
            f"api='ray' starts a real Ray cluster, and Ray is not installed on {host} for "
            f"{sys.executable}\n  pip install ray there, or "
            "runtime_env={'pip': ['ray']}; api='troupe' needs none: `import ray` is Troupe then"
        ) from None
    if words.too_old(version):
        wanted = ".".join(map(str, words.OLDEST))
        raise exceptions.RuntimeEnvSetupError(
            f"Ray {version} on {host} is not started: before {wanted} it has no token "
            "authentication, or puts files of all nodes where the head has its own\n"
            f"  pip install 'ray>={wanted}' there; api='troupe' needs none"
        )
    return version


def _end_of(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""
