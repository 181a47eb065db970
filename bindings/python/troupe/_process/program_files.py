"""The files that a rank's program leaves as under torchrun: its output, and what
`torch.distributed.elastic`'s `record` writes."""

from __future__ import annotations

import contextlib
import os
import pathlib
from typing import Any

from troupe._base import identity as _identity
from troupe._cluster import folders
from troupe._code import torchrun_files as files
from troupe._code.program import Program


def make(program: Program, begin: dict[str, Any]) -> None:
    """Make this rank's folder with its output, and set TORCHELASTIC_ERROR_FILE.

    The output's files are hard links to those that the worker keeps, so that they outlive the
    cluster. On another file system they are symbolic links, in whose place the command that waits
    for the launch writes copies.
    """
    keeps_errors = bool(program.error_base) and program.host == _identity.boot_id()
    base = program.log_folder or (
        files.error_folder(program.error_base, begin["launch"]) if keeps_errors else ""
    )
    if not base:
        return
    folder = files.folder(
        base,
        program.run_id,
        begin["launch"],
        epoch=begin["epoch"],
        node=int(os.environ.get("GROUP_RANK", "0")),
        nodes=int(os.environ.get("GROUP_WORLD_SIZE", "1")),
        local_rank=begin["local_rank"],
    )
    try:
        if not program.log_folder:
            folders.private(
                pathlib.Path(base),
                remedy="set TMPDIR to a folder that is yours, or that has the sticky bit",
            )
        os.makedirs(folder, exist_ok=True)
        if program.log_folder:
            for descriptor, name in ((1, files.OUT), (2, files.ERR)):
                _link(os.readlink(f"/proc/self/fd/{descriptor}"), os.path.join(folder, name))
    except OSError as error:
        text = (
            f"troupe: no {'output' if program.log_folder else 'error file'} in {folder} on "
            f"{os.uname().nodename}: {error.strerror or error}"
        )
        text += f"; troupe logs {begin['launch'][:8]} has it\n" if program.log_folder else "\n"
        os.write(2, text.encode(errors="backslashreplace"))
        return
    os.environ["TORCHELASTIC_ERROR_FILE"] = os.path.join(folder, files.ERROR)


def _link(source: str, path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    try:
        os.link(source, path)
    except OSError:  # another file system, or one without hard links
        os.symlink(source, path)


def record(error: BaseException) -> None:
    """Write the error file of a script whose end is `error`, as torchrun does with --run-path
    whether or not the script asks for it.

    Only for an Exception that is being handled, and where the caller has asked for error files.
    """
    if not isinstance(error, Exception) or not os.environ.get("TORCHELASTIC_ERROR_FILE"):
        return
    with contextlib.suppress(
        Exception
    ):  # torch is not here, or the disk is full: the error itself is told otherwise
        from torch.distributed.elastic.multiprocessing.errors import get_error_handler

        get_error_handler().record_exception(error)
