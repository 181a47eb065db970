"""Launches in a notebook: what a cell shows of them and how much, the interrupt button, and what is
edited and run again.

Method: notebooks are run by nbclient through a real kernel that is connected to the module's
cluster; what the cells hold at the end is what a reader of the notebook sees. Bars:
tests/e2e/output/test_notebook.py. Needs the extra `notebook`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import TIMEOUT_S, Home
from gate import Gate

import troupe
from troupe._cluster import cell_output

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

LIMIT_S = 4 * TIMEOUT_S
LINES = 30_000
MESSAGES_MAX = 400  # messages of a cell whose ranks write 2 x LINES lines


class Client(nbclient.NotebookClient):
    """Counts messages; `seen(text)` hears of each."""

    seen: Callable[[str], None] | None = None
    messages = 0

    def process_message(self, msg: dict, cell: Any, cell_index: int) -> Any:
        content = msg["content"]
        if msg["msg_type"] in ("display_data", "update_display_data", "stream"):
            self.messages += 1
            if self.seen is not None:
                self.seen(content.get("text", "") or content["data"].get("text/plain", ""))
        return super().process_message(msg, cell, cell_index)


def run(*cells: str, seen: Callable[[str], Any] | None = None, errors: bool = False) -> Any:
    """The notebook after its cells were run; the client that ran it is `notebook.client`.

    `seen(client, text)`: of what is shown.
    """
    connect = (
        f"import troupe\ntroupe.init({troupe.state._session.current().address!r})\nfrom "
        "troupe.launch import distributed, attach"
    )
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(each) for each in (connect, *cells)]
    )
    client = Client(notebook, timeout=int(LIMIT_S), kernel_name="python3", allow_errors=errors)
    if seen is not None:
        client.seen = lambda text: seen(client, text)
    client.execute()
    return notebook.cells[1:], client


def streams(cell: Any) -> str:
    return "".join(each["text"] for each in cell.outputs if each["output_type"] == "stream")


def displays(cell: Any) -> list[str]:
    return [
        each["data"]["text/plain"] for each in cell.outputs if each["output_type"] == "display_data"
    ]


def values(cell: Any) -> list[str]:
    return [
        each["data"]["text/plain"]
        for each in cell.outputs
        if each["output_type"] == "execute_result"
    ]


def test_a_cell_is_not_flooded_and_says_how_much_it_left_out(cluster: Home) -> None:
    (cell, after), client = run(
        f"""
@distributed(processes=2, remote=True)
def talk():
    import os
    for i in range({LINES}): print("line", i)
    return os.environ["RANK"]
talk.distributed()""",
        "print('next')",
    )
    printed = [line for line in streams(cell).splitlines() if line.startswith("[")]
    assert len(printed) == cell_output.LINES_MAX and client.messages < MESSAGES_MAX, (
        len(printed),
        client.messages,
    )
    (shown,) = [each for each in displays(cell) if each]
    told, *latest = shown.splitlines()
    found = re.fullmatch(
        r"\.\.\. ([\d,]+) lines are left out here; all of it: troupe logs [0-9a-f]+ \.\.\.", told
    )
    assert found is not None, told
    assert (
        int(found[1].replace(",", "")) + len(latest) + len(printed) == 2 * LINES
        and len(latest) == cell_output.LATEST_MAX
    )
    assert {line.split()[0] for line in latest} <= {"[0]", "[1]"} and f"line {LINES - 1}" in latest[
        -1
    ]
    assert values(cell) == ["['0', '1']"], "results are values"
    assert re.search(r"2 ranks on 1 node · ready in", streams(cell)) and re.search(
        r"succeeded · \d", streams(cell)
    )
    assert streams(after) == "next\n" and len(after.outputs) == 1


def test_a_row_in_the_cell_says_where_it_is_and_goes(cluster: Home, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    rows: list[str] = []

    def seen(_: Any, text: str) -> None:
        rows.extend(re.findall(r"^launch [0-9a-f]{4} · \d+:\d\d · (.*)$", text, re.M))
        if "1 rank running" in rows:
            gate.open()

    (cell,), _ = run(
        f"""
@distributed(processes=1, remote=True)
def wait():
    open({gate.path!r}, "rb", buffering=0).read(1)
wait.distributed()""",
        seen=seen,
    )
    gate.close()
    assert "1 rank running" in rows and displays(cell) == [""], (rows, cell.outputs)


def test_the_interrupt_button_stops_the_launch_and_its_ranks_have_a_last_word(
    cluster: Home, tmp_path: Path
) -> None:
    def seen(client: Any, text: str) -> None:
        if "] begun" in text:
            client.seen = None
            import asyncio

            asyncio.ensure_future(client.km.interrupt_kernel())

    (cell, after), _ = run(
        f"""
