"""FastAPI routes whose errors have the form of their wire format, and their OpenAPI description."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from textcls.errors import TextclsError, http_status
from textcls.server import problems
from textcls.server.http.exchange import Exchange
from textcls.server.http.response import Ready
from textcls.server.inference import answers
from textcls.server.monitoring import logs
from textcls.server.problems import RefusalError
from textcls.server.routes.schemas import ErrorAnswer

if TYPE_CHECKING:
    from fastapi.params import Depends
    from pydantic import BaseModel

# Makes status and body of an error from status and message.
Problem = Callable[[int, str], tuple[int, bytes]]
_LOGGER: Final = logging.getLogger(__name__)
_ERRORS: Final = {
    401: "A key is needed",
    403: "Administration is switched off, or the page of another origin asks a service without keys",
    404: "There is no such model",
    408: "The request did not arrive in time",
    409: "The new models cannot be used; the old ones go on answering",
    413: "Too many texts, too long a text, too large a body, or too large an explained answer",
    415: "The body is compressed",
    421: "The service does not answer to this host",
    422: "No valid JSON, or not the fields documented here",
    429: "Too busy; try again after Retry-After seconds",
    500: "An error inside the server",
    503: "Stopping",
    504: "Not done within the deadline",
}


async def answered(
    asked: Exchange, answer: Callable[[], Awaitable[Response]], problem: Problem = problems.own
) -> Response:
    """Return the result of `answer`, or an error response if anything goes wrong."""
    try:
        asked.check_declared()
        response = await answer()
        asked.hold(bytes(response.body))
    except ClientDisconnect:
        return Ready(b"", 499)
    except TextclsError as error:
        return refusal(problem, http_status(error), str(error))
    except RefusalError as error:
        return refusal(problem, error.status_code, error.detail, error.headers)
    except (HTTPException, RequestValidationError):
        # From dependencies of others.
        raise
    except Exception as error:
        if _is_awaited(asked, error):
            raise
        # The last line of defence. The error's message may contain the caller's text, so it is not logged.
        where = logs.places(error)
        facts = {"request_id": asked.request_id.decode(), "where": where}
        # The log of a host application may show only the message.
        _LOGGER.error("%s while answering a request, at %s", type(error).__name__, where[-1], extra=facts)
        return refusal(problem, 500, problems.UNEXPECTED)
    return response


def _is_awaited(asked: Exchange, error: Exception) -> bool:
    """Return whether others have registered a handler for this kind of error."""
    handlers = getattr(asked.scope.get("app"), "exception_handlers", {})
    return any(kind in handlers for kind in type(error).__mro__ if kind is not Exception)


def refusal(problem: Problem, status: int, message: str, headers: Mapping[str, str] | None = None) -> Ready:
    """Return an error response in the form of `problem`."""
    status, body = problem(status, message)
    raw_headers = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    return Ready(body, status, headers=raw_headers)


class Route(APIRoute):
    """A FastAPI route whose errors have the form of the service's own routes."""

    problem: "ClassVar[staticmethod[[int, str], tuple[int, bytes]]]" = staticmethod(problems.own)

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Return FastAPI's handler, wrapped so that errors become answers."""
        answer = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await answered(Exchange.of(request), partial(answer, request), self.problem)

        return handle


def router(dependencies: "Sequence[Depends]", problem: Problem | None = None, *, tag: str | None = None) -> APIRouter:
    """Return a router whose routes are like `Route`.

    Args:
        dependencies: the dependencies of each route.
        problem: writes an error; None for the service's own form.
        tag: the tag of each route.
    """
    route = Route if problem is None else type("Route", (Route,), {"problem": staticmethod(problem)})
    return APIRouter(
        route_class=route,
        dependencies=[*dependencies],
        tags=None if tag is None else [tag],
        generate_unique_id_function=lambda described: described.name,
    )


def json(body: "BaseModel | Mapping[str, Any]", status: int = 200) -> Ready:
    """Return an answer as JSON."""
    return Ready(answers.encode(body if isinstance(body, Mapping) else body.model_dump()), status)


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the description of errors in the form of the service's own routes."""
    return {status: {"model": ErrorAnswer, "description": _ERRORS[status]} for status in statuses}


def takes(body: "type[BaseModel] | Mapping[str, Any]") -> dict[str, Any]:
    """Return the description of a body that the handler reads itself, given as a model or JSON Schema.

    FastAPI would first read all of it, and on the event loop. `application` adds the model to the description.
    """
    schema = body if isinstance(body, Mapping) else {"$ref": f"#/components/schemas/{body.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
