"""When a launch is tracked, and what its addresses say of themselves. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

SWITCH = "TROUPE_TRACKING"
"""Of the caller: 0 and the like: no launch is tracked."""
TRACKER = "TROUPE_TRACKER"
"""Of the ranks of a tracked launch: the actor that knows its run."""
URI, RUN, EXPERIMENT, EXPERIMENT_NAME, TOKEN = (
    "MLFLOW_TRACKING_URI",
    "MLFLOW_RUN_ID",
    "MLFLOW_EXPERIMENT_ID",
    "MLFLOW_EXPERIMENT_NAME",
    "MLFLOW_TRACKING_TOKEN",
)
SCOPE = "troupe/tracking"
"""Of the cluster's values by which a tracker knows its launch and run, under its id."""
SYSTEM_METRICS = "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"
SECRETS = (TOKEN, "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
_NO = ("0", "false", "no", "off")
_STATUS = {"succeeded": "FINISHED", "failed": "FAILED"}


@dataclass(frozen=True)
class Wish:
    """The run wanted for one launch.

    Plain values, which travel; credentials are not among them.
    """

    local: bool  # true if the store is a file of the caller's: metrics of the ranks are sent there
    store: str  # the address, for people
    name: str
    run: str = ""  # id of an existing run; "": a new one
    is_made: bool = False  # true if the run was made for this launch, and ends with it
    parent: str = ""
    experiment: str = ""
    experiment_name: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    system_metrics: bool = True
    detached: bool = False

    @property
    def is_adopted(self) -> bool:
        """True if the run belongs to its maker, and is not ended here."""
        return bool(self.run) and not self.is_made


def says_no(asked: bool | None, environment: Mapping[str, str]) -> bool:
    """Return True if the option or the variable forbids it."""
    return asked is False or (asked is None and environment.get(SWITCH, "").strip().lower() in _NO)


def wanted(
    asked: bool | None,
    environment: Mapping[str, str],
    *,
    active: bool = False,
    uri_is_set: bool = False,
    by_default: bool = False,
) -> bool:
    """Return True if a launch is tracked where MLflow is installed: with an address, an active run,
    or by default, unless something says no.

    >>> server = {"MLFLOW_TRACKING_URI": "http://10.0.0.9:5000"}
    >>> wanted(None, server), wanted(None, {}), wanted(False, {}, active=True)
    (True, False, False)
    """
    if says_no(asked, environment):
        return False
    return bool(
        asked or by_default or active or uri_is_set or environment.get(URI) or environment.get(RUN)
    )


def shown(uri: str) -> str:
    """The address without what it may hold of names and passwords.

    >>> shown("https://me:secret@mlflow.example:8443/a?token=1")
    'https://mlflow.example:8443/a'
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "an address that cannot be read"
    if not parts.netloc:
        return uri
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def link(uri: str, experiment: str, run: str) -> str:
    """Return the URL of a run; for a store without pages, a text that names it."""
    if urlsplit(uri).scheme in ("http", "https"):
        return f"{shown(uri).rstrip('/')}/#/experiments/{experiment}/runs/{run}"
    return f"run {run} in {shown(uri)}"


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """An error's text with what is secret in the environment taken out."""
    password = ""
    try:
        password = urlsplit(environment.get(URI, "")).password or ""
    except ValueError:
        pass
    for secret in [*(environment.get(name, "") for name in SECRETS), password]:
        if len(secret) > 3:
            text = text.replace(secret, "...")
    return text


def status_of(outcome: str) -> str:
    """MLflow's word for the outcome in a launch's marker."""
    return _STATUS.get(outcome, "KILLED")


def fields_of(wish: Wish) -> dict[str, Any]:
    """As it travels."""
    return dict(vars(wish))
