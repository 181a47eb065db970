"""The page of a job: a file on the caller's host, which `studio_url` names and `--web` opens.

    pages/LAUNCH.html     below TROUPE_HOME

It is written anew whenever this host asks for the job, and says when that was. PAGES_MAX are kept,
the latest. View: any process of the user on this host.
"""

from __future__ import annotations

import contextlib
import html
import json
import time
from pathlib import Path
from typing import Any

from troupe._base import visible as _visible
from troupe._cluster import folders, home
from troupe.azure._jobs.job import plain
from troupe.azure._past import records

PAGES_MAX = 200
_REMEDY = "remove it: each page in it is written anew when its job is asked for"
_TERMINAL = ("Completed", "Failed", "Canceled")
_RELOAD_S = 5
_STYLE = (
    "body{font:16px system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "th{text-align:left;vertical-align:top;padding-right:1.5rem}pre,code{background:#8882}"
    "pre{padding:.6rem;white-space:pre-wrap}:root{color-scheme:light dark}"
)


def write(job: Any, *, is_new: bool = False) -> str | None:
    """Write the page of a job as it is now, set `studio_url` of the job, and return that.

    Args:
        job: a `Command` that was submitted, or a `Job`. One without an id stays as it is.
        is_new: it was submitted just now, and has no files yet.

    Returns:
        The address, `file://...`; None where no page can be written.
    """
    address: str | None = job.studio_url
    if not records.is_launch(job.id):
        return address
    address = None
    with contextlib.suppress(OSError):
        path = _folder() / f"{job.id}.html"
        with (
            folders.replacement(path) as fresh,
            open(fresh, "w", encoding="utf-8", opener=folders.open_private) as file,
        ):
            file.write(text_of(job, is_new=is_new))
        address = path.as_uri()
        if job.status in _TERMINAL:  # a submission does not look at all of them
            _prune()
    job.studio_url = address
    return address


def find_all(jobs: list[Any]) -> None:
    """Set `studio_url` of those jobs that have a page on this host."""
    with contextlib.suppress(OSError):
        there = {each.stem: each.as_uri() for each in _folder().glob("*.html")}
        for job in jobs:
            job.studio_url = there.get(job.id, job.studio_url)


def text_of(job: Any, *, is_new: bool = False) -> str:
    """Return the page of a job as HTML; `is_new`: see `write`."""
    name, record = str(job.name), records.find(job.id)
    has_ended = job.status in _TERMINAL
    created = getattr(job.creation_context, "created_at", None)
    rows = {
        "state": _text(f"{job.status}, as of {time.strftime('%Y-%m-%d %H:%M:%S')}"),
        "id": _text(job.id),
        "display name": _text(job.display_name),
        "experiment": _text(job.experiment_name),
        "submitted": _text(created.isoformat(" ", "seconds") if created else ""),
        "command": f"<pre>{_text(job.command)}</pre>" if job.command else "",
        "inputs": _values(job.inputs),
        "outputs": _outputs(name, job.outputs),
    }
    if not is_new:
        rows["printed"] = "<br>".join(_link(each) for each in records.printed(job.id))
        rows["directory on this host"] = "<br>".join(_link(each) for each in _directory(job.id))
    table = "\n".join(f"<tr><th>{key}<td>{value}" for key, value in rows.items() if value)
    is_own = record is not None
    address = f" --address {record.address}" if record is not None and record.is_running else ""
    dashboard = (
        "<p>Its cluster ended with its program, and no dashboard shows it."
        if is_own and not address
        else f"<p>The cluster in a browser, this job's ranks and logs in it:\n"
        f"<pre>troupe dashboard{_text(address)}</pre>"
    )
    commands = "\n".join(f"troupe azure job {each}" for each in _commands(name))
    reload = "" if has_ended else f'<meta http-equiv="refresh" content="{_RELOAD_S}">\n'
    return (
        f'<!doctype html>\n<meta charset="utf-8">\n{reload}<title>{_text(name)}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>job {_text(name)}</h1>\n<table>\n{table}\n</table>\n"
        f"{dashboard}\n<p>Its state now, its output, and what it wrote:\n"
        f"<pre>{_text(commands)}</pre>\n"
    )


def _commands(name: str) -> list[str]:
    return [f"show -n {name}", f"stream -n {name}", f"download -n {name} --all"]


def _values(given: Any) -> str:
    lines = [f"{name}: {json.dumps(value)}" for name, value in plain(given).items()]
    return f"<pre>{_text(chr(10).join(lines))}</pre>" if lines else ""


def _outputs(name: str, outputs: Any) -> str:
    lines = []
    for each, about in plain(outputs).items():
        path = about.get("path") if isinstance(about, dict) else None
        how = path or f"troupe azure job download -n {name} --output-name {each}"
        lines.append(f"{_text(each)}: <code>{_text(how)}</code>")
    lines.append(f"outputs/: <code>{_text(f'troupe azure job download -n {name}')}</code>")
    return "<br>".join(lines)


def _directory(launch: str) -> list[Path]:
    folder = records.folder_of(launch)
    return [] if folder is None else [folder / "code"]


def _link(path: Path) -> str:
    return f'<a href="{_text(path.as_uri())}">{_text(path)}</a>'


def _text(value: Any) -> str:
    return html.escape(_visible.text(value)) if value else ""


def _folder() -> Path:
    return folders.private(home.state_root() / "pages", remedy=_REMEDY)


def _prune() -> None:
    found = []
    for each in _folder().glob("*.html"):
        with contextlib.suppress(FileNotFoundError):  # another process removes it just now
            found.append((each.stat().st_mtime_ns, each))
    for _, each in sorted(found, reverse=True)[PAGES_MAX:]:
        each.unlink(missing_ok=True)
