"""The files that a rank's program leaves as under torchrun: its output, and what `torch.distributed.elastic`'s `record` writes."""
from __future__ import annotations

import contextlib
import os

from troupe import _identity
from troupe._code import torchrun_files as files
from troupe._code.program import Program


def make(program: Program, begin: dict) -> None:
    """Make this rank's folder with its output, and set TORCHELASTIC_ERROR_FILE.

    The output's files are hard links to those that the worker keeps, so that they outlive the cluster. On another file system they are
    symbolic links, in whose place the command that waits for the launch writes copies.
    """
    base = program.log_folder or (program.error_folder if program.host == _identity.boot_id() else "")
    if not base:
        return
    folder = files.folder(base, program.run_id, begin["launch"], epoch=begin["epoch"], node=int(os.environ.get("GROUP_RANK", "0")),
                          nodes=int(os.environ.get("GROUP_WORLD_SIZE", "1")), local_rank=begin["local_rank"])
    try:
        os.makedirs(folder, exist_ok=True)
        if program.log_folder:
            for descriptor, name in ((1, files.OUT), (2, files.ERR)):
                _link(os.readlink(f"/proc/self/fd/{descriptor}"), os.path.join(folder, name))
    except OSError as error:
        text = f"troupe: no output in {folder} on {os.uname().nodename}: {error.strerror}; troupe logs {begin['launch'][:8]} has it\n"
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
