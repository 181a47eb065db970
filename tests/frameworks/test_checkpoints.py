"""A7: what torch.distributed.checkpoint saves under Troupe is loaded under torchrun, and the other
    way, by as many ranks or others.

Method: ten steps and a checkpoint, then ten more steps from it; each half by torchrun and by
Troupe. All ranks learn from one batch, so that a step is the same whatever their number; the same
number of ranks gives bitwise the same losses.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from losses import Losses, verdict
from runs import by_distributed, by_submit, by_torchrun


def saved(run: Callable[..., Losses], folder: Path, *words: str) -> tuple[Path, Losses]:
    return folder, run("checkpoint", "--save", str(folder), *words)


@pytest.fixture(scope="module")
def torchruns(warm: Path) -> tuple[Path, Losses]:
    return saved(by_torchrun, warm / "by_torchrun")


@pytest.fixture(scope="module")
def troupes(warm: Path) -> tuple[Path, Losses]:
    return saved(by_submit, warm / "by_troupe")


def test_a7_saved_while_it_learns(
    torchruns: tuple[Path, Losses], troupes: tuple[Path, Losses], tmp_path: Path
) -> None:
    found = verdict(torchruns[1], troupes[1], lambda: saved(by_torchrun, tmp_path / "again")[1])
    assert not found.why, found.why
    assert sorted(each.name for each in torchruns[0].iterdir()) == sorted(
        each.name for each in troupes[0].iterdir()
    )


@pytest.mark.parametrize("ranks", [2, 3])
def test_a7_loaded(
    torchruns: tuple[Path, Losses], troupes: tuple[Path, Losses], ranks: int
) -> None:
    """Each loads what the other has saved."""

    def torchrun() -> Losses:
        return by_torchrun("checkpoint", "--load", str(troupes[0]), ranks=ranks)

    found = verdict(
        torchrun(), by_submit("checkpoint", "--load", str(torchruns[0]), ranks=ranks), torchrun
    )
    assert not found.why, found.why


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a7_saved_in_the_background_by_a_function(
    torchruns: tuple[Path, Losses], warm: Path, ranks: int
) -> None:
    folder, learnt = saved(by_distributed, warm / f"background_{ranks}", "--in-background")
    found = verdict(torchruns[1], learnt, lambda: by_torchrun("checkpoint"))
    assert not found.why, found.why

    def torchrun() -> Losses:
        return by_torchrun("checkpoint", "--load", str(torchruns[0]), ranks=ranks)

    found = verdict(
        torchrun(), by_distributed("checkpoint", "--load", str(folder), ranks=ranks), torchrun
    )
    assert not found.why, found.why
