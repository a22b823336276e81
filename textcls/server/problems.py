"""Errors as answers: each is {"error": {"type", "message"}}, and none repeats the caller's text."""

import logging
import traceback
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from textcls.errors import TextclsError, http_status
from textcls.server.schemas import ClassifyRequest

_LOGGER: Final = logging.getLogger(__name__)
_TYPES: Final = {
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    422: "invalid_request",
    500: "internal_error",
    503: "unavailable",
}
_UNREADABLE: Final = (
    "The body cannot be read as JSON: it must be UTF-8, not deeply nested, and without numbers of thousands of digits."
)
_PHRASES: Final = {
    "extra_forbidden": f"is no field of this request; its fields are {', '.join(ClassifyRequest.model_fields)}",
    "is_instance_of": "must be a text",
    "list_type": "must be a text or a list of texts",
    "missing": "is missing",
    "too_short": "must hold at least one text",
}
_LONGEST_NAME: Final = 40


def install(app: FastAPI) -> None:
    """Make `app` answer every error in this module's form."""
    for kind in (TextclsError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _answer)
    app.add_middleware(Unexpected)


def problem(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the answer to an error."""
    return JSONResponse({"error": {"type": _TYPES.get(status, "error"), "message": message}}, status, headers)


class Unexpected:
    """ASGI middleware: an error nobody foresaw is a plain 500; the log says where, not with which values."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and catch what comes back."""
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched_send)
        except Exception as error:  # The last line of defence. The text of the error may hold that of the caller.
            where = "".join(traceback.format_tb(error.__traceback__))
            _LOGGER.error("%s while answering a request\n%s", type(error).__name__, where)
            if not started:
                answer = problem(500, "Something went wrong inside the server; its log says where.")
                await answer(scope, receive, send)


async def _answer(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, TextclsError):
        return problem(http_status(error), str(error))
    if isinstance(error, RequestValidationError):
        return problem(422, _sentence(error.errors()))
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == HTTPStatus.BAD_REQUEST:
        return problem(422, _UNREADABLE)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return problem(404, "There is no such path; /openapi.json lists those there are.")
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow", "another method")
        return problem(405, f"This path answers {allowed}, not {request.method}.", error.headers)
    return problem(error.status_code, error.detail, error.headers)


def _sentence(errors: Sequence[Mapping[str, Any]]) -> str:
    """Say the first problem, where it is, and how many more there are."""
    first = errors[0]
    where, kind = first["loc"][1:], first["type"]
    if kind == "json_invalid":
        reason = first["ctx"]["error"].removesuffix(" at")
        said = f"The body is no valid JSON at character {where[0]}: {reason[:1].lower()}{reason[1:]}"
    elif kind == "too_many_fields":
        said = first["msg"]
    elif not where and isinstance(first["input"], bytes):
        said = "The body must be JSON with the header 'content-type: application/json'"
    elif not where:
        said = 'The body must be a JSON object such as {"inputs": "a text"}'
    else:
        said = f"{_path(where)} {_PHRASES.get(kind) or first['msg'].replace('Input should', 'must', 1)}"
    more = len(errors) - 1
    return f"{said} (and {more:,} more problem{'s' if more > 1 else ''})." if more else f"{said}."


def _path(where: Sequence[str | int]) -> str:
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)[1:]
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
