"""`troupe completion`: what makes a shell complete the command's words."""

from __future__ import annotations

import os

import click
from click import shell_completion

SHELLS = ("bash", "fish", "zsh")
_WHERE = {
    "bash": "~/.local/share/bash-completion/completions/troupe",
    "fish": "~/.config/fish/completions/troupe.fish",
    "zsh": "_troupe, in a folder of $fpath",
}


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print the script by which a shell completes commands, options and names of clusters.

        troupe completion bash > ~/.local/share/bash-completion/completions/troupe

    In the shell that runs now: source <(troupe completion bash). Without an argument: for the shell
    of $SHELL.
    """
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    maker = shell_completion.get_completion_class(name) if name in SHELLS else None
    if maker is None:
        raise click.UsageError(
            f"there is a script for {', '.join(SHELLS)}; $SHELL is {name or 'not set'!r}: say which"
        )
    root = click.get_current_context().find_root()
    click.echo(maker(root.command, {}, "troupe", "_TROUPE_COMPLETE").source())
    if os.isatty(1):
        click.echo(f"a file for it: {_WHERE[name]}", err=True)
