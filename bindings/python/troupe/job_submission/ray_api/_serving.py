"""Ray's job API on a port of loopback, until it is interrupted or a command has ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web

from troupe import exceptions
from troupe._cluster import folders, home
from troupe.job_submission._client import JobSubmissionClient
from troupe.job_submission.ray_api._packages import PackageStore
from troupe.job_submission.ray_api._server import RayJobServer

HOST = "127.0.0.1"
ADDRESS = "RAY_API_SERVER_ADDRESS"
_PACKAGES = "ray-packages"  # in TROUPE_HOME
_TOKEN_BYTES = 32
_END_S = 2.0  # for answers that are under way when the server ends


def serve(
    session: Any,
    folder: Path,
    port: int,
    announce: Callable[[Mapping[str, str]], None],
    command: Sequence[str],
    environment: Mapping[str, str],
) -> int:
    """Serve the cluster of `session` and return an exit code: that of `command`, if there is one.

    Blocks until the command has ended, or, without one, until KeyboardInterrupt.

    Args:
        session: The session with the cluster.
        folder: A private folder for the token's file, which ends with the server.
        port: The port on loopback; 0 for a free one.
        announce: Is told the variables by which Ray's client finds the server.
        command: A command to run with these variables.
        environment: The command's environment besides.

    Raises:
        ConnectionError: if the port cannot be had.
        FileNotFoundError: if there is no such command.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    file = folder / "token"
    with open(file, "x", opener=folders.open_private) as opened:
        opened.write(token)
    packages = folders.private(home.home() / _PACKAGES, remedy="set TROUPE_HOME to another folder")

    async def run() -> int:
        server = RayJobServer(JobSubmissionClient.over(session), PackageStore(packages), token)
        runner = web.AppRunner(
            server.application(),
            access_log=None,
            handle_signals=False,
            shutdown_timeout=_END_S,
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, HOST, port)
            try:
                await site.start()
            except OSError as error:
                raise exceptions.ConnectionError(
                    f"port {port} of {HOST} cannot be had: {os.strerror(error.errno or 0)}\n"
                    "  choose another one: --port PORT, or 0 for a free one"
                ) from error
            bound = runner.addresses[0][1]
            variables = {
                ADDRESS: f"http://{HOST}:{bound}",
                "RAY_AUTH_MODE": "token",
                "RAY_AUTH_TOKEN_PATH": str(file),
            }
            announce(variables)
            if command:
                return await _run(command, {**environment, **variables})
            await asyncio.Event().wait()
            return 0
        finally:
            await runner.cleanup()
            server.close()

    return asyncio.run(run())


async def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the command and return its exit code. Ctrl-C reaches it too, as it is of this process
    group; what ends this process otherwise ends it."""
    try:
        process = await asyncio.create_subprocess_exec(*command, env=dict(environment))
    except OSError as error:
        raise FileNotFoundError(f"{command[0]} cannot be run: {error.strerror}") from error
    try:
        code = await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
    return code if code >= 0 else 128 - code
