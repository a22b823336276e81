"""One request and its answer: its key, the bounds of its body, who answers it, and what goes wrong meanwhile.

`Exchange.handle` is the way of every request, `routes` says whom it comes to.
"""

import logging
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final

from textcls.errors import TextclsError, http_status
from textcls.server import problems
from textcls.server.admission import auth
from textcls.server.admission.budget import FOR_BODIES, UNCOUNTED, Share
from textcls.server.inference.answers import Answer, Request, RequestReader
from textcls.server.monitoring import audit, logs
from textcls.server.problems import RefusalError
from textcls.server.routes.routing import Access, Headers, Names, Reply, RequestContext, Route
from textcls.server.service import Received, Service

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

_LOGGER: Final = logging.getLogger(__name__)


def _nothing() -> None:
    """Do nothing."""


class GoneError(Exception):
    """The caller has hung up: there is nobody to answer."""


class Exchange:
    """One request and its answer."""

    def __init__(
        self,
        scope: "Scope",
        receive: "Receive",
        send: "Send",
        service: Service,
        route: Route,
        names: Names,
        headers: "Mapping[bytes, bytes]",
        request_id: bytes,
    ) -> None:
        self.scope, self.receive, self.send, self.service = scope, receive, send, service
        self.headers = headers
        self.route, self.names = route, names
        self.request_id = request_id
        # What the request counts as.
        self.label = route.label or route.path
        self.status = 500
        self.answer: Answer | None = None
        self.texts: Sequence[str] = ()
        self.bytes = 0
        # The name of the key that was presented, and whether its limits have let it in.
        self.key: str | None = None
        self.entered = False
        # When the answer began to be sent; how long it takes to be taken is the caller's affair.
        self.answered = 0.0
        # Called before the last bytes go: what a caller knows to be answered is counted, even if we are killed then.
        self.before_the_end: Callable[[], None] = _nothing
        self.counted = False
        self._share = Share(service.budget)
        # What a shadow is asked as well, once the answer is on its way.
        self._shadowed: Request | None = None

    async def handle(self) -> None:
        """Answer.

        Raises:
            GoneError: there is nobody to answer.
        """
        try:
            try:
                self._admit()
                reader = self.route.reader
                reply = await (self._handle() if reader is None else self._classify(reader))
            except GoneError:
                raise
            except Exception as error:
                reply = self._refuse(error)
            await self._reply(reply)
            if self._shadowed is not None and self.answer is not None:
                self.service.shadowing.offer(self._shadowed, self.answer)
        finally:
            self._share.close()

    def forget(self) -> None:
        """Let go of the answer: nothing may hold it until a collector of garbage comes, which is made rare."""
        self.before_the_end, self.answer, self._shadowed = _nothing, None, None

    async def _classify(self, reader: Callable[..., RequestReader]) -> Reply:
        service, share = self.service, self._share
        read = reader(self.scope["headers"], **self.names)
        content_type = self.headers.get(b"content-type", b"")
        received = Received(service.generation, service.settings, await self._read(), content_type, read, share)
        self.answer = answer = await service.answer(received)
        self.texts, self._shadowed = received.texts, received.shadowed
        if len(answer.body) > UNCOUNTED:
            share.hold(len(answer.body))
        return Reply(200, answer.body, answer.kind, [answer.served.header, *answer.headers])

    async def _handle(self) -> Reply:
        route, scope = self.route, self.scope
        if route.handler is None:
            raise TypeError(f"{route.path} has nobody who answers")
        caller = audit.Caller("http", self.key, self.client)
        context = RequestContext(
            self.service, scope["method"], scope["path"], scope["headers"], caller, self._read, self._share
        )
        reply = await route.handler(context, **self.names)
        if len(reply.body) > UNCOUNTED:
            self._share.hold(len(reply.body))
        return reply

    def _refuse(self, error: Exception) -> Reply:
        """Return the answer to whatever went wrong, in the form of the path that was asked."""
        if isinstance(error, TextclsError):
            return self._problem(http_status(error), str(error))
        if isinstance(error, RefusalError):
            return self._problem(error.status, str(error), error.headers)
        # The last line of defence. The text of the error may hold that of the caller.
        _LOGGER.error(
            "%s while answering a request",
            type(error).__name__,
            extra={"request_id": self.request_id.decode(), "where": logs.places(error)},
        )
        return self._problem(500, problems.UNEXPECTED)

    def _problem(self, status: int, message: str, headers: Headers = ()) -> Reply:
        status, body = self.route.problem(status, message)
        return Reply(status, body, headers=headers)

    def _admit(self) -> None:
        """Refuse who may not ask, and what declares itself too large."""
        service, access, headers = self.service, self.route.access, self.headers
        # Whoever probes asks for an address, and learns nothing.
        if access != "probe":
            service.origins.check(self.scope["method"], headers, has_keys=bool(service.keys))
        if access == "admin":
            self._check_admin()
        elif service.keys and not self._is_public(access):
            self._check_key(access)
        if _declared(headers) > service.settings.max_body_bytes:
            raise self._too_large()

    def _is_public(self, access: Access) -> bool:
        if access == "metrics":
            return self.service.settings.public_metrics
        return access == "probe" or (access == "public" and self.scope["method"] == "GET")

    def _check_key(self, access: Access) -> None:
        service, key = self.service, auth.presented(self.scope["headers"])
        self.key = service.keys.name(key)
        # The admin key opens nothing but its own routes, and the metrics of which they are part.
        if self.key is None and not (access == "metrics" and key in service.admin_keys):
            raise self._unauthorized(key)
        if self.key is not None and service.key_limits is not None:
            service.key_limits.enter(self.key)
            self.entered = True

    def _check_admin(self) -> None:
        key = auth.presented(self.scope["headers"])
        if not self.service.admin_keys:
            raise RefusalError(403, "Administration is off: set --admin-key-file or TEXTCLS_ADMIN_KEY to switch it on.")
        self.key = self.service.admin_keys.name(key)
        if self.key is None:
            raise self._unauthorized(key)

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
            self.client, path=self.label, presented=bool(key), request_id=self.request_id.decode()
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

    async def _reply(self, reply: Reply) -> None:
        headers = [
            (b"content-type", reply.kind),
            (b"content-length", b"%d" % len(reply.body)),
            (b"x-request-id", self.request_id),
            *reply.headers,
        ]
        if self.service.draining:
            headers.append((b"connection", b"close"))
        self.status, self.answered = reply.status, perf_counter()
        await self.send({"type": "http.response.start", "status": reply.status, "headers": headers})
        body = reply.body
        if len(body) > UNCOUNTED:
            # It is waited for until it has been taken.
            await self.send({"type": "http.response.body", "body": body, "more_body": True})
            body = b""
        self.before_the_end()
        await self.send({"type": "http.response.body", "body": body})

    def _too_large(self) -> RefusalError:
        return RefusalError(
            413,
            f"The body is beyond max_body_bytes, which is {self.service.settings.max_body_bytes:,}: "
            "send fewer or shorter texts in a request.",
        )


def _declared(headers: "Mapping[bytes, bytes]") -> int:
    """Return the length that is declared: 0 if none is, and beyond every limit if it has too many digits."""
    value = headers.get(b"content-length", b"")
    if not value.isdigit():
        return 0
    return int(value) if len(value) < 19 else 1 << 62
