"""What a route is, and the table that says whose a request is."""

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from textcls.server import problems
from textcls.server.admission.budget import Share
from textcls.server.inference.answers import RequestReader
from textcls.server.problems import RefusalError
from textcls.server.service import Service

if TYPE_CHECKING:
    from pydantic import BaseModel

    from textcls.server.monitoring.audit import Caller

Headers = Sequence[tuple[bytes, bytes]]
Names = Mapping[str, str]
NAME: Final = re.compile(r"\{(\w+)\}")
_NO_NAMES: Final[Names] = {}


# Who is answered, where keys are set: an API key; the admin key, which must be set; either of them, or everybody if
# `public_metrics` is set; everybody, by GET; everybody, whatever host is asked for, since probes ask for an address.
Access = Literal["key", "admin", "metrics", "public", "probe"]


class Reply(NamedTuple):
    """An answer, ready to be sent.

    Attributes:
        status: of HTTP.
        body: the bytes.
        kind: its content type.
        headers: what it needs beyond type, length and id.
    """

    status: int
    body: bytes
    kind: bytes = b"application/json"
    headers: Headers = ()


class RequestContext(NamedTuple):
    """A request that is not about texts.

    Attributes:
        service: that is asked.
        method: of HTTP; HEAD is GET.
        path: without the query.
        headers: of the request.
        caller: who asks.
        read: reads the body, which is bounded.
        share: of the budget of the worker, for what the answer takes.
    """

    service: Service
    method: str
    path: str
    headers: Headers
    caller: "Caller"
    read: Callable[[], Awaitable[bytes]]
    share: Share


# From a `RequestContext`, and the names in the path as keywords.
Handler = Callable[..., Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteDoc:
    """What the service's description says of a route.

    Attributes:
        summary: of a few words.
        name: of the operation; None for that of the function which answers.
        text: the rest; None for the docstring of that function.
        tag: what it belongs to.
        body: what it takes: a model, or JSON Schema.
        answer: what it answers, if that is one model.
        responses: what else there is to say of an answer, by its status, as OpenAPI has it.
    """

    summary: str
    name: str | None = None
    text: str | None = None
    tag: str | None = None
    body: "type[BaseModel] | Mapping[str, Any] | None" = None
    answer: "type[BaseModel] | None" = None
    responses: Mapping[int | str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path, who may ask, who answers, and what its documentation says.

    Either `reader` or `handler` is there.

    Attributes:
        method: of HTTP; HEAD is answered as GET.
        path: may hold {names}, each of which stands for a part between slashes; one that ends it behind others holds
            slashes, too, if `rest` is set.
        access: who may ask.
        reader: from the headers and the names in the path to what reads the texts to classify from a body.
        handler: answers anything else, from a `RequestContext` and the names in the path.
        problem: writes an error, from status and message to status and body.
        label: what requests count as; empty for the path.
        doc: what the description says; None leaves it out.
        rest: whether the last name takes what is left of the path.
    """

    method: str
    path: str
    access: Access = "key"
    reader: Callable[..., RequestReader] | None = None
    handler: Handler | None = None
    problem: Callable[[int, str], tuple[int, bytes]] = problems.own
    label: str = ""
    doc: RouteDoc | None = None
    rest: bool = False

    def pattern(self) -> re.Pattern[str]:
        """Return what fits the paths of this route."""
        found = NAME.sub(r"(?P<\1>[^/]+)", self.path)
        # A name may hold anything, line breaks as well.
        return re.compile(found.removesuffix("[^/]+)") + ".+)" if self.rest else found, re.DOTALL)


class RouteTable:
    """All routes of a service.

    Args:
        routes: those that answer; of several that fit, an exact path counts for more than names, then the first.
        own: paths that are known, whether they answer or not: asked by another method, they are counted and guarded as
            these are. Any other path is made up by the caller: as a label it would grow without bound.
        areas: likewise, for whatever begins with their paths.
    """

    def __init__(self, routes: Iterable[Route], own: Iterable[Route] = (), areas: Iterable[Route] = ()) -> None:
        self.routes = tuple(routes)
        self._exact: dict[tuple[str, str], tuple[Route, Names]] = {}
        self._named: defaultdict[str, list[tuple[re.Pattern[str], Route]]] = defaultdict(list)
        for route in self.routes:
            if (route.method, route.path) in self._exact:
                raise ValueError(f"{route.method} {route.path} is answered twice: put one of them below a prefix.")
            if NAME.search(route.path):
                self._named[route.method].append((route.pattern(), route))
            else:
                self._exact[route.method, route.path] = route, _NO_NAMES
        self._own = {route.path: self._refusing(route) for route in own}
        self._areas = {route.path: self._refusing(route) for route in areas}
        self._other = self._refusing(Route("*", "other"))

    def find(self, method: str, path: str) -> tuple[Route, Names]:
        """Return the route of a request, and the names in its path; one that answers 404 or 405 if there is none."""
        found = self._exact.get((method, path))
        if found is not None:
            return found
        for pattern, route in self._named.get(method, ()):
            if match := pattern.fullmatch(path):
                return route, match.groupdict()
        areas = (refusing for area, refusing in self._areas.items() if path.startswith(area))
        return self._own.get(path) or next(areas, self._other), _NO_NAMES

    def methods(self, path: str) -> list[str]:
        """Return the methods by which a path answers."""
        found = {method for method, exact in self._exact if exact == path}
        for method, named in self._named.items():
            matches = (pattern.fullmatch(path) for pattern, _ in named)
            # Behind a colon stands what is asked of a model: no name has one.
            if any(match and ":" not in "".join(match.groups()) for match in matches):
                found.add(method)
        return sorted(found)

    def _refusing(self, route: Route) -> Route:
        return replace(route, reader=None, handler=self._refuse, label=route.label or route.path)

    async def _refuse(self, asked: RequestContext) -> Reply:
        if methods := ", ".join(self.methods(asked.path)):
            raise RefusalError(405, f"This path answers {methods}, not {asked.method}.", allow=methods)
        raise RefusalError(404, problems.NO_PATH)
