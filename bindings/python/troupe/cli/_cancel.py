"""`troupe cancel`: ends a launch; its ranks may say a last word."""

from __future__ import annotations

import click

from troupe._cluster import view
from troupe.cli import _common
from troupe.launch._handle import handle_of_known


@click.command()
@click.argument("launch", metavar="LAUNCH")
@click.option(
    "--grace",
    type=click.FloatRange(0),
    metavar="S",
    help="Seconds that its ranks have from SIGTERM on; 0 kills at once.  "
    "[default: the launch's stop_grace]",
)
@_common.cluster_options
def cancel(
    launch: str,
    grace: float | None,
    address: str | None,
    token_file: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Cancel a launch and wait for its end; a prefix of its id will do.

    The code of its ranks gets SIGTERM: SystemExit in the main thread, unless it has a handler of
    its own. Ctrl-C ends it now.
    """
    with _common.session(address, token_file, cluster) as session:
        known = {each["launch"]: each for each in view.find_launches(session, launch)}
        found = _common.only_prefixed("launch", launch, known, "troupe list launches")
        before = known[found]
        handle = handle_of_known(session, found)
        if before["state"] != "terminal":
            handle.stop("cancelled by troupe cancel", grace=grace)
            if not as_json:
                _common.echo_line(
                    f"launch {found[:8]} {before['name']} is told to stop; Ctrl-C ends it now"
                )
            try:
                handle.wait_end()
            except KeyboardInterrupt:
                handle.cancel("cancelled by troupe cancel", grace=0.0)
        ended = handle.status()
    if as_json:
        _common.echo_json(
            {
                "launch": found,
                "outcome": ended["outcome"],
                "was_over": before["state"] == "terminal",
            }
        )
        return
    already = " already, and stays so" if before["state"] == "terminal" else ""
    _common.echo_line(f"launch {found[:8]} {before['name']}: {ended['outcome']}{already}")
