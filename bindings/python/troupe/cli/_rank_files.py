"""The caller's side of `--log-dir`, and of the error file that whoever started this command has
asked for."""

from __future__ import annotations

import json
import os
import shutil
import time
import traceback
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._cluster import folders, logs, status_lines
from troupe._code import torchrun_files as files

_ERROR_FILE = "TORCHELASTIC_ERROR_FILE"


def record_failure(text: str, *, quiet: bool) -> None:
    """Write the error file of this command itself, which TORCHELASTIC_ERROR_FILE names, as
    torchrun's `record` does; without that variable do nothing.

    Args:
        text: type and message of the exception that is handled now, whose traceback is written too.
        quiet: say nothing where the file cannot be written.
    """
    if os.environ.get(_ERROR_FILE):
        extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
        _write_error({"message": {"message": text, "extraInfo": extra}}, quiet=quiet)


def _write_error(said: Any, *, quiet: bool) -> None:
    try:
        with open(os.environ[_ERROR_FILE], "w") as file:
            json.dump(said, file)
    except OSError as error:
        status_lines.say(
            f"troupe: the error file {os.environ[_ERROR_FILE]} could not be written: "
            f"{error.strerror}",
            quiet=quiet,
        )


class RankFiles:
    """The ranks' files of one launch, once it has ended."""

    def __init__(
        self, handle: Any, *, log_folder: str, error_base: str, run_id: str, quiet: bool
    ) -> None:
        self._handle, self._log_folder = handle, log_folder
        self._error_folder = files.error_folder(error_base, handle.id) if error_base else ""
        self._run_id, self._quiet = run_id, quiet
        self._ended_by_signal = False

    def record_signal(self, number: int) -> None:
        """Write that this command was ended by a signal, in the words of torchrun's
        SignalException, in place of what a rank has recorded. While that is handled."""
        self._ended_by_signal = True
        record_failure(
            f"SignalException: Process {os.getpid()} got signal: {int(number)}", quiet=self._quiet
        )

    def settle(self) -> None:
        """Copy the output that is not in files of their own here, and pass on the error file of the
        rank that failed."""
        entry = self._handle.session.board.get("launch", self._handle.id)
        try:
            if entry is not None and entry[0]["state"] == "terminal":
                self._settle(entry[0])
        finally:
            if self._error_folder:
                shutil.rmtree(self._error_folder, ignore_errors=True)

    def _settle(self, info: dict[str, Any]) -> None:
        if self._log_folder:
            for epoch in range(1, info["epoch"] + 1):
                for each in info["rank_infos"]:
                    self._copy(info, each, epoch)
        if (
            info["outcome"] == "failed"
            and os.environ.get(_ERROR_FILE)
            and not self._ended_by_signal
        ):
            self._pass_on(info)

    def attempt_folder(self, info: dict[str, Any], rank: dict[str, Any]) -> str:
        """Return the folder of the attempt that `info` tells of, on the node of `rank` (one of its
        rank_infos), in the log folder."""
        return os.path.dirname(self._folder(self._log_folder, info, rank, info["epoch"]))

    def _folder(self, base: str, info: dict[str, Any], rank: dict[str, Any], epoch: int) -> str:
        nodes = list(
            dict.fromkeys(
                each["node"] for each in sorted(info["rank_infos"], key=lambda each: each["rank"])
            )
        )
        return files.folder(
            base,
            self._run_id,
            info["launch"],
            epoch=epoch,
            node=nodes.index(rank["node"]),
            nodes=len(nodes),
            local_rank=rank["local_rank"],
        )

    def _copy(self, info: dict[str, Any], rank: dict[str, Any], epoch: int) -> None:
        folder = self._folder(self._log_folder, info, rank, epoch)
        for name, is_error in ((files.OUT, False), (files.ERR, True)):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                continue
            source = logs.Source(
                rank["rank"],
                rank["node"],
                {
                    "launch": info["launch"],
                    "rank": rank["rank"],
                    "stderr": is_error,
                    "epoch": epoch,
                },
            )
            try:
                os.makedirs(folder, exist_ok=True)
                with folders.replacement(Path(path)) as fresh, fresh.open("wb") as file:
                    for data in logs.raw(self._handle.session, source):
                        file.write(data)
            except (OSError, exceptions.TroupeError) as error:
                status_lines.say(f"troupe: {path} could not be written: {error}", quiet=self._quiet)

    def _pass_on(self, info: dict[str, Any]) -> None:
        """Write the failed rank's error file, with its exit code, where TORCHELASTIC_ERROR_FILE
        says, as torchrun does."""
        rank = next(
            (each for each in info["rank_infos"] if each["rank"] == info["failure"]["rank"]), None
        )
        if rank is None:
            return
        folder = self._folder(self._log_folder or self._error_folder, info, rank, info["epoch"])
        try:
            with open(os.path.join(folder, files.ERROR)) as file:
                said = json.load(file)
        except (
            OSError,
            ValueError,
        ):  # the program is not decorated with `record`, or was on another host
            return
        failure = info["failure"]
        if isinstance(said, dict) and isinstance(said.get("message"), dict):
            said["message"]["errorCode"] = (
                -failure["signal"] if failure["signal"] else failure["exit_code"]
            )
        _write_error(said, quiet=self._quiet)
