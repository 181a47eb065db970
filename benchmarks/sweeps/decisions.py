"""Decisions of schedulers, compared with Ray's own: the same random traces for both, differences
counted by their cause.

A trace ends at the first difference: from there on the two have seen other things. Both sides are
asked in one process, so the interpreter given has Ray and can load this checkout's package.

    python benchmarks/sweeps/decisions.py --ray PYTHON [--traces 200] [--keep]

and what a decision costs when 10,000 trials are recorded: --costs, without Ray.
"""

import argparse
import collections
import contextlib
import json
import math
import os
import pathlib
import random
import subprocess
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from ray_engine import RayController, RayTrial  # noqa: E402

KINDS = ("plain", "equal scores", "NaN", "None", "infinite", "jumps")
NAMES = ("asha", "median", "median, wall time", "hyperband", "pbt", "pbt, synch")


def value_of(generator: random.Random, kind: str) -> Any:
    """A score."""
    if kind == "equal scores":
        return float(generator.randrange(4))
    odd = {"NaN": math.nan, "None": None, "infinite": generator.choice([math.inf, -math.inf])}
    return odd[kind] if kind in odd and generator.random() < 0.1 else generator.random()


class Trace:
    """A random history of a sweep, given to both; `difference`: where their decisions differ, and
    after which event."""

    def __init__(self, name: str, kind: str, seed: int) -> None:
        self.name, self.kind, self.generator = name, kind, random.Random(f"{name} {kind} {seed}")
        self.decisions, self.stops = 0, 0

    def step(self) -> float:
        if self.name.endswith("wall time"):
            return self.generator.randrange(1, 3000) / 1024
        return self.generator.choice([1, 2, 5]) if self.kind == "jumps" else 1


def stopping(trace: Trace) -> str | None:
    """ASHA and the median rule: each report, continue or stop."""
    from ray.tune.schedulers import AsyncHyperBandScheduler, MedianStoppingRule

    from troupe.tune._core.deciding import End, Mode, Report
    from troupe.tune.schedulers import ASHAScheduler, MedianStoppingRule as OurRule

    generator, mode = trace.generator, trace.generator.choice(["max", "min"])
    if trace.name == "asha":
        arguments = {
            "max_t": generator.choice([9, 16, 81, 100]),
            "grace_period": generator.choice([1, 2, 3]),
            "reduction_factor": generator.choice([2, 3, 4, 2.5]),
            "stop_last_trials": generator.random() < 0.7,
        }
        theirs, ours = (
            AsyncHyperBandScheduler(metric="m", mode=mode, **arguments),
            ASHAScheduler(**arguments),
        )
    else:
        arguments = {
            "time_attr": "training_iteration",
            "grace_period": generator.choice([0, 2, 4]),
            "min_samples_required": generator.choice([1, 2, 3, 5]),
        }
        theirs, ours = MedianStoppingRule(metric="m", mode=mode, **arguments), OurRule(**arguments)
    controller = RayController(theirs)
    ours.begin("m", Mode(mode))
    live = [RayTrial(f"t{number}") for number in range(generator.randrange(3, 30))]
    for trial in live:
        trial.status, trial.time, trial.number = "RUNNING", 0, 0
        controller.trials.append(trial)
        theirs.on_trial_add(controller, trial)
        ours.added(trial.trial_id, {})
    while live:
        trial = generator.choice(live)
        trial.time, trial.number, value = (
            trial.time + trace.step(),
            trial.number + 1,
            value_of(generator, trace.kind),
        )
        result = {"training_iteration": trial.time, "m": value}
        mine = bool(
            ours.reported(Report(trial.trial_id, trial.number, result, Mode(mode).score(value)))
        )
        try:
            other = theirs.on_trial_result(controller, trial, result) == "STOP"
        except TypeError:
            return "Ray raises TypeError for None, and the sweep ends"
        trace.decisions += 1
        trace.stops += mine
        if mine != other:
            return cause(trace, controller, theirs, trial, mine)
        if mine or trial.time > 110:
            live.remove(trial)
            trial.status = "TERMINATED"
            theirs.on_trial_complete(controller, trial, result)
            ours.ended(trial.trial_id, End.STOPPED if mine else End.COMPLETED)
    return None


def cause(trace: Trace, controller: RayController, theirs: Any, trial: RayTrial, mine: bool) -> str:
    """Why two rules that are to be the same have decided otherwise."""
    if trace.kind == "infinite":
        return (
            "an infinite score counts as it is here, and makes a percentile or an average NaN, "
            "or is left out, there"
        )
    if trace.kind in ("NaN", "None"):
        return f"{trace.kind} is worse than all here, and compared with nothing, or left out, there"
    if trace.name != "asha" and any(
        len(results) > 1 and results[-1] is results[-2] or results[-1] == results[-2]
        for results in theirs._results.values()
        if len(results) > 1
    ):
        return "Ray counts the last report of a trial that is over twice in its average"
    return "unexplained"


