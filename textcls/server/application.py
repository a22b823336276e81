"""The service as a FastAPI application: run by `textcls serve` or another server, or mounted in another application.

Everything below HTTP is elsewhere, in `http` and `processes`: limits on request heads and connections, deadlines for
requests that never end, workers and their supervision.
"""

import asyncio
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.utils import is_body_allowed_for_status_code
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import BaseRoute
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from textcls import __version__
from textcls.errors import ConfigError, SurroundingsError
from textcls.server.http.exchange import Exchange
from textcls.server.http.gate import Ahead, Gate
from textcls.server.inference.schemas import ClassifyRequest
from textcls.server.models.store import GenerationStore
from textcls.server.models.watching import follow
from textcls.server.problems import RefusalError
from textcls.server.routes import absent, description, native, pages, wire
from textcls.server.routes.answering import Route, answered, refusal
from textcls.server.routes.dependencies import check_origin, require_key
from textcls.server.service import Service
from textcls.server.settings import Settings
from textcls.server.system.shared_folder import shared_folder

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

_LOGGER: Final = logging.getLogger(__name__)


def create_app(*models: str | Path, settings: Settings | None = None) -> FastAPI:
    """Load models, and return the whole service as a standalone application.

    It answers at once, also under a prefix (`app.mount("/texts", create_app("tickets.onnx"))`), whether or not its
    lifespan is run. It answers everyone who can reach it, unless `settings` name hosts or keys. Settings of address,
    workers and connections have no effect, since another server does the listening.

    Args:
        models: files, `NAME=FILE`, `NAME@VERSION=FILE`, or folders of files.
        settings: everything else.

    Raises:
        ArtifactError: a model cannot be used.
        ConfigError: there is no model, or keys cannot be read.
        MissingExtraError: tracing is enabled, and the package that sends spans is not installed.
        SurroundingsError: no folder can be written to.
    """
    if (odd := next((one for one in models if not isinstance(one, str | Path)), None)) is not None:
        raise ConfigError(f"A {type(odd).__name__} cannot be served: pass the path of a model file, or NAME=FILE.")
    settings = Settings() if settings is None else settings
    if not isinstance(settings, Settings):
        raise ConfigError(f"settings are a textcls.server.Settings, not a {type(settings).__name__}.")
    if not settings.allowed_host:
        settings = replace(settings, allowed_host=("*",))
    return assembled(models, settings)


def assembled(models: Sequence[str | Path], settings: Settings, *, follows: bool = False) -> FastAPI:
    """Return the application of `create_app`, with the settings used exactly as given.

    Args:
        models: files, `NAME=FILE`, `NAME@VERSION=FILE`, or folders of files.
        settings: everything else.
        follows: whether to reload files that are replaced, every `watch_seconds`.

    Raises:
        As `create_app` does.
    """
    stack = ExitStack()
    try:
        store = GenerationStore(stack.enter_context(shared_folder(settings.runtime_dir)), [*map(str, models)], settings)
        store.publish()
        watching = _Watching(Service.of(store, settings), store if follows else None)
        stack.callback(watching.service.counts.close)
    except BaseException:
        stack.close()
        raise
    app = application(watching.service, lifespan=watching.lifespan, begin=watching.begin)
    weakref.finalize(app, stack.close)
    return app


def application(
    service: Service,
    *,
    lifespan: "Lifespan[FastAPI] | None" = None,
    begin: Callable[[], None] | None = None,
    short_cut: bool = True,
) -> FastAPI:
    """Return the application of a service whose background task the caller runs.

    Args:
        service: the service that answers.
        lifespan: the lifespan of the application.
        begin: called on each request, since the lifespan of a mounted application is not run.
        short_cut: answer `/v1/classify` without going through FastAPI, by the same functions, unless dependencies are
            overridden or there is other middleware.
    """
    settings = service.settings
    return _Application(
        service,
        begin,
        native.CLASSIFY_AHEAD if short_cut else None,
        title="textcls",
        version=__version__,
        summary=description.SUMMARY,
        description=description.text(settings),
        openapi_tags=wire.tags(),
        # Served by our own routes, which require a key if keys are set.
        openapi_url=None,
        # No redirects: the target of one might require another key.
        redirect_slashes=False,
        lifespan=lifespan,
        exception_handlers={HTTPException: _refuse, RefusalError: _refused},
    )


def routers(settings: Settings) -> list[APIRouter]:
    """Return the routes of a service with these settings."""
    return [
        native.texts,
        native.administration,
        native.probes,
        native.watching,
        *([pages.page] if settings.page else []),
        *wire.ROUTERS,
        description.description,
        *([description.docs] if settings.docs else []),
    ]


