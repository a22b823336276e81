"""The gate that every request passes: it assigns ids, counts, traces and logs.

The busiest route may be answered from here (`Ahead`), since FastAPI's routing takes longer than the model.
"""

import logging
import re
import secrets
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.requests import ClientDisconnect

from textcls.server.admission.budget import UNCOUNTED
from textcls.server.http.exchange import EXCHANGE, Exchange
from textcls.server.inference.answers import EncodedAnswer
from textcls.server.monitoring import logs, metrics
from textcls.server.service import Service

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ID_HEADER: Final = b"x-request-id"
_ID: Final = re.compile(rb"[A-Za-z0-9._:/+=-]{1,64}")
_LOGGER: Final = logging.getLogger(logs.REQUESTS)


class Ahead(NamedTuple):
    """A route that is answered without going through FastAPI, by the same functions.

    Attributes:
        route: the FastAPI route.
        answer: the function that answers it.
    """

    route: Any
    answer: "Callable[[Exchange], Awaitable[Response]]"


class Gate:
    """The outer layer around all routes of a service.

    Args:
        app: the application with the routes.
        service: the service that answers.
        ahead: the route that is answered from here.
        is_plain: returns whether nothing in `app` has to run before the route.
        is_answered: returns whether `app` has a route for a request.
    """

    def __init__(
        self,
        app: "ASGIApp",
        service: Service,
        ahead: Ahead | None,
        *,
        is_plain: Callable[[], bool],
        is_answered: "Callable[[Scope], bool]",
    ) -> None:
        self._app, self._service, self._ahead = app, service, ahead
        self._is_plain, self._is_answered = is_plain, is_answered
        self._prefix = secrets.token_hex(6).encode()
        self._numbers = count(1)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Have a request answered, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head = scope["method"] == "HEAD"
        if head and not self._is_answered(scope):
            # Load balancers probe with HEAD: answer it like GET, without the body.
            scope = {**scope, "method": "GET"}
        for of_mount in ("endpoint", "route"):
            # Until one of our routes answers, this is that of the application in which this one is mounted.
            scope.pop(of_mount, None)
        service = self._service
        outer: Exchange | None = scope.get(EXCHANGE)
        exchange = Exchange(scope, receive, service, self._id_of(scope) if outer is None else outer.request_id)
        scope[EXCHANGE] = exchange
        service.begin_request()
        try:
            with nullcontext() if service.tracing is None else service.tracing.span(exchange):
                await self._answer(exchange, scope, receive, self._sending(exchange, send, head=head))
        except ClientDisconnect:
            # Raised in middleware of others that reads the body: not to be logged as an error by the server.
            exchange.note_gone()
        finally:
            service.end_request()
            if not exchange.counted:
                self._count(exchange)
            if service.settings.log_requests:
                _log(exchange, service.settings.log_texts)
            exchange.close()
            if outer is not None:
                scope[EXCHANGE] = outer

    async def _answer(self, exchange: Exchange, scope: "Scope", receive: "Receive", send: "Send") -> None:
        ahead = self._ahead
        if (
            ahead is not None
            and scope["path"].removeprefix(scope.get("root_path", "")) == ahead.route.path
            and scope["method"] in ahead.route.methods
            and self._is_plain()
        ):
            scope["route"] = ahead.route
            response = await ahead.answer(exchange)
            await response(scope, receive, send)
        else:
            await self._app(scope, exchange.receive, send)

    def _sending(self, exchange: Exchange, send: "Send", *, head: bool) -> "Send":
        """Return a `send` that adds the request's id and counts the answer before its last bytes are sent.

        An answer that the caller has seen is thus counted, even if this process is killed right afterwards.
        """

        async def tell(message: "Message") -> None:
            if message["type"] == "http.response.start":
                # A service around this one uses the same request id.
                headers = [header for header in message.get("headers", ()) if header[0] != _ID_HEADER]
                headers.append((_ID_HEADER, exchange.request_id))
                message["headers"] = headers
                if self._service.draining:
                    headers.append((b"connection", b"close"))
                exchange.begin_answer(message["status"])
            elif message["type"] == "http.response.body":
                if head:
                    message["body"] = b""
                if not message.get("more_body", False):
                    if len(message.get("body", b"")) > UNCOUNTED:
                        # This waits until the client has read it.
                        await send({**message, "more_body": True})
                        message["body"] = b""
                    self._count(exchange)
            await send(message)

        return tell

    def _id_of(self, scope: "Scope") -> bytes:
        """Return the caller's id of the request if it is valid, else one of our own."""
        for name, value in scope["headers"]:
            if name == _ID_HEADER and _ID.fullmatch(value):
                given: bytes = value
                return given
        return b"%b-%x" % (self._prefix, next(self._numbers))

    def _count(self, exchange: Exchange) -> None:
        exchange.counted, counts = True, self._service.counts
        route, status = exchange.route, str(exchange.status)
        counts.add(metrics.REQUESTS, route, status)
        counts.observe(metrics.SECONDS, [exchange.seconds], route)
        if exchange.key is not None:
            counts.add(metrics.KEY_REQUESTS, exchange.key, status)
        if exchange.status == 429:
            counts.add(metrics.LIMITED if _is_limited(exchange) else metrics.OVERLOADED)
        if exchange.answer is not None:
            _count_answer(counts, exchange.answer)
            served = exchange.answer.served
            self._service.drift.count(served.name, served.bins, exchange.answer.outcomes)


def _is_limited(exchange: Exchange) -> bool:
    """Return whether a request was refused by the limits of its key."""
    return exchange.key is not None and not exchange.entered and exchange.service.key_limits is not None


def _count_answer(counts: metrics.Counts, answer: EncodedAnswer) -> None:
    name, tokens, abstained, scores = answer.served.name, 0, 0, []
    predictions: dict[str, int] = {}
    for labels, score, abstains, read, *_ in answer.outcomes:
        for label in labels:
            predictions[label] = predictions.get(label, 0) + 1
        scores.append(score)
        tokens += read
        abstained += abstains
    counts.observe(metrics.BATCH, [len(scores)], name)
    counts.observe(metrics.SCORES, scores, name)
    for label, times in predictions.items():
        counts.add(metrics.PREDICTIONS, name, label, by=times)
    counts.add(metrics.TOKENS, name, by=tokens)
    counts.add(metrics.ABSTENTIONS, name, by=abstained)
    for (column, why), times in answer.silent.items():
        counts.add(metrics.SILENT, name, column, why, by=times)


def _log(exchange: Exchange, with_texts: bool) -> None:
    answer = exchange.answer
    extra: dict[str, object] = {
        "request_id": exchange.request_id.decode(),
        "method": exchange.scope["method"],
        # The route and not the path, which may contain anything, even a text.
        "path": exchange.route,
        "status": exchange.status,
        "milliseconds": round(exchange.seconds * 1000, 3),
        "bytes": exchange.bytes,
    }
    if exchange.key is not None:
        extra["key"] = exchange.key
    if (client := exchange.client) is not None:
        extra["client"] = client
    if answer is not None:
        extra |= {"model": answer.served.name, "version": answer.served.version, "texts": len(answer.outcomes)}
        if with_texts:
            several = answer.served.classifier.info.several
            # The name of the label, or a list if a text may have several.
            labels = [list(found.labels) if several else found.labels[0] for found in answer.outcomes]
            extra |= {"inputs": list(exchange.texts), "labels": labels}
    _LOGGER.info("request", extra=extra)
