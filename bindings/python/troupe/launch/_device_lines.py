"""Lines of a program that need a GPU, named in the error where there is none.

Pure, but for reading the program's source.
"""

from __future__ import annotations

import inspect
import linecache
import os
import re
from collections.abc import Callable
from typing import Any

from troupe._code import sources

_OF_DEVICE = re.compile(
    r"""torch\.cuda\.(?!is_available|device_count)|["']nccl["']|["']cuda(:\d+)?["']|\.cuda\("""
    r"""|device_ids="""
)
_FRAME = re.compile(r'\s*File "(.*)", line ([0-9]+), in ')  # indented more in what an actor raised
_LINES_MAX = 4
_WORDS = re.compile(r"NCCL|CUDA|NVIDIA driver|_cuda_|device_ids.* GPU modules|no GPUs? found")


def is_of_device(words: str) -> bool:
    """Return True if an error's first line says that a GPU is missing."""
    return _WORDS.search(words) is not None


def line_of(traceback: str) -> str:
    """`train.py, line 12: dist.init_process_group("nccl")`: the innermost line of the program's own
    in a traceback; "": none."""
    lines = traceback.splitlines()
    for number in range(len(lines) - 1, -1, -1):
        frame = _FRAME.match(lines[number])
        if frame is None or sources.is_of_a_library(frame[1]):
            continue
        code = (
            lines[number + 1].strip()
            if number + 1 < len(lines) and lines[number + 1].startswith("    ")
            else ""
        )
        return _place(
            frame[1], int(frame[2]), code or linecache.getline(frame[1], int(frame[2])).strip()
        )
    return ""


def of_function(function: Callable[..., Any]) -> list[str]:
    """Return at most four lines that need a GPU in the file of a function; [] if it cannot be
    read."""
    try:
        file = inspect.getsourcefile(function)
        lines = inspect.findsource(function)[0]
    except (OSError, TypeError):
        return []
    found = [
        (number, line.strip())
        for number, line in enumerate(lines, 1)
        if _OF_DEVICE.search(line.partition("#")[0])
    ]
    return [_place(file or "", number, line) for number, line in found[:_LINES_MAX]]


def first_line(function: Callable[..., Any]) -> str:
    """`train.py, line 8: @distributed(gpus=8)`: where a function begins, with its decorator; "":
    that cannot be read."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ""
    return _place(
        code.co_filename,
        code.co_firstlineno,
        linecache.getline(code.co_filename, code.co_firstlineno).strip(),
    )


def _place(file: str, number: int, code: str) -> str:
    return f"{os.path.basename(file)}, line {number}" + (f": {code}" if code else "")
