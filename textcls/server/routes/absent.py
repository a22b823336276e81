"""What is answered where nobody answers: which methods a path knows, or that there is no such path."""

from typing import Final

from fastapi import Request
from starlette.routing import Match

from textcls.server import problems
from textcls.server.problems import RefusalError

METHODS: Final = ["DELETE", "GET", "OPTIONS", "PATCH", "POST", "PUT"]
# Paths that are matched only to say that there is nothing.
_NOTHING: Final = "no_administration"


def refusal(request: Request) -> RefusalError:
    """Return what there is to say: 405 and the methods by which the path answers, or 404."""
    if found := ", ".join(method for method in METHODS if _answers(request, method)):
        return RefusalError(405, f"This path answers {found}, not {request.method}.", allow=found)
    return RefusalError(404, problems.NO_PATH)


def _answers(request: Request, method: str) -> bool:
    """Say whether the path of a request is answered by another method."""
    for route in request.app.router.routes:
        match, found = route.matches({**request.scope, "method": method})
        if match == Match.FULL and getattr(found.get("endpoint"), "__name__", "") != _NOTHING:
            return True
    return False
