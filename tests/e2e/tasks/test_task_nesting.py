"""Tasks that start tasks: a task that waits gives its CPU to those it waits for."""

from __future__ import annotations

from conftest import Home

PROGRAM = """
import troupe
troupe.init(num_cpus={cpus})

@troupe.remote
def fib(n):
    if n < 2:
        return n
    a, b = fib.remote(n - 1), fib.remote(n - 2)
    return troupe.get(a) + troupe.get([b])[0]

@troupe.remote
def leaf(x):
    return x + 1

@troupe.remote
def waits(n):
    refs = [leaf.remote(i) for i in range(n)]
    done = []
    while refs:
        ready, refs = troupe.wait(refs, num_returns=1)
        done += troupe.get(ready)
    before = troupe.get(leaf.remote(-1))
    return sum(done) + before

@troupe.remote
def middle(n):
    return troupe.get(waits.remote(n))

@troupe.remote
def chain(n):
    ref = leaf.remote(0)
    for _ in range(n):
        ref = leaf.remote(ref)
    return troupe.get(ref)

{body}
print("fine")
"""


def run(home: Home, cpus: int, body: str) -> None:
    """Runs a program on a cluster of its own."""
    done = home.python(PROGRAM.format(cpus=cpus, body=body), timeout=110)
    assert done.returncode == 0 and done.stdout.endswith("fine\n"), done.stdout + done.stderr


def test_a_function_that_calls_itself_on_one_cpu(home: Home) -> None:
    run(home, 1, "assert troupe.get(fib.remote(4), timeout=90) == 3")


def test_several_levels_and_wait_on_one_cpu(home: Home) -> None:
    run(home, 1, "assert troupe.get([middle.remote(5), middle.remote(3)], timeout=90) == [15, 6]")


def test_a_task_whose_tasks_wait_for_each_other_on_one_cpu(home: Home) -> None:
    run(home, 1, "assert troupe.get(chain.remote(4), timeout=90) == 5")


def test_callers_of_all_cpus_at_once(home: Home) -> None:
    run(home, 2, "assert troupe.get([waits.remote(4) for _ in range(4)], timeout=90) == [10] * 4")


CHAIN = """
@troupe.remote
def step(makers, depth):
    if depth == 0:
        return 0
    return troupe.get(makers[depth - 1].make.remote(makers, depth - 1)) + 1

@troupe.remote(num_cpus=0)
class Maker:
    def make(self, makers, depth):
        return troupe.get(step.remote(makers, depth))

@troupe.remote
def span():
    begun = time.monotonic()
    sum(range(100_000))
    return begun, time.monotonic()

import threading, time
pause = threading.Event()
makers = [Maker.remote() for _ in range(4)]
assert troupe.get(step.remote(makers, 4), timeout=90) == 4
spans = sorted(troupe.get([span.remote() for _ in range(6)] + [makers[0].make.remote(makers, 0)], timeout=90)[:6])
assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:])), spans
while troupe.available_resources() != troupe.cluster_resources():
    pause.wait(0.02)
"""


def test_a_chain_of_tasks_that_different_processes_started_on_one_cpu(home: Home) -> None:
    run(home, 1, CHAIN)


ACTORS = """
@troupe.remote(num_cpus=0)
class Caller:
    def run(self, count):
        return sum(troupe.get([leaf.remote(i) for i in range(count)]))
    def end_one_that_waits(self):
        import threading
        @troupe.remote(max_retries=0)
        def wait_for_ever():
            threading.Event().wait()
        ref = wait_for_ever.remote()
        troupe.wait([ref], timeout=0.5)
        troupe.cancel(ref, force=True)
        try:
            troupe.get(ref)
        except (troupe.exceptions.WorkerCrashedError, troupe.exceptions.TaskCancelledError):
            return True
"""


def test_an_actor_gives_back_what_its_tasks_ran_on(home: Home) -> None:
    run(
        home,
        2,
        ACTORS
        + """
callers = [Caller.remote() for _ in range(3)]
assert troupe.get([each.run.remote(1000) for each in callers], timeout=90) == [500500] * 3
assert troupe.get(leaf.options(num_cpus=2).remote(1), timeout=90) == 2
""",
    )


def test_an_actor_ends_the_process_of_a_task(home: Home) -> None:
    run(
        home,
        1,
        ACTORS
        + """
caller = Caller.remote()
assert troupe.get(caller.end_one_that_waits.remote(), timeout=90)
assert troupe.get(leaf.remote(1), timeout=90) == 2
""",
    )


def test_room_that_is_kept_for_refs_is_named(home: Home) -> None:
    program = PROGRAM.format(
        cpus=1,
        body="""
@troupe.remote
def parts():
    return [troupe.put(1)]

held = troupe.get(parts.remote(), timeout=90)
other = leaf.options(runtime_env={"env_vars": {"OTHER": "1"}}).remote(1)
assert troupe.wait([other], timeout=9) == ([], [other])
assert troupe.get(held, timeout=9) == [1]
del held
assert troupe.get(other, timeout=90) == 2
""",
    )
    done = home.python(program, timeout=110)
    assert done.returncode == 0 and done.stdout.endswith("fine\n"), done.stdout + done.stderr
    assert (
        "1 idle process for tasks with other options ({CPU: 1} each) keeps: refs are held to "
        "objects" in done.stderr
    )
    assert done.stderr.count("tasks have waited 5 s") == 1


OVER = """
import troupe
troupe.init(num_cpus=2)

@troupe.remote
def leaf():
    return 1

@troupe.remote(max_calls=1, max_retries=0)
def starts():
    return [leaf.remote()]

refs = [starts.remote() for _ in range(4)]
print(sum(troupe.get([inner for (inner,) in troupe.get(refs)])))
"""


def test_processes_that_are_over_lend_their_cpus_while_they_stay_for_what_their_tasks_started(
    home: Home,
) -> None:
    # Method: as many as there are CPUs stay for refs of tasks that need a CPU themselves.
    done = home.python(OVER)
    assert done.returncode == 0 and done.stdout == "4\n", done.stderr
