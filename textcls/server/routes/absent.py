"""Answers to requests without a route: the methods that a path has, or that there is no such path."""

from collections.abc import Iterable
from typing import Final

from fastapi import Request
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from textcls.server import problems
from textcls.server.http.exchange import Exchange
from textcls.server.problems import RefusalError
from textcls.server.routes.answering import Problem, Route

METHODS: Final = ["DELETE", "GET", "OPTIONS", "PATCH", "POST", "PUT"]
# The route of paths that are matched only to answer that they do not exist.
_NOTHING: Final = "no_administration"


def is_nobodys(request: Request) -> bool:
    """Return whether no route, ours or others', answers a request: its path has no route, or only other methods."""
    if "endpoint" not in request.scope:
        return True
    methods = getattr(request.scope.get("route"), "methods", None)
    # Mounted applications refuse requests themselves.
    return methods is not None and request.method not in methods and not _answers(request, request.method)


def refusal(request: Request) -> RefusalError:
    """Return the error for a request without a route: 405 with the methods of its path, or 404."""
    if found := ", ".join(method for method in (*METHODS, "HEAD") if _answers(request, method)):
        return RefusalError(405, f"This path answers {found}, not {request.method}.", allow=found)
    return no_path(request)


def problem_of(request: Request) -> Problem:
    """Return what writes the error of a request without a route: that of the routes of its path, if there are any."""
    scope = {**request.scope, "root_path": Exchange.of(request).root_path}
    matching = (route for route in request.app.single_routes() if route.matches(scope)[0] != Match.NONE)
    return next((route.problem for route in matching if isinstance(route, Route)), problems.own)


def no_path(request: Request) -> RefusalError:
    """Return the error that the path of a request does not exist."""
    prefix = request.scope.get("root_path", "")
    return RefusalError(404, f"There is no such path; {prefix}/openapi.json lists the available ones.")


def is_answered(routes: Iterable[BaseRoute], scope: Scope) -> bool:
    """Return whether one of these routes answers a request."""
    found = (route.matches(scope) for route in routes)
    return any(
        match == Match.FULL and getattr(child.get("endpoint"), "__name__", "") != _NOTHING for match, child in found
    )


def _answers(request: Request, method: str) -> bool:
    """Return whether the path of a request has a route for this method."""
    # Mounted applications have changed the root path.
    scope = {**request.scope, "method": method, "root_path": Exchange.of(request).root_path}
    return is_answered(request.app.single_routes(), scope)
