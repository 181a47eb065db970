"""Traces for Perfetto from made-up spans, and rings from files that are written here: pure."""

from __future__ import annotations

from pathlib import Path

from troupe._tracing import chrome, record, rings
from troupe._tracing.record import Kind

NOW_US = 1e12


def span(
    kind: int, name: str, begin: int, end: int, *, track: int = 7, flow: int = 0
) -> rings.Span:
    return rings.Span(1, begin, end, flow, 0, track, kind, name)


def ring(pid: int, *spans: rings.Span, ended: int = 0, **label: object) -> rings.Ring:
    return rings.Ring(
        {"kind": "actor", "name": "Counter", "node": "a", **label}, pid, 1000, ended, 0, [*spans]
    )


def part(node: str, *found: rings.Ring, shift: int = 0) -> chrome.Part:
    return chrome.Part(node, shift, [*found])


def spans_of(trace: list[dict], category: str) -> list[dict]:
    return [each for each in trace if each["ph"] == "X" and each["cat"] == category]


def check(trace: list[dict]) -> None:
    """Check the rules of viewers for any trace: numbers, names for them, arrows with both ends,
    spans of one track nested."""
    named = {(each["name"], each["pid"], each["tid"]) for each in trace if each["ph"] == "M"}
    for each in trace:
        assert {"ph", "ts", "name", "pid", "tid"} <= each.keys()
        assert type(each["pid"]) is int and type(each["tid"]) is int, each
        assert ("process_name", each["pid"], 0) in named, each
        if each["ph"] != "M":
            assert ("thread_name", each["pid"], each["tid"]) in named, each
    begun = {each["id"] for each in trace if each["ph"] == "s"}
    ended = {each["id"] for each in trace if each["ph"] == "f"}
    assert begun == ended and all(type(each) is int for each in begun)
    tracks: dict[tuple[int, int], list[float]] = {}
    xs = [each for each in trace if each["ph"] == "X"]
    for each in sorted(xs, key=lambda one: (one["ts"], -one["dur"])):
        ends = tracks.setdefault((each["pid"], each["tid"]), [])
        while ends and ends[-1] <= each["ts"]:
            ends.pop()
        assert each["dur"] >= 0 and (not ends or each["ts"] + each["dur"] <= ends[-1] + 1), each
        ends.append(each["ts"] + each["dur"])


def test_an_arrow_leads_from_a_call_to_its_run_where_both_were_recorded() -> None:
    caller = ring(1, span(Kind.CALL, "add", 2000, 3000, flow=5), kind="program")
    actor = ring(
        *(
            2,
            span(Kind.RUN, "add", 9000, 12000, flow=5),
            span(Kind.RUN, "lost", 13000, 14000, flow=6),
        )
    )
    trace = chrome.trace([part("a", caller), part("b", actor, shift=-5000)], now_us=NOW_US)
    check(trace)
    [begin] = [each for each in trace if each["ph"] == "s"]
    [end] = [each for each in trace if each["ph"] == "f"]
    assert (begin["pid"], begin["ts"], end["pid"], end["ts"]) == (1, 2.0, 2, 4.0)
    assert end["bp"] == "e" and begin["id"] == end["id"]


def test_two_nodes_may_have_one_pid_and_a_life_ends_with_its_process() -> None:
    trace = chrome.trace(
        [part("a", ring(7, ended=5000)), part("b", ring(7, rank=3, kind="rank"))], now_us=NOW_US
    )
    check(trace)
    lives = spans_of(trace, "life")
    assert len({each["pid"] for each in lives}) == 2 and 7 in {each["pid"] for each in lives}
    assert sorted(each["ts"] + each["dur"] for each in lives) == [5.0, NOW_US]
    names = [each["args"]["name"] for each in trace if each["name"] == "process_name"]
    assert names == ["actor Counter (pid 7 on a)", "rank 3 Counter (pid 7 on b)"]


def test_spans_that_overlap_get_a_track_of_their_own() -> None:
    overlapping = [
        span(Kind.RUN, "outer", 2000, 9000),
        span(Kind.RUN, "inner", 3000, 4000),
        span(Kind.RUN, "beside", 5000, 11000),
        span(Kind.RUN, "after", 9000, 10000),
    ]
    trace = chrome.trace([part("a", ring(1, *overlapping))], now_us=NOW_US)
    check(trace)
    tids = {each["name"]: each["tid"] for each in spans_of(trace, "run")}
    assert tids["outer"] == tids["inner"] == tids["after"] == 7 != tids["beside"]


def test_tasks_of_an_owner_that_lists_them_stand_once() -> None:
    row = {"name": "hold", "node_id": "n", "pid": 2, "owner_pid": 1}
    over = {**row, "start_s": 1.0, "end_s": 2.0}
    waits = {**row, "pid": 0}
    tasks = span(Kind.TASK, "hold", 2000, 3000, track=4)
    parts = [part("a", ring(1, tasks, kind="program"), ring(3, tasks))]
    trace = chrome.trace(parts, [over, row, waits], nodes={"n": "a"}, now_us=NOW_US)
    check(trace)
    assert sorted(each["pid"] for each in spans_of(trace, "task")) == [2, 3]
    marks = [each for each in trace if each["ph"] == "i"]
    assert [each["ts"] for each in marks] == [NOW_US] * 2 and marks[0]["pid"] == 2


