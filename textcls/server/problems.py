"""Error responses: each is {"error": {"type", "message"}}, and none repeats the caller's text."""

from typing import Final

import orjson
from starlette.exceptions import HTTPException

_TYPES: Final = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    421: "misdirected",
    422: "invalid_request",
    429: "overloaded",
    500: "internal_error",
    501: "not_implemented",
    503: "unavailable",
    504: "deadline_exceeded",
}
UNEXPECTED: Final = "Something went wrong inside the server; its log says where."


class RefusalError(HTTPException):
    """Raised anywhere during a request to answer it with this status, in any FastAPI application."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(status, message, {name.replace("_", "-"): value for name, value in headers.items()})

    def __str__(self) -> str:
        """Return the message."""
        return self.detail


def body(status: int, message: str) -> bytes:
    """Return the body of an error response."""
    return orjson.dumps({"error": {"type": _TYPES.get(status, "error"), "message": message}})


def own(status: int, message: str) -> tuple[int, bytes]:
    """Return status and body of an error in our own format; routes of other wire formats may change both."""
    return status, body(status, message)
