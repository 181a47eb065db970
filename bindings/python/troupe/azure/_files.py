"""Copies of files that a job has written on its nodes: read by an actor on each of them, in pieces
of bounded size.

View: the process that asks. A file that several nodes have written is the one of the first of them;
the others' are named.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import troupe
from troupe import _pickled, exceptions
from troupe._base import identity as _identity, visible as _visible
from troupe._cluster import home, session as _session, status_lines, workers
from troupe._code import disk, field_checks, packages
from troupe._tracking import rule
from troupe._tracking.jobs import job_store
from troupe.azure import _rank

_PIECE_BYTES = 8 << 20
_ARTIFACTS = ("outputs", "logs")  # folders in the job's directory
ELSEWHERE = "free room there or give another download_path: the job's files stay on its nodes"
AGAIN = "free room there, and jobs.stream brings it again: the job's files stay on its nodes"
_one_session = threading.Lock()


class JobFiles:
    """The actor: the job's directory on its node."""

    def __init__(self, folder: str) -> None:
        found = packages.find(folder)
        self._folder = found

    def record(self) -> dict[str, Any] | None:
        """The job's outputs; None: the directory is not here any more."""
        if self._folder is None:
            return None
        return home.read_record(
            self._folder / _rank.RECORD,
            f"its files are there, in {self._folder}: copy them by hand",
            outputs=dict,
        )

    def listed(
        self, inside: str, digests: bool = True
    ) -> tuple[list[tuple[str, int, str]], list[tuple[str, str]]]:
        """Return the files in a folder of it, as (path, size, digest), and what is not brought, as
        (path, what it is).

        A file is one with the path "". Without `digests` these are empty. A link to a folder of the
        job's own is listed as that folder.
        """
        root = self._root() / inside
        if root.is_file():
            return [("", root.stat().st_size, _digest(root) if digests else "")], []
        listing = _Listing(self._root(), root)
        listing.walk(os.fspath(root), "", ())
        found = []
        for relative in sorted(listing.files):
            each = root / relative
            with contextlib.suppress(
                FileNotFoundError
            ):  # a process that the job left behind has removed it since
                found.append((relative, each.stat().st_size, _digest(each) if digests else ""))
        return found, sorted(listing.left)

    def piece(self, inside: str, path: str, offset: int) -> bytes | None:
        """Return so much of a file, from there; None if the file is not there any more."""
        root = self._root() / inside
        try:
            with open(root / path if path else root, "rb") as file:
                file.seek(offset)
                return file.read(_PIECE_BYTES)
        except FileNotFoundError:
            return None

    def _root(self) -> Path:
        if self._folder is None:
            raise FileNotFoundError("the job's directory is not on this node any more")
        return self._folder


_pickled.named_in("troupe._pickled", JobFiles)


