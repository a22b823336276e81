"""Bounds on what is asked: the queue, the deadline, explanations, bodies, and who sends or reads too slowly."""

import json
import socket
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.service.clients import BODY, JSON, LONG, leaves, message, numbers, post
from tests.service.processes import until
from tests.service.server import SlowClassifier, lines, local, service, serving
from tests.service.sockets import answer, connect, everything, request
from textcls import Classifier
from textcls.model import cost
from textcls.server.admission.budget import Budget, Share
from textcls.server.application import application
from textcls.server.problems import RefusalError
from textcls.server.settings import Settings


def test_a_long_request_beyond_the_queue_is_answered_429_with_when_to_come_back(slow: SlowClassifier) -> None:
    with serving(service(slow, Settings(max_queue=1))) as client, ThreadPoolExecutor() as pool:
        first = pool.submit(post, client, LONG)
        until(lambda: numbers(client)["textcls_queue_depth"] == 1)
        refused = post(client, LONG)
        assert message(refused, 429) == "1 long requests are waiting, and max_queue is 1: try later."
        assert refused.headers["retry-after"] == "1"
        SlowClassifier.gate.set()
        assert first.result().status_code == 200
        assert post(client, LONG).status_code == 200


def test_a_request_of_some_length_that_is_alone_takes_no_place_in_the_queue(slow: SlowClassifier) -> None:
    some = json.dumps({"inputs": "my card was charged twice " * 200}).encode()
    SlowClassifier.gate.set()
    with serving(service(slow, Settings())) as client:
        assert post(client, some).status_code == 200
        assert "textcls_queue_wait_seconds_count" not in numbers(client)
        assert post(client, LONG).status_code == 200
        assert numbers(client)["textcls_queue_wait_seconds_count"] == 1


def test_at_the_deadline_a_long_request_is_answered_504_and_its_place_stays_taken(slow: SlowClassifier) -> None:
    with serving(service(slow, Settings(max_queue=1, request_seconds=0.5))) as client:
        assert "request_seconds, which is 0.5" in message(post(client, LONG), 504)
        # The thread cannot be stopped: as long as it works, the work counts.
        assert post(client, LONG).status_code == 429
        SlowClassifier.gate.set()
        until(lambda: post(client, LONG).status_code == 200)


@pytest.mark.parametrize("path", ["/v1/classify", "/predict"])
def test_whoever_hangs_up_while_waiting_leaves_the_queue_and_is_not_worked_for(
    slow: SlowClassifier, trail: pytest.LogCaptureFixture, path: str
) -> None:
    with serving(service(slow, Settings(threads=1, log_requests=True))) as client, ExitStack() as stack:
        first, *others = (stack.enter_context(connect(client)) for _ in range(4))
        for each in (first, *others):
            each.sendall(request(LONG, path))
        until(lambda: numbers(client)["textcls_queue_depth"] == 4)
        for each in others:
            each.close()
        # The one thread is still busy with the first.
        until(lambda: numbers(client)["textcls_queue_depth"] == 1)
        SlowClassifier.gate.set()
        assert answer(first)[0] == 200
        assert numbers(client)["textcls_queue_wait_seconds_count"] == 1
    told = lines(trail, "textcls.requests")
    assert sorted(line["status"] for line in told if line["path"] == path) == [200, 499, 499, 499]


def test_an_explained_answer_has_a_bound_that_the_refusal_names(classifier: Classifier) -> None:
    with serving(service(classifier, Settings(max_explained=100))) as client:
        text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
        said = message(post(client, json.dumps({"inputs": text, "explain": True}).encode()), 413)
        assert "15 tokens x 7 labels, and max_explained is 100" in said
        assert post(client, json.dumps({"inputs": text, "explain": True, "top_k": 6}).encode()).status_code == 200
        assert post(client, json.dumps({"inputs": text}).encode()).status_code == 200


def test_bodies_that_arrive_in_pieces_share_a_bound(classifier: Classifier) -> None:
    settings = Settings(max_held_bytes=1_000_000)
    head = b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += b"content-length: 48200\r\n\r\n"
    with serving(service(classifier, settings)) as client, ExitStack() as stack:
        *some, last = (stack.enter_context(connect(client)) for _ in range(9))
        for each in some:
            each.sendall(head + b" " * 47_200)
        until(lambda: numbers(client)["textcls_held_bytes"] == 8 * 59_000)  # a quarter more than they have
        last.sendall(head + b" " * 47_200)
        answer = last.recv(1000)
        assert answer.startswith(b"HTTP/1.1 429")
        assert b"max_held_bytes is 1,000,000, half of it for bodies: try later." in answer
        some[0].sendall(BODY.ljust(1_000))
        assert some[0].recv(1000).startswith(b"HTTP/1.1 200")


