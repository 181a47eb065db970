"""The driver of a pipeline: an actor that outlives the submitter, and goes on from the pipeline's
folder where its process is lost."""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import troupe
from troupe import _pickled
from troupe._cluster import session as _session
from troupe.azure._pipeline import graph, plan as _plan
from troupe.azure._pipeline.record import PLAN, Folder, State, StepState, here
from troupe.azure._pipeline.steps import StepRun

LINGER_S = 600.0
"""How long a pipeline that is over can still be asked for, by who does not see its folder."""
_Ended = tuple[str, StepState]


class PipelineHost:
    """`folder`: the pipeline's, with its plan.

    `variables`: environment variables that the driver needs.
    """

    def __init__(self, folder: str, variables: Mapping[str, str]) -> None:
        os.environ.update(variables)
        self._folder = Folder(Path(folder))
        self._changed = threading.Condition()
        self._told: queue.SimpleQueue[_Ended | str] = (
            queue.SimpleQueue()
        )  # a step that has ended, or why all are to
        self._runs: dict[str, StepRun] = {}
        self._threads = ThreadPoolExecutor(graph.AT_ONCE_MAX, thread_name_prefix="troupe-step")
        self._state = State()
        self._is_over = False
        self._lock = -1
        self._left = threading.Event()
        self._again = troupe.get_runtime_context().was_current_actor_reconstructed
        threading.Thread(target=self._drive, name="troupe-pipeline", daemon=True).start()

    def __repr__(self) -> str:
        return f"pipeline {self._folder.path.name}"

    def about(self) -> str:
        """Return the pipeline's folder.

        Raises FileNotFoundError where this host does not see it.
        """
        if not (self._folder.path / PLAN).is_file():
            raise FileNotFoundError(_unseen(self._folder.path))
        return str(self._folder.path)

    def stop(self, why: str) -> None:
        """Have all steps end. Returns at once."""
        self._told.put(why)

    @troupe.method(concurrency_group="waits")
    def wait(self, seen: int) -> dict[str, Any]:
        """Return the state, and the plan's `needs`, once something has changed since version
        `seen`, or the pipeline is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._state.version > seen or self._is_over)
            return {**self._state.to_dict(), "is_over": self._is_over}

    def _drive(self) -> None:
        try:
            self._run()
        except BaseException as error:
            traceback.print_exception(error)
            for run in self._runs.values():
                run.cancel("the pipeline's driver failed")
            with contextlib.suppress(
                OSError
            ):  # raised for a folder that is missing or full: waiters are woken all the same
                self._end(
                    graph.FAILED, f"the pipeline's driver failed: {type(error).__name__}: {error}"
                )
        self._left.wait(LINGER_S)
        troupe.get_runtime_context().current_actor.__ray_terminate__.remote()

    def _run(self) -> None:
        made = self._folder.plan()
        if made is None:
            raise FileNotFoundError(_unseen(self._folder.path))
        self._lock = self._folder.lock()
        state = self._folder.state()
        state.host, state.pid = here()
        if state.status in graph.TERMINAL:
            self._state = state
            self._end(state.status, state.cause)
            return
        state.status = graph.RUNNING
        with self._changed:
            self._state = state
        for name, each in state.steps.items():
            if (
                each.status == graph.RUNNING
            ):  # the driver before this one has started it: its job is found by the same key
                self._begin(made, name)
        self._note()
        why = ""
        while True:
            decision = graph.decide(
                made.needs, state.statuses(), continues=made.continues, is_cancelled=bool(why)
            )
            if decision.outcome is not None:
                ended = [
                    name for name, status in state.statuses().items() if status == graph.CANCELED
                ]
                self._end(
                    decision.outcome,
                    why
                    or (
                        f"step {', '.join(ended)} was cancelled"
                        if decision.outcome == graph.CANCELED
                        else ""
                    ),
                )
                return
            for name in decision.start:
                self._begin(made, name)
                with self._changed:
                    state.steps[name] = StepState(
                        graph.RUNNING, self._runs[name].job, started=time.time()
                    )
            if decision.start:
                self._note()
            for name in decision.cancel:
                self._runs[name].cancel(why or "another step of the pipeline has failed")
            told = self._told.get()
            if isinstance(told, str):
                why = told
                continue
            with self._changed:
                state.steps[told[0]] = told[1]
            self._note()

    def _begin(self, made: _plan.Plan, name: str) -> None:
        run = self._runs[name] = StepRun(
            made, name, self._folder, _session.current(), self._state.steps
        )
        self._threads.submit(lambda: self._told.put((name, run.run())))

    def _note(self) -> None:
        """Write the state, and wake who waits for a change."""
        with self._changed:
            self._state.version += 1
            self._folder.save(self._state)
            self._changed.notify_all()

    def _end(self, status: str, cause: str) -> None:
        with self._changed:
            self._state.status, self._state.cause = status, cause
            self._is_over = True
            self._changed.notify_all()
        try:
            self._note()
        finally:
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1


def _unseen(path: Path) -> str:
    return (
        f"the pipeline's driver runs on {socket.gethostname()}, which does not see {path}\n  start "
        "a node on the host that submits, or have "
        "~/troupe_results where all hosts see it"
    )


_pickled.named_in("troupe._pickled", PipelineHost)
