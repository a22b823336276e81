"""The service as a FastAPI application, to be mounted in somebody's own, or served by whatever serves ASGI.

Each route is one of FastAPI's, so that its description, a prefix, further routes and middleware are FastAPI's affair;
who answers is the gate of `textcls serve`, with its keys, limits, counts and wire formats. What stands below HTTP there
is not here: bounds of heads and connections, deadlines for requests that never end, workers and their supervision.
"""

import asyncio
import weakref
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Match

from textcls import __version__
from textcls.server.http.gate import Gate
from textcls.server.models.reload import GenerationStore
from textcls.server.routes import openapi
from textcls.server.routes.table import table
from textcls.server.service import Service
from textcls.server.settings import Settings
from textcls.server.system.shared_folder import shared_folder

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

# FastAPI's own, of this application.
_DESCRIPTION: Final = ("/openapi.json", "/docs", "/docs/oauth2-redirect")


def create_app(*models: str | Path, settings: Settings | None = None) -> FastAPI:
    """Load models, and return the whole service as an application of its own.

    It answers at once, under a prefix as well (`app.mount("/texts", create_app("tickets.onnx"))`), whether or not its
    lifespan is run. Whoever reaches the application may ask, unless `settings` name hosts or keys; its settings of
    address, workers and connections count for nothing, since somebody else listens.

    Args:
        models: files, `NAME=FILE`, `NAME@VERSION=FILE`, or folders of files.
        settings: everything else.

    Raises:
        ArtifactError: a model cannot be used.
        ConfigError: there is no model, or keys cannot be read.
        MissingExtraError: spans are asked for, and what sends them is not installed.
        SurroundingsError: no folder can be written to.
    """
    settings = settings or Settings()
    if not settings.allowed_host:
        settings = replace(settings, allowed_host=("*",))
    stack = ExitStack()
    try:
        store = GenerationStore(stack.enter_context(shared_folder(settings.runtime_dir)), [*map(str, models)], settings)
        store.publish()
        answering = _Answering(Service.of(store, settings))
    except BaseException:
        stack.close()
        raise
    app = FastAPI(
        title="textcls",
        version=__version__,
        summary=openapi.SUMMARY,
        description=openapi.description(settings),
        docs_url="/docs" if settings.docs else None,
        redoc_url=None,
        lifespan=answering.lifespan,
    )
    for route in table(settings).routes:
        if route.path not in _DESCRIPTION:
            app.router.routes.append(openapi.described(route, _Route, answering=answering))
    weakref.finalize(app, stack.close)
    return app


class _Answering:
    """Who answers: the gate of a service, whose task in the background begins with the first request at the latest."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._gate = Gate(service, table(service.settings))
        self._watching: asyncio.Task[None] | None = None
        self._in_progress: set[object] = set()
        service.tasks = self._in_progress

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """Take up reloads from the beginning, and finish with spans in the end."""
        self._watch()
        try:
            yield
        finally:
            if self._watching is not None:
                self._watching.cancel()
                with suppress(asyncio.CancelledError):
                    await self._watching
            if self._service.tracing is not None:
                self._service.tracing.close()

    async def answer(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request, whatever prefix it came by."""
        self._watch()
        asked = object()
        self._in_progress.add(asked)
        try:
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            await self._gate({**scope, "path": path}, receive, send)
        finally:
            self._in_progress.discard(asked)

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        # Tests of an application may bring a loop of their own for each request.
        if self._watching is None or self._watching.done() or self._watching.get_loop() is not loop:
            self._watching = loop.create_task(self._service.watch())


class _Route(APIRoute):
    """A route of the description behind which the gate answers."""

    def __init__(self, path: str, endpoint: Any, *, answering: _Answering, **described: Any) -> None:
        super().__init__(path, endpoint, **described)
        self._answering = answering

    def matches(self, scope: "Scope") -> tuple[Match, "Scope"]:
        """Let HEAD come where GET does, as the gate answers it."""
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        return super().matches(scope)

    async def handle(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer by the gate; another method as well, since it knows which one is meant."""
        await self._answering.answer(scope, receive, send)
