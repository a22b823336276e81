"""Every route of the service: what it answers, who may ask, who answers.

Of this table are made the way of a request (`exchange`), the routes that metrics, logs and spans tell of, and the
service's description (`openapi`).
"""

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from textcls.server.inference.schemas import ClassifyAnswer, ClassifyRequest
from textcls.server.routes import native, pages, teaching, wire
from textcls.server.routes.routing import Handler, Reply, RequestContext, Route, RouteDoc, RouteTable
from textcls.server.routes.schemas import (
    ErrorAnswer,
    Health,
    Labels,
    Models,
    Reloaded,
    TakenBack,
    Taught,
    TeachRequest,
)
from textcls.server.settings import Limits, Settings

_HTML: Final = b"text/html; charset=utf-8"
_ERRORS: Final = {
    401: "A key is needed",
    403: "Administration or teaching is switched off, or the page of another origin asks a service without keys",
    404: "There is no such model",
    408: "The request did not arrive in time",
    409: "The new models cannot be used, or the file cannot be rewritten; the old ones go on answering",
    413: "Too many texts, too long a text, too large a body, or too large an explained answer",
    421: "The service does not answer to this host",
    422: "No valid JSON, or not the fields documented here",
    429: "Too busy; try again after Retry-After seconds",
    500: "An error inside the server",
    503: "Stopping",
    504: "Not done within the deadline",
}


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorAnswer, "description": _ERRORS[status]} for status in statuses}


def _description(described: Sequence[Route], limits: Limits) -> Handler:
    """Return what answers with the description of these routes, which is written when it is first asked for."""

    @cache
    def written() -> bytes:
        from textcls.server.routes import openapi

        return openapi.written(described, limits)

    async def tell(asked: RequestContext) -> Reply:
        return Reply(200, await asyncio.to_thread(written))

    return tell


async def _docs(asked: RequestContext) -> Reply:
    from textcls.server.routes import openapi

    return Reply(200, openapi.page(), _HTML)


async def _docs_redirect(asked: RequestContext) -> Reply:
    from textcls.server.routes import openapi

    return Reply(200, openapi.redirect(), _HTML)


_NATIVE: Final = (
    Route(
        "POST",
        "/v1/classify",
        reader=native.classify,
        doc=RouteDoc(
            summary="Classify texts",
            body=ClassifyRequest,
            answer=ClassifyAnswer,
            responses=_errors(401, 403, 404, 408, 413, 421, 422, 429, 500, 503, 504),
        ),
    ),
    Route(
        "GET",
        "/v1/models",
        handler=native.models,
        doc=RouteDoc(summary="List the models served", answer=Models, responses=_errors(401, 421, 500)),
    ),
    Route(
        "POST",
        "/v1/admin/reload",
        "admin",
        handler=native.reload,
        doc=RouteDoc(summary="Reload the model files", answer=Reloaded, responses=_errors(401, 403, 409, 421, 500)),
    ),
    Route(
        "GET",
        "/v1/models/{name}/labels",
        "admin",
        handler=teaching.labels,
        doc=RouteDoc(
            summary="List the labels of a model, and what they were taught",
            answer=Labels,
            responses=_errors(401, 403, 404, 421, 422, 500),
        ),
    ),
    Route(
        "POST",
        "/v1/models/{name}/labels",
        "admin",
        handler=teaching.teach,
        doc=RouteDoc(
            summary="Teach a label by examples",
            body=TeachRequest,
            answer=Taught,
            responses=_errors(401, 403, 404, 408, 409, 413, 421, 422, 429, 500),
        ),
    ),
    Route(
        "DELETE",
        "/v1/models/{name}/labels/{label}",
        "admin",
        handler=teaching.take_back,
        rest=True,  # A label may hold a slash.
        doc=RouteDoc(
            summary="Take back what a label was taught",
            answer=TakenBack,
            responses=_errors(401, 403, 404, 409, 421, 422, 429, 500),
        ),
    ),
    Route(
        "GET",
        "/livez",
        "probe",
        handler=native.livez,
        doc=RouteDoc(summary="Is the process alive?", answer=Health),
    ),
    Route(
        "GET",
        "/readyz",
        "probe",
        handler=native.readyz,
        doc=RouteDoc(summary="Can texts be classified?", answer=Health, responses=_errors(503)),
    ),
    Route("GET", "/metrics", "metrics", handler=native.prometheus),
)
_PAGE: Final = (
    Route(
        "GET",
        "/",
        "public",  # It holds no secret: it asks for a key itself.
        handler=pages.index,
        doc=RouteDoc(summary="The page, or that the service is alive", responses={200: {"content": {"text/html": {}}}}),
    ),
    Route("GET", "/page/{name}", "public", handler=pages.asset, label="/"),
)
_DOCS: Final = (
    Route("GET", "/docs", handler=_docs),
    Route("GET", "/docs/oauth2-redirect", handler=_docs_redirect, label="/docs"),
)
# What stands below these paths is guarded as they are, whether it is there or not.
_AREAS: Final = (
    Route("*", "/v1/admin/", "admin", label="other"),
    Route("*", "/page/", "public", label="/"),
)


def table(settings: Settings) -> RouteTable:
    """Return all routes of a service with these settings."""
    described = [*_NATIVE, *(_PAGE if settings.page else ()), *wire.routes()]
    document = Route("GET", "/openapi.json", handler=_description(described, settings))
    return RouteTable(
        [*described, document, *(_DOCS if settings.docs else ())],
        own=[*_NATIVE, *_PAGE, document, *_DOCS],
        areas=_AREAS,
    )