def hyperband(trace: Trace) -> str | None:
    """Hyperband: at which iteration each trial ends, whoever comes when."""
    from ray.tune.schedulers import HyperBandScheduler

    from troupe.tune.schedulers import HyperBandScheduler as Ours

    generator = trace.generator
    max_t, eta = generator.choice([(9, 3), (16, 2), (27, 3)])
    number, slots, salt = generator.randrange(3, 40), generator.randrange(1, 6), generator.random()
    scores: dict = {}

    def score(trial: str, iteration: int) -> Any:
        key = trial, iteration
        if key not in scores:
            scores[key] = value_of(random.Random(f"{salt} {trial} {iteration}"), trace.kind)
        return scores[key]

    ours, theirs = (
        Ours(max_t=max_t, reduction_factor=eta),
        HyperBandScheduler(metric="m", mode="max", max_t=max_t, reduction_factor=eta),
    )
    names = [f"t{each}" for each in range(number)]
    mine = hyperband_here(trace, ours, names, slots, score)
    other = hyperband_of_ray(theirs, names, slots, generator, score)
    trace.decisions += number
    trace.stops += len(mine)
    if isinstance(other, str):
        return other
    if mine == other:
        return None
    return (
        f"{trace.kind} is worse than all here, and ranks where it happens to be sorted there"
        if trace.kind in ("NaN", "None", "infinite")
        else "unexplained"
    )


def hyperband_here(trace: Trace, ours: Any, names: list, slots: int, score: Any) -> dict[str, int]:
    """Return at which iteration each trial ends by Troupe's."""
    from troupe.tune._core.deciding import Choice, End, Mode, Report, Stop

    generator = trace.generator
    ours.begin("m", Mode.MAX)
    mine: dict[str, int] = {}
    at: dict[str, int] = {}
    running: list = []
    for name in names:
        ours.added(name, {})
    waiting, paused = list(names), set()
    while waiting or running or paused:
        while len(running) < slots:
            chosen = ours.choose(bool(waiting))
            if chosen is Choice.NEW and waiting:
                running.append(waiting.pop(0))
            elif chosen in (Choice.WAIT, Choice.NEW):
                break
            else:
                running.append(chosen.trial)
                paused.discard(chosen.trial)
                ours.resumed(chosen.trial, {})
        if not running:
            actions = list(ours.stalled())
            if not actions and ours.choose(False) is Choice.WAIT:
                break
            name = ""
        else:
            name = generator.choice(running)
            at[name] = at.get(name, 0) + 1
            result = {"training_iteration": at[name], "m": score(name, at[name])}
            actions = list(
                ours.reported(
                    Report(name, at[name], result, Mode.MAX.score(result["m"]), True, bool(waiting))
                )
            )
        while actions:
            action = actions.pop(0)
            running = [each for each in running if each != action.trial]
            if isinstance(action, Stop):
                paused.discard(action.trial)
                mine[action.trial] = at[action.trial]
                actions += ours.ended(action.trial, End.STOPPED)
            else:
                paused.add(action.trial)
    return mine


def hyperband_of_ray(
    theirs: Any, names: list, slots: int, generator: random.Random, score: Any
) -> dict[str, int] | str:
    controller = RayController(theirs)
    at: dict[str, int] = {}
    for name in names:
        controller.trials.append(RayTrial(name))
        theirs.on_trial_add(controller, controller.trials[-1])
    while controller.get_live_trials():
        while sum(trial.status == "RUNNING" for trial in controller.trials) < slots:
            chosen = theirs.choose_trial_to_run(controller)
            if chosen is None:
                break
            chosen.status = "RUNNING"
        running = [trial for trial in controller.trials if trial.status == "RUNNING"]
        if not running:
            return "Ray waits for ever"
        trial = generator.choice(running)
        at[trial.trial_id] = at.get(trial.trial_id, 0) + 1
        result = {
            "training_iteration": at[trial.trial_id],
            "m": score(trial.trial_id, at[trial.trial_id]),
        }
        try:
            decision = theirs.on_trial_result(controller, trial, result)
        except TypeError:
            return "Ray raises TypeError for None, and the sweep ends"
        if decision == "PAUSE":
            trial.status = "PAUSED"
        elif decision == "STOP":
            trial.status = "TERMINATED"
            theirs.on_trial_complete(controller, trial, result)
    return {trial.trial_id: at.get(trial.trial_id, 0) for trial in controller.trials}


