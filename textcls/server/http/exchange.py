"""One request, from its first byte to the last of its answer: who asks, what it holds, and what is told of it."""

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

# Where the exchange of a request is found in its scope.
EXCHANGE: Final = "textcls.exchange"
# Where a connection that has answered the request itself leaves the status of its answer.
ENDED: Final = "textcls.ended"


class Exchange:
    """One request and its answer.

    Attributes:
        service: that is asked.
        request_id: the caller's, or one of our own.
        headers: the headers of the request; of several with one name the last.
        root_path: below which the service stands.
        key: the name of the key that was presented.
        entered: whether the limits of this key have let the request in.
        share: the share of the budget of the worker, for what the request holds.
        bytes: the size in bytes of the body, so far.
        texts: what was asked about, if the log is told to hold it.
        answer: what the model said.
        status: of HTTP.
        left: whether the application below, which waited for the rest, was told that there is nobody any more.
        answered: when the answer began to be sent; how long it takes to be taken is the caller's affair.
        counted: whether the metrics know of it.
    """

    def __init__(self, scope: "Scope", receive: "Receive", service: Service, request_id: bytes) -> None:
        self.service, self.request_id = service, request_id
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.key: str | None = None
        self.entered = False
        self.share = Share(service.budget)
        self.bytes = 0
        # One block that grows: parts of many bodies at once would leave holes that nothing else fits into.
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
        """Return the exchange of a request, which goes on with what middleware has made of that.

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
        """What the server, and middleware if there is some, say of the request."""
        return self._scope

    @property
    def route(self) -> str:
        """What the request counts as: the path of its route. One that is made up would be a label of its own."""
        route = self.scope.get("route")
        return "other" if route is None else str(route.path_format)

    @property
    def client(self) -> str | None:
        """The caller's address, if it may be logged."""
        return address(self.scope) if self.service.settings.log_addresses else None

    @property
    def caller(self) -> Caller:
        """Who asks, for the audit trail."""
        return Caller("http", self.key, self.client)

    @property
    def seconds(self) -> float:
        """How long it took until the answer began to be sent."""
        return (self.answered or perf_counter()) - self._begun

    async def receive(self) -> "Message":
        """Return the next message of the server, for the application below."""
        message = await self._receive()
        self.left = self.left or message["type"] == "http.disconnect"
        return message

    def begin_answer(self, status: int) -> None:
        """Note that an answer of this status begins to be sent, or that the client has disconnected."""
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
            ClientDisconnect: there is nobody to answer.
            RefusalError: the service is too busy, or the deadline has passed.
            TextclsError: the request is refused.
        """
        service, generation = self.service, self.service.generation
        texts: list[str] = []
        # Emptied when it is read, so that nothing holds the body any longer.
        bodies = [await self.body()]

        def request() -> answers.Request:
            found = read(generation, service.settings, bodies.pop(), self.headers.get(b"content-type", b""))
            texts.extend(found.texts if service.settings.log_texts else ())
            return found

        self.answer = answer = await service.answer(request, len(bodies[0]), self.share, self.gone)
        self.texts = texts
        return Ready(answer.body, kind=answer.kind, headers=[answer.served.header, *answer.headers])

    async def body(self) -> bytes:
        """Return the body, which is bounded.

        Raises:
            ClientDisconnect: there is nobody to answer.
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
            # Nobody else may have read it: that takes less than a request of Starlette.
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
        """Wait until there is nobody to answer. The body has been read.

        Whoever stands between may give the body again and again, which Starlette refuses to pass on: then nobody tells.
        """
        receive = self._receive if self._request is None else self._request.receive
        with suppress(RuntimeError, ExceptionGroup):
            if (await receive())["type"] == "http.disconnect":
                return
        await asyncio.Event().wait()

    def _take(self, part: bytes) -> None:
        """Take a part of the body, within its bounds."""
        self.bytes += len(part)
        self._check(self.bytes, self.service.settings.max_body_bytes)
        self._body.write(part)
        if self.bytes > UNCOUNTED:
            self.share.hold(self.bytes, body=True)

    def hold(self, answer: bytes) -> None:
        """Hold an answer until it has been taken.

        Raises:
            RefusalError: too much is held already.
        """
        if len(answer) > UNCOUNTED:
            self.share.hold(len(answer))

    def close(self) -> None:
        """Give back what the request holds, and what it took of the limits of its key."""
        self.share.close()
        if self.entered and self.key is not None and self.service.key_limits is not None:
            self.service.key_limits.leave(self.key)
        # Nothing may hold the answer until a collector of garbage comes, which is made rare.
        for scope in (self._given, self._scope):
            scope.pop(EXCHANGE, None)
        self.answer = self._request = None  # A request sends by what knows its exchange.

    def check_declared(self) -> None:
        """Refuse a body that declares itself too large.

        Raises:
            RefusalError: it does.
        """
        self._check(_declared(self.headers), self.service.settings.max_body_bytes)

    def _check(self, size: int, most: int) -> None:
        if size > most:
            raise RefusalError(
                413,
                f"The body is beyond max_body_bytes, which is {most:,}: send fewer or shorter texts in a request.",
            )


def _declared(headers: dict[bytes, bytes]) -> int:
    """Return the length that is declared: 0 if none is, and beyond every limit if it has too many digits."""
    value = headers.get(b"content-length", b"")
    if not value.isdigit():
        return 0
    return int(value) if len(value) < 19 else 1 << 62
