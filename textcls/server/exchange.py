"""One request and its answer: its key, the bounds of its body, who answers it, and what goes wrong meanwhile."""

import logging
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final

from textcls.errors import TextclsError, http_status
from textcls.server import answers, audit, auth, logs, pages, problems, wire
from textcls.server.answers import Answer, Form
from textcls.server.budget import FOR_BODIES, UNCOUNTED, Share
from textcls.server.problems import RefusalError
from textcls.server.service import Received, Service
from textcls.server.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        self.texts: Sequence[str] = ()
        self.bytes = 0
        # The name of the key that was presented, and whether its limits have let it in.
        self.key: str | None = None
        self.entered = False
        # When the answer began to be sent; how long it takes to be taken is the caller's affair.
        self.answered = 0.0
        self._share = Share(service.budget)
        self._started = self._replaced = False
        path = scope["path"]
        self.wire = None if path in _ROUTES else wire.find(scope["method"], path)
        # Any other path is made up by the caller: as a label it would grow without bound.
        self.route = path if path in _ROUTES else self.wire.route if self.wire else pages.route(path) or "other"

    async def handle(self, app: "ASGIApp") -> None:
        """Answer; what is neither `/v1/classify` nor of another wire format is left to `app`."""
        try:
            await self._handle(app)
        finally:
            self._share.close()

    async def _handle(self, app: "ASGIApp") -> None:
        extra: Headers = []
        try:
            self._admit()
            wire = self.wire
            if wire is not None and wire.tell is not None:
                status, content = wire.tell(self.service.generation, self.service.draining)
            elif wire is not None or (self.scope["path"] == CLASSIFY and self.scope["method"] == "POST"):
                answer = await self._classify(answers.read if wire is None else wire.form(self.scope["headers"]))
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

    async def _classify(self, form: Form) -> Answer:
        service, share = self.service, self._share
        content_type = next((value for name, value in self.scope["headers"] if name == b"content-type"), b"")
        received = Received(service.generation, service.settings, await self._read(), content_type, form, share)
        answer = await service.answer(received)
        if len(answer.body) > UNCOUNTED:
            share.hold(len(answer.body))
        self.answer, self.texts = answer, received.texts
        return answer

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
        # Whoever probes asks for an address, and learns nothing.
        if path not in _PUBLIC:
            service.origins.check(self.scope["method"], headers, has_keys=bool(service.keys))
        if path.startswith(_ADMIN):
            self._check_admin()
        elif service.keys and not _is_public(self.scope["method"], path, service.settings):
            key = auth.presented(headers)
            self.key = service.keys.name(key)
            # The admin key opens nothing but its own routes, and the metrics of which they are part.
            if self.key is None and not (path == "/metrics" and key in service.admin_keys):
                raise self._unauthorized(key)
            if self.key is not None and service.key_limits is not None:
                service.key_limits.enter(self.key)
                self.entered = True
        if _declared(headers) > service.settings.max_body_bytes:
            raise self._too_large()

    def _check_admin(self) -> None:
        key = auth.presented(self.scope["headers"])
        if not self.service.admin_keys:
            raise RefusalError(403, "Administration is off: set --admin-key-file or TEXTCLS_ADMIN_KEY to switch it on.")
        self.key = self.service.admin_keys.name(key)
        if self.key is None:
            raise self._unauthorized(key)
        # For the route, which tells who asked it.
        self.scope["state"] = {"caller": audit.Caller("http", self.key, self.client)}

    @property
    def client(self) -> str | None:
        """The caller's address, if it may be logged."""
        return audit.address(self.scope) if self.service.settings.log_addresses else None

    def leave(self) -> None:
        """Give back what the request took of the limits of its key."""
        if self.entered and self.key is not None and self.service.key_limits is not None:
            self.service.key_limits.leave(self.key)

    def _unauthorized(self, key: bytes) -> RefusalError:
        """Note that a key is refused, and return the refusal."""
        said = "This key is not valid" if key else "A key is needed"
        self.service.refusals.add(
            self.client, path=self.route, presented=bool(key), request_id=self.request_id.decode()
        )
        return RefusalError(401, f"{said}: send one as 'authorization: Bearer KEY'.", www_authenticate="Bearer")

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
        """Read a body that comes in pieces."""
        parts, held, more = [first], len(first), True
        while more:
            self._share.hold(held, FOR_BODIES)
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise GoneError
            part, more = message.get("body", b""), message.get("more_body", False)
            parts.append(part)
            held += len(part)
            self.bytes = held
            if held > self.service.settings.max_body_bytes:
                raise self._too_large()
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
        self.status, self.answered = status, perf_counter()
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send_body(content)

    async def _send_body(self, content: bytes) -> None:
        """Send the whole body of an answer; a large one is waited for until it has been taken."""
        if len(content) > UNCOUNTED:
            await self.send({"type": "http.response.body", "body": content, "more_body": True})
            content = b""
        await self.send({"type": "http.response.body", "body": content})

    async def _watched_send(self, message: "Message") -> None:
        """Send what the application answers, unless it is too much to be held."""
        if self._replaced:
            return
        if message["type"] == "http.response.start":
            headers = message.get("headers", ())
            try:
                if (size := _declared(headers)) > UNCOUNTED:
                    self._share.hold(size)
            except RefusalError as error:
                self._replaced = True
                await self._reply(*self._refuse(error))
                return
            self._started, self.status, self.answered = True, message["status"], perf_counter()
            message["headers"] = [*headers, (b"x-request-id", self.request_id)]
            if self.service.draining:
                message["headers"].append((b"connection", b"close"))
        elif not message.get("more_body"):
            await self._send_body(message.get("body", b""))
            return
        await self.send(message)

    def _too_large(self) -> RefusalError:
        return RefusalError(
            413,
            f"The body is beyond max_body_bytes, which is {self.service.settings.max_body_bytes:,}: "
            "send fewer or shorter texts in a request.",
        )


def _is_public(method: str, path: str, settings: Settings) -> bool:
    if path == "/metrics":
        return settings.public_metrics
    # By POST, / is another name of /predict.
    return path in _PUBLIC or (method == "GET" and (path in wire.PUBLIC or pages.is_public(path)))


def _declared(headers: "Iterable[tuple[bytes, bytes]]") -> int:
    """Return the length that is declared: 0 if none is, and beyond every limit if it has too many digits."""
    for name, value in headers:
        if name == b"content-length" and value.isdigit():
            return int(value) if len(value) < 19 else 1 << 62
    return 0
