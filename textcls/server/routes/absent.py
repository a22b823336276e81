"""What is answered where nobody answers: which methods a path knows, or that there is no such path."""

from typing import Final

from fastapi import Request
from starlette.routing import BaseRoute, Match

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
    return methods is not None and request.method not in methods and not _routes(request, request.method)


def refusal(request: Request) -> RefusalError:
    """Return what there is to say: 405 and the methods by which the path answers, or 404."""
    if found := ", ".join(method for method in (*METHODS, "HEAD") if _routes(request, method)):
        return RefusalError(405, f"This path answers {found}, not {request.method}.", allow=found)
    return no_path(request)


def no_path(request: Request) -> RefusalError:
    """Return that there is nothing by the path of a request."""
    prefix = request.scope.get("root_path", "")
    return RefusalError(404, f"There is no such path; {prefix}/openapi.json lists the available ones.")


def _routes(request: Request, method: str) -> list[BaseRoute]:
    """Return what answers the path of a request by this method."""
    found = []
    # Whatever has been mounted has made the root path its own.
    scope = {**request.scope, "method": method, "root_path": Exchange.of(request).root_path}
    for route in request.app.router.routes:
        match, child = route.matches(scope)
        if match == Match.FULL and getattr(child.get("endpoint"), "__name__", "") != _NOTHING:
            found.append(route)
    return found
