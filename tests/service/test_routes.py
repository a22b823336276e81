"""What else is answered: health, the models, unknown paths, and the documentation of it all."""

import hashlib
import re

import httpx
import pytest
from fastapi.routing import APIRoute

from tests.service.clients import ask, message
from textcls import Classifier
from textcls.server.inference.schemas import ClassifyAnswer, ClassifyRequest
from textcls.server.routes import wire


def digest(classifier: Classifier) -> str:
    return hashlib.sha256(classifier.path.read_bytes()).hexdigest()


def test_health_is_answered(client: httpx.Client) -> None:
    assert client.get("/livez").json() == {"status": "live"}
    assert client.get("/readyz").json() == {"status": "ready"}


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/", "/v1/models"])
def test_a_probe_by_head_is_answered_as_get_is_without_the_body(client: httpx.Client, path: str) -> None:
    got, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
    assert client.get(path).status_code == 200  # on the same connection


def test_the_model_is_described(client: httpx.Client, classifier: Classifier) -> None:
    info = classifier.info
    (card,) = client.get("/v1/models").json()["models"]
    assert card == {
        "name": classifier.path.stem,
        "version": digest(classifier)[:12],
        "sha256": digest(classifier),
        "default": True,
        "labels": list(info.labels),
        "task": "single-label",
        "format_version": 1,
        "threshold": info.threshold,
        "max_tokens": info.max_tokens,
        "text_columns": ["text"],
        "temperature": info.temperature,
    }


def test_unknown_paths_and_wrong_methods_are_answered_in_the_same_form(client: httpx.Client) -> None:
    assert "no such path" in message(client.get("/secret"), 404)
    wrong = client.get("/v1/classify")
    assert message(wrong, 405) == "This path answers POST, not GET."
    assert wrong.headers["allow"] == "POST"


def test_openapi_documents_examples_limits_and_errors(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert "60,000 bytes" in document["info"]["description"]
    own = {"/v1/classify", "/v1/models", "/v1/admin/reload", "/livez", "/readyz", "/metrics"}
    formats = [route for router in wire.ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    assert set(document["paths"]) == own | {route.path_format for route in formats}
    names = [name for kinds in document["components"].values() for name in kinds]
    assert all(re.fullmatch(r"[a-zA-Z0-9._-]+", name) for name in names)
    classify = document["paths"]["/v1/classify"]["post"]
    refused = {"401", "403", "404", "408", "413", "415", "421", "422", "429", "500", "503", "504"}
    assert set(classify["responses"]) == {"200", *refused}
    for status in refused:
        schema = classify["responses"][status]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/ErrorAnswer"}
    schemas = document["components"]["schemas"]
    assert "HTTPValidationError" not in schemas
    for example in schemas["ClassifyRequest"]["examples"]:
        ClassifyRequest.model_validate(example)
        ask(client, **example)
    for example in schemas["ClassifyAnswer"]["examples"]:
        ClassifyAnswer.model_validate(example)
