"""Sweeps: trials a second, the way of a report, an early stop, ten thousand trials, a journal that
    is opened.

With --ray PYTHON (an interpreter that has ray[tune] 2.60) both sides run 32 trials of 5 reports, in
turn, each with its cluster up and a trial run before, two at a time: (a) by their defaults; (b)
Tune with reuse_actors=True and without its loggers, Troupe with reuse_actors=True.

    python benchmarks/sweeps/sweep.py [--pairs 3] [--trials 10000] [--only NAME] [--ray /path/to/python] [--keep]
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from report import await_rest, keep, settle  # noqa: E402

SIDE = """
import json, os, sys, time
which, folder, reuse = sys.argv[1], sys.argv[2], sys.argv[3] == "reuse"
if which == "ray":
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    if reuse:
        os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    import ray
    from ray import tune
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
else:
    import troupe
    from troupe import tune
    troupe.init(num_cpus=2, log_to_driver=False)

def train(config):
    for step in range(5):
        tune.report({"acc": config["x"] * step})

def sweep(trials, name):
    begin = time.perf_counter()
    grid = tune.Tuner(train, param_space={"x": tune.uniform(0, 1)}, run_config=tune.RunConfig(storage_path=folder, name=name, verbose=0),
                      tune_config=tune.TuneConfig(metric="acc", mode="max", num_samples=trials, reuse_actors=reuse)).fit()
    assert len(grid) == trials and not grid.errors
    return time.perf_counter() - begin

sweep(1, "warm")
print("SECONDS", json.dumps(sweep(32, "measured")), flush=True)
if which == "ray":
    ray.shutdown()  # its own cluster alone: `ray stop` would end all clusters of the machine
"""


def side(python: str, which: str, how: str) -> float:
    """Seconds of 32 trials of 5 reports."""
    with tempfile.TemporaryDirectory(prefix="sweep-bench-") as folder:
        done = subprocess.run(
            [python, "-c", SIDE, which, folder, how], capture_output=True, text=True, cwd=folder
        )
        found = [line for line in done.stdout.splitlines() if line.startswith("SECONDS")]
        assert found, done.stderr[-3000:]
        return float(found[0].split()[1])


def pairs(ray: str, count: int) -> dict:
    """Both sides in turn."""
    found: dict = {}
    for how in ("defaults", "reuse"):
        ours, theirs = [], []
        for _ in range(count):
            settle()
            ours.append(side(sys.executable, "troupe", how))
            if ray:
                settle()
                theirs.append(side(ray, "ray", how))
        found[how] = {"troupe_s": ours, "ray_s": theirs}
        if ray:
            found[how]["times"] = [other / own for own, other in zip(ours, theirs, strict=True)]
    return found


def one_report(config: dict) -> None:
    from troupe import tune

    tune.report({"acc": config["x"]})


def reports(config: dict) -> dict:
    from troupe import tune

    times = []
    for step in range(3000):
        begin = time.perf_counter()
        tune.report({"acc": step})
        times.append(time.perf_counter() - begin)
    times.sort()
    return {"acc": 0, "p50_us": times[1500] * 1e6, "p90_us": times[2700] * 1e6}


def stopped(config: dict) -> None:
    """Report once, which stops the trial. Both times are of one clock of the host."""
    from troupe import tune

    tune.report(
        {
            "acc": 0,
            "began": time.clock_gettime(time.CLOCK_MONOTONIC),
            "asked": time.clock_gettime(time.CLOCK_MONOTONIC),
        }
    )


def fit(
    function: object, trials: int, *, stop: object = None, **tuned: object
) -> tuple[object, float]:
    from troupe import tune

    with tempfile.TemporaryDirectory(prefix="sweep-bench-") as folder:
        begin = time.perf_counter()
        grid = tune.Tuner(
            function,
            param_space={"x": tune.uniform(0, 1)},
            run_config=tune.RunConfig(storage_path=folder, verbose=0, stop=stop),
            tune_config=tune.TuneConfig(metric="acc", mode="max", num_samples=trials, **tuned),
        ).fit()
        assert not grid.errors and len(grid) == trials, grid.errors[:1]
        return grid, time.perf_counter() - begin


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def trials_a_second() -> dict:
    fit(one_report, 2)
    found = {}
    for how, count in (("fresh", 100), ("reused", 600)):
        _, seconds = fit(one_report, count, reuse_actors=how == "reused")
        found[how] = count / seconds
    return found


def way_of_a_report() -> dict:
    grid, _ = fit(reports, 1)
    return {name: grid[0].metrics[name] for name in ("p50_us", "p90_us")}


def early_stop() -> dict:
    """From a report that stops its trial to the first line of the next one, in the one slot there
    is."""
    found = {}
    for how in ("fresh", "reused"):
        grid, _ = fit(
            stopped,
            60,
            stop={"training_iteration": 1},
            reuse_actors=how == "reused",
            max_concurrent_trials=1,
        )
        ends = sorted((each.metrics["asked"], each.metrics["began"]) for each in grid)
        gaps = [(after[1] - before[0]) * 1e3 for before, after in zip(ends, ends[1:], strict=False)]
        found[f"{how}_p50_ms"] = median(gaps)
    return found


def many(trials: int) -> dict:
    """So many trials of one report, with processes that are used again: two slots.

    Whether the last tenth of them takes longer than the first, by the clock and by the processor
    time of the engine's process; on a machine that others use only the latter says whether anything
    grows with the trials.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    marks: list[tuple[float, float]] = []

    def noted(trial: str, result: dict) -> bool:
        marks.append((time.perf_counter(), time.process_time()))
        return False

    _, seconds = fit(one_report, trials, reuse_actors=True, stop=noted)
    tenth = trials // 10
    first, last = (
        [
            (end - begin) / tenth
            for begin, end in zip(marks[place], marks[place + tenth], strict=True)
        ]
        for place in (0, len(marks) - tenth - 1)
    )
    return {
        "trials": trials,
        "seconds": seconds,
        "last_tenth_to_first": last[0] / first[0],
        "last_tenth_to_first_cpu": last[1] / first[1],
        "engine_cpu_ms_a_trial": [first[1] * 1e3, last[1] * 1e3],
        "engine_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "engine_mib_before": before / 1024,
    }


