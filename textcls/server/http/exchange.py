"""One request, from its first byte to the last of its answer: its caller, the memory it holds, and what is logged."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from time import perf_counter
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect, Request

from textcls.server.admission.budget import UNCOUNTED, Share
from textcls.server.http.response import Ready
from textcls.server.inference import answers
from textcls.server.inference.answers import EncodedAnswer, RequestReader
from textcls.server.monitoring.audit import Caller, address
from textcls.server.problems import RefusalError
from textcls.server.service import Service

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope

# The key of a request's exchange in its scope.
EXCHANGE: Final = "textcls.exchange"
# Where a connection that has answered the request itself leaves the status of its answer.
ENDED: Final = "textcls.ended"


class Exchange:
    """One request and its answer.

    Attributes:
        service: the service that answers.
        request_id: the caller's id of the request, or one of our own.
        headers: the headers of the request; the last one if several have the same name.
        root_path: the path prefix of the service.
        key: the name of the key that was presented.
        entered: whether the limits of this key have admitted the request.
        share: the request's share of the worker's memory budget.
        bytes: the size of the body so far, in bytes.
        texts: the texts of the request, if texts are logged.
        answer: the model's answer.
        status: the HTTP status.
        left: whether the application below, while waiting for more, was told that the client disconnected.
        answered: when sending the answer started; how long the client takes to read it does not count.
        counted: whether the metrics have counted it.
    """

    def __init__(self, scope: "Scope", receive: "Receive", service: Service, request_id: bytes) -> None:
        self.service, self.request_id = service, request_id
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.key: str | None = None
        self.entered = False
        self.share = Share(service.budget)
        self.bytes = 0
        # One growing buffer: the parts of many bodies at once would fragment the memory.
        self._body = BytesIO()
        self.texts: Sequence[str] = ()
        self.answer: EncodedAnswer | None = None
        self.status = 500
        self.left = False
        self.answered = 0.0
        self.counted = False
        self.root_path = str(scope.get("root_path", ""))
        self._given, self._receive = scope, receive
        self._scope = scope
        self._request: Request | None = None
        self._begun = perf_counter()

    @classmethod
    def of(cls, request: Request) -> "Exchange":
        """Return the exchange of a request, which continues with the request as middleware has left it.

        Raises:
            RuntimeError: the request has not come through the application of a service.
        """
        exchange: Exchange | None = request.scope.get(EXCHANGE)
        if exchange is None:
            raise RuntimeError(
                f"{request.url.path} needs the whole application of textcls.server.create_app: mount that "
                "(`app.mount(prefix, create_app(...))`) instead of including its router or its dependencies alone."
            )
        if request is not exchange._request:
            exchange._request, exchange._scope = request, request.scope
            exchange.headers = dict(request.scope["headers"])
        return exchange

    @property
    def scope(self) -> "Scope":
        """The scope of the request, as set by the server and any middleware."""
        return self._scope

    @property
    def route(self) -> str:
        """The path of the request's route, for the metrics: made-up paths would each become a label value."""
        route = self.scope.get("route")
        return "other" if route is None else str(route.path_format)

    @property
    def client(self) -> str | None:
        """The caller's address, if it may be logged."""
        return address(self.scope) if self.service.settings.log_addresses else None

    @property
    def caller(self) -> Caller:
        """The caller, for the audit trail."""
        return Caller("http", self.key, self.client)

    @property
    def seconds(self) -> float:
        """The seconds until the answer started to be sent."""
        return (self.answered or perf_counter()) - self._begun

    async def receive(self) -> "Message":
        """Return the server's next message, for the application below."""
        message = await self._receive()
        self.left = self.left or message["type"] == "http.disconnect"
        return message

    def begin_answer(self, status: int) -> None:
        """Note that an answer of this status starts to be sent, or that the client has disconnected."""
        self.answered = perf_counter()
        if self.left or status == 499:
            self.note_gone()
        else:
            self.status = status

    def note_gone(self) -> None:
        """Note that there is no client to answer: it has disconnected, or the connection has refused the request."""
        self.status = self._given.get(ENDED, 499)

    async def classify(self, read: RequestReader) -> Ready:
        """Return the answer about the texts that `read` finds in the body.

        Raises:
            ClientDisconnect: the client has disconnected.
            RefusalError: the service is too busy, or the deadline has passed.
            TextclsError: the request is refused.
        """
        service, generation = self.service, self.service.generation
        texts: list[str] = []
        # Emptied when the body is parsed, so that nothing keeps it in memory.
        bodies = [await self.body()]

        def request() -> answers.Request:
            found = read(generation, service.settings, bodies.pop(), self.headers.get(b"content-type", b""))
            texts.extend(found.texts if service.settings.log_texts else ())
            return found

        self.answer = answer = await service.answer(request, len(bodies[0]), self.share, self.gone)
        self.texts = texts
        return Ready(answer.body, kind=answer.kind, headers=[answer.served.header, *answer.headers])

    async def body(self) -> bytes:
        """Return the body, which is limited in size.

        Raises:
            ClientDisconnect: the client has disconnected.
            RefusalError: it is compressed or too large, or too much is held already.
        """
        coding = self.headers.get(b"content-encoding", b"identity").strip().lower()
        if coding not in (b"", b"identity"):
            raise RefusalError(
                415,
                f"The body is compressed ({coding[:40].decode('latin-1')}), and bodies are read as they are: send it "
                "plain, without Content-Encoding.",
            )
        if self._request is not None:
            async for part in self._request.stream():
                self._take(part)
        else:
            # No middleware can have read the body: reading it here is faster than through a Starlette request.
            more = True
            while more:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                self._take(message.get("body", b""))
                more = message.get("more_body", False)
        body, self._body = self._body, BytesIO()
        return body.getvalue()

    async def gone(self) -> None:
        """Wait until the client disconnects, after the body has been read.

        Middleware may send the body again, which Starlette refuses to pass on: then a disconnect is never reported.
        """
        receive = self._receive if self._request is None else self._request.receive
        with suppress(RuntimeError, ExceptionGroup):
            if (await receive())["type"] == "http.disconnect":
                return
        await asyncio.Event().wait()

    def _take(self, part: bytes) -> None:
        """Add a part of the body, within the limits."""
        self.bytes += len(part)
        self._check(self.bytes, self.service.settings.max_body_bytes)
        self._body.write(part)
        if self.bytes > UNCOUNTED:
            self.share.hold(self.bytes, body=True)

    def hold(self, answer: bytes) -> None:
        """Reserve memory for an answer until the client has read it.

        Raises:
            RefusalError: too much is held already.
        """
        if len(answer) > UNCOUNTED:
            self.share.hold(len(answer))

    def close(self) -> None:
        """Release the request's memory share, and its place in the limits of its key."""
        self.share.close()
        if self.entered and self.key is not None and self.service.key_limits is not None:
            self.service.key_limits.leave(self.key)
        # Break reference cycles, so that the answer is freed without the garbage collector, which rarely runs.
        for scope in (self._given, self._scope):
            scope.pop(EXCHANGE, None)
        self.answer = self._request = None  # A request refers back to its exchange.

    def check_declared(self) -> None:
        """Refuse a body whose declared length is too large.

        Raises:
            RefusalError: it is.
        """
        self._check(_declared(self.headers), self.service.settings.max_body_bytes)

    def _check(self, size: int, most: int) -> None:
        if size > most:
            raise RefusalError(
                413,
                f"The body is beyond max_body_bytes, which is {most:,}: send fewer or shorter texts in a request.",
            )


def _declared(headers: dict[bytes, bytes]) -> int:
    """Return the declared length: 0 if there is none, and more than any limit if it has too many digits."""
    value = headers.get(b"content-length", b"")
    if not value.isdigit():
        return 0
    return int(value) if len(value) < 19 else 1 << 62
