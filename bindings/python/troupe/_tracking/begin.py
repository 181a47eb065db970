"""The caller's side of a tracked launch: whether it is one, its tracker, and what is said of it.

Never raises; MLflow is not imported here.
"""

from __future__ import annotations

import contextlib
import contextvars
import importlib.util
import json
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

from troupe import exceptions
from troupe._base import calls as _calls
from troupe._base.identity import short
from troupe._cluster import status_lines, variables
from troupe._code import runtime_env
from troupe._tracking import rule, runs, store_process, turns

END_S = 10.0  # for the end of the run to be written, once the launch has ended
# for the first word, where a launch has ended before there is a run: that one is made and ended
# beside what the caller does next
UNHEARD_S = 1.0
LINK_S, LINK_LOCAL_S = (
    10.0,
    60.0,
)  # for a run that is made before the launch; in a file, whose database may have to be made first
LEAVES_S = 10.0  # time for the caller to leave, when the cluster or the store ends with it
GIT_S = 5.0
AGAIN_S = 1.0
_TRAVELS = (
    "env_vars",
    "pip",
    "uv",
    "config",
)  # parts of the launch's runtime_env that its tracker needs too


def tracked(session: Any, spec: dict[str, Any], options: Any, source: str = "") -> Tracked | None:
    """The tracking of the launch that is about to be submitted, its variables put into the spec;
    None: it is not wanted, or cannot be. `source`: the file that its ranks run, "": this program's.
    """
    given = {**variables.now(), **(options.runtime_env.get("env_vars") or {})}
    if rule.says_no(options.tracking, given):
        return None
    try:
        program = of_this_program()
        if not rule.wanted(
            options.tracking,
            given,
            active=bool(program["run"]),
            uri_is_set=program["is_set"],
            by_default=options.tracks,
        ):
            return None
        if importlib.util.find_spec("mlflow") is None:
            if options.tracking:
                _say(options, "MLflow is not installed here: pip install mlflow")
            return None
        return _begun(session, spec, options, given, program, source or _source(spec))
    except Exception as error:  # the launch goes on whatever the error
        _say(options, f"{type(error).__name__}: {rule.without_secrets(str(error), given)}")
        return None


def _say(options: Any, text: str) -> None:
    status_lines.say(f"troupe: the launch is not tracked: {text}", quiet=options.quiet)


def of_this_program() -> dict[str, Any]:
    """Return the program's MLflow state, if it has imported it: its active run and address."""
    mlflow = sys.modules.get("mlflow")
    active = getattr(mlflow, "active_run", None)
    run = active() if active is not None else None
    is_set = getattr(mlflow, "is_tracking_uri_set", None)
    get = getattr(mlflow, "get_tracking_uri", None)
    return {
        "run": run.info.run_id if run is not None else "",
        "experiment": run.info.experiment_id if run is not None else "",
        "is_set": bool(is_set()) if is_set is not None else False,
        "uri": get() if get is not None else "",
    }