def pbt(trace: Trace) -> str | None:
    """Population based training: who becomes a copy, at which report, and that the donor is one
    that Ray might have drawn."""
    import ray.tune.schedulers.pbt as rays

    from troupe.tune._core.deciding import Exploit, Mode, Report
    from troupe.tune.schedulers import PopulationBasedTraining

    generator, synch = trace.generator, trace.name.endswith("synch")
    arguments = {
        "time_attr": "training_iteration",
        "perturbation_interval": generator.choice([1, 2, 4]),
        "synch": synch,
        "quantile_fraction": generator.choice([0.1, 0.25, 0.5]),
        "hyperparam_mutations": {"lr": [1.0, 2.0]},
    }
    theirs = rays.PopulationBasedTraining(metric="m", mode="max", log_config=False, **arguments)
    ours = PopulationBasedTraining(**arguments, seed=1)
    controller, copies = RayController(theirs), []
    theirs._exploit = lambda _, trial, donor: copies.append(
        (trial, donor, list(theirs._quantiles()[1]))
    )
    ours.begin("m", Mode.MAX)
    for number in range(generator.randrange(2, 14)):
        trial = RayTrial(f"t{number}")
        trial.status, trial.time = "RUNNING", 0
        controller.trials.append(trial)
        theirs.on_trial_add(controller, trial)
        ours.added(trial.trial_id, {"lr": 1.0})
    order = list(controller.trials)
    for turn in range(60):
        if turn % len(order) == 0:
            generator.shuffle(order)
        trial = order[turn % len(order)] if synch else generator.choice(order)
        trial.status = "RUNNING"
        trial.time += arguments["perturbation_interval"] if synch else trace.step()
        value = value_of(generator, trace.kind)
        result = {"training_iteration": trial.time, "m": value}
        actions = ours.reported(
            Report(trial.trial_id, trial.time, result, Mode.MAX.score(value), True)
        )
        copies.clear()
        try:
            theirs.on_trial_result(controller, trial, result)
        except TypeError:
            return "Ray raises TypeError for None, and the sweep ends"
        mine = {action.trial: action.donor for action in actions if isinstance(action, Exploit)}
        other = {each.trial_id: [donor.trial_id for donor in upper] for each, _, upper in copies}
        trace.decisions += 1
        trace.stops += len(mine)
        for name in mine:
            ours.resumed(name, {"lr": 1.0})
        if set(mine) != set(other) or any(donor not in other[name] for name, donor in mine.items()):
            return cause_of_copies(trace, ours, theirs, mine, other)
        if mine and not synch:
            # from here on the copies' clocks are the donors', which this trace does not move
            return None
        for each in order:
            each.status = "RUNNING" if not synch else each.status
    return None


def cause_of_copies(trace: Trace, ours: Any, theirs: Any, mine: dict, other: dict) -> str:
    if trace.kind in ("NaN", "None"):
        return f"{trace.kind} is worse than all here, and is left out there"
    if set(other) < set(mine):
        return (
            "Ray draws a donor that has no checkpoint, since it was not among the best when it "
            "reported, and copies nothing"
        )
    if set(mine) < set(other) and trace.kind == "equal scores":
        return "one as good as itself is not copied here"
    scores = {trial.trial_id: state.last_score for trial, state in theirs._trial_state.items()}
    if any(member.standing != scores[name] for name, member in ours._population.members.items()):
        return (
            "a trial ranks by its latest report with a checkpoint, which is what is copied, "
            "here, and by the one at its last interval there"
        )
    return "unexplained"


def compare(name: str, traces: int) -> dict[str, Any]:
    """All kinds of traces of one scheduler: half of them plain, and as many of each other kind."""
    run = {"hyperband": hyperband, "pbt": pbt, "pbt, synch": pbt}.get(name, stopping)
    found: dict[str, Any] = {}
    for kind in KINDS:
        causes: collections.Counter = collections.Counter()
        decisions = stops = 0
        if kind == "jumps" and name in ("hyperband", "pbt, synch"):
            continue
        number = traces // 2 if kind == "plain" else traces // 10
        for seed in range(number):
            trace = Trace(name, kind, seed)
            difference = run(trace)
            decisions, stops = decisions + trace.decisions, stops + trace.stops
            if difference is not None:
                causes[difference] += 1
        found[kind] = {
            "traces": number,
            "decisions": decisions,
            "stops or copies": stops,
            "traces that differ": sum(causes.values()),
            "causes": dict(causes),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ray", help="an interpreter with ray[tune], cloudpickle and rich")
    parser.add_argument("--traces", type=int, default=200, help="of each scheduler")
    parser.add_argument(
        "--costs", action="store_true", help="what a decision costs, and nothing else"
    )
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        import logging
        import warnings

        logging.disable(logging.WARNING)
        warnings.simplefilter("ignore")
        import ray

        with contextlib.redirect_stdout(sys.stderr):
            found = {name: compare(name, asked.traces) for name in NAMES}
        print(json.dumps({"ray": ray.__version__, **found}))
        return
    if asked.costs:
        import report
        from decision_costs import costs

        report.keep("sweep_decision_costs", costs(), asked.keep)
        return
    if asked.ray is None:
        parser.error("--ray PYTHON: an interpreter that has ray[tune]")
    done = subprocess.run(
        [asked.ray, __file__, "--inside", "--traces", str(asked.traces)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    if done.returncode != 0:
        sys.exit(done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    for name in NAMES:
        for kind, row in found[name].items():
            print(
                f"{name:18} {kind:13} {row['traces']:5} traces {row['decisions']:8} decisions "
                f"{row['stops or copies']:6} stops or copies "
                f"{row['traces that differ']:5} differ"
            )
            for why, count in sorted(row["causes"].items(), key=lambda each: -each[1]):
                print(f"{'':33}{count:5}: {why}")
    if asked.keep:
        import report

        report.keep("sweep_decisions", found, True)


if __name__ == "__main__":
    main()
