"""The service over real sockets: a real uvicorn in a thread, or the real command in a process of its own."""

import hashlib
import json
import logging
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from textcls import Classifier, Prediction, SurroundingsError
from textcls.cli import main
from textcls.server import registry, wire
from textcls.server.listening import listen
from textcls.server.logs import JsonLines
from textcls.server.schemas import ClassifyAnswer, ClassifyRequest
from textcls.server.server import Server
from textcls.server.service import Service
from textcls.server.settings import Settings

SETTINGS = Settings(max_inputs=8, max_characters=5_000, max_body_bytes=60_000)
TEXTS = [
    "My card was charged twice",
    "",
    "naïve café 👩‍👩‍👧 e\u0301: 私の荷物はどこですか",
    "nul\0here and\u2003exotic\u00a0spaces",
    "half an emoji: \ud83d",
    "password " * 300,
]
JSON = {"content-type": "application/json"}


def service(classifier: Classifier, settings: Settings = SETTINGS) -> Service:
    """A service of one model."""
    return Service(registry.generation(1, [registry.serve(classifier)]), settings)


@contextmanager
def serving(service: Service) -> Iterator[httpx.Client]:
    """A client of `service`, which a server in a thread answers meanwhile."""
    with listen("127.0.0.1", 0) as listener:
        server = Server(service, drain_seconds=0)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=20) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(20)


