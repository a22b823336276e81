"""A model of two text columns over HTTP: objects are read, and a text that is half a row is refused."""

from collections.abc import Iterator

import httpx
import pytest

from tests.service.clients import ask, refusal
from tests.service.server import service, serving
from textcls import Classifier

ROW = {"subject": "Charged twice", "body": "My card, why?"}


@pytest.fixture(scope="module")
def client(two_columns: Classifier) -> Iterator[httpx.Client]:
    with serving(service(two_columns)) as found:
        yield found


def test_an_object_is_read_as_its_columns_joined(client: httpx.Client, two_columns: Classifier) -> None:
    expected = two_columns.predict("Charged twice\nMy card, why?", explain=True).as_json()
    assert ask(client, inputs=ROW, explain=True)["results"] == [expected]
    first, second = ask(client, inputs=[ROW, ROW | {"id": "4711"}], explain=True)["results"]
    assert first["tokens"] == second["tokens"]
    assert [token["text"] for token in first["tokens"]] == [token["text"] for token in expected["tokens"]]


def test_a_text_that_may_be_half_of_one_is_refused_with_what_to_send(client: httpx.Client) -> None:
    said = refusal(client, 422, {"inputs": ["My card, why?"]})
    assert said == (
        "inputs[0] is one text, and the model 'tickets' was trained on 'subject' and 'body': send "
        '{"subject": ..., "body": ...}, with an empty string for what there is not.'
    )


@pytest.mark.parametrize("path", ["/vllm/classify", "/predict", "/models/tickets"])
def test_formats_that_have_texts_alone_say_where_to_send_rows(client: httpx.Client, path: str) -> None:
    answer = client.post(path, json={"input" if "vllm" in path else "inputs": "My card, why?"})
    assert answer.status_code in (400, 422)
    assert "reads 'subject' and 'body' of a row, which this format has no place for" in answer.text


def test_kserve_has_rows(client: httpx.Client, two_columns: Classifier) -> None:
    path = "/v1/models/tickets:predict"
    found = client.post(path, json={"instances": [ROW]}).json()["predictions"]
    assert found == [two_columns.predict(ROW).as_json()]
    half = client.post(path, json={"instances": ["My card, why?"]})
    assert half.status_code == 400
    assert "instances[0] is one text, and the model 'tickets' was trained on 'subject' and 'body'" in half.text
    lacking = client.post(path, json={"instances": [ROW, {"text": "My card"}]}).json()["error"]
    assert lacking.startswith("instances[1] has no 'subject' and 'body'")


def test_an_object_without_a_column_and_one_that_holds_no_string_are_refused(client: httpx.Client) -> None:
    assert "inputs[1] has no 'body'" in refusal(client, 422, {"inputs": [ROW, {"subject": "x"}]})
    assert "inputs[0]: the text in column 'body' is of type int" in refusal(client, 422, {"inputs": ROW | {"body": 1}})
    assert refusal(client, 422, {"inputs": [[ROW]]}) == "inputs[0] must be a text."


def test_the_columns_and_the_example_are_told(client: httpx.Client) -> None:
    (card,) = client.get("/v1/models").json()["models"]
    assert card["text_columns"] == ["subject", "body"]
    assert card["example"] == "Charged twice\nMy card, why?"


def test_a_model_of_one_column_takes_texts_and_objects(classifier: Classifier) -> None:
    with serving(service(classifier)) as client:
        both = ask(client, inputs=["refund", {"text": "refund"}])["results"]
        assert both[0] == both[1]
        assert "example" not in client.get("/v1/models").json()["models"][0]
