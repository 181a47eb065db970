"""The process of a trial: an actor that runs the user's function on a thread of its own, and
carries its reports to the engine.

The engine has one call at it at a time, which gives the answer to the last report and returns with
the next one, or ends as the function does.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import troupe
from troupe import _pickled
from troupe._base.identity import new_id
from troupe._code import user_main
from troupe.train import _here, _metrics, _run_folder
from troupe.train._checkpoint import Checkpoint
from troupe.tune._context import TuneContext
from troupe.tune._errors import TrialStopped
from troupe.tune._run import directory
from troupe.tune._run.cleanliness import Before

CHECKPOINT, STAGING, NAMED = "checkpoint_", ".staging-", ".named-"


class TrialHost(_here.Loop):
    """The process of trials, one after the other.

    `name`: what its output is shown under. `pickled`: the function; `parameters`: refs of what it
    gets beside its configuration.
    """

    def __init__(self, name: str, pickled: bytes, parameters: Mapping[str, Any]) -> None:
        self._name, self._pickled, self._parameters = name, pickled, parameters
        self._function: Any = None
        self._said: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._latest: Checkpoint | None = None
        self._folder = Path()
        self._sequence = self._checkpoints = 0
        self._at = 0.0
        self._told_to_stop = ""
        self.context: TuneContext = TuneContext()

    def __repr__(self) -> str:
        return self._name

    def about(self) -> dict[str, Any]:
        """Return where the process runs."""
        here = troupe.get_runtime_context()
        return {
            "hostname": socket.gethostname(),
            "node_ip": troupe.util.get_node_ip_address(),
            "pid": os.getpid(),
            "node": here.get_node_id(),
            "actor": here.get_actor_id(),
        }

    def begin(
        self,
        config: bytes,
        context: TuneContext,
        base: str,
        checkpoints: int,
        kept: tuple[str, ...],
    ) -> tuple[Any, ...] | bool:
        """Starts the trial's function, and returns as `next` does.

        `base`: the folder of the checkpoint to go on from, "": none; `checkpoints`: how many the
        trial has begun.
        """
        self.context, self._folder = context, Path(context.path)
        self._latest = Checkpoint(base) if base else None
        self._sequence, self._checkpoints, self._told_to_stop = 0, checkpoints, ""
        if base and not Path(base).is_dir():
            raise FileNotFoundError(
                f"the checkpoint {base}, from which trial {context.trial_id} is to go on, is not "
                f"there on {socket.gethostname()}: "
                "it was removed, or RunConfig(storage_path=...) is no folder that all hosts share"
            )
        self._clean(kept)
        threading.Thread(target=self._run, args=(config,), name="trial", daemon=True).start()
        return self.next(None)

    def next(self, answer: str | None) -> tuple[Any, ...] | bool:
        """Lets the waiting report return, or raise TrialStopped with these words, and waits for the
        next: (sequence, metrics, checkpoint, seconds). Where the function has returned: whether the
        process is as it was before. Raises what it raised."""
        if answer is not None:
            self._answers.put(answer)
        kind, value = self._said.get()
        if kind == "raised":
            raise value
        found: tuple[Any, ...] | bool = value
        return found

    def _clean(self, kept: tuple[str, ...]) -> None:
        """Removes what former attempts had not reported: half checkpoints, and whole ones that the
        journal does not have."""
        with contextlib.suppress(FileNotFoundError):
            for entry in self._folder.iterdir():
                if entry.name.startswith(NAMED):
                    if (name := entry.name.removeprefix(NAMED)) not in kept:
                        shutil.rmtree(self._folder / name, ignore_errors=True)
                    entry.unlink(missing_ok=True)
                elif entry.name.startswith(STAGING) or (
                    entry.name.startswith(CHECKPOINT) and entry.name not in kept
                ):
                    shutil.rmtree(entry, ignore_errors=True)

    def _run(self, config: bytes) -> None:
        before = Before.now()
        _here.enter(self)
        try:
            if self._function is None:
                self._parameters = {name: troupe.get(ref) for name, ref in self._parameters.items()}
                self._function = user_main.loads(self._pickled)[0]
            value = user_main.loads(config)[1][0]
            self._at = time.monotonic()
            with directory.working_directory(self._folder, wanted=self.context.has_own_directory):
                given = self._function(value, **self._parameters)
                if isinstance(given, Mapping):
                    self.report(_metrics.check(given), None, None)
            said: tuple[Any, ...] = ("returned", False)
        except TrialStopped:
            said = ("returned", False)
        except SystemExit as left:
            failed = left.code not in (None, 0)
            said = (
                ("raised", RuntimeError(f"the trial's function called sys.exit({left.code!r})"))
                if failed
                else ("returned", False)
            )
        except BaseException as error:
            said = ("raised", error) if not self._told_to_stop else ("returned", False)
        finally:
            _here.enter(None)
        self._latest = None
        if said[0] == "returned":
            said = ("returned", before.restored())
        self._said.put(said)

    def report(
        self, metrics: dict[str, Any], checkpoint: Checkpoint | None, dir_name: str | None
    ) -> None:
        """See Loop: keeps the checkpoint, says so, and waits for the decision."""
        if self._told_to_stop:
            raise TrialStopped(self._told_to_stop)
        name = ""
        if checkpoint is not None:
            name = dir_name or f"{CHECKPOINT}{self._checkpoints:06d}"
            self._keep(checkpoint, name, named=dir_name is not None)
            self._checkpoints += 1
        self._sequence += 1
        now = time.monotonic()
        metrics.setdefault("timestamp", int(time.time()))
        self._said.put(
            ("reported", (self._sequence, _metrics.plain(metrics), name, now - self._at))
        )
        stop = self._answers.get()
        if dir_name is not None and name:
            (self._folder / f"{NAMED}{name}").unlink(missing_ok=True)
        if stop:
            self._told_to_stop = stop
            raise TrialStopped(stop)
        self._at = time.monotonic()
        if name:
            self._latest = Checkpoint(self._folder / name)

    def _keep(self, checkpoint: Checkpoint, name: str, *, named: bool) -> None:
        """Writes it beside, to the disk, and renames it: what a process that is killed leaves is
        never taken for one (G5). `named`: by the program; until its report is answered a file says
        that it may be nobody's."""
        target, beside = self._folder / name, self._folder / f"{STAGING}{new_id()[:8]}-{name}"
        with checkpoint.as_directory() as source:
            self._folder.mkdir(exist_ok=True)
            if named and target.exists():
                raise FileExistsError(
                    f"there is a {name!r} in {self._folder} already: "
                    "report(checkpoint_dir_name=...) needs another name each time"
                )
            _run_folder.copy_to_disk(
                Path(source), beside, f"the checkpoint of trial {self.context.get_trial_id()}"
            )
        if named:
            (self._folder / f"{NAMED}{name}").touch()
        # Left by a process of an earlier attempt that has not ended yet, which nobody asks any
        # more: the number is this one's
        elif target.exists():
            stale = self._folder / f"{STAGING}{new_id()[:8]}-{name}"
            target.rename(stale)
            shutil.rmtree(stale, ignore_errors=True)
        beside.rename(target)
        _run_folder.synced(self._folder)

    def fail(self, error: Exception) -> None:
        """From another thread: the trial has failed of this, whatever its function still does."""
        self._said.put(("raised", error))

    def latest(self) -> Checkpoint | None:
        """See Loop."""
        return self._latest


_pickled.named_in("troupe._pickled", TrialHost)