class _Listing:
    """The files below a folder of a job's directory, and what of it is left there, with its
    reason."""

    def __init__(self, job: Path, root: Path) -> None:
        self._own = (os.path.realpath(job), os.path.realpath(root))
        self._inputs = os.path.realpath(job / "inputs")
        self.files: list[str] = []
        self.left: list[tuple[str, str]] = []

    def walk(self, folder: str, relative: str, above: tuple[str, ...]) -> None:
        """Look through `folder`, which is `relative` to the root, with a "/" at its end.

        `above`: the real folders that it lies in.
        """
        real = os.path.realpath(folder)
        if real in above:
            self.left.append((relative.rstrip("/"), "a link to a folder that it lies in"))
            return
        try:
            entries = list(os.scandir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.left.append(
                (relative.rstrip("/"), f"a folder that cannot be read: {error.strerror}")
            )
            return
        for entry in entries:
            path, why = relative + entry.name, self._reason_to_leave(entry)
            if why:
                self.left.append((path, why))
            elif entry.is_dir():
                self.walk(entry.path, f"{path}/", (*above, real))
            elif entry.is_file():
                self.files.append(path)

    def _reason_to_leave(self, entry: os.DirEntry[str]) -> str:
        """Return what an entry is that is not brought, "" for one that is."""
        if not entry.is_symlink():
            return (
                ""
                if entry.is_dir() or entry.is_file() or not os.path.lexists(entry.path)
                else "neither a file nor a folder"
            )
        real, said = os.path.realpath(entry.path), f"a link to {os.readlink(entry.path)}"
        if _is_in(real, self._inputs):
            return f"{said}, an input of the job"
        if not os.path.exists(real):
            return f"{said}, which is not there"
        if entry.is_dir() and not any(_is_in(real, each) for each in self._own):
            return f"{said}, a folder outside of the job's directory"
        return "" if entry.is_dir() or entry.is_file() else f"{said}, neither a file nor a folder"


def _is_in(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Kept:
    """The stored files of a job on all its nodes. A context: its actors end with it."""

    def __init__(self, session: Any, info: dict[str, Any]) -> None:
        self._info = info
        by_node = {
            each["node"]: each["node_name"]
            for each in sorted(info["rank_infos"], key=lambda each: each["rank"])
        }
        self._names = by_node
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(_as_current(session))
        self._actors: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors.values():
            troupe.kill(actor)
        self._stack.close()

    def _ask(self, place: Any, method: str, *given: Any) -> Any:
        """Return what a node's JobFiles answers."""
        return troupe.get(getattr(place, method).remote(*given))

    def _start(self) -> None:
        made = troupe.remote(JobFiles)
        alive = {
            each["node"]
            for each in workers.node_infos(_session.started())
            if each["state"] == "alive"
        }
        gone = [self._names[node] for node in self._names if node not in alive]
        for node in self._names:
            if node in alive:
                where = troupe.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                    node, soft=False
                )
                self._actors[node] = made.options(num_cpus=0, scheduling_strategy=where).remote(
                    _rank.folder_name(self._info["launch"], self._info["epoch"], node)
                )
        for node, actor in list(self._actors.items()):
            record = self._ask(actor, "record")
            if record is None:
                gone.append(self._names[node])
                troupe.kill(self._actors.pop(node))
            else:
                self.outputs = record["outputs"]
        if gone and not self._actors:
            raise exceptions.ObjectLostError(
                f"what job {self._info['name']} wrote is lost: it is not on {', '.join(gone)} any "
                "more"
            )
        if gone:
            status_lines.say(
                f"troupe: job {self._info['name']}: what it wrote on {', '.join(gone)} is lost"
            )

    @property
    def job(self) -> str:
        """The job's name."""
        return str(self._info["name"])

    def artifacts(self, folder: Path) -> None:
        """Copy outputs/ and logs/ of its directory, and what it has logged by MLflow."""
        for each in _ARTIFACTS:
            self.copy(f"code/{each}", folder / each, f"{each}/", ELSEWHERE)
        self.copy(
            job_store.INSIDE, folder / job_store.INSIDE, "what was logged by MLflow", ELSEWHERE
        )
        job_store.relocate(folder / job_store.INSIDE, rule.status_of(self._info["outcome"]))

    def output(self, name: str, path: Path) -> None:
        """Copy one output: its files into the folder, or the file itself there."""
        self.copy(
            f"outputs/{name}",
            path / name if self.outputs[name]["is_file"] else path,
            f"output {name!r}",
            ELSEWHERE,
        )

    def copy(self, inside: str, path: Path, what: str, remedy: str) -> None:
        """Copy the files below `inside` from the nodes: all of them, or none.

        `what` it is, and what to do where it cannot be written, is for the error.
        """
        files = self._files(inside)
        what = f"{what} of job {self._info['name']}"
        if not files:
            return
        folder, name = (path, "") if "" not in files else (path.parent, path.name)
        with disk.arriving(
            folder, what, needed=sum(each.size for each in files.values()), remedy=remedy
        ) as made:
            for relative, each in files.items():
                _write(
                    made / (relative or name),
                    each.size,
                    functools.partial(self._ask, each.actor, "piece", inside, relative),
                )

    def _files(self, inside: str) -> dict[str, _File]:
        """Return the files by their paths; where several nodes have one, the first node's."""
        found: dict[str, _File] = {}
        for node, actor in self._actors.items():
            listed, left = self._ask(actor, "listed", inside, len(self._actors) > 1)
            for relative, why in left:
                status_lines.say(
                    f"troupe: job {self._info['name']}: {inside}/{_visible.name(relative)} of node "
                    f"{self._names[node]} is left there: "
                    f"it is {_visible.name(why)}"
                )
            for relative, size, digest in listed:
                if os.path.isabs(relative) or ".." in Path(relative).parts:
                    raise ValueError(
                        f"node {self._names[node]} names a file that is outside of what was asked "
                        f"for: {relative!r}"
                    )
                if relative not in found:
                    found[relative] = _File(actor, size, digest)
                elif found[relative].digest != digest:
                    status_lines.say(
                        f"troupe: job {self._info['name']}: {inside}/{relative} of node "
                        f"{self._names[node]} is left there: "
                        "a node before it has written another one"
                    )
        return found


class KeptHere(Kept):
    """Reads what a job has kept on this host, without the job's cluster.

    `folder`: the job's directory in this host's cache.
    """

    def __init__(self, job: str, outcome: str, folder: Path) -> None:
        self._info = {"name": job, "outcome": outcome}
        self._stack = contextlib.ExitStack()
        self._folder = folder
        self._names = {"": "of this host"}
        self._actors: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}

    def __exit__(self, *_: object) -> None:
        self._actors.clear()

    def _ask(self, place: Any, method: str, *given: Any) -> Any:
        return getattr(place, method)(*given)

    def _start(self) -> None:
        files = JobFiles(self._folder.name)
        record = files.record()
        if record is None:
            raise exceptions.ObjectLostError(
                f"what job {self._info['name']} wrote is gone: it was in {self._folder}"
            )
        self._actors[""], self.outputs = files, record["outputs"]


