"""`GET /`: the page that shows what the model says. To whoever does not ask for HTML, that the service is alive."""

from functools import cache
from pathlib import PurePosixPath
from typing import Final

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse

from textcls.display.html import site

# Beyond what the page forbids itself: nobody may frame it, and no type is guessed.
HEADERS: Final = {
    "content-security-policy": f"{site.POLICY}; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
router: Final = APIRouter()
_files = cache(site.served)


def route(path: str) -> str | None:
    """Return what the path counts as, if it is the page's."""
    return "/" if is_public(path) else None


def is_public(path: str) -> bool:
    """Say whether a path is the page's, which holds no secret: it asks for a key itself."""
    return path == "/" or path.startswith("/page/")


@router.get("/", summary="The page, or that the service is alive", responses={200: {"content": {"text/html": {}}}})
async def index(request: Request) -> Response:
    """Return the page to a browser, and that the service is alive to a program (as the KServe protocol has it)."""
    if "text/html" in request.headers.get("accept", ""):
        return _answer("index.html", vary="accept")
    return JSONResponse({"status": "alive"}, headers={"vary": "accept"})


@router.get("/page/{name}", include_in_schema=False)
async def asset(name: str) -> Response:
    """Return a file of the page."""
    return _answer(f"page/{name}")


def _answer(path: str, **headers: str) -> Response:
    content = _files().get(path)
    if content is None:
        raise HTTPException(404)
    return Response(content, media_type=_KINDS[PurePosixPath(path).suffix], headers={**HEADERS, **headers})
