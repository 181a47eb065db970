"""`troupe service`: heads and workers that systemd starts, for this user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from troupe import exceptions
from troupe._cluster import folders
from troupe.cli import _common
from troupe.cli._start import start

OPEN_FILES = 65536
STOP_S = 60  # for `troupe start --block` to end its programs, before systemd kills what is left
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEPT = ("TROUPE_HOME", "TROUPE_BIN_DIR", "XDG_STATE_HOME", "PYTHONPATH")
_REMEDY = "set XDG_CONFIG_HOME to a folder that only you may write to"
_RUNS_ANY = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.group()
def service() -> None:
    """Let systemd start a head or a worker, and start it again when it fails."""


def _checked_name(_: click.Context, __: click.Parameter, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise click.BadParameter(f"{value!r}: letters, digits, '.', '_' and '-', 64 at most")
    return value


_name = click.option(
    "--name",
    default="node",
    show_default=True,
    metavar="NAME",
    callback=_checked_name,
    help="Name of the service: its unit is troupe-NAME.service.",
)
_user = click.option("--user", is_flag=True, required=True, help="A service of this user.")


@service.command(context_settings=_RUNS_ANY)
@_user
@_name
@click.option("--dry-run", is_flag=True, help="Print the unit, and change nothing.")
@click.option("--no-start", is_flag=True, help="Start it at the next login, not now.")
@click.argument("line", nargs=-1, type=click.UNPROCESSED, metavar="-- START-OPTIONS...")
def install(user: bool, name: str, dry_run: bool, no_start: bool, line: tuple[str, ...]) -> None:
    """Install what `troupe start START-OPTIONS` starts as a service.

    troupe service install --user -- --head --listen 10.0.0.1

    troupe service install --user -- --address 10.0.0.1:6400 --token-file ~/join.token
    """
    del user  # there is no other kind
    text = unit(name, _start_line(line), {each: os.environ.get(each, "") for each in _KEPT})
    if dry_run:
        click.echo(text, nl=False)
        return
    path = _path(name)
    folders.private(path.parent, remedy=_REMEDY, keep_readable=True)
    with folders.replacement(path) as fresh:
        fresh.write_text(text, encoding="utf-8")
    _systemctl("daemon-reload")
    _systemctl("enable", *([] if no_start else ["--now"]), path.name)
    _common.echo_line(f"{path} is installed{'' if no_start else ' and started'}")
    _common.echo_line(
        f"  see: systemctl --user status {path.name}; journalctl --user -u {path.name}"
    )
    _common.echo_line("  it ends when you log out, unless: loginctl enable-linger")


@service.command()
@_user
@_name
def remove(user: bool, name: str) -> None:
    """Stop a service, and remove its unit. What the cluster keeps in TROUPE_HOME stays."""
    del user
    path = _path(name)
    if not path.exists():
        raise click.UsageError(f"there is no {path}")
    _systemctl("disable", "--now", path.name)
    path.unlink(missing_ok=True)
    _systemctl("daemon-reload")
    _common.echo_line(f"{path} is removed")


def _start_line(given: Sequence[str]) -> list[str]:
    """Return the options of `troupe start` for a service. A usage error for what start refuses."""
    context = start.make_context("troupe start", list(given), resilient_parsing=False)
    options = context.params
    if options["head"] == bool(options["address"]):
        raise click.UsageError(
            "after -- come the options of troupe start: --head, or --address HOST:PORT "
            "--token-file FILE"
        )
    if options["block"] or options["as_json"]:
        raise click.UsageError("--block is there already, and --json has no reader")
    token = options["token_file"] or ""
    if token and not os.path.isabs(token):
        raise click.UsageError(
            f"--token-file {token}: give the whole path, as {Path(token).absolute()}"
        )
    return [*given, "--block"]


def unit(name: str, line: Sequence[str], variables: dict[str, str]) -> str:
    """Return the text of the unit that runs `troupe start LINE`. Pure but for this interpreter's
    path."""
    command = [sys.executable, "-m", "troupe", "start", *line]
    settings = "".join(
        f"Environment={_quoted(f'{key}={value}')}\n" for key, value in variables.items() if value
    )
    return f"""\
# Written by `troupe service install --user --name {name}`.
[Unit]
Description=Troupe: {name}
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
ExecStart={" ".join(map(_quoted, command))}
{settings}Restart=on-failure
RestartSec=5
KillMode=mixed
TimeoutStopSec={STOP_S}
LimitNOFILE={OPEN_FILES}
LimitMEMLOCK=infinity

[Install]
WantedBy=default.target
"""


def _quoted(text: str) -> str:
    """Return one word of a unit's line: systemd would else read `%` and `$` in it."""
    if any(ord(each) < 32 or each == "\x7f" for each in text):
        raise click.UsageError(f"{text!r}: a unit's line has no control characters")
    text = text.replace("%", "%%").replace("$", "$$")
    if re.fullmatch(r"[\w./:=@,+%-]+", text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _path(name: str) -> Path:
    given = os.environ.get("XDG_CONFIG_HOME", "")
    root = Path(given) if os.path.isabs(given) else Path.home() / ".config"
    return root / "systemd" / "user" / f"troupe-{name}.service"


def _systemctl(*args: str) -> None:
    program = shutil.which("systemctl")
    if program is None:
        raise exceptions.TroupeError(
            "there is no systemctl here, so nothing would start the unit\n"
            "  --dry-run prints it; on a host without systemd: troupe start --block, by its own "
            "supervisor"
        )
    done = subprocess.run([program, "--user", *args], capture_output=True, text=True)
    if done.returncode:
        raise exceptions.TroupeError(
            f"systemctl --user {' '.join(args)} failed: {done.stderr.strip()}\n  without a session "
            "of systemd (su, sudo, containers): loginctl enable-linger, then log in anew"
        )