def _begun(
    session: Any,
    spec: dict[str, Any],
    options: Any,
    given: Mapping[str, str],
    program: Mapping[str, Any],
    source: str,
) -> Tracked | None:
    from troupe._actors import classes
    from troupe._tracking import tracker

    uri = given.get(rule.URI) or program["uri"] or "sqlite:///mlflow.db"
    local = turns.is_local(uri)
    if local and options.detach:
        _say(
            options,
            f"it is detached, and {rule.shown(uri)} is a store of this program's, which ends "
            "before it\n"
            "  MLFLOW_TRACKING_URI of a server (mlflow server) is for launches that outlive their "
            "caller",
        )
        return None
    wish = rule.Wish(
        local=local,
        store=rule.shown(uri),
        name=options.run_name or spec["name"],
        run="" if program["run"] else given.get(rule.RUN, ""),
        parent=program["run"],
        experiment=program["experiment"]
        or ("" if options.run_experiment else given.get(rule.EXPERIMENT, "")),
        experiment_name=options.run_experiment or given.get(rule.EXPERIMENT_NAME, ""),
        tags={
            **options.run_tags,
            "troupe.ranks": str(spec["ranks"]),
            "mlflow.user": user_name(),
            "mlflow.source.name": source,
            "mlflow.source.type": "LOCAL",
        },
        system_metrics=given.get(rule.SYSTEM_METRICS, "").lower() not in ("0", "false"),
        detached=options.detach,
    )
    store = store_process.process_of(uri, given, session) if local or options.tracks else None
    link = ""
    if store is not None and options.tracks and not wish.run:
        with contextlib.suppress(
            store_process.StoreProcessError, runs.Late
        ):  # the tracker tries it again, and says what is wrong
            wish, link = store.open_run(wish, LINK_LOCAL_S if local else LINK_S)
    env = {key: value for key, value in options.runtime_env.items() if key in _TRAVELS}
    if not local:
        env["env_vars"] = {**(env.get("env_vars") or {}), rule.URI: uri}
    actor = classes.create(
        tracker.Tracker,
        (rule.fields_of(wish),),
        {},
        {**tracker.OPTIONS, "runtime_env": env},
        session=session,
        shown=False,
    )
    travels = spec["environment"]["env"]
    if not local and not any(each["name"] == rule.URI for each in travels):
        travels.append({"name": rule.URI, "value": uri})
    _travels_on(travels, actor._link.actor)
    return Tracked(session, actor, wish, store, link, options.quiet)


def _travels_on(variables: list[dict[str, str]], tracker: str) -> None:
    """The ranks know the tracker, and so does what they start: it is among what their runtime_env
    sets."""
    variables.append({"name": rule.TRACKER, "value": tracker})
    for each in variables:
        if each["name"] == runtime_env.VARIABLE:
            env = json.loads(each["value"])
            env["env_vars"] = {**env.get("env_vars", {}), rule.TRACKER: tracker}
            each["value"] = json.dumps(env, sort_keys=True)


def user_name() -> str:
    """Return the user of this process, as MLflow's tags name it."""
    import getpass

    with contextlib.suppress(Exception):
        return getpass.getuser()
    return str(os.getuid())


def _source(spec: Mapping[str, Any]) -> str:
    return (
        os.path.abspath(sys.argv[0])
        if sys.argv and os.path.isfile(sys.argv[0])
        else str(spec["function_name"])
    )


