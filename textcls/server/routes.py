"""Every route of the service: what it answers, who may ask, who answers.

Of this table are made the way of a request (`exchange`), the routes that metrics, logs and spans tell of, and the
service's description (`openapi`).
"""

from typing import Any, Final

from textcls.server import native, openapi, pages, wire
from textcls.server.routing import About, Access, Route, Table
from textcls.server.schemas import ClassifyAnswer, ClassifyRequest, ErrorAnswer, Health, Models, Reloaded
from textcls.server.settings import Settings

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
        Access.ADMIN,
        tells=native.reload,
        about=About(summary="Read the model files anew", answer=Reloaded, responses=_errors(401, 403, 409, 500)),
    ),
    Route(
        "GET",
        "/livez",
        Access.PROBE,
        tells=native.livez,
        about=About(summary="Is the process alive?", answer=Health),
    ),
    Route(
        "GET",
        "/readyz",
        Access.PROBE,
        tells=native.readyz,
        about=About(summary="Can texts be classified?", answer=Health, responses=_errors(503)),
    ),
    Route("GET", "/metrics", Access.METRICS, tells=native.exposition),
)
_PAGE: Final = (
    Route(
        "GET",
        "/",
        Access.PUBLIC,  # It holds no secret: it asks for a key itself.
        tells=pages.index,
        about=About(summary="The page, or that the service is alive", responses={200: {"content": {"text/html": {}}}}),
    ),
    Route("GET", "/page/{name}", Access.PUBLIC, tells=pages.asset, label="/"),
)
_DOCS: Final = (
    Route("GET", "/docs", tells=openapi.page),
    Route("GET", "/docs/oauth2-redirect", tells=openapi.redirect, label="/docs"),
)
# What stands below these paths is guarded as they are, whether it is there or not.
_AREAS: Final = (
    Route("*", "/v1/admin/", Access.ADMIN, label="other"),
    Route("*", "/page/", Access.PUBLIC, label="/"),
)


def table(settings: Settings) -> Table:
    """Return all routes of a service with these settings."""
    described = [*_NATIVE, *(_PAGE if settings.page else ()), *wire.routes()]
    document = Route("GET", "/openapi.json", tells=openapi.telling(described, settings))
    return Table(
        [*described, document, *(_DOCS if settings.docs else ())],
        own=[*_NATIVE, *_PAGE, document, *_DOCS],
        areas=_AREAS,
    )
