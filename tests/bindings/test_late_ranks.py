"""Which ranks others wait for (L1 to L4 of `_process/late_ranks`), and the words."""
from __future__ import annotations

import pytest

from troupe._process.late_ranks import LEAST_S, UNKNOWN_S, Answer, Pace, late, listed, told


def waits(begun: int) -> Answer:
    return Answer(begun, True, "a", 1, "")


def works(begun: int) -> Answer:
    return Answer(begun, False, "b", 2, '  File "train.py", line 7, in save\n')


@pytest.mark.parametrize(("answers", "found"), [
    ([waits(5), works(4), waits(5)], [1]),          # L1
    ([waits(5), waits(4), waits(5)], [1]),          # it waits in another operation than the others
    ([waits(5), None, works(4)], [1, 2]),           # L2
    ([waits(5), waits(5)], []),                     # L3: they will get on, or an operation of theirs takes long
    ([works(5), works(4)], []),                     # L3: nobody waits
    ([works(6), waits(5), works(5)], []),           # who is further, or as far, is not waited for
    ([None, None], []),
])
def test_l1_to_l3_who_is_late(answers: list, found: list[int]) -> None:
    assert late(answers) == found


def test_l4_patience_is_long_while_little_is_known_and_three_gaps_then() -> None:
    pace = Pace()
    for _ in range(9):
        pace.add(1, 0.5)
    assert pace.patience_s() == UNKNOWN_S == 60
    pace.add(1, 300.0)
    assert pace.patience_s() == LEAST_S == 10
    pace.add(1000, 7000.0)
    assert pace.patience_s() == 21


def test_the_words_name_ranks_of_the_launch_hosts_and_where() -> None:
    names = {0: 4, 1: 5, 2: 6, 3: 7}
    text = told([waits(9), works(8), None, waits(9)], [1, 2], "3", 61.2, names)
    assert text.splitlines()[0] == ("ranks 5 and 6 have not come to operation 9 of process group 3, in which ranks 4 and 7 wait, for 61 s by now. "
                                    "Nothing is ended because of that")
    assert 'rank 5 (host b, pid 2) has begun 8 operations, and is here:\n  File "train.py", line 7, in save' in text
    assert "rank 6 says nothing: it is stopped, or in code that keeps Python's lock; `troupe stack` shows where" in text
    assert "perhaps because the ranks' programs differ" in told([waits(9), waits(7)], [1], "0", 10, {0: 0, 1: 1})
    assert told([waits(9), *[None] * 6], [1, 2, 3, 4, 5, 6], "0", 10, dict(enumerate(range(7)))).endswith("\nand 2 more")
    assert (listed([3]), listed([3, 4]), listed(range(20))) == ("3", "3 and 4", "0, 1, 2, 3, 4, 5, 6, 7 and 12 more")
