"""What every request passes: its id, its route, its count, its span and its line in the log.

No framework stands between this and the answer (`exchange`): routing, dependencies and response objects would cost more
than the model does.
"""

import logging
import re
import secrets
from functools import partial
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Final

from textcls.server.http.exchange import Exchange, GoneError
from textcls.server.inference.answers import Answer
from textcls.server.monitoring import logs, metrics
from textcls.server.routes.routing import RouteTable
from textcls.server.service import Service

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_ID: Final = re.compile(rb"[A-Za-z0-9._:/+=-]{1,64}")
_LOGGER: Final = logging.getLogger(logs.REQUESTS)


class Gate:
    """The service as an ASGI application."""

    def __init__(self, service: Service, table: RouteTable) -> None:
        self._service = service
        self._table = table
        self._prefix = secrets.token_hex(6).encode()
        self._numbers = count(1)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request and count it."""
        if scope["type"] != "http":
            raise ValueError(f"This application answers http alone, and this is {scope['type']}: configure uvicorn so.")
        if scope["method"] == "HEAD":
            # As balancers probe: answered as GET is; uvicorn leaves the body out.
            scope = {**scope, "method": "GET"}
        started, counts = perf_counter(), self._service.counts
        route, names = self._table.find(scope["method"], scope["path"])
        headers = dict(scope["headers"])
        exchange = Exchange(
            scope, receive, send, self._service, route, names, headers, self._request_id(headers.get(b"x-request-id"))
        )
        exchange.before_the_end = partial(self._count, exchange, started)
        counts.add(metrics.IN_PROGRESS)
        try:
            if self._service.tracing is None:
                await exchange.handle()
            else:
                with self._service.tracing.span(exchange, exchange.label):
                    await exchange.handle()
        except GoneError:
            exchange.status = 499
        finally:
            counts.add(metrics.IN_PROGRESS, by=-1)
            if not exchange.counted:
                self._count(exchange, started)
            if exchange.key is not None:
                exchange.leave()
            if self._service.settings.log_requests:
                _log(exchange, _seconds(exchange, started), self._service.settings.log_texts)
            exchange.forget()

    def _count(self, exchange: Exchange, started: float) -> None:
        exchange.counted, counts = True, self._service.counts
        counts.add(metrics.REQUESTS, exchange.label, str(exchange.status))
        counts.observe(metrics.SECONDS, [_seconds(exchange, started)], exchange.label)
        if exchange.key is not None:
            counts.add(metrics.KEY_REQUESTS, exchange.key, str(exchange.status))
        if exchange.status == 429:
            counts.add(metrics.LIMITED if _is_limited(exchange) else metrics.OVERLOADED)
        if exchange.answer is not None:
            _count_answer(counts, exchange.answer)
            served = exchange.answer.served
            self._service.drift.count(served.name, served.bins, exchange.answer.outcomes)

    def _request_id(self, given: bytes | None) -> bytes:
        """Return the caller's id of the request if it is one, or one of our own."""
        if given is not None and _ID.fullmatch(given):
            return given
        return b"%b-%x" % (self._prefix, next(self._numbers))


def _seconds(exchange: Exchange, started: float) -> float:
    """Return how long it took until the answer began to be sent."""
    return (exchange.answered or perf_counter()) - started


def _is_limited(exchange: Exchange) -> bool:
    """Say whether a request was turned away by the limits of its key."""
    return exchange.key is not None and not exchange.entered and exchange.service.key_limits is not None


def _count_answer(counts: metrics.Counts, answer: Answer) -> None:
    name, tokens, abstained, scores = answer.served.name, 0, 0, []
    predictions: dict[str, int] = {}
    for labels, score, abstains, read, _, _ in answer.outcomes:
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


def _log(exchange: Exchange, seconds: float, with_texts: bool) -> None:
    answer = exchange.answer
    extra: dict[str, object] = {
        "request_id": exchange.request_id.decode(),
        "method": exchange.scope["method"],
        # A path that is none of ours may hold anything, a text as well.
        "path": exchange.label,
        "status": exchange.status,
        "milliseconds": round(seconds * 1000, 3),
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
            # Of one label a text its name, of several a list of them.
            labels = [list(found.labels) if several else found.labels[0] for found in answer.outcomes]
            extra |= {"inputs": list(exchange.texts), "labels": labels}
    _LOGGER.info("request", extra=extra)