def results_a_second() -> dict:
    """Reports of 8 trials into one engine, and without processes: the core and the journal
    alone."""
    from troupe.tune._core import events as ev
    from troupe.tune._core.deciding import Mode, Proposal
    from troupe.tune._core.rules import Rules
    from troupe.tune._core.sweep import SweepCore
    from troupe.tune._journal.journal import Journal
    from troupe.tune.schedulers import ASHAScheduler

    scheduler = ASHAScheduler(max_t=1000)
    scheduler.begin("acc", Mode.MAX)
    core = SweepCore(Rules(metric="acc", ahead=96), scheduler, name_of=str)
    with tempfile.TemporaryDirectory(prefix="sweep-bench-") as folder:
        journal = Journal(pathlib.Path(folder), create=True)
        decided = core.handle(ev.Begun(1, "h", 1, 0.0), 0.0)
        for number in range(96):
            decided = core.handle(
                ev.Proposed(str(number), Proposal({"x": number}), number == 95), 0.0
            )
        for number in range(1, 97):
            core.handle(ev.Granted(number), 0.0)
        count, begin = 0, time.perf_counter()
        for sequence in range(1, 101):
            rows = []
            for number in range(96):
                decided = core.handle(
                    ev.Reported(str(number), 1, sequence, {"acc": number + sequence}), 0.0
                )
                rows += decided.rows
                count += 1
            journal.append(rows, durable=False)
        seconds = time.perf_counter() - begin
        journal.close()
    return {"core_and_journal_a_second": count / seconds}


def journal_opened() -> dict:
    """A journal of 10,000 trials of 10 reports each."""
    from troupe.tune._core.deciding import Mode
    from troupe.tune._core.rules import Rules
    from troupe.tune._core.sweep import SweepCore
    from troupe.tune._journal.journal import Journal
    from troupe.tune._run import engine
    from troupe.tune.schedulers import ASHAScheduler

    with tempfile.TemporaryDirectory(prefix="sweep-bench-") as folder:
        journal = Journal(pathlib.Path(folder), create=True)
        for number in range(10_000):
            name = f"t{number:05d}"
            rows = [
                {
                    "kind": "trial",
                    "trial": name,
                    "config": {"lr": number / 1e5},
                    "extra": {},
                    "shape": "",
                },
                {"kind": "start", "trial": name, "attempt": 1, "number": 0, "base": None},
            ]
            rows += [
                {
                    "kind": "report",
                    "trial": name,
                    "attempt": 1,
                    "sequence": each,
                    "number": each,
                    "checkpoint": "",
                    "begun": 0,
                    "can_add": True,
                    "metrics": {
                        "acc": each * number / 1e5,
                        "training_iteration": each,
                        "time_total_s": float(each),
                    },
                }
                for each in range(1, 11)
            ]
            rows.append(
                {"kind": "end", "trial": name, "end": "completed", "why": "its function returned"}
            )
            journal.append(rows, durable=False)
        journal.close()
        scheduler = ASHAScheduler(max_t=100)
        scheduler.begin("acc", Mode.MAX)
        core = SweepCore(Rules(metric="acc"), scheduler, name_of=str)
        with engine._without_collection():  # as the engine opens it
            begin = time.perf_counter()
            journal = Journal(pathlib.Path(folder), create=False)
            rows = list(journal.read())
            read = time.perf_counter() - begin
            core.replay(rows)
            seconds = time.perf_counter() - begin
        journal.close()
    return {"seconds": seconds, "reading_alone_s": read}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--ray", default="")
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    figures = {
        "results_a_second": results_a_second,
        "journal_opened": journal_opened,
        "trials_a_second": trials_a_second,
        "report": way_of_a_report,
        "early_stop": early_stop,
        "many": lambda: many(asked.trials),
    }
    found: dict = {"load": os.getloadavg()}
    if not asked.only or asked.only == "pairs":
        await_rest()
        found["32_trials_of_5_reports"] = pairs(asked.ray, asked.pairs)
        print(json.dumps(found["32_trials_of_5_reports"]), flush=True)
    import troupe

    for name, measure in figures.items():
        if asked.only in ("", name):
            if name not in ("results_a_second", "journal_opened") and not troupe.is_initialized():
                troupe.init(num_cpus=2, log_to_driver=False)
                await_rest()
            found[name] = measure()
            print(name, json.dumps(found[name]), flush=True)
    keep("sweep", found, asked.keep)


if __name__ == "__main__":
    main()
