"""Output of actors and tasks, shown by the program that made them: whose it is, in order, to the
last word."""

from __future__ import annotations

import re
import subprocess

import pytest
from conftest import Home

PROGRAM = """
import os, sys
import troupe

@troupe.remote
class Speaker:
    def say(self, *words, to=sys.stdout):
        print(*words, file=sys.stderr if to == "stderr" else sys.stdout)
    def unfinished(self):
        sys.stdout.write("no end of line"); sys.stdout.flush()
    def nested(self):
        self.inner = Speaker.options(name="inner").remote()
        troupe.get(self.inner.say.remote("from below"))
    def many(self, count):
        for i in range(count):
            print("line", i, "\\u00e4" * 50)
    def die(self):
        print("last words", flush=True)
        os.kill(os.getpid(), 9)

@troupe.remote
def task(word):
    print("a task says", word)

with troupe.init({init}):
    {body}
"""


def run(home: Home, body: str, init: str = "num_cpus=4") -> subprocess.CompletedProcess:
    """A program that makes speakers; it must succeed."""
    indented = body.strip().replace("\n", "\n    ")
    done = home.python(PROGRAM.format(init=init, body=indented))
    assert done.returncode == 0, done.stderr
    return done


def lines(text: str) -> list[str]:
    """Without what tells actors apart."""
    return [
        re.sub(r"^\((\w+) [0-9a-f]{8}(, \w+)?\)", r"(\1\2)", line) for line in text.splitlines()
    ]


def test_actors_and_tasks_speak_where_they_were_made(home: Home) -> None:
    done = run(
        home,
        """
speaker = Speaker.remote()
troupe.get([speaker.say.remote("first"), speaker.say.remote("second"), speaker.say.remote("to stderr", to="stderr")])
troupe.get(task.remote("hello"))
troupe.get(speaker.nested.remote())
print("own words")
""",
    )
    said = lines(done.stdout)
    assert [line for line in said if line.startswith("(Speaker)")] == [
        "(Speaker) first",
        "(Speaker) second",
    ]
    assert (
        "(task) a task says hello" in said
        and '(Speaker "inner") from below' in said
        and "own words" in said
    )
    assert "(Speaker) to stderr" in lines(done.stderr)


def test_nothing_is_left_out_at_the_end(home: Home) -> None:
    done = run(
        home,
        """
speakers = [Speaker.options(num_cpus=0).remote() for _ in range(3)]
troupe.get([each.many.remote(5000) for each in speakers])
troupe.get(speakers[0].unfinished.remote())
""",
    )
    each = [f"(Speaker) line {i} {'ä' * 50}" for i in range(5000)]
    said = lines(done.stdout)
    assert sorted(said) == sorted(3 * each + ["(Speaker) no end of line"])


def test_one_that_dies_and_the_process_after_it(home: Home) -> None:
    done = run(
        home,
        """
speaker = Speaker.options(max_restarts=1).remote()
troupe.get(speaker.say.remote("before"))
speaker.die.remote()
while True:
    try:
        troupe.get(speaker.say.remote("after"), timeout=30)
        break
    except troupe.exceptions.ActorUnavailableError:
        pass
    except troupe.exceptions.TroupeError as error:
        print("own:", type(error).__name__)
""",
    )
    said = [line for line in lines(done.stdout) if line.startswith("(Speaker)")]
    assert said == ["(Speaker) before", "(Speaker) last words", "(Speaker) after"]


def test_a_program_that_wants_none(home: Home) -> None:
    done = run(
        home,
        """
speaker = Speaker.remote()
troupe.get(speaker.say.remote("unheard"))
troupe.get(speaker.nested.remote())
troupe.get(task.remote("unheard"))
""",
        init="num_cpus=4, log_to_driver=False",
    )
    assert done.stdout == "" and "unheard" not in done.stderr


def test_output_of_another_host_says_which(hosts: dict[str, str], shared_home: Home) -> None:
    import troupe
    from troupe import state

    address = state._session.current().address
    done = run(
        shared_home,
        """
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
for node in troupe.nodes():
    speaker = Speaker.options(scheduling_strategy=On(node["NodeID"], soft=False)).remote()
    troupe.get(speaker.say.remote("here"))
""",
        init=repr(address),
    )
    assert sorted(lines(done.stdout)) == ["(Speaker, a) here", "(Speaker, b) here"]
    assert troupe.is_initialized()


def test_actors_of_a_launch_speak_through_its_rank(home: Home) -> None:
    code = """
import troupe
from troupe.launch import ray_launch

@ray_launch(processes=2)
def drive():
    class Speaker:
        def say(self):
            print("inside")
    speaker = troupe.remote(num_cpus=0)(Speaker).remote()
    troupe.get(speaker.say.remote())
    return 3

print(drive.distributed()[0])
"""
    done = home.python(code)
    assert done.returncode == 0, done.stderr
    assert "[0] (Speaker) inside" in [
        re.sub(r" [0-9a-f]{8}\)", ")", line) for line in done.stdout.splitlines()
    ]


@pytest.mark.parametrize("count", [200])
def test_many_that_begin_and_end_at_once(home: Home, count: int) -> None:
    done = run(
        home,
        f"""
for begin in range(0, {count}, 20):
    speakers = [Speaker.options(num_cpus=0).remote() for _ in range(20)]
    troupe.get([each.say.remote("number", begin + i) for i, each in enumerate(speakers)])
    del speakers
""",
    )
    assert sorted(lines(done.stdout)) == sorted(f"(Speaker) number {i}" for i in range(count))
