"""The service's OpenAPI description, made by FastAPI, for callers with a key if keys are set."""

import asyncio
import json
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html

from textcls.server.http.response import Ready
from textcls.server.routes.answering import router
from textcls.server.routes.dependencies import WITH_KEY
from textcls.server.settings import Limits

SUMMARY: Final = "Text classification that says what each token added to the answer."
_HTML: Final = b"text/html; charset=utf-8"
description = router(WITH_KEY)
# These pages load scripts from a public network.
docs = router(WITH_KEY)


def text(limits: Limits) -> str:
    """Return the description's text about the service."""
    return (
        f"At most {limits.max_inputs:,} texts a request, {limits.max_characters:,} characters a text and "
        f"{limits.max_body_bytes:,} bytes a body. Errors of the service's own routes are "
        '`{"error": {"type", "message"}}`; other formats have forms of their own.'
    )


@description.get("/openapi.json", include_in_schema=False)
async def document(request: Request) -> Response:
    """Return the OpenAPI description."""
    return Ready(await asyncio.to_thread(_written, request.app, request.scope.get("root_path", "")))


def _written(app: FastAPI, prefix: str) -> bytes:
    document: dict[str, Any] = app.openapi()
    if prefix:
        document = {**document, "servers": [{"url": prefix}]}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


@docs.get("/docs", include_in_schema=False)
async def page(request: Request) -> Response:
    """Return a page that shows the description."""
    prefix = request.scope.get("root_path", "")
    shown = get_swagger_ui_html(openapi_url=f"{prefix}/openapi.json", title="textcls - Swagger UI")
    return Ready(bytes(shown.body), kind=_HTML)