@distributed(processes=1, remote=True, stop_grace=60)
def train():
    import signal
    try:
        print("begun", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        open({str(tmp_path / "checkpoint")!r}, "w").write("saved")
        print("last words", flush=True)
        raise
train.distributed()""",
        "troupe.state.list_launches()[-1]['outcome']",
        seen=seen,
        errors=True,
    )
    (error,) = [each for each in cell.outputs if each["output_type"] == "error"]
    assert (
        error["ename"] == "KeyboardInterrupt" and (tmp_path / "checkpoint").read_text() == "saved"
    )
    assert "stopping, 60 s; interrupt again ends it now" in streams(
        cell
    ) and "[0] last words\n" in streams(cell), streams(cell)
    assert [each for each in troupe.state.list_launches() if each["name"] == "train"][-1][
        "outcome"
    ] == "cancelled"
    assert values(after) == ["'cancelled'"]


def test_the_interrupt_button_ends_watching_and_the_launch_goes_on(
    cluster: Home, tmp_path: Path
) -> None:
    gate = Gate(tmp_path / "gate")

    def seen(client: Any, text: str) -> None:
        if "] begun" in text:
            client.seen = None
            import asyncio

            asyncio.ensure_future(client.km.interrupt_kernel())

    cells, _ = run(
        f"""
@distributed(processes=1, remote=True)
def train():
    print("begun", flush=True)
    open({gate.path!r}, "rb", buffering=0).read(1)
    return 7
handle = train.submit()
handle.watch()
handle.done()""",
        f"""
open({gate.path!r}, "wb", buffering=0).write(b".")
handle.result()""",
        seen=seen,
    )
    gate.close()
    assert values(cells[0]) == ["False"] and values(cells[1]) == ["[7]"], cells
    assert re.search(
        r"goes on while this program does · come back: troupe logs [0-9a-f]+ --follow\n$",
        streams(cells[0]),
    ), streams(cells[0])


def test_what_is_edited_and_run_again_is_the_new_one(cluster: Home) -> None:
    cells, _ = run(
        """
class Model:
    def __init__(self, value): self.value = value
    def step(self): return self.value + 1
def helper(): return "old"
@distributed(processes=2, remote=True)
def train(): return helper(), Model(1).step(), Model(5)
actor = troupe.remote(num_cpus=0)(Model).remote(1)
first = train.distributed()
[each[:2] for each in first], isinstance(first[0][2], Model), troupe.get(actor.step.remote())""",
        """
class Model:
    def __init__(self, value): self.value = value
    def step(self): return self.value + 100
def helper(): return "new"
actor = troupe.remote(num_cpus=0)(Model).remote(1)
second = train.distributed()
[each[:2] for each in second], isinstance(second[0][2], Model), second[0][2].step(), troupe.get(actor.step.remote())""",
        """
@distributed(processes=2, remote=True)
def train(): return "another"
troupe.remote(num_cpus=0)(helper).remote(), train.distributed()""",
        """
def helper(): return "newest"
troupe.get(troupe.remote(num_cpus=0)(helper).remote())""",
    )
    assert values(cells[0]) == ["([('old', 2), ('old', 2)], True, 2)"], cells[0].outputs
    assert values(cells[1]) == ["([('new', 101), ('new', 101)], True, 105, 101)"], cells[1].outputs
    assert "['another', 'another']" in values(cells[2])[0] and values(cells[3]) == ["'newest'"]


def test_a_launch_in_the_background_does_not_speak_in_another_ones_cell(
    cluster: Home, tmp_path: Path
) -> None:
    gate, done = Gate(tmp_path / "gate"), Gate(tmp_path / "done")
    cells, _ = run(
        f"""
@distributed(processes=1, remote=True, quiet=True)
def behind():
    print("behind, before", flush=True)
    open({gate.path!r}, "rb", buffering=0).read(1)
    print("behind, meanwhile", flush=True)
    open({done.path!r}, "wb", buffering=0).write(b".")
handle = behind.submit()""",
        f"""
@distributed(processes=1, remote=True, quiet=True)
def front():
    open({gate.path!r}, "wb", buffering=0).write(b".")
    open({done.path!r}, "rb", buffering=0).read(1)
    print("in front", flush=True)
front.distributed()""",
        "handle.watch(quiet=True)",
        "attach(handle.id).status()['outcome']",
    )
    gate.close(), done.close()
    assert [streams(each) for each in cells[:3]] == [
        "",
        "[0] in front\n",
        "[0] behind, before\n[0] behind, meanwhile\n",
    ]
    assert values(cells[3]) == ["'succeeded'"]
