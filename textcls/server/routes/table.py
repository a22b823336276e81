"""Every route of the service: what it answers, who may ask, who answers.

Of this table are made the way of a request (`exchange`), the routes that metrics, logs and spans tell of, and the
service's description (`openapi`).
"""

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from textcls.server.inference.schemas import ClassifyAnswer, ClassifyRequest
from textcls.server.routes import native, pages, wire
from textcls.server.routes.routing import About, Asked, Reply, Route, Table, Tell
from textcls.server.routes.schemas import ErrorAnswer, Health, Models, Reloaded
from textcls.server.settings import Limits, Settings

_HTML: Final = b"text/html; charset=utf-8"
_ERRORS: Final = {
    401: "A key is needed",
    403: "Administration is switched off",
    404: "There is no such model",
    408: "The request did not arrive in time",
    409: "The new models cannot be used; the old ones go on answering",
    413: "Too many texts, too long a text, too large a body, or too large an explained answer",
    422: "No valid JSON, or not the fields documented here",
    429: "Too busy; try again after Retry-After seconds",
    500: "An error inside the server",
    503: "Stopping",
    504: "Not done within the deadline",
}


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorAnswer, "description": _ERRORS[status]} for status in statuses}


def _description(described: Sequence[Route], limits: Limits) -> Tell:
    """Return what answers with the description of these routes, which is written when it is first asked for."""

    @cache
    def written() -> bytes:
        from textcls.server.routes import openapi

        return openapi.written(described, limits)

    async def tell(asked: Asked) -> Reply:
        return Reply(200, await asyncio.to_thread(written))

    return tell


async def _docs(asked: Asked) -> Reply:
    from textcls.server.routes import openapi

    return Reply(200, openapi.page(), _HTML)


async def _docs_redirect(asked: Asked) -> Reply:
    from textcls.server.routes import openapi

    return Reply(200, openapi.redirect(), _HTML)


_NATIVE: Final = (
    Route(
        "POST",
        "/v1/classify",
        asks=native.classify,
        about=About(
            summary="Classify texts",
            body=ClassifyRequest,
            answer=ClassifyAnswer,
            responses=_errors(401, 404, 408, 413, 422, 429, 500, 503, 504),
        ),
    ),
    Route(
        "GET",
        "/v1/models",
        tells=native.models,
        about=About(summary="List the models served", answer=Models, responses=_errors(401, 500)),
    ),
    Route(
        "POST",
        "/v1/admin/reload",
        "admin",
        tells=native.reload,
        about=About(summary="Read the model files anew", answer=Reloaded, responses=_errors(401, 403, 409, 500)),
    ),
    Route(
        "GET",
        "/livez",
        "probe",
        tells=native.livez,
        about=About(summary="Is the process alive?", answer=Health),
    ),
    Route(
        "GET",
        "/readyz",
        "probe",
        tells=native.readyz,
        about=About(summary="Can texts be classified?", answer=Health, responses=_errors(503)),
    ),
    Route("GET", "/metrics", "metrics", tells=native.exposition),
)
_PAGE: Final = (
    Route(
        "GET",
        "/",
        "public",  # It holds no secret: it asks for a key itself.
        tells=pages.index,
        about=About(summary="The page, or that the service is alive", responses={200: {"content": {"text/html": {}}}}),
    ),
    Route("GET", "/page/{name}", "public", tells=pages.asset, label="/"),
)
_DOCS: Final = (
    Route("GET", "/docs", tells=_docs),
    Route("GET", "/docs/oauth2-redirect", tells=_docs_redirect, label="/docs"),
)
# What stands below these paths is guarded as they are, whether it is there or not.
_AREAS: Final = (
    Route("*", "/v1/admin/", "admin", label="other"),
    Route("*", "/page/", "public", label="/"),
)


def table(settings: Settings) -> Table:
    """Return all routes of a service with these settings."""
    described = [*_NATIVE, *(_PAGE if settings.page else ()), *wire.routes()]
    document = Route("GET", "/openapi.json", tells=_description(described, settings))
    return Table(
        [*described, document, *(_DOCS if settings.docs else ())],
        own=[*_NATIVE, *_PAGE, document, *_DOCS],
        areas=_AREAS,
    )