class _Application(FastAPI):
    """A FastAPI application behind the gate, which also describes the body that a handler reads itself.

    The gate is not middleware: FastAPI wraps all middleware in its own, which would slow down short answers.
    """

    def __init__(
        self, service: Service, begin: Callable[[], None] | None, ahead: Ahead | None, **described: Any
    ) -> None:
        super().__init__(**described)
        settings = service.settings
        # FastAPI may keep the routes of a router together as one route: the routes, by the id of that one.
        self._kept_together: dict[int, list[BaseRoute]] = {}
        for router in routers(settings):
            before = len(self.router.routes)
            self.include_router(router)
            if len(made := self.router.routes[before:]) < len(router.routes):
                self._kept_together[id(made[0])] = router.routes
        self._own_routes = [*self.router.routes]
        answering: ASGIApp = Gate(
            super().__call__, service, ahead, is_plain=self._is_plain, is_answered=self._is_answered
        )
        if settings.trusted_proxy:
            # The caller is then the last address in X-Forwarded-For that is not one of these proxies.
            answering = ProxyHeadersMiddleware(answering, list(settings.trusted_proxy))  # type: ignore[arg-type,assignment]
        if settings.cors_origin:
            answering = CORSMiddleware(
                answering,
                allow_origins=settings.cors_origin,
                allow_methods=["GET", "POST"],
                allow_headers=["authorization", "content-type", "x-api-key", "x-request-id"],
                expose_headers=["x-model", "x-request-id", "retry-after"],
            )
        self._answering, self._begin, self._describing = answering, begin, Lock()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request."""
        if self._begin is not None and scope["type"] == "http":
            self._begin()
        await self._answering(scope, receive, send)

    def _is_plain(self) -> bool:
        """Return whether no dependency was overridden, no middleware added, and no route put before ours."""
        own = self._own_routes
        return not (self.dependency_overrides or self.user_middleware) and self.router.routes[: len(own)] == own

    def _is_answered(self, scope: "Scope") -> bool:
        """Return whether there is a route for a request."""
        return absent.is_answered(self.single_routes(), scope)

    def single_routes(self) -> list[BaseRoute]:
        """Return all routes, with our own listed one by one."""
        return [one for route in self.router.routes for one in self._kept_together.get(id(route), [route])]

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description."""
        with self._describing:
            document = super().openapi()
            schemas = document["components"]["schemas"]
            # FastAPI rebuilds the description when routes are added.
            if ClassifyRequest.__name__ not in schemas:
                _, bodies = models_json_schema(
                    [(ClassifyRequest, "validation")], ref_template="#/components/schemas/{model}"
                )
                schemas.update(bodies["$defs"])
            return document


async def _refuse(request: Request, error: Exception) -> Response:
    """Answer refusals of our routes in the service's own form; say that a path is unknown only to those with a key."""
    if not isinstance(error, HTTPException):
        raise TypeError("FastAPI handed on another error than it was asked for")
    if absent.is_nobodys(request):
        asked = Exchange.of(request)

        async def refuse() -> Response:
            if request.scope.get("route") not in native.probes.routes:
                await check_origin(asked)
                await require_key(asked)
            raise absent.refusal(request)

        return await answered(asked, refuse, absent.problem_of(request))
    route = request.scope.get("route")
    if not (
        isinstance(route, Route)
        and isinstance(error.detail, str)
        and is_body_allowed_for_status_code(error.status_code)
    ):
        return await http_exception_handler(request, error)
    return refusal(route.problem, error.status_code, error.detail, error.headers)


async def _refused(request: Request, error: Exception) -> Response:
    """Answer a request that a dependency of the service refused in a route added by another application."""

    async def refuse() -> Response:
        raise error

    return await answered(Exchange.of(request), refuse)


class _Watching:
    """The background task of a service, which starts with the first request at the latest."""

    def __init__(self, service: Service, followed: GenerationStore | None) -> None:
        self.service, self._followed = service, followed
        self._tasks: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """Watch for reloads from the start, and close tracing at the end."""
        self.begin()
        try:
            yield
        finally:
            if (task := self._tasks.pop(asyncio.get_running_loop(), None)) is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            if self.service.tracing is not None:
                self.service.tracing.close()

    def begin(self) -> None:
        """Start the background task on this event loop, unless it is running."""
        loop = asyncio.get_running_loop()
        if loop not in self._tasks:
            # Tests of an application may use a new loop for each request.
            self._tasks = {other: task for other, task in self._tasks.items() if not other.is_closed()}
            self._tasks[loop] = loop.create_task(self._watch())

    async def _watch(self) -> None:
        """Load new generations as long as the shared folder exists; without it the loaded models keep answering."""
        seconds = self.service.settings.watch_seconds
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.service.watch())
                if self._followed is not None and seconds:
                    tasks.create_task(follow(self._followed, seconds, self.service.reload))
        except* SurroundingsError as gone:
            _LOGGER.error("Models are not exchanged any more: %s", gone.exceptions[0])
