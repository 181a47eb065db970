"""`attempts()` and `reform()`: a training that goes on in its processes after some of its ranks
died (docs/guides/recovery.md)."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import NamedTuple

from troupe import _pickled
from troupe._cluster import status_lines
from troupe._process import group_epochs
from troupe.launch import _context
from troupe.train import _groups
from troupe.train._errors import GroupAborted


class GroupPlace(NamedTuple):
    """The place of this process in its group."""

    rank: int
    world_size: int


class Attempt:
    """An attempt of a training, for a `with` statement.

    In it torch.distributed is initialised for the ranks that live.

    `number` counts from 1; `rank` and `world_size` are this process's in it; `aborted` is the
    GroupAborted that ended the one before, None in the first. Leaving the statement by the failure
    of a collective after a death ends the attempt, not the program.
    """

    def __init__(
        self,
        number: int,
        backend: str | None,
        timeout: float | None,
        most: int | None,
        aborted: GroupAborted | None,
    ) -> None:
        self.number = number
        self.aborted = aborted
        self._backend, self._timeout, self._most = backend, timeout, most
        self._entered = self._again = False

    @property
    def rank(self) -> int:
        """This process's, of the ranks that live; 0 in a plain call."""
        return _place().rank

    @property
    def world_size(self) -> int:
        """How many ranks live."""
        return _place().world_size

    def check(self) -> None:
        """Raises GroupAborted where a rank has died since the attempt began: for code between two
        collectives that are far apart. Does not block."""
        if group_epochs.is_over():
            raise _groups.aborted()

    def __enter__(self) -> Attempt:
        if self._entered:
            raise RuntimeError(
                "an attempt is entered once: `for attempt in troupe.train.attempts(): with "
                "attempt: ...`"
            )
        self._entered = True
        self.aborted = _form(self._backend, self._timeout, self.aborted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> bool:
        if error is None or not group_epochs.of_rank():
            return False
        word = _groups.word_on(error)
        if word is None:
            return False
        if self._most is not None and self.number >= self._most:
            raise word from error
        # The frames hold the model of the group that is over
        traceback.clear_frames(error.__traceback__)
        word.__cause__ = error.with_traceback(None)
        self.aborted, self._again = word, True
        return True


def attempts(
    backend: str | None = None, *, timeout: float | None = None, most: int | None = None
) -> Iterator[Attempt]:
    """Attempts of a training, until one of them ends without the death of a rank.

    Each forms the ranks' group of torch.distributed anew.

    In each, torch.distributed is initialised with `backend` (None: torch's choice) for the ranks
    that live: RANK, WORLD_SIZE and `troupe.launch.current()` say the same, and wrapping the model
    in DDP and loading the last checkpoint is the attempt's code. When a rank dies, the collectives
    of the others raise at once, their attempt ends, and the next begins with those that live
    (`@distributed(..., on_rank_death="shrink")`), or with another process in the dead one's place
    ("replace"), whose first attempt it is. An exception that is no collective's, or that comes
    without a death, leaves the loop as it is. `timeout`: seconds, of the groups' collectives (None:
    torch's); `most`: after so many attempts the GroupAborted is raised.

    View: every rank runs the loop. Blocks when an attempt begins, until all ranks that live have
    come; who has not come within the launch's `reform_timeout` is a death. In a plain call there is
    one attempt, of this process alone. Raises RuntimeError where torch.distributed is initialised
    already.

        for attempt in troupe.train.attempts("gloo"):
            with attempt:
                model = DistributedDataParallel(net)
                ...
    """
    import torch.distributed as dist

    if dist.is_initialized():
        raise RuntimeError(
            "attempts() makes the process group of each attempt itself: leave out "
            "init_process_group(), or call "
            "troupe.train.reform() where a collective fails"
        )
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise ValueError(f"most must be a whole number of at least 1, not {most!r}")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0
    ):
        raise ValueError(f"timeout must be more than 0 seconds, not {timeout!r}")
    number, aborted = 1, None
    while True:
        attempt = Attempt(number, backend, timeout, most, aborted)
        yield attempt
        if not attempt._entered:
            raise RuntimeError(
                "an attempt was not entered: `for attempt in troupe.train.attempts(): with "
                "attempt: ...`"
            )
        if not attempt._again:
            return
        number, aborted = number + 1, attempt.aborted


def reform(backend: str | None = None, *, timeout: float | None = None) -> GroupPlace:
    """Makes the ranks' group of torch.distributed anew after a rank died, and returns (rank,
    world_size) in it.

    For programs that catch a collective's error themselves; the former group is destroyed, so DDP
    is wrapped anew, and buffers of the operation that was under way are undefined. Blocks: first,
    for 90 s at most, until the head has said that a rank died, then until all ranks that live have
    come. Raises RuntimeError where no rank has died, and outside of a launch that goes on without
    some of its ranks.

        try:
            train_one_epoch(model)
        except RuntimeError:
            rank, world_size = troupe.train.reform("gloo")
            model = DistributedDataParallel(net)
    """
    if not group_epochs.of_rank():
        raise RuntimeError(
            "reform() is for the ranks of a launch: @troupe.launch.distributed(..., "
            "on_rank_death='shrink'), or 'replace'"
        )
    if not group_epochs.is_over() and not group_epochs.wait_lost(_groups.VERDICT_WAIT_S):
        raise RuntimeError(
            f"reform(): no rank of this launch has died, {_groups.VERDICT_WAIT_S:g} s after "
            "reform() was called; is it launched with "
            "on_rank_death='shrink' or 'replace'?"
        )
    _form(backend, timeout, None)
    return _place()


def _place() -> GroupPlace:
    context = _context.current_or_none()
    return GroupPlace(0, 1) if context is None else GroupPlace(context.rank, context.world_size)


def _form(
    backend: str | None, timeout: float | None, word: GroupAborted | None
) -> GroupAborted | None:
    """The group of now, however many deaths come meanwhile.

    Returns what ended the one before, with all deaths: `word`, and what came after it.
    """
    epoch, outlived = group_epochs.epoch(), group_epochs.outlived()
    while True:
        over = group_epochs.is_over()
        try:
            _groups.form(backend, timeout)
        except Exception as error:
            if not group_epochs.of_rank() or _groups.word_on(error) is None:
                raise
            continue
        if over:
            word = _groups.aborted(word, epoch=epoch, outlived=outlived)
        if word is not None and _place().rank == 0:
            status_lines.say(
                f"troupe: {word}; epoch {group_epochs.epoch()} of the group has "
                f"{_place().world_size} ranks"
            )
        return word


_pickled.named_in("troupe.train", Attempt, GroupPlace, attempts, reform)
