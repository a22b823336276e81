"""`GET /`: the page that shows what the model says. To whoever does not ask for HTML, that the service is alive."""

from functools import cache
from pathlib import PurePosixPath
from typing import Final

from textcls.display.html import site
from textcls.server import problems
from textcls.server.problems import RefusalError
from textcls.server.routes.routing import Reply, RequestContext

# Beyond what the page forbids itself: nobody may frame it, and no type is guessed.
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


async def index(asked: RequestContext) -> Reply:
    """Return the page to a browser, and that the service is alive to a program (as the KServe protocol has it)."""
    accepted = next((value for name, value in asked.headers if name == b"accept"), b"")
    if b"text/html" in accepted:
        return _file("index.html", _VARY)
    return Reply(200, b'{"status":"alive"}', headers=[_VARY])


async def asset(asked: RequestContext, name: str) -> Reply:
    """Return a file of the page."""
    return _file(f"page/{name}")


def _file(path: str, *headers: tuple[bytes, bytes]) -> Reply:
    content = _files().get(path)
    if content is None:
        raise RefusalError(404, problems.NO_PATH)
    return Reply(200, content, _KINDS[PurePosixPath(path).suffix], [*HEADERS, *headers])