def test_what_answers_hold_leaves_to_bodies_what_is_theirs_and_no_more_than_there_is() -> None:
    budget = Budget(1_000_000)
    answer, body, another = Share(budget), Share(budget), Share(budget)
    answer.hold(600_000)
    body.hold(240_000, body=True)  # which takes 300,000
    with pytest.raises(RefusalError, match="this one needs 110,000 more"):
        another.hold(88_000, body=True)
    answer.hold(100_000)
    with pytest.raises(RefusalError, match="this one needs 210,000 more"):
        another.hold(168_000, body=True)
    body.hold(400_000)  # it is being answered
    another.hold(400_000, body=True)
    for each in (answer, body, another):
        each.close()
    assert budget.held == 0
    another.hold(400_000, body=True)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /v1/classify HT",
        b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
        b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\nGET /liv",
    ],
    ids=["nothing", "half a head", "half a body", "half a second request"],
)
def test_who_sends_too_slowly_is_hung_up_on_while_others_are_served(classifier: Classifier, sent: bytes) -> None:
    with serving(service(classifier, Settings(receive_seconds=1))) as client, connect(client) as connection:
        connection.sendall(sent)
        assert post(client).status_code == 200
        assert b"HTTP/1.1 408" in everything(connection)


def test_what_a_connection_has_refused_is_counted_as_it_was_answered(classifier: Classifier) -> None:
    with serving(service(classifier, Settings(receive_seconds=1))) as client, connect(client) as connection:
        connection.sendall(b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
        assert b"HTTP/1.1 408" in everything(connection)
        assert numbers(client)['textcls_requests_total{route="/v1/classify",status="408"}'] == 1


def test_who_does_not_take_the_answer_is_hung_up_on(classifier: Classifier) -> None:
    body = json.dumps({"inputs": ["word " * 64] * 64, "explain": True}).encode()
    head = "POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(body)}\r\n\r\n"
    with serving(service(classifier, Settings(receive_seconds=1))) as client, connect(client) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(8):  # more than the buffers of both sides
            connection.sendall(head.encode() + body)
        assert until(lambda: numbers(client)['textcls_connections_closed_total{reason="answer not taken"}']) == 1


# Explanations are made some at a time


class WatchedClassifier(Classifier):
    """Notes how many texts each call explains, and how many explanations of earlier calls are still held."""

    asked: list[int]
    held: list[int]

    def predict(self, texts: Any, *, explain: bool = False, threshold: float | None = None) -> Any:
        earlier: weakref.WeakSet[Any] = getattr(self, "_earlier", weakref.WeakSet())
        self.asked = [*getattr(self, "asked", []), len(texts)]
        self.held = [*getattr(self, "held", []), len(earlier)]
        found = super().predict(texts, explain=explain, threshold=threshold)
        self._earlier = weakref.WeakSet([*earlier, *(each.explanation for each in found)])
        return found


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/classify", {"explain": True, "top_k": 1}),
        ("/predict", {"raw_scores": True}),
        ("/models/tickets", {"parameters": {"function_to_apply": "none"}}),
        ("/v1/models/tickets:explain", {}),
        ("/v2/models/tickets/infer", {"outputs": [{"name": "explanation"}, {"name": "logits"}]}),
    ],
)
def test_explanations_of_many_texts_are_made_and_written_some_at_a_time(
    model_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    texts = [f"{'word ' * 4}{i}" for i in range(10)]
    forms: dict[str, dict[str, Any]] = {
        "/predict": {"inputs": [[text] for text in texts]},
        "/v1/models/tickets:explain": {"instances": texts},
        "/v2/models/tickets/infer": {
            "inputs": [{"name": "text", "datatype": "BYTES", "shape": [len(texts)], "data": texts}]
        },
    }
    content = json.dumps({**forms.get(path, {"inputs": texts}), **body}).encode()

    def ask() -> tuple[WatchedClassifier, Any]:
        classifier = WatchedClassifier.load(model_path)
        assert isinstance(classifier, WatchedClassifier)
        answer = local(application(service(classifier))).post(path, content=content, headers=JSON)
        assert answer.status_code == 200, answer.text
        return classifier, answer.json()

    at_once, expected = ask()
    assert at_once.asked == [10]
    monkeypatch.setattr(cost, "CALL_BYTES", at_once.cost.call_bytes(3, 21))  # texts, characters
    in_slices, answer = ask()
    assert in_slices.asked == [3, 3, 3, 1]
    assert max(in_slices.held) <= 3
    for a, b in zip(leaves(answer), leaves(expected), strict=True):
        assert a == (pytest.approx(b, abs=1e-5) if isinstance(b, float) else b)
