# SPDX-License-Identifier: MIT
"""Serves the page, its pictures, the report and the records, behind the token if there is one."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import lru_cache
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs

from fastapi import Response
from fastapi.responses import FileResponse, PlainTextResponse
from nicegui import app, run, ui

from equi_console import drawing
from equi_console.desk import Desk
from equi_console.episode_worker import EpisodeWorker
from equi_console.web.page import build_page
from equi_console.web.server_options import ServerOptions
from equi_evaluation.episode_video import filmstrip, load_frames
from equi_evaluation.recording import RecordingError, mcap_file

_COOKIE = "equi_console_token"
_NO_TOKEN = "the token is missing or wrong: open the whole address that the console printed\n"
_END_S = 1
_RECONNECT_S = 15.0
"""A browser may be unheard for so long before its page is built anew, which closes a dialog and
forgets a typed word. With NiceGUI's 3 s that happened beside a busy cell [s]."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Pictures(Protocol):
    """Where the cameras' pictures come from."""

    @property
    def side_views(self) -> Mapping[str, bytes]:
        """Newest picture (JPEG) of each camera."""

    @property
    def side_view_number(self) -> int:
        """Counts pictures; a page draws when it has changed."""


def serve(desk: Desk, worker: EpisodeWorker, pictures: Pictures, options: ServerOptions) -> None:
    """Serve until a signal comes; prints the address once the page can be opened."""
    add_routes(desk, worker, pictures)
    build_page(desk, worker, pictures, options)
    if options.token:
        app.add_middleware(TokenCheck, token=options.token)
    # NiceGUI takes a console that a test started for a test of its own.
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    app.on_startup(lambda: _say(f"console: {options.address}"))
    ui.run(
        host=options.host,
        port=options.port,
        title=f"{options.cell}: console",
        show=False,
        reload=False,
        show_welcome_message=False,
        storage_secret=options.token or "loopback",
        uvicorn_logging_level="warning",
        timeout_graceful_shutdown=_END_S,
        reconnect_timeout=_RECONNECT_S,
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def add_routes(desk: Desk, worker: EpisodeWorker, pictures: Pictures) -> None:
    """Pictures, filmstrips, records and the report."""

    @app.get("/picture/top")
    def top() -> Response:
        return _picture(drawing.top_view(desk.state))

    @app.get("/picture/side/{index}")
    def side(index: int) -> Response:
        views = list(pictures.side_views.values())
        known = 0 <= index < len(views)
        return _picture(views[index] if known else drawing.blank(240, "no picture yet"))

    @app.get("/filmstrip/{index}")
    async def strip(index: int) -> Response:
        record = _record(worker, index)
        if record is None:
            return PlainTextResponse("this episode has no record", 404)
        return _picture(await run.io_bound(_filmstrip, record) or b"")

    @app.get("/record/{index}")
    def record_file(index: int) -> Response:
        record = _record(worker, index)
        if record is None:
            return PlainTextResponse("this episode has no record", 404)
        try:
            path = mcap_file(record)
        except RecordingError as error:
            return PlainTextResponse(str(error), 404)
        return FileResponse(path, filename=f"{record.name}.mcap")

    @app.get("/report")
    async def report() -> Response:
        if not worker.store.results:
            return PlainTextResponse("no episode was run yet", 404)
        path = await run.io_bound(worker.report)
        if path is None:  # the server is being stopped
            return PlainTextResponse("stopping", 503)
        return FileResponse(path, filename="report.html", media_type="text/html")


def _record(worker: EpisodeWorker, index: int) -> Path | None:
    results = worker.store.results
    return worker.record_of(results[index]) if 0 <= index < len(results) else None


@lru_cache(maxsize=128)
def _filmstrip(record: Path) -> bytes:
    try:
        strip = filmstrip(load_frames(record), most=6)
    except RecordingError as error:
        return drawing.blank(240, str(error)[:40])
    return drawing.blank(240, "empty record") if strip is None else drawing.jpeg(strip)


def _picture(data: bytes) -> Response:
    return Response(data, media_type="image/jpeg", headers={"Cache-Control": "no-store"})


class TokenCheck:
    """Lets nobody in without the token: pages, pictures and web sockets alike (plain ASGI)."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, or refuse."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        by_query = self._is_token(query.get("token", [""])[0])
        if not by_query and not self._has_cookie(scope):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 4403})
            else:
                await PlainTextResponse(_NO_TOKEN, 403)(scope, receive, send)
            return

        async def with_cookie(message: Any) -> None:
            if by_query and message["type"] == "http.response.start":
                cookie = f"{_COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                headers = [*message.get("headers", []), (b"set-cookie", cookie.encode())]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, with_cookie)

    def _has_cookie(self, scope: Scope) -> bool:
        for name, value in scope.get("headers", []):
            if name == b"cookie":
                found = SimpleCookie(value.decode("latin-1")).get(_COOKIE)
                return found is not None and self._is_token(found.value)
        return False

    def _is_token(self, offered: str) -> bool:
        return secrets.compare_digest(offered.encode(), self._token.encode())
