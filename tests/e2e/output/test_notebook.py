"""Progress bars in a notebook: seen moving in the cell, and each there once when it is over.

Method: a notebook is run by nbclient through a real kernel. Bars stop half way until all of them
have been seen so in what the kernel sends; what the cell holds at the end is what a reader of the
notebook sees. Needs the extra `notebook`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import TIMEOUT_S, Home
from gate import Gate

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

STEPS = 2000
MESSAGES_MAX = 600  # messages of a cell; each bar is written STEPS times
RANKS = """
from troupe.launch import distributed
@distributed(processes=4)
def train(gate):
    import os, sys
    from tqdm import tqdm
    for i in tqdm(range({steps}), desc=f"rank {{os.environ['RANK']}}", mininterval=0, miniters=1, ncols=60):
        if i == {steps} // 2:
            open(gate, "rb", buffering=0).read(1)
train.distributed({gate!r})
"""
RICH = """
from troupe.launch import distributed
@distributed(processes=4)
def train(gate):
    import os
    from rich.console import Console
    from rich.progress import Progress
    with Progress(console=Console(force_terminal=True, width=60), refresh_per_second=50) as progress:
        task = progress.add_task(f"rank {{os.environ['RANK']}}", total={steps})
        for i in range({steps}):
            progress.update(task, advance=1)
            if i == {steps} // 2:
                progress.refresh()
                open(gate, "rb", buffering=0).read(1)
train.distributed({gate!r})
"""
ACTORS = """
import troupe
troupe.init(num_cpus=4)
@troupe.remote
class A:
    def train(self, number, gate):
        from tqdm import tqdm
        for i in tqdm(range({steps}), desc=f"rank {{number}}", mininterval=0, miniters=1, ncols=60):
            if i == {steps} // 2:
                open(gate, "rb", buffering=0).read(1)
actors = [A.remote() for _ in range(4)]
troupe.get([each.train.remote(i, {gate!r}) for i, each in enumerate(actors)])
troupe.shutdown()
"""


class Client(nbclient.NotebookClient):
    """Opens the gate once all four bars are seen half way in one message; counts messages."""

    def watch(self, gate: Gate) -> Client:
        self.gate, self.seen, self.messages = gate, False, 0
        return self

    def process_message(self, msg: dict, cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] in ("display_data", "update_display_data", "stream"):
            self.messages += 1
        shown = msg["content"].get("data", {}).get("text/plain", "")
        half = re.findall(r"rank ([0-3])\b.*\b50%", shown)
        if not self.seen and sorted(half) == ["0", "1", "2", "3"]:
            self.seen = True
            self.gate.open()
        return super().process_message(msg, cell, cell_index)


@pytest.mark.parametrize(
    "code", [RANKS, RICH, ACTORS], ids=["ranks, tqdm", "ranks, rich", "actors, tqdm"]
)
def test_bars_move_in_their_cell_and_are_there_once_at_the_end(
    home: Home, tmp_path: Path, code: str
) -> None:
    pytest.importorskip("rich" if code is RICH else "tqdm")
    gate = Gate(tmp_path / "gate")
    source = code.format(gate=gate.path, steps=STEPS)
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source), nbformat.v4.new_code_cell("print('next')")]
    )
    client = Client(
        notebook,
        timeout=int(TIMEOUT_S),
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.watch(gate).execute()
    gate.close()
    assert client.seen and client.messages < MESSAGES_MAX, client.messages
    outputs = notebook.cells[0].outputs
    said = "".join(each["text"] for each in outputs if each["output_type"] == "stream")
    shown = [
        each["data"]["text/plain"] for each in outputs if each["output_type"] == "display_data"
    ]
    assert shown == [""], "one output for all bars of the cell, and none is left in it"
    for rank in range(4):
        bars = [line for line in said.splitlines() if f"rank {rank}" in line]
        assert len(bars) == 1 and "100%" in bars[0], said
    assert [each["text"] for each in notebook.cells[1].outputs] == ["next\n"]
