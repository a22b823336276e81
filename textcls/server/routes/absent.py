"""What is answered where nobody answers: which methods a path knows, or that there is no such path."""

from collections.abc import Iterable
from typing import Final

from fastapi import Request
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from textcls.server.http.exchange import Exchange
from textcls.server.problems import RefusalError

METHODS: Final = ["DELETE", "GET", "OPTIONS", "PATCH", "POST", "PUT"]
# Paths that are matched only to say that there is nothing.
_NOTHING: Final = "no_administration"


def is_nobodys(request: Request) -> bool:
    """Say whether no route answers a request, of ours or of somebody else: its path is none, or has other methods."""
    if "endpoint" not in request.scope:
        return True
    methods = getattr(request.scope.get("route"), "methods", None)
    # What is mounted refuses by itself.
    return methods is not None and request.method not in methods and not _answers(request, request.method)


def refusal(request: Request) -> RefusalError:
    """Return what there is to say: 405 and the methods by which the path answers, or 404."""
    if found := ", ".join(method for method in (*METHODS, "HEAD") if _answers(request, method)):
        return RefusalError(405, f"This path answers {found}, not {request.method}.", allow=found)
    return no_path(request)


def no_path(request: Request) -> RefusalError:
    """Return that there is nothing by the path of a request."""
    prefix = request.scope.get("root_path", "")
    return RefusalError(404, f"There is no such path; {prefix}/openapi.json lists the available ones.")


def is_answered(routes: Iterable[BaseRoute], scope: Scope) -> bool:
    """Say whether one of some routes answers a request as it is."""
    found = (route.matches(scope) for route in routes)
    return any(
        match == Match.FULL and getattr(child.get("endpoint"), "__name__", "") != _NOTHING for match, child in found
    )


def _answers(request: Request, method: str) -> bool:
    """Say whether the path of a request is answered by this method."""
    # Whatever has been mounted has made the root path its own.
    scope = {**request.scope, "method": method, "root_path": Exchange.of(request).root_path}
    return is_answered(request.app.single_routes(), scope)
