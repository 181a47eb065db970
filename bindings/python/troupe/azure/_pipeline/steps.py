"""The run of a step: a command job or a sweep, from files that earlier steps have written to its
own.

View: the driver of a pipeline, a thread for each step.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._base import identity as _identity
from troupe._cluster import status_lines, view, workers
from troupe.azure._pipeline import digests, graph, plan as _plan, reuse
from troupe.azure._pipeline.job import inputs_of, outputs_of
from troupe.azure._pipeline.record import LOG, Folder, StepState

_LOG_BYTES_MAX = 64 << 20


class StepRun:
    """The run of one step.

    `run` blocks until it has ended; `cancel` may be called from another thread.
    """

    def __init__(
        self,
        made: _plan.Plan,
        name: str,
        folder: Folder,
        session: Any,
        known: Mapping[str, StepState],
    ) -> None:
        self._plan, self._name, self._folder, self._session = made, name, folder, session
        self._step = made.steps[name]
        self._written = {
            each: known[step].outputs[output] for each, (step, output) in self._step.inputs.items()
        }
        self.job = f"{made.name}_{name}"
        self._lock = threading.Lock()
        self._why = ""  # reason for which it is to be cancelled
        self._cancel: Any = None

    def run(self) -> StepState:
        """Run the step to its end, or find an equal one.

        Never raises: what went wrong is in the state.
        """
        begun = time.time()
        try:
            state = self._run()
        except exceptions.LaunchCancelledError as error:
            state = StepState(graph.CANCELED, cause=str(error), exit_code=error.exit_code)
        except exceptions.LaunchError as error:
            state = StepState(
                graph.FAILED, cause=str(error), exit_code=error.exit_code, signal=error.signal
            )
        except Exception as error:
            state = StepState(
                graph.CANCELED if self._why else graph.FAILED,
                cause=f"{type(error).__name__}: {error}",
            )
        if self._why and state.status != graph.COMPLETED:
            state.status, state.cause = graph.CANCELED, self._why
        state.job = state.job or self.job
        state.started, state.seconds = begun, time.time() - begun
        return state

    def cancel(self, why: str) -> None:
        """Have the step end, and return at once."""
        with self._lock:
            if self._why:
                return
            self._why, cancel = why, self._cancel
        if cancel is not None:
            cancel(why)

    def _run(self) -> StepState:
        here = _identity.boot_id()
        self._session.same_host = all(
            each["boot_id"] == here for each in workers.node_infos(self._session)
        )  # nodes join and leave
        job = _plan.job_of(
            self._step, self.job, {name: each["path"] for name, each in self._written.items()}
        )
        places = self._places(job)
        key = self._key(job)
        store = reuse.Store(self._folder.path.parent)
        found = store.find(key) if key and not self._plan.force_rerun else None
        if found is not None:
            return StepState(graph.COMPLETED, found[0], is_reused=True, outputs=found[1])
        if self._why:
            raise exceptions.LaunchCancelledError(self._why)
        (self._sweep if self._step.type == "sweep" else self._command)(job, places)
        for name, place in places.items():
            if "://" not in place and self._step.outputs[name] != "uri_file":
                os.makedirs(place, exist_ok=True)  # an empty one is not brought from another host
        outputs = {
            name: {
                "path": place,
                "type": self._step.outputs[name],
                "digest": _digest(place) if key else "",
            }
            for name, place in places.items()
        }
        if key and all(each["digest"] for each in outputs.values()):
            store.note(key, self.job, outputs)
        return StepState(graph.COMPLETED, outputs=outputs)

    def _places(self, job: Any) -> dict[str, str]:
        """Return where each output is to be, and have the job write it there."""
        found = {}
        for name, about in outputs_of(job).items():
            if about.path is None:
                place = self._folder.step(self._name) / "outputs" / name
                place.parent.mkdir(parents=True, exist_ok=True)
                about.path = str(place)
            elif "://" not in about.path:
                about.path = os.path.abspath(
                    os.path.join(self._step.base, os.path.expanduser(about.path))
                )
            found[name] = about.path
        return found

    def _key(self, job: Any) -> str:
        """Return the key by which an equal step is found; "": none can be told."""
        if not self._step.is_deterministic:
            return ""
        known = {name: each["digest"] for name, each in self._written.items()}
        if not all(known.values()):
            return ""
        found = reuse.digests_of_inputs(
            inputs_of(job),
            known,
            self._step.base,
            same_host=self._session.same_host,
        )
        return "" if found is None else reuse.key_of(self._step, found)

    def _command(self, job: Any, places: Mapping[str, str]) -> None:
        from troupe.azure import _files, _start

        handle = _start.start(
            job,
            self._session,
            quiet=True,
            root=self._plan.name,
            idempotency_key=digests.of_value([self._plan.about["run"], self._name]),
        )
        self._can_cancel(handle.stop)
        info = handle.wait_end()
        with contextlib.suppress(exceptions.TroupeError, OSError):  # the job's end is what counts
            self._keep_log(handle, info)
        handle.succeeded()
        _files.collect(self._session, info)

    def _can_cancel(self, cancel: Any) -> None:
        """Cancel by this function from now on; at once, if that was asked for before."""
        with self._lock:
            self._cancel, why = cancel, self._why
        if why:
            cancel(why)

    def _keep_log(self, handle: Any, info: Mapping[str, Any]) -> None:
        path, left = self._folder.step(self._name) / LOG, _LOG_BYTES_MAX
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            for line in handle.logs(0 if info["ranks"] == 1 else None):
                left -= len(line) + 1
                if left < 0:
                    file.write(
                        f"the rest is left out: a step's log here has {_LOG_BYTES_MAX >> 20} MiB "
                        "at most\n"
                    )
                    return
                file.write(f"{line}\n")

    def _sweep(self, job: Any, places: Mapping[str, str]) -> None:
        """Run a sweep; its outputs are those of its best trial."""
        from troupe.azure import _files
        from troupe.azure._trials import runs

        for about in outputs_of(job).values():
            about.path = None
        storage = self._folder.path.parent
        if runs.found(self.job, storage) is None:
            runs.submit(job, self._session, storage)
        self._can_cancel(
            lambda _: threading.Thread(
                target=runs.stop,
                args=(self.job, self._session, storage),
                name="troupe-step-stop",
                daemon=True,
            ).start()
        )
        runs.follow(self.job, self._session, storage)
        if not places:
            return
        seen = runs.found(self.job, storage)
        assert seen is not None
        best = runs.best_child(seen)
        info = next(each for each in view.iter_launches(self._session) if each["name"] == best)
        with _files.Kept(self._session, info) as kept:
            for name, place in places.items():
                kept.copy(f"outputs/{name}", Path(place), f"output {name!r}", _files.ELSEWHERE)


def _digest(place: str) -> str:
    """Return the digest of an output; "": it is on other nodes, or cannot be told."""
    if "://" in place:
        return ""
    try:
        return digests.of_path(place)
    except OSError as error:
        status_lines.say(f"troupe: {place} is not compared with later runs: {error}")
        return ""
