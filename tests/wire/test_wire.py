"""Other wire formats, exchange by exchange: what clients of other servers send, and what they must get back."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chance import draws
from tests.service.processes import PATIENCE
from tests.service.server import listening, local, service_of
from textcls import Classifier
from textcls.server.application import application
from textcls.server.models import registry
from textcls.server.routes import wire
from textcls.server.service import Service

GOLDEN = Path(__file__).parent.parent / "golden" / "wire"

INFER = "/v2/models/tickets/infer"
LENGTH = "inference-header-content-length"


def exchanges(folder: Path) -> list[Any]:
    """The recorded exchanges of a folder."""
    return [
        pytest.param(exchange, id=f"{path.stem}: {exchange['name']}")
        for path in sorted(folder.glob("*.json"))
        for exchange in json.loads(path.read_text(encoding="utf-8"))
    ]


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False) as found:
        yield found


@pytest.fixture(scope="module")
def client_of_several(address_of_several: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address_of_several, timeout=PATIENCE, trust_env=False) as found:
        yield found


def alike(found: Any, expected: Any) -> bool:
    """Say whether two answers are the same, numbers to rounding; `*` stands for anything."""
    if expected == "*":
        return True
    if isinstance(expected, float):
        return bool(found == pytest.approx(expected, abs=1e-5))
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(alike(found[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(alike, found, expected))
    if isinstance(expected, str) and expected.startswith("{"):
        # An explanation is JSON within JSON.
        return alike(json.loads(found), json.loads(expected))
    return bool(found == expected)


@pytest.mark.parametrize("exchange", exchanges(GOLDEN))
def test_a_golden_exchange_is_as_ever(client: httpx.Client, exchange: dict[str, Any]) -> None:
    check(client, exchange)


@pytest.mark.parametrize("exchange", exchanges(GOLDEN / "several_labels"))
def test_a_golden_exchange_of_several_labels_is_as_ever(
    client_of_several: httpx.Client, exchange: dict[str, Any]
) -> None:
    check(client_of_several, exchange)


def check(client: httpx.Client, exchange: dict[str, Any]) -> None:
    """Send what was recorded, and compare what comes back."""
    body = exchange["body"]
    content = body if body is None or isinstance(body, str) else json.dumps(body)
    headers = {"content-type": "application/json"} if content is not None else {}
    response = client.request(exchange["method"], exchange["path"], content=content, headers=headers)
    assert response.status_code == exchange["status"], response.text
    assert response.headers["content-type"] == "application/json"
    assert "x-request-id" in response.headers
    assert alike(response.json(), exchange["answer"]), response.text


def test_every_path_is_described_with_its_names_its_body_and_its_errors(
    client: httpx.Client,
) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    operations = [
        (path, method, told)
        for path, methods in paths.items()
        for method, told in methods.items()
        if set(told.get("tags", ())) & {tag["name"] for tag in wire.tags()}
    ]
    assert len(operations) == sum(len(router.routes) for router in wire.ROUTERS)
    for path, method, told in operations:
        assert [each["name"] for each in told.get("parameters", [])] == re.findall(r"\{(\w+)\}", path)
        # What says by its status whether something is ready answers 503 in another form than errors.
        ready = path in ("/health", "/ping", "/v1/models/{name}") or (path.endswith("/ready"))
        assert set(told["responses"]) == {"200", "4XX", "5XX"} | ({"503"} if ready else set())
        assert ("content" in told["responses"]["200"]) is (path not in ("/health", "/ping"))
        # Who needs no key is asked for none.
        assert ("security" in told) is not (path in ("/health", "/ping") or path.startswith("/v2/health/"))
        if method == "post":
            schema = told["requestBody"]["content"]["application/json"]["schema"]
            assert schema["required"][0] in schema["properties"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/", "GET, POST"), ("/v1/models/tickets:predict", "GET, POST"), ("/v1/models/tickets", "GET")],
)
def test_another_method_is_told_all_that_the_path_answers(client: httpx.Client, path: str, allowed: str) -> None:
    response = client.request("PUT", path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)
    told = response.json()["error"]
    assert (told if path != "/" else told["message"]) == f"This path answers {allowed}, not PUT."


def test_an_integer_may_be_written_with_a_point(client: httpx.Client) -> None:
    body = {"inputs": "my card", "parameters": {"top_k": 2.0}}
    assert len(client.post("/models/tickets", json=body).json()[0]) == 2


def binary(*texts: bytes, size: int | None = None, **fields: Any) -> tuple[bytes, bytes]:
    """The JSON and the tail of a request with binary texts."""
    tail = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    parameters = {"binary_data_size": len(tail) if size is None else size}
    tensor = {"name": "text", "shape": [len(texts)], "datatype": "BYTES", "parameters": parameters}
    return json.dumps({"inputs": [tensor], **fields}).encode(), tail


def test_binary_tensors_go_both_ways(client: httpx.Client) -> None:
    head, tail = binary(b"my card", "où?".encode(), parameters={"binary_data_output": True})
    response = client.post(INFER, content=head + tail, headers={LENGTH: str(len(head))})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/octet-stream"
    length = int(response.headers[LENGTH])
    outputs = json.loads(response.content[:length])["outputs"]
    assert [output["name"] for output in outputs] == ["label", "score", "probabilities"]
    assert sum(output["parameters"]["binary_data_size"] for output in outputs) == len(response.content) - length
    assert response.content[length + 4 : length + 11] == b"returns"


def test_the_mask_of_assigned_labels_is_a_byte_a_label_as_binary_data(
    client_of_several: httpx.Client, several_labels: Classifier
) -> None:
    text = "I forgot my password and want to cancel my subscription"
    outputs = [{"name": "assigned", "parameters": {"binary_data": True}}]
    head, tail = binary(text.encode(), outputs=outputs)
    path = INFER.replace("tickets", "topics")
    response = client_of_several.post(path, content=head + tail, headers={LENGTH: str(len(head))})
    assert response.status_code == 200, response.text
    length = int(response.headers[LENGTH])
    (output,) = json.loads(response.content[:length])["outputs"]
    assert (output["datatype"], output["shape"]) == ("BOOL", [1, len(several_labels.labels)])
    assigned = several_labels.predict(text).assigned
    assert len(assigned) == 2
    assert response.content[length:] == bytes(label in assigned for label in several_labels.labels)


def test_a_model_of_one_label_has_no_mask_of_assigned_ones(client: httpx.Client) -> None:
    body = {"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["my card"]}]}
    response = client.post(INFER, json={**body, "outputs": [{"name": "assigned"}]})
    assert response.status_code == 400
    assert response.json()["error"].endswith("there are label, score, probabilities, labels, logits, explanation.")


@pytest.mark.parametrize(
    ("sent", "length", "said"),
    [
        (binary(b"card", size=5), None, "binary_data_size must be 8: so many bytes follow the body's JSON."),
        (binary(b"\xff\xfe"), None, "Text 0 of the binary data is not UTF-8."),
        ((binary(b"card")[0], b"\xff\xff\xff\xff\0\0\0\0"), None, "The binary data of the input end within a text."),
        ((binary(b"card")[0], b"\0\0\0\0\1\0\0\0"), None, "The binary data of the input end within a text."),
        (binary(b"card"), "9" * 30, "The header Inference-Header-Content-Length is not the length of the body's JSON."),
        (binary(b"card"), "x", "The header Inference-Header-Content-Length is not the length of the body's JSON."),
    ],
)
def test_binary_data_that_are_wrong_are_refused_in_a_sentence(
    client: httpx.Client, sent: tuple[bytes, bytes], length: str | None, said: str
) -> None:
    head, tail = sent
    response = client.post(INFER, content=head + tail, headers={LENGTH: length or str(len(head))})
    assert (response.status_code, response.json()) == (400, {"error": said})


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/"), ("POST", "/predict"), ("POST", "/models/tickets"), ("GET", "/v1/models/tickets"), ("POST", INFER)],
)
def test_where_keys_are_set_every_format_wants_one_and_says_so_in_its_own_form(
    locked_address: str, method: str, path: str
) -> None:
    with httpx.Client(base_url=locked_address, trust_env=False) as client:
        response = client.request(method, path, content=b"{}" if method == "POST" else None)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.json()["error"].startswith("A key is needed")
        for public in ("/v2/health/live", "/v2/health/ready", "/health", "/ping", "/", "/page/page.mjs"):
            assert client.get(public).status_code == 200
        assert client.post("/v2/health/live").status_code == 401


def test_logits_are_given_to_who_asks_vllm_for_no_activation(client: httpx.Client, classifier: Classifier) -> None:
    asked = {"input": "my card was charged twice", "use_activation": False}
    (found,) = client.post("/vllm/classify", json=asked).json()["data"]
    explanation = classifier.explain("my card was charged twice")
    assert found["probs"] == pytest.approx(explanation.logit_values.tolist())
    assert found["label"] == explanation.label


UNEXPECTED = "Something went wrong inside the server; its log says where."


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/predict", {"error": UNEXPECTED, "error_type": "Backend"}),
        ("POST", "/models/tickets", {"error": UNEXPECTED}),
        ("POST", "/v1/models/tickets:predict", {"error": UNEXPECTED}),
        ("GET", "/v1/models/tickets", {"error": UNEXPECTED}),
        ("POST", INFER, {"error": UNEXPECTED}),
        ("GET", "/v2/models/tickets", {"error": UNEXPECTED}),
        (
            "POST",
            "/vllm/classify",
            {"error": {"message": UNEXPECTED, "type": "InternalServerError", "param": None, "code": 500}},
        ),
        ("POST", "/v1/classify", {"error": {"type": "internal_error", "message": UNEXPECTED}}),
        ("GET", "/v1/models", {"error": {"type": "internal_error", "message": UNEXPECTED}}),
    ],
)
def test_what_nobody_foresaw_is_told_in_the_form_of_the_path(
    classifier: Classifier, method: str, path: str, expected: Any
) -> None:
    broken = service_of([registry.serve(classifier, "tickets")])
    broken.generation = SimpleNamespace(number=1)  # type: ignore[assignment]
    body: dict[str, Any] = {"inputs": "x", "input": "x", "instances": ["x"]}
    if path == INFER:
        body["inputs"] = [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["x"]}]
    elif path == "/v1/classify":
        body = {"inputs": "x"}
    with listening(broken) as address, httpx.Client(base_url=address, trust_env=False) as client:
        response = client.request(method, path, json=body if method == "POST" else None)
    assert (response.status_code, response.json()) == (500, expected)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/models/a:b"),
        ("GET", "/v1/models/tickets:predict"),
        ("GET", "/v2/models/a:b"),
        ("POST", "/v1/models/a:b:predict"),
    ],
)
def test_a_name_with_a_colon_is_no_model(client: httpx.Client, method: str, path: str) -> None:
    response = client.request(method, path, json={"inputs": "x", "instances": ["x"]} if method == "POST" else None)
    assert (response.status_code, response.json()) == (
        404,
        {"error": "There is no model of this name; there are tickets."},
    )


def test_limits_and_counts_are_those_of_the_service(client: httpx.Client, service: Service) -> None:
    before = client.get("/metrics").text.count('textcls_requests_total{route="/predict"')
    huge = client.post("/predict", content=iter([b'{"inputs": "', b"x" * 2_000_001, b'"}']))
    assert (huge.status_code, huge.json()["error_type"]) == (413, "Validation")
    long = client.post("/predict", json={"inputs": [["x " * 90]] * 4, "more": "x" * 5_000})
    assert (long.status_code, len(long.json())) == (200, 4)
    counted = client.get("/metrics").text
    assert counted.count('textcls_requests_total{route="/predict"') >= before
    assert 'textcls_requests_total{route="/predict",status="413"}' in counted
    assert "textcls_predictions_total" in counted
    assert client.post("/models/made-up-name", json={"inputs": "x"}).status_code == 404
    assert "made-up-name" not in client.get("/metrics").text


def test_half_a_character_survives_in_every_format(client: httpx.Client) -> None:
    headers = {"content-type": "application/json"}
    for path, body in (
        ("/predict", '{"inputs": "half \\ud83d"}'),
        ("/models/tickets", '{"inputs": "half \\ud83d"}'),
        ("/v1/models/tickets:explain", '{"instances": ["half \\ud83d"]}'),
        (INFER, '{"inputs":[{"name":"text","shape":[1],"datatype":"BYTES","data":["half \\ud83d"]}],'
                '"outputs":[{"name":"explanation","parameters":{"binary_data":true}}]}'),
        ("/vllm/classify", '{"input": "half \\ud83d"}'),
    ):  # fmt: skip
        assert client.post(path, content=body, headers=headers).status_code == 200, path


def test_a_service_that_is_stopping_says_so(classifier: Classifier) -> None:
    stopping = service_of([registry.serve(classifier, "tickets")])
    stopping.draining = True
    with listening(stopping) as address:
        for path in ("/v2/health/ready", "/v2/models/tickets/ready", "/v1/models/tickets"):
            response = httpx.get(address + path, trust_env=False)
            assert (response.status_code, response.json()["ready"]) == (503, False)


PATHS = [
    "/predict",
    "/models/tickets",
    "/v1/models/tickets:predict",
    "/v1/models/tickets:explain",
    INFER,
    "/vllm/classify",
]
WORDS = (
    "inputs input instances parameters outputs name shape datatype data text top_k id function_to_apply raw_scores "
    "model binary_data_size binary_data binary_data_output"
)
NAMES = st.sampled_from(WORDS.split())
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["BYTES", "label", "assigned"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)


def message_of(said: dict[str, Any]) -> str:
    """What an error says, in whichever form."""
    error = said["error"]
    return str(error["message"] if isinstance(error, dict) else error)


@settings(max_examples=draws(300))
@given(
    path=st.sampled_from(PATHS),
    body=st.one_of(st.dictionaries(NAMES, VALUES, max_size=5), VALUES),
    several=st.booleans(),
)
def test_whatever_is_sent_is_answered_or_refused_in_a_sentence(
    service: Service, service_of_several: Service, path: str, body: Any, several: bool
) -> None:
    if several:
        service, path = service_of_several, path.replace("tickets", "topics")
    client = local(application(service))
    answer = client.post(path, content=json.dumps(body).encode(), headers={"content-type": "application/json"})
    length = int(answer.headers.get(LENGTH, len(answer.content)))
    said = json.loads(answer.content[:length])
    assert answer.status_code in (200, 400, 404, 413, 422), said
    if answer.status_code != 200:
        assert message_of(said).endswith(".")