class _File(NamedTuple):
    """A file on a node."""

    actor: Any
    size: int
    digest: str


def _write(path: Path, size: int, piece: Callable[[int], bytes | None]) -> None:
    """Write a file that was `size` bytes long when it was listed; none if it is not there any
    more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        while (at := file.tell()) < size:
            data = piece(at)
            if data is None:
                path.unlink()
                return
            if not data:
                break  # the file was made shorter meanwhile
            file.write(data)


@contextlib.contextmanager
def _as_current(session: Any) -> Iterator[None]:
    """Actors are of the process's session, and this one is it meanwhile, where there is none."""
    if _session.current_or_none() is session:
        yield
        return
    with _one_session:
        before = _session.set_current(session)
        try:
            yield
        finally:
            _session.set_current(before)


def bring(files: Kept, folder: Path, output_name: str | None, everything: bool) -> None:
    """Copy into `folder` one output of a job, or its outputs/ and logs/ and, with `everything`, all
    of its outputs.

    Raises:
        ValueError: for an output that the job has not.
        ObjectLostError: if the files are gone.
        OSError: for a disk that is full (OutOfDiskError), or a folder that cannot be written.
    """
    with files as kept:
        if output_name is not None and output_name not in kept.outputs:
            raise ValueError(
                f"job {kept.job} has no output "
                f"{output_name!r}{field_checks.or_nearest(output_name, kept.outputs)}"
            )
        for each in (
            [output_name] if output_name is not None else kept.outputs if everything else ()
        ):
            kept.output(each, folder / "named-outputs" / each)
        if output_name is None:
            kept.artifacts(folder / "artifacts")


def log_name(rank: int, ranks: int) -> str:
    """Return the name of the file with what a process of a job printed."""
    return "std_log.txt" if ranks == 1 else f"std_log_process_{rank:02d}.txt"


def write_logs(handle: Any, info: dict[str, Any], folder: Path) -> None:
    """Write what each process of a job has printed into files in `folder`: all of them or none."""
    with disk.arriving(
        folder, f"what the processes of job {info['name']} printed", remedy=ELSEWHERE
    ) as made:
        for rank in range(info["ranks"]):
            with open(made / log_name(rank, info["ranks"]), "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in handle.logs(rank))


def collect(session: Any, info: dict[str, Any]) -> None:
    """Outputs that the job says a path of this machine for, from nodes of other hosts.

    Raises ObjectLostError, OSError.
    """
    here = _identity.boot_id()
    if session.same_host:
        return
    with Kept(session, info) as kept:
        for name, about in kept.outputs.items():
            if about["how"] == _rank.LOCAL and about["host"] == here:
                kept.copy(f"outputs/{name}", Path(about["value"]), f"output {name!r}", AGAIN)
