"""A submitted sweep: an actor that outlives its submitter, runs the engine on a thread, and begins
again from the journal where its process is lost."""

from __future__ import annotations

import os
import socket
import threading
import traceback
from pathlib import Path
from typing import Any

import troupe
from troupe import _pickled
from troupe._code import user_main
from troupe.tune._core import events as ev
from troupe.tune._journal import view
from troupe.tune._run.asks import Asks
from troupe.tune._run.changes import NewRows
from troupe.tune._run.folder import is_sweep, trainable_of

LINGER_S = 600.0
"""How long what is over can still be asked for its results, by who does not see its folder."""


class SweepHost:
    """`pickled`: the Tuner; b"": that of the sweep in its folder.

    Of one that was begun `resume` says what goes on: see Tuner.restore. `path`: the sweep's folder.
    """

    def __init__(
        self, name: str, pickled: bytes, path: str, resume: tuple[Any, ...] | None
    ) -> None:
        self._name, self._path = name, Path(path)
        self._asks = Asks()
        self._over = threading.Event()
        self._left = threading.Event()
        self._grid: Any = None
        self._error: BaseException | None = None
        self._again = troupe.get_runtime_context().was_current_actor_reconstructed
        threading.Thread(
            target=self._run, args=(pickled, resume), name="troupe-sweep", daemon=True
        ).start()

    def __repr__(self) -> str:
        return f"sweep {self._name}"

    def _run(self, pickled: bytes, resume: tuple[Any, ...] | None) -> None:
        try:
            begun = is_sweep(self._path)
            if self._again:
                # Failed trials were already retried by the first process
                resume = (True, "", False)
                if not begun:
                    raise FileNotFoundError(
                        f"the process that ran the sweep was lost, and on {socket.gethostname()} "
                        f"there is no sweep in {self._path}: "
                        "storage= has to be a folder that all hosts see; it is as that process "
                        "left it"
                    )
            if not (self._again and view.was_left(self._path)):
                self._grid = _tuner_of(pickled, self._path)._served(self._asks, resume)
        except BaseException as error:
            traceback.print_exception(error)
            self._error = error
        finally:
            self._asks.changes.close()
            self._over.set()
        self._left.wait(LINGER_S)
        troupe.get_runtime_context().current_actor.__ray_terminate__.remote()

    def about(self) -> dict[str, Any]:
        """Return whether the sweep runs, and where."""
        return {
            "name": self._name,
            "path": str(self._path),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "over": self._over.is_set(),
        }

    def stop(self, why: str) -> None:
        """The trials end; the sweep can be gone on with."""
        self._asks.put(ev.StopAsked(why))

    def hold(self, held: bool) -> None:
        """Nothing more is started; or again."""
        self._asks.put(ev.HoldAsked(held))

    @troupe.method(concurrency_group="waits")
    def result(self) -> Any:
        """Once it is over: its ResultGrid, or None where the folder has it.

        Raises what `fit` raised.
        """
        self._over.wait()
        if self._error is not None:
            raise (
                self._error
                if isinstance(self._error, Exception)
                else RuntimeError(repr(self._error))
            )
        return self._grid

    @troupe.method(concurrency_group="waits")
    def changes(self, place: tuple[str, int] | None) -> NewRows:
        """Once there is more than at that place: see Changes.since."""
        return self._asks.changes.since(place)

    @troupe.method(concurrency_group="waits")
    def leave(self) -> None:
        """Once it is over, its process ends: another engine is to have the sweep, or its name."""
        self._over.wait()
        self._left.set()


def _tuner_of(pickled: bytes, path: Path) -> Any:
    """Return the Tuner to run; without a pickle, that of the sweep in the folder.

    Raises what unpickling raises, FileNotFoundError.
    """
    if pickled:
        return user_main.loads(pickled)[1][0]
    from troupe.tune._tuner import Tuner

    return Tuner.restore(path, trainable_of(path))


_pickled.named_in("troupe._pickled", SweepHost)
