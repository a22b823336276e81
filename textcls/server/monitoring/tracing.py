"""OpenTelemetry spans of requests: an extra, off by default. They never contain a text or anything else of a body."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from textcls._util import optional_dependencies


class Tracing:
    """Spans, sent as the OTEL_* variables specify; the caller's trace is continued (`traceparent`)."""

    def __init__(self) -> None:
        with optional_dependencies.needed_by("--tracing"):
            from opentelemetry import propagate, trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        self._provider = TracerProvider(resource=Resource.create({"service.name": "textcls"}))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("textcls.server")
        self._extract, self._kind = propagate.extract, trace.SpanKind.SERVER

    @contextmanager
    def span(self, exchange: Any) -> Iterator[None]:
        """Trace a request, a `textcls.server.http.exchange.Exchange`, in a span that ends with the block."""
        scope = exchange.scope
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with self._tracer.start_as_current_span(
            scope["method"],
            context=self._extract(carrier),
            kind=self._kind,
            # The message of an exception may contain a text.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            finally:
                # The route is known only now.
                route = exchange.route
                span.update_name(f"{scope['method']} {route}")
                span.set_attribute("http.request.method", scope["method"])
                span.set_attribute("http.route", route)
                span.set_attribute("http.response.status_code", exchange.status)
                span.set_attribute("textcls.request_id", exchange.request_id.decode())
                if exchange.key is not None:
                    span.set_attribute("textcls.key", exchange.key)
                if exchange.answer is not None:
                    span.set_attribute("textcls.model", exchange.answer.served.name)
                    span.set_attribute("textcls.model_version", exchange.answer.served.version)
                    span.set_attribute("textcls.texts", len(exchange.answer.outcomes))

    def close(self) -> None:
        """Send all remaining spans."""
        self._provider.shutdown()
