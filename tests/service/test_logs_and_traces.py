"""What a request leaves in the log and in a trace, and what it never leaves there."""

import json
import logging
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.service.clients import KEYS, bearer, client_of, post, refusal
from tests.service.processes import PATIENCE, command
from tests.service.server import service, serving
from tests.threaded import threaded
from textcls import Classifier
from textcls.server.admission.auth import Keys
from textcls.server.monitoring.logs import JsonLines
from textcls.server.monitoring.tracing import Tracing
from textcls.server.settings import Settings


def test_a_request_is_one_line_of_json_without_its_texts_unless_told(model_path: Path) -> None:
    for options, shown in (([], False), (["--log-texts"], True)):
        with command(model_path, "--log-level", "error", "--log-requests", *options) as (process, url):
            with client_of(url) as client:
                assert post(client, headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
                post(client, headers={"x-request-id": "not an id!"})
                client.get("/my%20secret")
            process.terminate()
            lines = [json.loads(line) for line in process.communicate(timeout=PATIENCE)[1].splitlines()]
        first, second, third = [line for line in lines if line["message"] == "request"]
        assert (first["request_id"], first["status"], first["texts"]) == ("mine-1", 200, 1)
        assert re.fullmatch(r"[0-9a-f]{12}-\d", second["request_id"])
        assert third["path"] == "other"
        assert first["level"] == "info"
        assert ("charged" in json.dumps(first)) == shown


class BrokenClassifier(Classifier):
    """Fails as no one foresaw, with the text in the error."""

    def predict(self, texts: Any, *, explain: bool = False, threshold: float | None = None) -> Any:
        raise RuntimeError(f"cannot digest {texts}")


def test_an_unexpected_error_shows_neither_traceback_nor_text(
    model_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), serving(service(BrokenClassifier.load(model_path))) as client:
        message = refusal(client, 500, {"inputs": "secret"})
    assert message == "Something went wrong inside the server; its log says where."
    (record,) = [record for record in caplog.records if record.name == "textcls.server.routes.answering"]
    line = JsonLines().format(record)
    assert re.search(r"RuntimeError while answering a request, at .*\.py:\d+ predict$", record.getMessage())
    assert " predict" in json.loads(line)["where"][-1]
    assert "secret" not in caplog.text + line


def test_an_error_tells_a_span_nothing_of_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exported = InMemorySpanExporter()
    monkeypatch.setattr(exporter, "OTLPSpanExporter", lambda: exported)
    tracing = Tracing()
    scope = {"headers": [], "method": "POST"}
    exchange = SimpleNamespace(scope=scope, status=500, answer=None, request_id=b"1", key=None, route="/v1/classify")
    with pytest.raises(RuntimeError, match="my card was charged twice"), tracing.span(exchange):
        raise RuntimeError("my card was charged twice")
    tracing.close()
    (span,) = exported.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 500
    assert "charged" not in span.to_json()


def test_spans_tell_of_the_request_and_never_of_its_text(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    received: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with threaded(ThreadingHTTPServer(("127.0.0.1", 0), Collector)) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        with serving(service(classifier, Settings(tracing=True), keys=Keys([f"desk:{KEYS[0]}"]))) as client:
            assert post(client, headers={"traceparent": parent, **bearer(KEYS[0])}).status_code == 200
    (span,) = trace.ExportTraceServiceRequest.FromString(received[0]).resource_spans[0].scope_spans[0].spans
    assert (span.name, span.trace_id.hex()) == ("POST /v1/classify", parent[3:35])
    facts = {each.key: each.value for each in span.attributes}
    assert facts["http.response.status_code"].int_value == 200
    assert facts["textcls.model"].string_value == "tickets"
    assert facts["textcls.key"].string_value == "desk"
    assert not any(b"charged" in body or KEYS[0].encode() in body for body in received)
