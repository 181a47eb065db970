"""The `troupe` command: starts and stops heads and workers, shows what a cluster holds.

`main` is the console script. Errors are one screen on stderr; exit codes: 0 done, 1 failed, 2 usage.
With `--json` the only output is one JSON document on stdout, an error included.
"""
from __future__ import annotations

import json
import sys
from typing import Any

import click

from troupe import __version__, exceptions
from troupe.cli import _logs, _show, _start, _stop, _token


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="troupe")
def commands() -> None:
    """Actor runtime for multi-node GPU training: start, watch and stop clusters."""


for _command in (_start.start, _stop.stop, _show.status, _show.list_, _token.token, _logs.logs):
    commands.add_command(_command)


def main(args: list[str] | None = None) -> None:
    """Runs a command and leaves with its exit code."""
    arguments = sys.argv[1:] if args is None else args
    try:
        code = commands.main(arguments, prog_name="troupe", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(130)
    except (exceptions.TroupeError, OSError, ValueError) as error:
        report(error, as_json="--json" in arguments)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def report(error: BaseException, *, as_json: bool) -> None:
    """One error, for a person or for a script."""
    name = type(error).__name__
    if as_json:
        document: dict[str, Any] = {"error": name, "text": str(error)}
        click.echo(json.dumps(document))
    click.echo(f"{name}: {error}", err=True)
