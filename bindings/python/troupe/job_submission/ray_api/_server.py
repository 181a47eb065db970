"""The REST routes of Ray's job client and command, as an aiohttp application.

View: a process of one user, on loopback, that is a client of the cluster. Who asks shows the
server's own token. A browser is refused: no request of a page comes without Origin or
Sec-Fetch-Site, and no name but those of loopback is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hmac
import json
import re
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp import web

from troupe import exceptions
from troupe.job_submission import _jobs, _output
from troupe.job_submission._client import JobSubmissionClient, NoSuchJobError
from troupe.job_submission.ray_api._packages import (
    PackageError,
    PackageStore,
    PackageTooLargeError,
)
from troupe.ray_compat._names import VERSION as RAY_VERSION

API_VERSION = "4"  # version of Ray's job API
JSON_BYTES_MAX = 1 << 20
LOG_BYTES_MAX = 32 << 20  # limit of an answer with a whole log
FOLLOWERS_MAX = 64
REQUESTS_MAX = 64  # at a time, followers apart
IDLE_S = 2.0  # after so long without news, a follower looks whether its peer is still there
_BEAT_S = 30.0
_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
_FIELDS = frozenset(
    {
        "entrypoint",
        "submission_id",
        "job_id",
        "runtime_env",
        "metadata",
        "entrypoint_num_cpus",
        "entrypoint_num_gpus",
        "entrypoint_memory",
        "entrypoint_resources",
        "entrypoint_label_selector",
    }
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RayJobServer:
    """Ray's job API for one cluster.

    `token` is what callers show, as `Authorization: Bearer TOKEN`.
    """

    def __init__(self, client: JobSubmissionClient, packages: PackageStore, token: str) -> None:
        self._client = client
        self._packages = packages
        self._token = token
        self._requests = asyncio.Semaphore(REQUESTS_MAX)
        self._followers = 0
        self._threads = ThreadPoolExecutor(FOLLOWERS_MAX, "troupe-ray-jobs")

    def application(self) -> web.Application:
        """Return the application, for `aiohttp.web.AppRunner`."""
        application = web.Application(middlewares=[self._guard], client_max_size=JSON_BYTES_MAX)
        job = "/api/jobs/{job}"
        application.router.add_get("/api/version", self._version)
        application.router.add_get("/api/jobs/", self._list)
        application.router.add_post("/api/jobs/", self._submit)
        application.router.add_get(job, self._show)
        application.router.add_delete(job, self._delete)
        application.router.add_post(f"{job}/stop", self._stop)
        application.router.add_get(f"{job}/logs", self._logs)
        application.router.add_get(f"{job}/logs/tail", self._tail, allow_head=False)
        package = "/api/packages/{protocol}/{name}"
        application.router.add_get(package, self._has_package)
        application.router.add_put(package, self._put_package)
        return application

    def close(self) -> None:
        """End the threads that follow logs, each at its next news."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse who may not ask; make answers of errors."""
        refusal = self._objection(request)
        if refusal is not None:
            return refusal
        try:
            return await handler(request)
        except NoSuchJobError as error:
            return _say(404, str(error))
        except PackageError as error:
            return _say(413 if isinstance(error, PackageTooLargeError) else 400, str(error))
        except (TypeError, ValueError, NotImplementedError) as error:
            return _say(400, str(error))
        except RuntimeError as error:  # a job that has another state or content
            return _say(409, str(error))
        except exceptions.TroupeError as error:
            return _say(503 if isinstance(error, exceptions.ConnectionError) else 400, str(error))

    def _objection(self, request: web.Request) -> web.Response | None:
        if not _LOOPBACK.fullmatch(request.headers.get("Host", "")):
            return _say(
                421,
                "this server answers under the names of loopback alone: 127.0.0.1, "
                "localhost and [::1]",
            )
        if "Origin" in request.headers or "Sec-Fetch-Site" in request.headers:
            return _say(403, "this server is for Ray's client and command, not for browsers")
        kind, _, shown = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(
            shown.strip().encode("utf-8", "surrogateescape"), self._token.encode()
        ):
            return _say(
                401,
                "show the token of this server: set RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH as "
                "`troupe ray-jobs serve` has printed them",
            )
        return None

    async def _call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Run what blocks in a thread."""
        async with self._requests:
            return await asyncio.to_thread(function, *arguments, **named)

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response(
            {
                "version": API_VERSION,
                "ray_version": RAY_VERSION,
                "ray_commit": "troupe",
                "session_name": self._client.get_address(),
            }
        )

    async def _list(self, _: web.Request) -> web.Response:
        found = await self._call(self._client.list_jobs)
        return web.json_response([dataclasses.asdict(each) for each in found])

    async def _submit(self, request: web.Request) -> web.Response:
        try:
            asked = json.loads(await request.text())
        except ValueError as error:
            raise ValueError(f"the body is no JSON: {error}") from None
        if not isinstance(asked, dict) or not _FIELDS.issuperset(asked):
            unknown = sorted(set(asked) - _FIELDS) if isinstance(asked, dict) else []
            raise ValueError(
                f"the body must be an object with {', '.join(sorted(_FIELDS))}"
                + (f"; it has {', '.join(unknown)}" if unknown else "")
            )
        runtime_env = asked.get("runtime_env") or {}
        if not isinstance(runtime_env, dict):
            raise TypeError(f"runtime_env must be an object, not {runtime_env!r}")
        asked["runtime_env"] = await self._call(self._packages.resolve, runtime_env)
        asked.setdefault("entrypoint", "")
        identity = await self._call(self._client.submit_job, **asked)
        return web.json_response({"job_id": identity, "submission_id": identity})

    async def _show(self, request: web.Request) -> web.Response:
        found = await self._call(self._client.get_job_info, request.match_info["job"])
        return web.json_response(dataclasses.asdict(found))

    async def _stop(self, request: web.Request) -> web.Response:
        stopped = await self._call(self._client.stop_job, request.match_info["job"])
        return web.json_response({"stopped": stopped})

    async def _delete(self, request: web.Request) -> web.Response:
        deleted = await self._call(self._client.delete_job, request.match_info["job"])
        return web.json_response({"deleted": deleted})

    async def _logs(self, request: web.Request) -> web.Response:
        text = await self._call(self._last_of_log, request.match_info["job"])
        return web.json_response({"logs": text})

    def _last_of_log(self, job: str) -> str:
        lines: deque[str] = deque()
        size, left_out = 0, 0
        for line in _output.read(self._client.session, self._client.launch_info(job)):
            lines.append(f"{line}\n")
            size += len(lines[-1])
            while size > LOG_BYTES_MAX:
                size -= len(lines[0])
                left_out += len(lines.popleft())
        if left_out:
            lines.appendleft(f"(troupe: {left_out} characters before this are left out here)\n")
        return "".join(lines)

    async def _tail(self, request: web.Request) -> web.StreamResponse:
        """Follow a job's log by WebSocket until the job has ended.

        A stream that cannot go on is cut off without a closing handshake, so that Ray's client
        raises instead of taking it for the job's end.
        """
        job = request.match_info["job"]
        info = await self._call(self._client.launch_info, job)
        if self._followers >= FOLLOWERS_MAX:
            return _say(503, f"{FOLLOWERS_MAX} logs are followed already, which is the limit")
        socket = web.WebSocketResponse(heartbeat=_BEAT_S, max_msg_size=4096)
        self._followers += 1
        try:
            await socket.prepare(request)
            peer = asyncio.ensure_future(_until_closed(socket))
            news = self._news(info)
            try:
                await self._pass_on(news, socket, peer)
            except exceptions.TroupeError as error:
                with contextlib.suppress(ConnectionError):
                    await socket.send_str(f"(troupe: no more output from there: {error})\n")
                if request.transport is not None:
                    request.transport.abort()
            finally:
                peer.cancel()
                with contextlib.suppress(ValueError):  # a thread is still in it, for IDLE_S
                    news.close()
        finally:
            self._followers -= 1
        return socket

    def _news(self, info: dict[str, Any]) -> Generator[str, None, None]:
        handle = _jobs.handle_of(self._client.session, info)
        for _, finished, _ in _output.follow(handle, idle_s=IDLE_S):
            yield "".join(f"{line}\n" for line in finished)

    async def _pass_on(
        self,
        news: Generator[str, None, None],
        socket: web.WebSocketResponse,
        peer: asyncio.Future[None],
    ) -> None:
        loop = asyncio.get_running_loop()
        while not peer.done():
            text = await loop.run_in_executor(self._threads, next, news, None)
            if text is None:
                await socket.close()
                return
            if text:
                with contextlib.suppress(ConnectionError):
                    await socket.send_str(text)

    async def _has_package(self, request: web.Request) -> web.Response:
        protocol, name = request.match_info["protocol"], request.match_info["name"]
        if not self._packages.has(protocol, name):
            return _say(404, f"Package {protocol}://{name} does not exist")
        return web.Response()

    async def _put_package(self, request: web.Request) -> web.Response:
        await self._packages.put(
            request.match_info["protocol"],
            request.match_info["name"],
            request.content.iter_chunked(1 << 18),
        )
        return web.Response()


async def _until_closed(socket: web.WebSocketResponse) -> None:
    async for _ in socket:
        pass


def _say(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text)