def test_events_of_the_cluster_are_marks_on_their_node() -> None:
    event = {"node_id": "n", "actor_id": "", "launch": "l", "source": "s", "message": "came"}
    trace = chrome.trace([], [], [{**event, "time_s": 3.0}], nodes={"n": "a"}, now_us=NOW_US)
    check(trace)
    [mark] = [each for each in trace if each["ph"] == "i"]
    assert (mark["name"], mark["ts"], mark["cat"]) == ("came", 3e6, "s")


def ring_file(records: list[tuple[int, str]], count: int, capacity: int = 4) -> bytes:
    """A file with these records: number and name, in their places."""
    head = bytearray(rings.HEADER_BYTES)
    label = b'{"kind": "rank"}'
    size = rings.HEADER_BYTES + capacity * rings.RECORD.size
    fields = [
        rings.MAGIC,
        1,
        rings.RECORD.size,
        capacity,
        9,
        5,
        0,
        count,
        0,
        0,
        0,
        len(label),
        size,
    ]
    rings.HEADER.pack_into(head, 0, *fields)
    head[record.LABEL_AT : record.LABEL_AT + len(label)] = label
    body = bytearray(capacity * rings.RECORD.size)
    for number, name in records:
        place = (abs(number) - 1) % capacity * rings.RECORD.size
        packed = [max(number, 0), 10, 20, 0, 0, 1, Kind.PHASE, len(name), 0, name.encode()]
        rings.RECORD.pack_into(body, place, *packed)
    return bytes(head + body)


def test_a_ring_that_was_overwritten_has_the_latest_and_counts_the_rest(tmp_path: Path) -> None:
    data = ring_file([(5, "e"), (6, "f"), (3, "c"), (4, "d")], count=6)
    found = rings.parse(data)
    assert found is not None and [each.name for each in found.spans] == ["c", "d", "e", "f"]
    assert (found.dropped, found.pid, found.label) == (2, 9, {"kind": "rank"})
    assert rings.parse(data, next_after=7).dropped == 4, "c is overwritten now, g was not read"
    being_written = rings.parse(ring_file([(-5, ""), (2, "b"), (3, "c"), (4, "d")], count=5))
    assert [each.name for each in being_written.spans] == ["b", "c", "d"]
    assert rings.parse(b"x" * 5000) is None and rings.parse(data[:100]) is None
    path = tmp_path / "ring"
    path.write_bytes(data)
    assert rings.read(str(path)) == found and rings.read(str(path), since_ns=21).spans == []


def test_what_a_worker_packs_is_within_its_limit_and_comes_back() -> None:
    many = [span(Kind.PHASE, f"n{at}", at, at + 1) for at in range(2000)]
    whole = [ring(1, *many), ring(2)]
    assert rings.unpack(rings.pack(whole, 1 << 20)) == whole
    packed = rings.pack(whole, 2000)
    cut = rings.unpack(packed)
    assert len(packed) <= 2000 and 0 < len(cut[0].spans) < 2000
    assert cut[0].spans[-1] == many[-1] and cut[0].dropped == 2000 - len(cut[0].spans)


def test_who_is_asked_for() -> None:
    program, rank = {"kind": "program"}, {"kind": "rank", "launch": "l", "actor": "a"}
    assert rings.is_wanted(program, "x", "") and rings.is_wanted(rank, "", "")
    assert rings.is_wanted(rank, "l", "") and not rings.is_wanted(rank, "x", "")
    assert rings.is_wanted(rank, "", "a") and not rings.is_wanted(rank, "l", "x")


def test_the_file_and_the_header_in_c_have_one_form(tmp_path: Path) -> None:
    """A ring that the extension wrote, in a process of its own, is read here."""
    import subprocess
    import sys

    path = tmp_path / "ring"
    code = (
        "import sys, troupe._native as n; from troupe._tracing import rings\n"
        "assert n.trace_open(sys.argv[1], '{\"kind\": \"k\"}', 3) == ''\n"
        "assert n.trace_open(sys.argv[1], '', 0) != ''\n"
        "for at in range(70000): n.trace_add(1, f'name {at}', at, at + 5, 9)\n"
        "rings.sample_calls(sys.argv[1], 4, 77)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
    found = rings.read(str(path))
    assert found.label == {"kind": "k"} and found.dropped == 70000 - 65536
    assert len(found.spans) == 65536 and found.began_ns <= record.now_ns()
    last = found.spans[-1]
    assert last[1:5] == (69999, 70004, 0, 9) and (last.kind, last.name) == (1, "name 69999")
    fields = rings.HEADER.unpack_from(path.read_bytes())
    assert fields[9:11] == (77, 4)
