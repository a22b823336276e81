"""Errors as answers: each is {"error": {"type", "message"}}, and none repeats the caller's text."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import orjson
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from textcls.errors import TextclsError, http_status

_TYPES: Final = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    421: "misdirected",
    422: "invalid_request",
    429: "overloaded",
    500: "internal_error",
    503: "unavailable",
    504: "deadline_exceeded",
}
UNEXPECTED: Final = "Something went wrong inside the server; its log says where."


class RefusalError(Exception):
    """Raised anywhere while a request is handled, to answer it with this status."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]


def body(status: int, message: str) -> bytes:
    """Return the body of the answer to an error."""
    return orjson.dumps({"error": {"type": _TYPES.get(status, "error"), "message": message}})


def install(app: FastAPI) -> None:
    """Make `app` answer every error in this module's form."""
    for kind in (TextclsError, HTTPException, RefusalError, Exception):
        app.add_exception_handler(kind, _answer)


def _problem(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body(status, message), status, headers, "application/json")


async def _answer(request: Request, error: Exception) -> Response:
    if isinstance(error, TextclsError):
        return _problem(http_status(error), str(error))
    if isinstance(error, RefusalError):
        headers = {name.decode(): value.decode() for name, value in error.headers}
        return _problem(error.status, str(error), headers)
    if not isinstance(error, HTTPException):
        return _problem(500, UNEXPECTED)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return _problem(404, "There is no such path; /openapi.json lists those there are.")
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(_allowed(request))
        return _problem(405, f"This path answers {allowed}, not {request.method}.", {"allow": allowed})
    return _problem(error.status_code, error.detail, error.headers)


def _allowed(request: Request) -> list[str]:
    """Return the methods that the path answers; Starlette names those of the first route alone."""
    found = set()
    for method in ("GET", "POST"):
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes):
            found.add(method)
    return sorted(found)