@contextmanager
def command(model: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running `textcls serve`, and the address that it printed."""
    code = "from textcls.cli import main; main(prog_name='textcls')"
    arguments = [sys.executable, "-u", "-c", code, "serve", str(model), "--port", "0", *options]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.fullmatch(r"Serving .+ on (http://127\.0\.0\.1:\d+)\n", process.stdout.readline())
            assert found
            yield process, found[1]
        finally:
            process.kill()


@pytest.fixture(scope="module")
def client(classifier: Classifier) -> Iterator[httpx.Client]:
    with serving(service(classifier)) as client:
        yield client


def digest(classifier: Classifier) -> str:
    return hashlib.sha256(classifier.path.read_bytes()).hexdigest()


def ask(client: httpx.Client, **fields: Any) -> dict[str, Any]:
    # json.dumps writes unpaired surrogates as escapes, as JavaScript does; httpx's own encoder would fail.
    response = client.post("/v1/classify", content=json.dumps(fields), headers=JSON)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def refusal(client: httpx.Client, status: int, body: Any, headers: dict[str, str] = JSON) -> str:
    """Send what must be refused; return the message."""
    content = body if isinstance(body, bytes) else json.dumps(body)
    return refusal_text(client.post("/v1/classify", content=content, headers=headers), status)


def refusal_text(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    answer = response.json()
    assert list(answer) == ["error"]
    assert list(answer["error"]) == ["type", "message"]
    message: str = answer["error"]["message"]
    assert message.endswith(".")
    return message


def as_json(prediction: Prediction, labels: int | None = None) -> dict[str, Any]:
    """What the service has to answer, written by way of the Python API alone."""
    top = prediction.top(labels)
    result: dict[str, Any] = {
        "label": prediction.label,
        "score": prediction.score,
        "labels": [score._asdict() for score in top],
        "decision": prediction.decision,
        "truncated": prediction.truncated,
    }
    if (explanation := prediction.explanation) is not None:
        names = [score.label for score in top]
        result["runner_up"] = explanation.runner_up
        result["completeness_error"] = explanation.completeness_error
        result["bias"] = {name: explanation.bias[name] for name in names}
        result["logits"] = {name: explanation.logits[name] for name in names}
        result["tokens"] = [
            {
                "text": token.text,
                "start": token.start,
                "end": token.end,
                "attention": token.attention,
                "contributions": {name: token.contributions[name] for name in names},
                "known": token.known,
            }
            for token in explanation.tokens
        ]
    return result


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("text", TEXTS, ids=["plain", "empty", "unicode", "nul", "surrogate", "truncated"])
def test_http_answers_exactly_what_python_predicts(
    client: httpx.Client, classifier: Classifier, text: str, explain: bool
) -> None:
    answer = ask(client, inputs=text, explain=explain)
    assert answer["results"] == [as_json(classifier.predict(text, explain=explain))]
    assert answer["model"] == {
        "name": classifier.path.stem,
        "version": digest(classifier)[:12],
        "format_version": 1,
        "labels": len(classifier.labels),
    }


@pytest.mark.parametrize("explain", [False, True])
def test_a_list_is_a_batch_in_the_same_order(client: httpx.Client, classifier: Classifier, explain: bool) -> None:
    answer = ask(client, inputs=TEXTS, explain=explain)
    assert answer["results"] == [as_json(p) for p in classifier.predict(TEXTS, explain=explain)]


def test_a_list_of_one_gives_what_the_text_alone_gives(client: httpx.Client) -> None:
    assert ask(client, inputs=[TEXTS[0]]) == ask(client, inputs=TEXTS[0])


def test_top_k_limits_labels_contributions_and_bias(client: httpx.Client, classifier: Classifier) -> None:
    (result,) = ask(client, inputs=TEXTS[0], top_k=2, explain=True)["results"]
    assert result == as_json(classifier.predict(TEXTS[0], explain=True), 2)
    assert len(result["labels"]) == len(result["bias"]) == 2


def test_top_k_beyond_the_labels_gives_all_of_them(client: httpx.Client, classifier: Classifier) -> None:
    (result,) = ask(client, inputs=TEXTS[0], top_k=10**30)["results"]
    assert {score["label"] for score in result["labels"]} == set(classifier.labels)


def test_without_explain_there_is_nothing_of_an_explanation(client: httpx.Client) -> None:
    explained = {"tokens", "bias", "logits", "runner_up", "completeness_error", "known"}
    assert not explained & set(ask(client, inputs="text")["results"][0])


def test_parts_of_an_answer_add_up_to_its_logits(client: httpx.Client) -> None:
    (result,) = ask(client, inputs=TEXTS[0], explain=True)["results"]
    assert result["completeness_error"] < 1e-5
    assert result["runner_up"] == result["labels"][1]["label"]
    for label, logit in result["logits"].items():
        parts = result["bias"][label] + sum(token["contributions"][label] for token in result["tokens"])
        assert parts == pytest.approx(logit, abs=1e-5)


def test_each_token_says_whether_the_model_knows_it(client: httpx.Client) -> None:
    answer = ask(client, inputs="my zqxv card", explain=True)
    assert [token["known"] for token in answer["results"][0]["tokens"]] == [True, False, True]
    assert ClassifyAnswer.model_validate(answer).model_dump(exclude_unset=True) == answer


def test_offsets_are_code_points_of_the_text_as_sent(client: httpx.Client) -> None:
    text = "👍🏽 Größe: \ud83d 荷物"
    (result,) = ask(client, inputs=text, explain=True)["results"]
    assert [text[t["start"] : t["end"]] for t in result["tokens"]] == [t["text"] for t in result["tokens"]]
    assert "".join(t["text"] for t in result["tokens"]) == text.replace(" ", "")


@pytest.mark.parametrize(("threshold", "decision"), [(0, "accept"), (1, "abstain"), (None, "accept")])
def test_the_threshold_decides_about_abstaining(client: httpx.Client, threshold: float | None, decision: str) -> None:
    assert ask(client, inputs="hello", threshold=threshold)["results"][0]["decision"] == decision


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
        ({"inputs": "a", "explain": None}, "explain must be a valid boolean."),
        (
            {"inputs": "a", "topk": 3},
            "topk is no field of this request; its fields are inputs, model, top_k, explain, threshold.",
        ),
        (
            {"input": "a"},
            "input is no field of this request; its fields are inputs, model, top_k, explain, threshold "
            "(and 1 more problem).",
        ),
        ({str(i): 0 for i in range(1000)}, "The body has more fields than a request can have."),
        (["a"], 'The body must be a JSON object such as {"inputs": "a text"}.'),
        (b"", 'The body must be a JSON object such as {"inputs": "a text"}.'),
        (b'{"inputs": "a" "b"}', "The body is no valid JSON at character 15: expecting ',' delimiter."),
        (b'{"inputs": "a', "The body is no valid JSON at character 11: unterminated string starting."),
    ],
)
def test_a_wrong_request_is_refused_in_one_sentence(client: httpx.Client, body: Any, message: str) -> None:
    assert refusal(client, 422, body) == message


@pytest.mark.parametrize("body", [b'{"inputs": "\xff"}', b"[" * 50_000, b'{"top_k": ' + b"1" * 5000 + b"}"])
def test_unreadable_json_is_refused(client: httpx.Client, body: bytes) -> None:
    assert "cannot be read as JSON" in refusal(client, 422, body)


def test_a_body_of_another_type_is_told_the_header(client: httpx.Client) -> None:
    message = refusal(client, 422, {"inputs": "a"}, {"content-type": "application/x-www-form-urlencoded"})
    assert message == "The body must be JSON with the header 'content-type: application/json'."


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/", "/v1/models"])
def test_a_probe_by_head_is_answered_as_get_is_without_the_body(client: httpx.Client, path: str) -> None:
    got, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
    assert client.get(path).status_code == 200  # on the same connection


def test_no_refusal_repeats_the_text(client: httpx.Client) -> None:
    for body in ({"inputs": ["secret", 1]}, {"inputs": "secret", "top_k": "secret"}, {"inputs": "secret " * 900}):
        assert "secret" not in client.post("/v1/classify", json=body).text
    assert len(refusal(client, 422, {"inputs": "a", "b" * 10_000: 1})) < 150


def test_too_many_texts_are_refused_with_the_limit(client: httpx.Client) -> None:
    message = refusal(client, 413, {"inputs": ["a"] * 9})
    assert message == "inputs holds 9 texts, and max_inputs is 8: send several requests."


def test_too_long_a_text_is_refused_with_the_limit(client: httpx.Client) -> None:
    message = refusal(client, 413, {"inputs": ["a" * 5000, "é" * 5001]})
    assert message == "inputs[1] has 5,001 characters, and max_characters is 5,000: shorten it or split it."


@pytest.mark.parametrize("path", ["/v1/classify", "/livez", "/nowhere"])
def test_a_declared_oversized_body_is_refused_with_the_limit(client: httpx.Client, path: str) -> None:
    message = refusal_text(client.post(path, content=b"a" * 60_001), 413)
    assert message.startswith("The body is beyond max_body_bytes, which is 60,000:")


@pytest.mark.parametrize("size", [60_001, 5_000_000])
def test_a_chunked_oversized_body_is_refused_while_it_is_read(client: httpx.Client, size: int) -> None:
    chunks = (b" " * min(10_000, size - i) for i in range(0, size, 10_000))
    message = refusal_text(client.post("/v1/classify", content=chunks, headers=JSON), 413)
    assert message.startswith("The body is beyond max_body_bytes, which is 60,000:")
    assert ask(client, inputs="and the next request is served")


def test_a_body_at_the_limit_is_served(client: httpx.Client) -> None:
    body = b'{"inputs": "a"}'.ljust(60_000)
    assert client.post("/v1/classify", content=body, headers=JSON).status_code == 200
    chunked = iter([body[:30_000], body[30_000:]])
    assert client.post("/v1/classify", content=chunked, headers=JSON).status_code == 200


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for _, each in sorted(value.items()) if isinstance(value, dict) else enumerate(value):
            yield from leaves(each)
    else:
        yield value


@pytest.mark.parametrize("batching", [False, True])
def test_requests_at_the_same_time_get_their_own_answers(classifier: Classifier, batching: bool) -> None:
    texts = [f"{text[:200]} {i}" for i in range(8) for text in TEXTS]
    with serving(service(classifier, replace(SETTINGS, batching=batching))) as client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda text: ask(client, inputs=text, explain=True)["results"][0], texts))
    expected = [as_json(classifier.predict(text, explain=True)) for text in texts]
    if batching:
        for answer, wanted in zip(answers, expected, strict=True):
            for a, b in zip(leaves(answer), leaves(wanted), strict=True):
                assert a == (pytest.approx(b, abs=1e-5) if isinstance(b, float) else b)
    else:
        assert answers == expected


def test_answers_do_not_wait_for_delayed_acknowledgements(client: httpx.Client) -> None:
    """Without TCP_NODELAY every answer on a kept connection took 44 ms on Linux: head and body are two writes."""

    def seconds() -> float:
        start = time.perf_counter()
        ask(client, inputs="hello")
        return time.perf_counter() - start

    assert min(seconds() for _ in range(10)) < 0.03


def test_health_is_answered(client: httpx.Client) -> None:
    assert client.get("/livez").json() == {"status": "live"}
    assert client.get("/readyz").json() == {"status": "ready"}


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
        "temperature": info.temperature,
    }


def test_unknown_paths_and_wrong_methods_are_answered_in_the_same_form(client: httpx.Client) -> None:
    assert "no such path" in refusal_text(client.get("/secret"), 404)
    wrong = client.get("/v1/classify")
    assert refusal_text(wrong, 405) == "This path answers POST, not GET."
    assert wrong.headers["allow"] == "POST"


def test_openapi_documents_examples_limits_and_errors(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert "60,000 bytes" in document["info"]["description"]
    own = {"/v1/classify", "/v1/models", "/v1/admin/reload", "/livez", "/readyz"}
    assert set(document["paths"]) == own | {route.path for module in wire.MODULES for route in module.ROUTES}
    classify = document["paths"]["/v1/classify"]["post"]
    refused = {"401", "404", "408", "413", "422", "429", "500", "503", "504"}
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


def test_answers_are_as_documented(client: httpx.Client) -> None:
    for explain in (False, True):
        answer = ask(client, inputs=["hello", ""], explain=explain)
        assert ClassifyAnswer.model_validate(answer).model_dump(exclude_unset=True) == answer


class BrokenClassifier(Classifier):
    """Fails as no one foresaw, with the text in the error."""

    def predict(self, texts: str | Sequence[str], *, explain: bool = False, threshold: float | None = None) -> Any:
        raise RuntimeError(f"cannot digest {texts}")


def test_an_unexpected_error_shows_neither_traceback_nor_text(
    model_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), serving(service(BrokenClassifier.load(model_path))) as client:
        message = refusal(client, 500, {"inputs": "secret"})
    assert message == "Something went wrong inside the server; its log says where."
    (record,) = [record for record in caplog.records if record.name == "textcls.server.exchange"]
    line = JsonLines().format(record)
    assert "RuntimeError while answering a request" in line
    assert " predict" in json.loads(line)["where"][-1]
    assert "secret" not in caplog.text + line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_request_in_flight_finish(model_path: Path, number: signal.Signals) -> None:
    body = b'{"inputs": "hello"}'
    head = "POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(body)}\r\n"
    with command(model_path) as (process, url):
        address = httpx.URL(url)
        with socket.create_connection((address.host, address.port or 0), timeout=20) as connection:
            connection.sendall(f"{head}expect: 100-continue\r\n\r\n".encode())
            assert b"100 Continue" in connection.recv(1000)
            process.send_signal(number)
            time.sleep(0.3)
            assert process.poll() is None
            connection.sendall(body)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["results"]
        output, errors = process.communicate(timeout=20)
    assert (process.returncode, output, errors) == (0, "", "")


def test_a_port_in_use_is_one_sentence(model_path: Path) -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        result = CliRunner().invoke(main, ["serve", str(model_path), "--port", str(port)])
    assert result.exit_code == 6
    assert result.stdout == ""
    assert result.stderr == (
        f"Error: Port {port} of 127.0.0.1 is already in use; "
        "stop the other program or choose another with --port (0 takes a free one).\n"
    )


@pytest.mark.parametrize(("host", "message"), [("192.0.2.1", "cannot be listened on"), ("no host", "is unknown")])
def test_an_address_that_is_not_here_is_one_sentence(host: str, message: str) -> None:
    with pytest.raises(SurroundingsError, match=message):
        listen(host, 0)


def test_a_missing_model_is_one_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["serve", str(tmp_path / "none.onnx")])
    assert (result.exit_code, result.stderr) == (4, f"Error: There is no model file {tmp_path / 'none.onnx'}.\n")


def test_without_the_extra_the_command_says_what_to_type() -> None:
    code = (
        "import sys; sys.modules['fastapi'] = None; from click.testing import CliRunner; from textcls.cli import main\n"
        "helped, run = (CliRunner().invoke(main, ['serve', *a]) for a in (['--help'], ['model.onnx']))\n"
        "print(helped.exit_code, run.exit_code, run.stderr)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.startswith("0 5 Error: textcls serve needs the package 'fastapi'")
    assert "pip install 'textcls[serve]'" in said


def test_importing_textcls_does_not_import_fastapi() -> None:
    code = "import sys, textcls; print('fastapi' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said == "False\n"
