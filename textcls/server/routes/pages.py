"""`GET /`: the page for trying texts, or, for clients that do not accept HTML, a sign that the service is alive."""

from functools import cache
from pathlib import PurePosixPath
from typing import Final

from fastapi import Request, Response

from textcls.display.html import site
from textcls.server.http.response import Ready
from textcls.server.routes import absent
from textcls.server.routes.answering import errors, router
from textcls.server.routes.dependencies import FOR_ALL, Asked

# No key needed: the page contains no secret, and asks for a key itself.
page = router(FOR_ALL)

# In addition to the page's own restrictions: no framing, and no guessing of content types.
HEADERS: Final = (
    (b"content-security-policy", f"{site.POLICY}; frame-ancestors 'none'; require-trusted-types-for 'script'".encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
)
_VARY: Final = (b"vary", b"accept")
_KINDS: Final = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".mjs": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
_files = cache(site.served)


@page.get(
    "/",
    summary="The page, or that the service is alive",
    responses={200: {"content": {"text/html": {}}}, **errors(421, 500)},
)
async def index(asked: Asked) -> Response:
    """Return the page to a browser, and to a program that the service is alive (as in the KServe protocol)."""
    if b"text/html" in asked.headers.get(b"accept", b""):
        return _file("index.html", _VARY)
    return Ready(b'{"status":"alive"}', headers=[_VARY])


@page.get("/page/{name}", include_in_schema=False)
async def asset(name: str, request: Request) -> Response:
    """Return a file of the page."""
    if f"page/{name}" not in _files():
        raise absent.no_path(request)
    return _file(f"page/{name}")


def _file(path: str, *headers: tuple[bytes, bytes]) -> Ready:
    return Ready(_files()[path], kind=_KINDS[PurePosixPath(path).suffix], headers=[*HEADERS, *headers])
