"""Ctrl-C in a terminal, once and twice: what a person sees, what trials may still do, and that
nothing is left.

Method: programs with a terminal of their own, in which the keys are typed; the sweep goes on in
another program.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home
from terminals import LIMIT_S, Terminal

PROGRAM = """
import os
from pathlib import Path
import troupe
from troupe import tune

def train(config):
    folder = Path({folder!r})
    start = 0
    if checkpoint := tune.get_checkpoint():
        start = int(Path(checkpoint.path, "step").read_text())
    try:
        for step in range(start, 4):
            own = folder / f"own-{{config['a']}}"
            own.mkdir(exist_ok=True)
            (own / "step").write_text(str(step + 1))
            tune.report({{"x": step + 1, "started": start}}, checkpoint=tune.Checkpoint(own))
            (folder / f"at-{{config['a']}}-{{step}}").touch()
            while step == 1 and not (folder / "go").exists():
                if {reports} and (folder / "typed").exists():
                    tune.report({{"x": 0, "started": start}})
                os.sched_yield()
    finally:
        (folder / f"finally-{{config['a']}}").touch()

troupe.init(num_cpus=2)
"""
BEGIN = """
tune.Tuner(train, param_space={{"a": tune.grid_search([0, 1])}}, tune_config=tune.TuneConfig(metric="x", mode="max"),
           run_config=tune.RunConfig(name="sweep", storage_path={folder!r})).fit()
"""
GO_ON = """
grid = tune.Tuner.restore({folder!r} + "/sweep", train).fit()
print([(each.error, each.metrics["x"], each.metrics["started"], each.metrics["training_iteration"]) for each in grid])
"""


def interrupted(folder: Path, *, reports: bool, times: int) -> str:
    """Return the last screen of a sweep of two trials, both at their third step, whose person types
    Ctrl-C so often."""
    terminal = Terminal((PROGRAM + BEGIN).format(folder=str(folder), reports=reports))
    text = terminal.until(
        lambda text: (
            "2 running" in text and all((folder / f"at-{number}-1").exists() for number in (0, 1))
        )
    )
    assert text, terminal.screen.text()
    terminal.type("\x03")
    terminal.until(lambda text: "stopping, 5 s; Ctrl-C again ends it now" in text)
    (folder / "typed").touch()
    if times > 1:
        terminal.type("\x03")
    terminal.until(lambda text: False)
    assert terminal.process.wait(LIMIT_S) != 0
    return terminal.screen.text().replace("\n", "")


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
def test_ctrl_c_in_a_terminal_ends_the_sweep_which_goes_on_in_another_program(
    home: Home, tmp_path: Path, times: int
) -> None:
    text = interrupted(tmp_path, reports=times == 1, times=times)
    assert (
        "KeyboardInterrupt" in text
        and "goes on with it" in text
        and f"Tuner.restore('{tmp_path}/sweep', trainable).fit()" in text
    ), text
    ended = sorted(path.name for path in tmp_path.glob("finally-*"))
    assert ended == (["finally-0", "finally-1"] if times == 1 else []), text
    (tmp_path / "go").touch()
    done = home.python(
        (PROGRAM + GO_ON).format(folder=str(tmp_path), reports=False), timeout=4 * TIMEOUT_S
    )
    assert done.stdout == "[(None, 4, 2, 4), (None, 4, 2, 4)]\n", done.stderr