class Tracked:
    """The tracking of one launch, seen by who submitted it."""

    def __init__(
        self,
        session: Any,
        actor: Any,
        wish: rule.Wish,
        store: store_process.StoreProcess | None,
        link: str,
        quiet: bool,
    ) -> None:
        self._session, self._actor, self._wish, self._store, self._link, self._quiet = (
            session,
            actor,
            wish,
            store,
            link,
            quiet,
        )
        self._launch = self._label = ""
        self._relay: Any = None
        self._heard, self._ended = threading.Event(), threading.Event()
        self._said = False

    def refused(self) -> None:
        """There is no launch."""
        with contextlib.suppress(exceptions.TroupeError):
            self._actor._link.kill(no_restart=True)
        self._end_run("failed")

    def submitted(self, launch: str) -> None:
        """The launch has this id.

        Returns at once; what there is to say is said when it is known.
        """
        self._launch, self._label = launch, f"launch {short(launch)}"
        if self._link:  # before anything that its ranks say
            self._warn(self._link)
            self._heard.set()
        self._actor.begin.remote(launch)
        if self._wish.detached:
            self._write_launch()  # this process may end at once, and what it has called with it
        else:
            threading.Thread(target=self._write_launch, name="troupe-tracked", daemon=True).start()
        if self._wish.local:
            from troupe._tracking.relay import Relay

            assert self._store is not None
            self._relay = Relay(self._actor, self._store, self._warn)
        if self._wish.local or self._session.embedded is not None:
            self._session.on_close(self._leave)
        if not self._wish.detached:
            # In the context of the caller, which says which cell of a notebook is theirs.
            threading.Thread(
                target=contextvars.copy_context().run,
                args=(self._hear,),
                name="troupe-tracking",
                daemon=True,
            ).start()
        threading.Thread(target=self._tag_commit, name="troupe-commit", daemon=True).start()

    def _write_launch(self) -> None:
        """For a tracker that nobody could tell it any more."""
        with contextlib.suppress(exceptions.TroupeError):
            self._session.request(
                "KvPut",
                {"scope": rule.SCOPE, "key": self._actor._link.actor, "overwrite": False},
                json.dumps({"launch": self._launch}).encode(),
            )

    def settle(self) -> None:
        """Once the launch has ended: returns when its run has, after END_S at the latest, and then
        says so; soon, where there is no run yet."""
        if (
            self._wish.detached
            or not self._heard.wait(UNHEARD_S)
            or self._ended.wait(END_S)
            or self._said
        ):
            return
        self._said = True
        self._warn(
            f"the end of the run is not written yet in {self._wish.store}, which was waited for "
            f"{END_S:g} s: the server is away or slow"
        )

    def _hear(self) -> None:
        told = {("link", self._link)}
        seen, over = 0, False
        while not over:
            try:
                news, over = _calls.get(self._actor.news.remote(seen))
            except (exceptions.ActorDiedError, exceptions.ConnectionError) as error:
                if not self._session.closed:
                    self._warn(f"its tracker has ended: {str(error).partition(chr(10))[0]}")
                break
            except (
                exceptions.TroupeError
            ):  # the tracker is started anew elsewhere, and begins with its own report
                seen = 0
                self._ended.wait(AGAIN_S)
                continue
            seen += len(news)
            if news:
                self._heard.set()
            for kind, text in news:
                if text and (kind, text) not in told:
                    told.add((kind, text))
                    self._warn(text)
        if over:
            with contextlib.suppress(exceptions.TroupeError):
                self._actor.heard.remote()
        self._heard.set()
        outcome = self._outcome()
        if outcome:
            self._end_run(outcome)
        self._ended.set()
        if self._relay is not None:
            self._relay.end()

    def _warn(self, text: str) -> None:
        status_lines.say(f"{self._label} · MLflow: {text}", quiet=self._quiet)

    def _leave(self) -> None:
        """The session is closed, and with it the cluster or the store ends: what is open then is
        closed, as killed where the launch has not ended."""
        if not self._ended.is_set():
            outcome = self._outcome() or "cancelled"
            try:
                _calls.get(self._actor.caller_ends.remote(outcome), LEAVES_S)
            except exceptions.GetTimeoutError:
                self._warn(
                    f"the end of the run is not written in {self._wish.store}, which was waited "
                    f"for {LEAVES_S:g} s: the run may stay RUNNING there"
                )
            except (
                exceptions.TroupeError
            ):  # the tracker has ended: the run has too, or what there was to say was said
                pass
            self._end_run(outcome)
        if self._relay is not None:
            self._relay.end()

    def _outcome(self) -> str:
        """How the launch has ended, as far as this process has heard; "": not yet."""
        entry = self._session.board.get("launch", self._launch)
        return (
            str(entry[0]["outcome"])
            if entry is not None and entry[0]["state"] == "terminal"
            else ""
        )

    def _end_run(self, outcome: str) -> None:
        """End the run in the place of a tracker that could not write to this program's store any
        more, or that had no launch."""
        if self._store is not None and (self._wish.local or not self._launch):
            self._store.end_run(
                self._wish.run if self._wish.is_made else "", self._launch, rule.status_of(outcome)
            )

    def _tag_commit(self) -> None:
        import subprocess

        source = self._wish.tags["mlflow.source.name"]
        folder = os.path.dirname(source) if os.path.isfile(source) else os.getcwd()
        with contextlib.suppress(OSError, subprocess.SubprocessError, exceptions.TroupeError):
            found = subprocess.run(
                ["git", "rev-parse", "HEAD"],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=GIT_S,
                stdin=subprocess.DEVNULL,
            )
            if found.returncode == 0:
                self._actor.tag.remote({"mlflow.source.git.commit": found.stdout.strip()})
