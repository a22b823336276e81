"""The service's description: OpenAPI, made by FastAPI of the routes as it has them.

Only who asks for it needs this module: FastAPI takes 8 MB, and a fifth of a second to load.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from fastapi import Security
from fastapi.openapi.docs import get_swagger_ui_html, get_swagger_ui_oauth2_redirect_html
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from textcls import __version__
from textcls.server.routes.routing import NAME, Route, RouteDoc
from textcls.server.settings import Limits

R = TypeVar("R", bound=APIRoute)

SUMMARY: Final = "Text classification that says what each token added to the answer."
_KEYS: Final = {
    "key": HTTPBearer(auto_error=False, scheme_name="key", description="An API key, if there are any."),
    "admin": HTTPBearer(auto_error=False, scheme_name="admin key"),
}


def written(routes: Iterable[Route], limits: Limits) -> bytes:
    """Return the description of these routes, as OpenAPI has it, as JSON."""
    return json.dumps(document(routes, limits), ensure_ascii=False, separators=(",", ":")).encode()


def page() -> bytes:
    """Return a page that shows the description; it loads its scripts from a public network."""
    shown = get_swagger_ui_html(
        openapi_url="/openapi.json", title="textcls - Swagger UI", oauth2_redirect_url="/docs/oauth2-redirect"
    )
    return bytes(shown.body)


def redirect() -> bytes:
    """Return what that page opens where a key is fetched from elsewhere."""
    return bytes(get_swagger_ui_oauth2_redirect_html().body)


def document(routes: Iterable[Route], limits: Limits) -> dict[str, Any]:
    """Return the description of these routes, as OpenAPI has it."""
    return get_openapi(
        title="textcls",
        version=__version__,
        summary=SUMMARY,
        description=description(limits),
        routes=[described(route, APIRoute) for route in routes if route.doc is not None],
    )


def description(limits: Limits) -> str:
    """Return what the description says of the service."""
    return (
        f"At most {limits.max_inputs:,} texts a request, {limits.max_characters:,} characters a text and "
        f"{limits.max_body_bytes:,} bytes a body. Errors of the service's own routes are "
        '`{"error": {"type", "message"}}`; other formats have forms of their own.'
    )


def described(route: Route, make: Callable[..., R], **more: Any) -> R:
    """Return a route as FastAPI has it, made by `make`, which takes `more`; without a doc the description has none."""
    doc = route.doc or RouteDoc(summary="")
    answers: Any = route.reader or route.handler
    name = doc.name or answers.__name__
    key = _KEYS.get(route.access)
    *parts, last = route.path.split("/")
    path = "/".join([*parts, f"{last.removesuffix('}')}:path}}"]) if route.rest else route.path
    return make(
        path,
        _endpoint(doc.body),
        include_in_schema=route.doc is not None,
        methods=[route.method],
        name=name,
        generate_unique_id_function=lambda described: described.name,
        summary=doc.summary,
        description=inspect.cleandoc(answers.__doc__ or "") if doc.text is None else doc.text,
        tags=None if doc.tag is None else [doc.tag],
        response_model=doc.answer,
        responses=dict(doc.responses),
        dependencies=None if key is None else [Security(key)],
        openapi_extra=_extra(route.path, doc.body),
        **more,
    )


def _endpoint(body: object) -> Callable[..., None]:
    """Return a function of whose signature FastAPI takes what a body holds; nobody calls it."""

    def endpoint(body: Any) -> None:
        """Do nothing."""

    if inspect.isclass(body):
        endpoint.__annotations__["body"] = body
        return endpoint
    return lambda: None


def _extra(path: str, body: type[BaseModel] | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what FastAPI cannot tell of a signature: the names in a path, and a body of which there is no model."""
    said: dict[str, Any] = {}
    if names := NAME.findall(path):
        text = {"type": "string"}
        said["parameters"] = [{"name": name, "in": "path", "required": True, "schema": text} for name in names]
    if isinstance(body, Mapping):
        said["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return said
