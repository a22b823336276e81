"""One request and its answer: its key, the bounds of its body, who answers it, and what goes wrong meanwhile."""

import logging
from typing import TYPE_CHECKING, Final

from textcls.errors import TextclsError, http_status
from textcls.server import auth, logs, pages, problems, wire
from textcls.server.answers import Answer, Form
from textcls.server.problems import RefusalError
from textcls.server.service import Service
from textcls.server.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    Headers = list[tuple[bytes, bytes]]

CLASSIFY: Final = "/v1/classify"
_PUBLIC: Final = ("/livez", "/readyz")
_ADMIN: Final = "/v1/admin/"
_ROUTES: Final = frozenset({CLASSIFY, *_PUBLIC, "/v1/models", "/v1/admin/reload", "/metrics", "/openapi.json", "/docs"})
_LOGGER: Final = logging.getLogger(__name__)
_JSON: Final = (b"content-type", b"application/json")


class GoneError(Exception):
    """The caller has hung up: there is nobody to answer."""


class Exchange:
    """One request and its answer."""

    def __init__(self, scope: "Scope", receive: "Receive", send: "Send", service: Service, request_id: bytes) -> None:
        self.scope, self.receive, self.send, self.service = scope, receive, send, service
        self.request_id = request_id
        self.status = 500
        self.answer: Answer | None = None
        self.bytes = 0
        self._started = False
        path = scope["path"]
        self.wire = None if path in _ROUTES else wire.find(scope["method"], path)
        # Any other path is made up by the caller: as a label it would grow without bound.
        self.route = path if path in _ROUTES else self.wire.route if self.wire else pages.route(path) or "other"

    async def handle(self, app: "ASGIApp") -> None:
        """Answer; what is neither `/v1/classify` nor of another wire format is left to `app`."""
        extra: Headers = []
        try:
            self._admit()
            wire = self.wire
            if wire is not None and wire.tell is not None:
                status, content = wire.tell(self.service.generation, self.service.draining)
            elif wire is not None or (self.scope["path"] == CLASSIFY and self.scope["method"] == "POST"):
                answer = await self._classify(None if wire is None else wire.form(self.scope["headers"]))
                status, content, extra = 200, answer.body, [answer.served.header, *answer.headers]
            else:
                await app(self.scope, self.receive, self._watched_send)
                return
        except GoneError:
            raise
        except Exception as error:
            status, content, extra = self._refuse(error)
            if self._started:
                return
        await self._reply(status, content, extra)

    async def _classify(self, form: Form | None) -> Answer:
        content_type = next((value for name, value in self.scope["headers"] if name == b"content-type"), b"")
        body = await self._read()
        self.answer = await self.service.answer(body, content_type, form)
        return self.answer

    def _refuse(self, error: Exception) -> "tuple[int, bytes, Headers]":
        """Return the answer to whatever went wrong, in the form of the path that was asked."""
        if isinstance(error, TextclsError):
            return *self._problem(http_status(error), str(error)), []
        if isinstance(error, RefusalError):
            return *self._problem(error.status, str(error)), error.headers
        # The last line of defence. The text of the error may hold that of the caller.
        _LOGGER.error(
            "%s while answering a request",
            type(error).__name__,
            extra={"request_id": self.request_id.decode(), "where": logs.places(error)},
        )
        return *self._problem(500, problems.UNEXPECTED), []

    def _admit(self) -> None:
        """Refuse who may not ask, and what declares itself too large."""
        service, path, headers = self.service, self.scope["path"], self.scope["headers"]
        if path.startswith(_ADMIN):
            self._check_admin()
        elif service.keys and not _is_public(self.scope["method"], path, service.settings):
            key = auth.presented(headers)
            # The admin key opens nothing but its own routes, and the metrics of which they are part.
            if key not in service.keys and not (path == "/metrics" and key in service.admin_keys):
                raise _unauthorized(key)
        for name, value in headers:
            if name == b"content-length" and _number(value) > service.settings.max_body_bytes:
                raise self._too_large()

    def _check_admin(self) -> None:
        key = auth.presented(self.scope["headers"])
        if not self.service.admin_keys:
            raise RefusalError(403, "Administration is off: set --admin-key-file or TEXTCLS_ADMIN_KEY to switch it on.")
        if key not in self.service.admin_keys:
            raise _unauthorized(key)

    async def _read(self) -> bytes:
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise GoneError
        body: bytes = message.get("body", b"")
        self.bytes = len(body)
        if len(body) > self.service.settings.max_body_bytes:
            raise self._too_large()
        return await self._read_rest(body) if message.get("more_body") else body

    async def _read_rest(self, first: bytes) -> bytes:
        """Read a body that comes in pieces; all that are being read share one bound."""
        service, parts, held, more = self.service, [first], len(first), True
        service.buffered += held
        try:
            while more:
                if service.buffered > service.settings.max_buffered_bytes:
                    raise RefusalError(
                        429,
                        "Too many bodies are arriving at once, and max_buffered_bytes is "
                        f"{service.settings.max_buffered_bytes:,}: try later.",
                        retry_after="1",
                    )
                message = await self.receive()
                if message["type"] == "http.disconnect":
                    raise GoneError
                part, more = message.get("body", b""), message.get("more_body", False)
                parts.append(part)
                held += len(part)
                service.buffered += len(part)
                self.bytes = held
                if held > service.settings.max_body_bytes:
                    raise self._too_large()
        finally:
            service.buffered -= held
        return b"".join(parts)

    def _problem(self, status: int, message: str) -> tuple[int, bytes]:
        return (status, problems.body(status, message)) if self.wire is None else self.wire.problem(status, message)

    async def _reply(self, status: int, content: bytes, extra: "Headers | None" = None) -> None:
        headers = [
            _JSON if self.answer is None else (b"content-type", self.answer.kind),
            (b"content-length", b"%d" % len(content)),
            (b"x-request-id", self.request_id),
            *(extra or ()),
        ]
        if self.service.draining:
            headers.append((b"connection", b"close"))
        self.status = status
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": content})

    async def _watched_send(self, message: "Message") -> None:
        if message["type"] == "http.response.start":
            self._started, self.status = True, message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.request_id)]
            if self.service.draining:
                message["headers"].append((b"connection", b"close"))
        await self.send(message)

    def _too_large(self) -> RefusalError:
        return RefusalError(
            413,
            f"The body is beyond max_body_bytes, which is {self.service.settings.max_body_bytes:,}: "
            "send fewer or shorter texts in a request.",
        )


def _unauthorized(key: bytes) -> RefusalError:
    said = "This key is not valid" if key else "A key is needed"
    return RefusalError(401, f"{said}: send one as 'authorization: Bearer KEY'.", www_authenticate="Bearer")


def _is_public(method: str, path: str, settings: Settings) -> bool:
    if path == "/metrics":
        return settings.public_metrics
    # By POST, / is another name of /predict.
    return path in _PUBLIC or (method == "GET" and (path in wire.PUBLIC or pages.is_public(path)))


def _number(value: bytes) -> int:
    """Return the declared length: 0 if it is not a number, and beyond every limit if it has too many digits."""
    if not value.isdigit():
        return 0
    return int(value) if len(value) < 19 else 1 << 62
