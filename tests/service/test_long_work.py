"""What takes long never stays on the event loop, however few bytes ask for it: queue and deadline hold for all."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service import sockets
from tests.service.clients import client_of, numbers
from tests.service.processes import PATIENCE, until
from tests.service.server import listening, service
from textcls import Classifier
from textcls.explain import counterfactual
from textcls.model import tokenizer
from textcls.server.inference import answers, explaining
from textcls.server.inference.micro_batching import TURN, MicroBatcher
from textcls.server.models import registry
from textcls.server.settings import Settings

# 4,000 tokens in 4,000 bytes, of which the model reads 2,048.
COSTLY = json.dumps({"inputs": "!" * 4000, "explain": True}).encode()


def read(classifier: Classifier, **fields: Any) -> answers.Request:
    generation = registry.generation(1, [registry.serve(classifier, "tickets")])
    return answers.read(generation, Settings(), json.dumps(fields).encode(), b"application/json")


def test_a_probe_is_answered_while_sixty_small_but_costly_requests_wait(many_labels: Classifier) -> None:
    with listening(service(many_labels)) as address, ExitStack() as stack:
        asking = [stack.enter_context(sockets.connect(address)) for _ in range(60)]
        for connection in asking:
            connection.sendall(sockets.request(COSTLY))
        assert sockets.get(address, "/livez")[0] == 200
        assert sockets.readable(asking) < 20


def test_connections_are_accepted_while_requests_that_stay_on_the_loop_are_answered(many_labels: Classifier) -> None:
    body = json.dumps({"inputs": "!" * 60, "explain": True}).encode()
    assert TURN / 2 < read(many_labels, **json.loads(body)).microseconds < TURN
    with listening(service(many_labels)) as address, ExitStack() as stack:
        asking = []
        for _ in range(300):
            asking.append(stack.enter_context(sockets.connect(address)))
            asking[-1].sendall(sockets.request(body))
        assert sockets.get(address, "/livez")[0] == 200
        assert sockets.readable(asking) < 150
        assert {sockets.answer(connection)[0] for connection in asking} == {200}


def test_small_but_costly_requests_have_a_deadline(many_labels: Classifier) -> None:
    with listening(service(many_labels, Settings(request_seconds=0.2))) as address, ThreadPoolExecutor(60) as pool:
        found = list(pool.map(lambda _: sockets.ask(address, COSTLY), range(60)))
        assert {504} <= {status for status, _ in found} <= {200, 504}
        said = next(body for status, body in found if status == 504)
        assert b"not done within request_seconds, which is 0.2" in said


def test_small_but_costly_requests_beyond_the_queue_are_answered_429(many_labels: Classifier) -> None:
    with listening(service(many_labels, Settings(max_queue=4))) as address, ThreadPoolExecutor(30) as pool:
        found = list(pool.map(lambda _: sockets.ask(address, COSTLY), range(30)))
    assert {429} <= {status for status, _ in found} <= {200, 429}
    assert any(b"max_queue is 4: try later." in body for _, body in found)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/classify", {"inputs": "!" * 4000, "explain": True}),
        ("/v1/classify", {"inputs": ["!" * 150] * 10}),
        ("/predict", {"inputs": "!" * 4000}),
        ("/models/tickets", {"inputs": ["!" * 1000] * 4}),
        ("/v1/models/tickets:explain", {"instances": ["!" * 300]}),
        ("/vllm/classify", {"input": ["!" * 1000] * 4}),
        (
            "/v2/models/tickets/infer",
            {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["!" * 4000]}]},
        ),
    ],
)
def test_in_every_wire_format_it_is_work_that_counts_and_not_bytes(
    many_labels: Classifier, path: str, body: dict[str, Any]
) -> None:
    content = json.dumps(body).encode()
    assert len(content) <= 4200
    with listening(service(many_labels)) as address:
        assert sockets.ask(address, content.replace(b"!", b""), path)[0] == 200
        waited = "textcls_queue_wait_seconds_count"
        with client_of(address) as client:
            before = numbers(client).get(waited, 0.0)
            assert sockets.ask(address, content, path)[0] == 200
            assert (before, numbers(client)[waited]) == (0.0, 1.0)


def test_an_estimate_grows_with_tokens_labels_and_explanations(classifier: Classifier, many_labels: Classifier) -> None:
    of = [
        read(classifier, inputs="a"),
        read(classifier, inputs="a b c d e f"),
        read(many_labels, inputs="a b c d e f"),
        read(many_labels, inputs="a b c d e f", explain=True, top_k=2),
        read(many_labels, inputs="a b c d e f", explain=True),
        read(many_labels, inputs=["a b c d e f"] * 2, explain=True),
    ]
    assert [each.microseconds for each in of] == sorted(each.microseconds for each in of)
    assert len({each.microseconds for each in of}) == len(of)
    assert read(classifier, inputs="word " * 200).microseconds < TURN
    assert read(many_labels, inputs="!" * 4000, explain=True).microseconds > 10 * TURN


@given(st.text() | st.text(alphabet="ab!_9 \t\0\x1c\x85é私\u0301\ud83d"))
def test_a_bound_on_tokens_is_one_and_for_ascii_it_is_their_number(text: str) -> None:
    tokens = len(tokenizer.tokenize(text))
    assert tokens <= tokenizer.most_tokens(text)
    if text.isascii():
        assert tokens == tokenizer.most_tokens(text)


# Batches of the event loop


class CountingClassifier(Classifier):
    """Notes what it is asked, and what happens between."""

    events: list[Any]

    def predict(self, texts: Any, *, explain: bool = False, threshold: float | None = None) -> Any:
        self.events.append(texts)
        return super().predict(texts, explain=explain, threshold=threshold)


@pytest.mark.parametrize("together", [True, False])
def test_a_batch_takes_no_longer_than_a_turn_and_the_loop_turns_between_two(
    many_labels_path: Any, together: bool
) -> None:
    classifier = CountingClassifier.load(many_labels_path)
    assert isinstance(classifier, CountingClassifier)
    classifier.events = []
    request = read(classifier, inputs="a b c d e f g h i j", explain=True)
    assert request.microseconds < TURN / 2

    async def tick(count: int) -> None:
        for _ in range(count):
            classifier.events.append("turn")
            await asyncio.sleep(0)

    async def ask() -> Any:
        batcher = MicroBatcher(10, together=together, connections=lambda: 0)
        asked = [batcher.answer(request, request.microseconds) for _ in range(60)]
        return (await asyncio.gather(*asked, tick(500)))[:-1]

    with ThreadPoolExecutor(1) as pool:  # another test may have a loop in this thread
        found = pool.submit(asyncio.run, ask()).result()
    assert len(found) == 60
    assert len({answer.body for answer in found}) <= 2
    spent, turns = 0.0, []
    for event in classifier.events:
        if event == "turn":
            turns.append(spent)
            spent = 0.0
        else:
            spent += request.microseconds * (1 if isinstance(event, str) else len(event))
    assert max(turns) <= TURN
    assert len([turn for turn in turns if turn]) >= 60 * request.microseconds / TURN


def test_who_waits_too_long_for_a_turn_is_told_so(many_labels: Classifier) -> None:
    request = read(many_labels, inputs="a")

    async def ask() -> Any:
        batcher = MicroBatcher(-1, together=True, connections=lambda: 0)
        return await asyncio.gather(batcher.answer(request, request.microseconds), return_exceptions=True)

    with ThreadPoolExecutor(1) as pool:
        (found,) = pool.submit(asyncio.run, ask()).result()
    assert isinstance(found, TimeoutError)


def test_what_cannot_be_done_in_time_is_refused_before_the_model_is_asked(
    many_labels: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"inputs": ["! " * 1000] * 2, "explain": True}
    seconds = read(many_labels, **asked).microseconds / 1e6

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the model was asked")

    with listening(service(many_labels, Settings(request_seconds=seconds / 2))) as address:
        with monkeypatch.context() as patched:
            patched.setattr(Classifier, "predict", never)
            status, said = sockets.ask(address, json.dumps(asked).encode())
        assert status == 413
        assert b"seconds, and request_seconds is" in said
        assert b"explain fewer labels" in said
        assert sockets.ask(address, json.dumps({"inputs": "! ! !"}).encode())[0] == 200


def test_nothing_waits_behind_a_search_however_long_its_body_is(
    many_labels: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    let, search = threading.Event(), counterfactual.counterfactual

    def slow(*given: Any, **named: Any) -> Any:
        let.wait(PATIENCE)
        return search(*given, **named)

    monkeypatch.setattr(explaining, "counterfactual", slow)
    body = json.dumps({"inputs": "a text", "explain": {"counterfactual": True}, "top_k": 1}).encode()
    with listening(service(many_labels)) as address, ExitStack() as stack:
        searching = [stack.enter_context(sockets.connect(address)) for _ in range(2)]
        for connection, padded in zip(searching, (body, body + b" " * 30_000), strict=True):
            connection.sendall(sockets.request(padded))
        with client_of(address) as client:
            until(lambda: numbers(client)["textcls_queue_depth"] == 2)
        assert sockets.ask(address, json.dumps({"inputs": "!" * 4000}).encode())[0] == 200
        assert not sockets.readable(searching)
        let.set()
        assert [sockets.answer(connection)[0] for connection in searching] == [200, 200]
