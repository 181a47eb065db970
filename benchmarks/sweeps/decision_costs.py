"""Cost of a decision when 10,000 trials are recorded."""

import random
import time


def costs(trials: int = 10_000, reports: int = 10) -> dict[str, dict[str, float]]:
    """Microseconds of a decision of each scheduler, once so many trials have reported: of 1,000
    more reports."""
    from troupe.tune import schedulers
    from troupe.tune._core.deciding import End, Mode, Report

    made = {
        "asha, stopping": schedulers.ASHAScheduler(max_t=100),
        "asha, promotion": schedulers.ASHAScheduler(max_t=100, type="promotion"),
        "median, iterations": schedulers.MedianStoppingRule("training_iteration", grace_period=1),
        "median, wall time": schedulers.MedianStoppingRule(grace_period=1),
        "bandit": schedulers.BanditPolicy(slack_factor=0.1),
        "median policy": schedulers.MedianStoppingPolicy(),
        "truncation": schedulers.TruncationSelectionPolicy(truncation_percentage=20),
    }
    found = {}
    for name, scheduler in made.items():
        scheduler.begin("m", Mode.MAX)
        generator, taken = random.Random(1), []
        for trial in range(trials + 1000 // reports):
            scheduler.added(str(trial), {})
            wall, actions = 0.0, ()
            for number in range(1, reports + 1):
                wall += 10 + generator.random()
                report = Report(
                    str(trial),
                    number,
                    {"training_iteration": number, "time_total_s": wall},
                    generator.random() + number / 100,
                )
                begin = time.perf_counter_ns()
                actions = scheduler.reported(report)
                taken.append((time.perf_counter_ns() - begin) / 1000)
                if actions:
                    break
            scheduler.ended(str(trial), End.STOPPED if actions else End.COMPLETED)
        last = sorted(taken[-1000:])
        found[name] = {
            "trials": trials,
            "reports": len(taken),
            "p50_us": round(last[500], 2),
            "p90_us": round(last[900], 2),
        }
    return found
