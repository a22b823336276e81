"""What is answered where nobody answers: which methods a path knows, or that there is no such path."""

from typing import Final

from fastapi import Request
from starlette.routing import Match

from textcls.server.problems import RefusalError

METHODS: Final = ["DELETE", "GET", "OPTIONS", "PATCH", "POST", "PUT"]
# Paths that are matched only to say that there is nothing.
_NOTHING: Final = "no_administration"


def is_nobodys(request: Request) -> bool:
    """Say whether no route answers a request, of ours or of somebody else: its path is none, or has other methods."""
    if "endpoint" not in request.scope:
        return True
    methods = getattr(request.scope.get("route"), "methods", None)
    return methods is not None and request.method not in methods


def refusal(request: Request) -> RefusalError:
    """Return what there is to say: 405 and the methods by which the path answers, or 404."""
    if found := ", ".join(method for method in METHODS if _answers(request, method)):
        return RefusalError(405, f"This path answers {found}, not {request.method}.", allow=found)
    return no_path(request)


def no_path(request: Request) -> RefusalError:
    """Return that there is nothing by the path of a request."""
    prefix = request.scope.get("root_path", "")
    return RefusalError(404, f"There is no such path; {prefix}/openapi.json lists the available ones.")


def _answers(request: Request, method: str) -> bool:
    """Say whether the path of a request is answered by another method."""
    for route in request.app.router.routes:
        match, found = route.matches({**request.scope, "method": method})
        if match == Match.FULL and getattr(found.get("endpoint"), "__name__", "") != _NOTHING:
            return True
    return False
