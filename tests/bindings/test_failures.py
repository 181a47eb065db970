"""The text of a failure: the program's own frames, for a crash the output before Python's fault
handler, and no C++ frames of torch's."""

from __future__ import annotations

import os

import pytest

import troupe
from troupe._base.tracebacks import CppFrames
from troupe._cluster import logs
from troupe._code import failures

OURS = os.path.join(os.path.dirname(troupe.__file__), "_rank.py")


def called_by_the_runtime(source: str) -> BaseException:
    """Return the exception of `source` when two functions, one in the other, of a file of the
    package call it."""
    lines = "def outer(call):\n    inner(call)\ndef inner(call):\n    call()\n"
    names: dict = {}
    exec(compile(lines, OURS, "exec"), names)
    exec(compile(source, "train.py", "exec"), names)
    with pytest.raises(Exception) as raised:
        names["outer"](names["step"])
    error = raised.value
    assert error.__traceback__ is not None
    return error.with_traceback(error.__traceback__.tb_next)  # less this test's frame


def test_the_runtime_s_frames_are_not_shown_however_many_they_are() -> None:
    text = failures.describe(called_by_the_runtime("def step():\n    raise ValueError('lr')"))
    assert (
        "_rank.py" not in text
        and 'File "train.py", line 2, in step' in text
        and text.endswith("ValueError: lr\n")
    )


def test_neither_are_those_of_what_an_error_came_of() -> None:
    source = (
        "def step():\n    try:\n        outer(lambda: {}['a'])\n    except KeyError as "
        "error:\n        raise ValueError('b') from error"
    )
    text = failures.describe(called_by_the_runtime(source))
    assert "direct cause" in text and text.count("_rank.py") == 2, (
        "between the program's own frames they stay"
    )
    assert text.index('File "train.py", line 3, in step') < text.index("_rank.py")


def test_an_error_of_the_runtime_itself_keeps_its_frames() -> None:
    names: dict = {}
    exec(compile("def f():\n    raise RuntimeError('ours')", OURS, "exec"), names)
    with pytest.raises(RuntimeError) as raised:
        names["f"]()
    error = raised.value
    assert error.__traceback__ is not None
    assert "_rank.py" in failures.describe(error.with_traceback(error.__traceback__.tb_next))


def test_of_where_a_deep_program_is_the_innermost_calls_are_told() -> None:
    def deep(calls: int) -> str:
        return deep(calls - 1) if calls else innermost()

    def innermost() -> str:
        return failures.where()

    told = deep(2 * failures.FRAMES_TOLD_MAX)
    assert told.count("in deep") >= 2 and told.count("in innermost") == 1, told


SAID = [
    "step 3",
    "terminate called after throwing an instance of 'E'",
    "  what():  Received data size doesn't match expected size",
]
FATAL = ["Fatal Python error: Aborted", ""]
OTHER = [
    "Thread 0x1 (most recent call first):",
    f'  File "{OURS}", line 5 in wait',
    '  File "threading.py", line 9 in run',
    "",
]


def test_of_a_crash_what_stood_before_it_is_shown_and_the_thread_that_crashed() -> None:
    thread = [
        "Current thread 0x2 (most recent call first):",
        '  File "train.py", line 3 in step',
        f'  File "{OURS}", line 7 in run',
    ]
    tail = [*SAID, *FATAL, *OTHER, *thread, "", "Extension modules: a (total: 1)"]
    assert logs.last_lines("\n".join(tail)) == [*SAID, FATAL[0], *thread[:2]]
    assert logs.last_lines("\n".join(["x", *thread])) == ["x", *thread[:2]]


def test_of_a_crash_in_a_thread_without_python_no_other_thread_is_shown() -> None:
    assert logs.last_lines("\n".join([*SAID, *FATAL, *OTHER])) == [*SAID, FATAL[0]]


def test_what_is_no_crash_is_shown_by_its_end() -> None:
    assert logs.last_lines("\n".join(str(each) for each in range(30))) == [
        str(each) for each in range(18, 30)
    ]


LOST = [
    "[W1127 21:16:42.994 TCPStore.cpp:138] [c10d] recvValue failed on SocketImpl(fd=4): Connection "
    "was likely closed.",
    "Exception raised from recvBytes at /pytorch/torch/csrc/distributed/c10d/Utils.hpp:682 (most "
    "recent call first):",
]
FRAMES = [
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x9d (0x7fa0f737305d in "
    "/lib/libc10.so)",
    "frame #1: <unknown function> + 0x6a9174d (0x7fa06609174d in /lib/libtorch_cpu.so)",
    "frame #2: .venv/bin/python() [0x547b96]",
]
SYMBOLIZED = [
    "C++ CapturedTraceback:",
    "#4 std::_Function_handler<void ()>::_M_invoke(std::_Any_data const&) from Logging.cpp:0",
]
LEFT_OUT = "... left out ..."


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        ([*LOST, *FRAMES, "", "step 3"], [*LOST, LEFT_OUT, "step 3"]),
        ([*LOST, *FRAMES], [*LOST, LEFT_OUT]),
        ([*LOST, *FRAMES, *LOST, *FRAMES, "", ""], [*LOST, LEFT_OUT, *LOST, LEFT_OUT, ""]),
        ([*LOST, "", "step 3"], [*LOST, "", "step 3"]),
        (
            [*LOST, *SYMBOLIZED, ""],
            [*LOST, *SYMBOLIZED, ""],
        ),  # TORCH_SHOW_CPP_STACKTRACES=1: asked for
        (["frame #0: of a film", *FRAMES], ["frame #0: of a film", *FRAMES]),
        ([*LOST, "frame #0: of a film", *FRAMES], [*LOST, "frame #0: of a film", *FRAMES]),
        ([LOST[1], "", *FRAMES], [LOST[1], "", *FRAMES]),
    ],
)
def test_cpp_frames_of_torch_s_errors_are_one_line_however_the_lines_come(
    lines: list[str], kept: list[str]
) -> None:
    assert CppFrames(LEFT_OUT).filter(lines) == kept
    one_by_one = CppFrames(LEFT_OUT)
    assert [each for line in lines for each in one_by_one.filter([line])] == kept


def test_last_lines_have_what_stood_around_cpp_frames() -> None:
    assert logs.last_lines("\n".join(["step 3", *LOST, *FRAMES * 8])) == [
        "step 3",
        *LOST,
        "... C++ frames left out here ...",
    ]
    assert logs.last_lines("\n".join([*FRAMES * 8, "", "step 3"])) == [
        "... C++ frames left out here ...",
        "step 3",
    ]
