"""Names of actors and placement groups, and the namespaces that they are in.

Method: programs of their own on one cluster make the same names, at once and one after the other,
and look each other's up.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import pytest
from conftest import Home

import troupe
from troupe.launch import distributed
from troupe.util.placement_group import get_placement_group, placement_group, remove_placement_group

WITHIN_S = 30.0

PROGRAM = """
import sys, troupe
from troupe.util.placement_group import placement_group
troupe.init({address!r}, namespace={namespace!r})
def get_job_id(): return troupe.get_runtime_context().get_job_id()
@troupe.remote
class Counter:
    def __init__(self): self.n = 0
    def add(self): self.n += 1; return self.n
    def space(self): return troupe.get_runtime_context().namespace
    def job(self): return get_job_id()
    def sibling(self): return troupe.get(troupe.get_actor("counter").add.remote())
counter = Counter.options(name="counter").remote()
other = Counter.options(name="other", namespace="elsewhere" + str(id(counter))).remote()
group = placement_group([{{"CPU": 0.1}}], name="group")
assert group.wait(30) and troupe.util.get_placement_group("group") == group
mine = troupe.get_runtime_context().namespace
assert troupe.get(other.space.remote()) == mine                  # it is named elsewhere, and looks where its maker does
assert troupe.get(other.sibling.remote()) == 1
assert troupe.get(troupe.remote(lambda: troupe.get_runtime_context().namespace).remote()) == mine
job = troupe.get_runtime_context().get_job_id()
assert len(job) == 8 and troupe.get([other.job.remote(), troupe.remote(get_job_id).remote()]) == [job, job]
print(mine, flush=True)
sys.stdin.readline()
assert troupe.get(troupe.get_actor("counter").add.remote()) == 2, "it is another program's"
"""


class Program:
    """A driver that has made its names, and waits until it is told to go on."""

    def __init__(self, namespace: str | None) -> None:
        code = PROGRAM.format(address=troupe.get_runtime_context().gcs_address, namespace=namespace)
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.namespace = self._process.stdout.readline().strip()

    def end(self) -> tuple[int, str]:
        """Return the exit code and stderr."""
        _, errors = self._process.communicate("go on\n", timeout=WITHIN_S)
        return self._process.returncode, errors


class Counter:
    def __init__(self) -> None:
        self.n = 0

    def add(self) -> int:
        self.n += 1
        return self.n


def test_two_runs_of_a_script_do_not_meet(idle: Home) -> None:
    first, second = Program(None), Program(None)
    assert first.namespace and second.namespace and first.namespace != second.namespace
    here = troupe.get_runtime_context().namespace
    assert here not in (first.namespace, second.namespace)
    with pytest.raises(
        ValueError,
        match=f"Failed to look up actor with name 'counter': .* in namespace '{here}'; there is "
        "one in",
    ):
        troupe.get_actor("counter")
    with pytest.raises(ValueError, match="no placement group is named 'group' in namespace"):
        get_placement_group("group")
    found = troupe.get_actor("counter", namespace=second.namespace)
    assert troupe.get(found.add.remote(), timeout=WITHIN_S) == 2
    assert first.end() == (0, "")
    code, errors = second.end()
    assert code == 1 and "another program's" in errors, (
        "this program had counted in the second's actor, not in the first's"
    )


def test_programs_that_say_which_share_it(idle: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Program("prod")
    assert first.namespace == "prod"
    assert {"name": "counter", "namespace": "prod"} in troupe.util.list_named_actors(
        all_namespaces=True
    )
    assert re.search(r"Counter +counter +prod +alive", idle.run("list", "actors").stdout)
    second = Program("prod")
    assert second.namespace == ""
    code, errors = second.end()
    assert code == 1 and "an actor is already called 'counter' in namespace 'prod'" in errors
    monkeypatch.setenv("TROUPE_NAMESPACE", "prod")
    asks = idle.python(
        f"import troupe; troupe.init({troupe.get_runtime_context().gcs_address!r}); "
        "print(troupe.get(troupe.get_actor('counter').space.remote()), "
        "troupe.util.list_named_actors())"
    )
    assert asks.stdout == "prod ['counter']\n", asks.stderr
    assert first.end() == (0, "")


def test_groups_of_one_name_in_a_launch_and_outside(idle: Home) -> None:
    group = placement_group([{"CPU": 1}], name="group")
    assert group.wait(WITHIN_S)
    with pytest.raises(
        troupe.exceptions.AlreadyExistsError,
        match="a placement group is already called 'group' in namespace",
    ):
        placement_group([{"CPU": 1}], name="group")
    outside = troupe.remote(Counter).options(name="outside").remote()
    troupe.get(outside.add.remote(), timeout=WITHIN_S)

    @distributed(processes=1, remote=True)
    def of_a_rank() -> Any:
        found = get_placement_group(
            "group"
        ).id  # outside, as there is none of that name in the launch
        mine = placement_group([{"CPU": 1}], name="group")
        return (
            found,
            mine.id,
            get_placement_group("group").id,
            troupe.get(troupe.get_actor("outside").add.remote()),
        )

    @distributed(processes=1, remote=True)
    def of_a_rank_that_says_which() -> list:
        context = troupe.init(namespace="of the rank")
        inside = troupe.remote(lambda: troupe.get_runtime_context().namespace)
        return [
            context["namespace"],
            troupe.get_runtime_context().namespace,
            troupe.get(inside.remote()),
        ]

    assert of_a_rank_that_says_which.distributed()[0] == ["of the rank"] * 3
    found, mine, again, count = of_a_rank.distributed()[0]
    assert found == group.id and mine == again != found and count == 2
    assert get_placement_group("group") == group
    remove_placement_group(group)
    troupe.kill(outside)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (
            lambda: troupe.init("127.0.0.1:1", namespace="", ignore_reinit_error=False),
            RuntimeError,
            "called before",
        ),
        (
            lambda: troupe.get_actor("a", namespace=""),
            ValueError,
            'namespace="" is not a valid namespace',
        ),
        (lambda: troupe.get_actor("a", namespace=3), TypeError, "namespace=3: a string"),
        (lambda: troupe.get_actor(""), ValueError, "takes the name of an actor, not ''"),
        (lambda: troupe.get_actor(None), ValueError, "takes the name of an actor, not None"),
        (
            lambda: troupe.remote(Counter).options(name="a", namespace=""),
            ValueError,
            'namespace="" is not a valid namespace',
        ),
        (lambda: get_placement_group(""), ValueError, "takes the name of a group"),
    ],
)
def test_misuse_of_names(idle: Home, wrong: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        wrong()


def test_init_refuses_an_empty_namespace(home: Home) -> None:
    done = home.python("import troupe\ntroupe.init(namespace='')")
    assert (
        done.returncode == 1 and 'ValueError: namespace="" is not a valid namespace' in done.stderr
    )
    assert not home.processes(), "nothing was started"
    assert "TROUPE_NAMESPACE" not in os.environ
