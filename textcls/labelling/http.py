"""The page of `textcls label` and its few requests: for browsers on this machine that know the token.

The page itself contains no data, so anybody on the machine may load it. Each request for data carries the token, which
is in the fragment of the address: browsers send that to nobody. A request names this machine as its host, so that a
page from elsewhere whose name points here gets nothing (DNS rebinding), and its header `x-textcls-token` is one that
browsers let other origins send only after asking first, which is never allowed here.
"""

import json
import re
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any, Final

from textcls.errors import InputError, SurroundingsError, TextclsError, http_status
from textcls.labelling.session import Session

HOST: Final = "127.0.0.1"
TOKEN: Final = "x-textcls-token"
# An answer is a few labels; larger requests do not come from our page.
MOST_BYTES: Final = 100_000
# Seconds after which an idle connection is closed.
PATIENCE: Final = 60
# At most this many digits, which Python converts quickly.
_LENGTH: Final = re.compile("[0-9]{1,12}")
# A browser opens six per person; each connection has a thread.
MOST_CONNECTIONS: Final = 64
_NAME_CHARACTERS: Final = 100
_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Server(ThreadingHTTPServer):
    """Serve one session, and the files of the page by their paths."""

    daemon_threads = True
    # With the default backlog of five, simultaneous connections would wait seconds for their second attempt.
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, session: Session, files: Mapping[str, bytes], policy: str, port: int = 0) -> None:
        """Listen.

        Args:
            session: answers the requests.
            files: the files of the page; `/` returns `index.html`.
            policy: the Content-Security-Policy.
            port: 0 for any.

        Raises:
            SurroundingsError: the port is not free.
        """
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise SurroundingsError(
                f"Port {port} cannot be listened on: {error}; choose another with --port."
            ) from error
        self.session, self.files, self.policy = session, files, policy
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self.token = secrets.token_urlsafe(24)
        self.port = int(self.server_address[1])
        self.hosts = {f"{HOST}:{self.port}", f"localhost:{self.port}"}

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"http://{HOST}:{self.port}/#{self.token}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own; if there are too many, close it at once."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # No thread could be started, so none will release it.
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that has gone; anything else is a defect, and reported."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "textcls", ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        """Return a file of the page."""
        if not self._is_here():
            return
        path = self.path.partition("?")[0].strip("/") or "index.html"
        content = self.server.files.get(path)
        if content is None:
            self._send(HTTPStatus.NOT_FOUND, b"There is no such page.\n", "text/plain; charset=utf-8")
        else:
            self._send(HTTPStatus.OK, content, _KINDS[PurePosixPath(path).suffix])

    def do_POST(self) -> None:
        """Answer a request for data."""
        body = self._body()
        if body is None or not self._is_here():
            return
        if not secrets.compare_digest(self.headers.get(TOKEN, "").encode(), self.server.token.encode()):
            self._problem(HTTPStatus.FORBIDDEN, "Open the page by the whole address that textcls label has printed.")
            return
        route = _ROUTES.get(self.path)
        if route is None:
            self._problem(HTTPStatus.NOT_FOUND, "There is no such request.")
            return
        try:
            found = route(self.server.session, _object(body))
        except TextclsError as error:
            self._problem(HTTPStatus(http_status(error)), str(error))
            return
        self._send(HTTPStatus.OK, json.dumps(found).encode(), "application/json")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Write no log: the terminal is for requested output."""

    def _is_here(self) -> bool:
        if self.headers.get("host", "").lower() in self.server.hosts:
            return True
        self._problem(HTTPStatus.MISDIRECTED_REQUEST, "This page is for this machine alone.")
        return False

    def _body(self) -> bytes | None:
        length = self.headers.get("content-length", "")
        if not _LENGTH.fullmatch(length) or int(length) > MOST_BYTES:
            self.close_connection = True
            self._problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request has up to {MOST_BYTES:,} bytes.")
            return None
        return self.rfile.read(int(length))

    def _problem(self, status: HTTPStatus, message: str) -> None:
        self._send(status, json.dumps({"error": message}).encode(), "application/json")

    def _send(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in _headers(self.server.policy):
            self.send_header(name, value)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@cache
def _headers(policy: str) -> tuple[tuple[str, str], ...]:
    return (
        ("content-security-policy", f"{policy}; frame-ancestors 'none'; require-trusted-types-for 'script'"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError("The request is not JSON.") from error
    if not isinstance(found, dict):
        raise InputError("The request is not a JSON object.")
    return found


def _string(given: Mapping[str, Any], name: str) -> str:
    found = given.get(name)
    if not isinstance(found, str) or not found.strip() or len(found) > _NAME_CHARACTERS:
        raise InputError(f"{name} must be a string of up to {_NAME_CHARACTERS} characters.")
    if any(0xD800 <= ord(sign) < 0xE000 for sign in found):
        raise InputError(f"{name} holds half a character; write it without.")
    return found.strip()


def _row(given: Mapping[str, Any]) -> int:
    found = given.get("row")
    if type(found) is not int:
        raise InputError("row must be a whole number.")
    return found


def _labels(given: Mapping[str, Any]) -> list[str]:
    found = given.get("labels")
    if not isinstance(found, list) or not all(isinstance(label, str) for label in found):
        raise InputError("labels must be a list of strings.")
    return found


def _with_next(session: Session, who: str) -> dict[str, Any]:
    return {"text": session.next(who), "state": session.state()}


def _next(session: Session, given: Mapping[str, Any]) -> dict[str, Any]:
    return _with_next(session, _string(given, "who"))


def _state(session: Session, given: Mapping[str, Any]) -> dict[str, Any]:
    del given
    return {"state": session.state()}


def _answer(session: Session, given: Mapping[str, Any]) -> dict[str, Any]:
    who = _string(given, "who")
    by = _string(given, "by") if given.get("by") else None
    session.answer(who, _row(given), _labels(given), by)
    return _with_next(session, who)


def _skip(session: Session, given: Mapping[str, Any]) -> dict[str, Any]:
    who = _string(given, "who")
    session.skip(who, _row(given))
    return _with_next(session, who)


def _undo(session: Session, given: Mapping[str, Any]) -> dict[str, Any]:
    who = _string(given, "who")
    session.undo(who)
    return _with_next(session, who)


_ROUTES: Final[dict[str, Callable[[Session, Mapping[str, Any]], dict[str, Any]]]] = {
    "/api/next": _next,
    "/api/state": _state,
    "/api/answer": _answer,
    "/api/skip": _skip,
    "/api/undo": _undo,
}
