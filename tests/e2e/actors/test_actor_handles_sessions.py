"""Handles of sessions and programs that end; real processes.

Method: as in test_actor_handles.py.
"""

from __future__ import annotations

from conftest import Home
from handles import Watched, all_looked_at
from test_actor_handles import made

import troupe


def test_a_session_that_is_over(home: Home) -> None:
    troupe.init(num_cpus=2)
    actor = made()
    watched = Watched(actor)
    troupe.shutdown()
    watched.ends()
    del actor
    all_looked_at()
    troupe.init(num_cpus=2)
    assert troupe.get(made().note.remote(0), timeout=30) == 1


def test_a_program_that_ends_with_handles(home: Home) -> None:
    done = home.python(
        "import troupe\n"
        "troupe.init(num_cpus=1)\n"
        "class A:\n"
        "    def f(self): return 1\n"
        "a = troupe.remote(A).remote()\n"
        "print(troupe.get(a.f.remote()), troupe.get(troupe.remote(A).remote().f.remote()))\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 1\n", "")


def test_two_that_hold_each_other_end_with_their_maker(home: Home) -> None:
    troupe.init(num_cpus=2)
    first, second = made(), made()
    troupe.get([first.keep.remote("it", second), second.keep.remote("it", first)], timeout=30)
    watched = Watched(first), Watched(second)
    del first, second
    all_looked_at()
    assert watched[0].lives() and watched[1].lives()
    troupe.shutdown()
    for each in watched:
        each.ends()
