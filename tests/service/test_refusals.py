"""A request that cannot be answered is refused in one sentence, which says the limit and repeats no text."""

from typing import Any

import httpx
import pytest

from tests.service.clients import JSON, ask, message, post, refusal


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"inputs": []}, "inputs must hold at least one text."),
        ({"inputs": 5}, "inputs must be a text or a list of texts."),
        ({"inputs": ["a", None, 3]}, "inputs[1] must be a text."),
        ({"inputs": "a", "top_k": 0}, "top_k must be greater than or equal to 1."),
        ({"inputs": "a", "top_k": "3"}, "top_k must be a valid integer."),
        ({"inputs": "a", "threshold": 1.5}, "threshold must be less than or equal to 1."),
        ({"inputs": "a", "threshold": float("nan")}, "threshold must be a finite number."),
        ({"inputs": "a", "explain": 1}, 'explain must be true, false, or an object such as {"unit": "sentence"}.'),
        ({"inputs": "a", "\ud800": 1}, "The body holds an unpaired surrogate."),
        (
            {"inputs": "a", "topk": 3},
            "topk is not a field of this request; its fields are inputs, model, top_k, explain, threshold.",
        ),
        (
            {"input": "a"},
            "input is not a field of this request; its fields are inputs, model, top_k, explain, threshold "
            "(and 1 more problem).",
        ),
        ({str(i): 0 for i in range(1000)}, "The body has more fields than a request can have."),
        (["a"], 'The body must be a JSON object such as {"inputs": "a text"}.'),
        (b"", 'The body must be a JSON object such as {"inputs": "a text"}.'),
        (b'{"inputs": "a" "b"}', "The body is not valid JSON at character 15: expecting ',' delimiter."),
        (b'{"inputs": "a', "The body is not valid JSON at character 11: unterminated string starting."),
    ],
)
def test_a_wrong_request_is_refused_in_one_sentence(client: httpx.Client, body: Any, message: str) -> None:
    assert refusal(client, 422, body) == message


@pytest.mark.parametrize("body", [b'{"inputs": "\xff"}', b"[" * 50_000, b'{"top_k": ' + b"1" * 5000 + b"}"])
def test_unreadable_json_is_refused(client: httpx.Client, body: bytes) -> None:
    assert "cannot be read as JSON" in refusal(client, 422, body)


def test_a_body_of_another_type_is_told_the_header(client: httpx.Client) -> None:
    said = refusal(client, 422, {"inputs": "a"}, {"content-type": "application/x-www-form-urlencoded"})
    assert said == "The body must be JSON with the header 'content-type: application/json'."


def test_no_refusal_repeats_the_text(client: httpx.Client) -> None:
    for body in ({"inputs": ["secret", 1]}, {"inputs": "secret", "top_k": "secret"}, {"inputs": "secret " * 900}):
        assert "secret" not in client.post("/v1/classify", json=body).text
    assert len(refusal(client, 422, {"inputs": "a", "b" * 10_000: 1})) < 150


def test_too_many_texts_are_refused_with_the_limit(client: httpx.Client) -> None:
    said = refusal(client, 413, {"inputs": ["a"] * 9})
    assert said == "inputs holds 9 texts, and max_inputs is 8: send several requests."


def test_too_long_a_text_is_refused_with_the_limit(client: httpx.Client) -> None:
    said = refusal(client, 413, {"inputs": ["a" * 5000, "é" * 5001]})
    assert said == "inputs[1] has 5,001 characters, and max_characters is 5,000: shorten it or split it."


@pytest.mark.parametrize("path", ["/v1/classify", "/livez", "/nowhere"])
def test_a_declared_oversized_body_is_refused_with_the_limit(client: httpx.Client, path: str) -> None:
    said = message(client.post(path, content=b"a" * 60_001), 413)
    assert said.startswith("The body is beyond max_body_bytes, which is 60,000:")


@pytest.mark.parametrize("size", [60_001, 5_000_000])
def test_a_chunked_oversized_body_is_refused_while_it_is_read(client: httpx.Client, size: int) -> None:
    chunks = (b" " * min(10_000, size - i) for i in range(0, size, 10_000))
    said = message(client.post("/v1/classify", content=chunks, headers=JSON), 413)
    assert said.startswith("The body is beyond max_body_bytes, which is 60,000:")
    assert ask(client, inputs="and the next request is served")


def test_a_body_at_the_limit_is_served(client: httpx.Client) -> None:
    body = b'{"inputs": "a"}'.ljust(60_000)
    assert client.post("/v1/classify", content=body, headers=JSON).status_code == 200
    chunked = iter([body[:30_000], body[30_000:]])
    assert client.post("/v1/classify", content=chunked, headers=JSON).status_code == 200


def test_a_compressed_body_is_refused_by_its_name(client: httpx.Client) -> None:
    said = refusal(client, 415, {"inputs": "hello"}, {**JSON, "content-encoding": "gzip"})
    assert said.startswith("The body is compressed (gzip), and bodies are read as they are")
    assert post(client, b'{"inputs": "hello"}', {**JSON, "content-encoding": "identity"}).status_code == 200
