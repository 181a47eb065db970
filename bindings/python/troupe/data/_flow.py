"""Scheduling of one stream's blocks under a memory budget.

Pure: events come in, orders go out.

A stream is a source of items, each of which goes through every stage and is one block at each.
Blocks leave in the order of the source, whatever finished first, so that a result does not depend
on who was quicker.

F1  Blocks are delivered in the order in which their items were offered, each once. F2  What is held
and what running work is expected to give stays within the budget; the block that the consumer waits
for is let
    through all the same, so that a budget smaller than a block slows a stream and never stops it.
F3  No more items than the window are under way, however small they are.
F4  A stage never runs more than its limit at once.
F5  Where blocks fail, all before the first of them in the order are delivered, then its failure:
nothing behind one that failed is started any more, what
    is before it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class _Block:
    """The block of one item: the stages it has been through, whether the next one runs, and its
    current size in bytes."""

    done: int
    running: bool
    size: int
    expected: int = 0
    failed: bool = False


class Flow:
    """The blocks of one stream, from the source to the consumer.

    `limits`: for each stage how many may run at once. `budget`: bytes. `window`: items.
    """

    def __init__(self, limits: Sequence[int], budget: int, window: int) -> None:
        self._limits, self._budget, self._window = tuple(limits), budget, window
        self._blocks: dict[int, _Block] = {}
        self._running = [0] * len(self._limits)
        self._given = [0] * len(self._limits)  # bytes that a stage has been given, and made of them
        self._made = [0] * len(self._limits)
        # bytes held, and bytes to come; items of the source that nothing has read yet take none
        self._load = 0
        self._offered = 0
        self._ended = False
        self._taken: int | None = None
        self._failed: int | None = None  # the first in the order

    def may_pull(self) -> bool:
        """Return True if the source may be asked for its next item."""
        if self._ended or self._failed is not None or len(self._blocks) >= self._window:
            return False
        return not any(block.done == 0 and not block.running for block in self._blocks.values())

    def offered(self, size: int) -> int:
        """The source gave an item of about so many bytes; its number."""
        number, self._offered = self._offered, self._offered + 1
        self._blocks[number] = _Block(0, False, size)
        return number

    def ended(self) -> None:
        """The source has no more."""
        self._ended = True

    def starts(self) -> list[tuple[int, int]]:
        """(stage, number) of what is to be started now.

        What is nearer to the consumer goes first, as that is what frees memory.
        """
        orders: list[tuple[int, int]] = []
        for stage in reversed(range(len(self._limits))):
            for number, block in self._blocks.items():
                if (
                    self._running[stage] >= self._limits[stage]
                    or self._failed is not None
                    and number >= self._failed
                ):
                    break
                if block.running or block.done != stage or number == self._taken:
                    continue
                expected = self._expected(stage, block.size)
                if self._load + expected > self._budget and number != self._head():
                    continue
                block.running, block.expected = True, expected
                self._load += expected
                self._running[stage] += 1
                orders.append((stage, number))
        return orders

    def finished(self, number: int, size: int) -> None:
        """Note that the running stage of a block ended; the block now has `size` bytes."""
        block = self._blocks[number]
        self._given[block.done] += block.size
        self._made[block.done] += size
        self._running[block.done] -= 1
        self._load += size - block.expected - (block.size if block.done else 0)
        block.done, block.running, block.size, block.expected = block.done + 1, False, size, 0

    def failed(self, number: int) -> None:
        """Note that the running stage of a block failed: nothing behind it is started any more, and
        the failure keeps the block's place in the order."""
        block = self._blocks[number]
        self._running[block.done] -= 1
        self._load -= block.expected
        block.running, block.failed, block.expected = False, True, 0
        self._failed = number if self._failed is None else min(number, self._failed)

    def take(self) -> int | None:
        """The number of the next block for the consumer, whole or failed; None: it is not there
        yet. It counts until `released`."""
        head = self._head()
        if head is None or self._taken is not None:
            return None
        block = self._blocks[head]
        if block.running or not (block.failed or block.done == len(self._limits)):
            return None
        self._taken = head
        return head

    def released(self) -> None:
        """The consumer has let go of what it took."""
        assert self._taken is not None
        block = self._blocks.pop(self._taken)
        self._load -= block.size if block.done else 0
        self._taken = None

    def over(self) -> bool:
        """Return True if the consumer has had everything."""
        return self._ended and not self._blocks

    def _head(self) -> int | None:
        """The block that the consumer waits for: the first that it has not taken."""
        return next((number for number in self._blocks if number != self._taken), None)

    def _expected(self, stage: int, size: int) -> int:
        given, made = self._given[stage], self._made[stage]
        return int(size * made / given) if given else size
