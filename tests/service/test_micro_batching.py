"""Short requests of one turn of the event loop are answered together."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from textcls import Classifier
from textcls.server.inference import answers
from textcls.server.inference.micro_batching import MicroBatcher
from textcls.server.models import registry
from textcls.server.settings import Settings


class CountingClassifier(Classifier):
    """Notes what it is asked, and fails where a text says so."""

    calls: list[Any]

    def predict(self, texts: Any, *, explain: bool = False, threshold: float | None = None) -> Any:
        self.calls = [*getattr(self, "calls", []), texts]
        if "fail" in texts:
            raise RuntimeError("told to")
        return super().predict(texts, explain=explain, threshold=threshold)


def gathered(classifier: Classifier, *requests: dict[str, Any]) -> list[Any]:
    generation = registry.generation(1, [registry.serve(classifier)])
    bodies = [json.dumps(each).encode() for each in requests]
    read = [answers.read(generation, Settings(), body, b"application/json") for body in bodies]

    async def ask() -> list[Any]:
        batcher = MicroBatcher(10, together=True, connections=lambda: 0)
        asked = [batcher.answer(each, each.microseconds) for each in read]
        return await asyncio.gather(*asked, return_exceptions=True)

    # In a thread of its own: a browser that another test drives has a loop in this one.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, ask()).result()


def test_requests_of_one_turn_are_one_call_and_each_gets_what_it_asked_for(model_path: Path) -> None:
    classifier = CountingClassifier.load(model_path)
    assert isinstance(classifier, CountingClassifier)
    answers = gathered(classifier, {"inputs": "one text"}, {"inputs": "my card was"}, {"inputs": "x", "top_k": 1})
    assert len(classifier.calls) == 1
    assert [len(json.loads(answer.body)["results"][0]["labels"]) for answer in answers] == [7, 7, 1]


def test_texts_of_other_length_threshold_or_explanation_go_in_another_call(model_path: Path) -> None:
    classifier = CountingClassifier.load(model_path)
    assert isinstance(classifier, CountingClassifier)
    gathered(
        classifier,
        {"inputs": "one"},
        {"inputs": "one", "explain": True},
        {"inputs": "one", "threshold": 0.5},
        {"inputs": "long " * 100},
    )
    assert len(classifier.calls) == 4


def test_a_text_that_cannot_be_answered_spoils_only_its_own_request(model_path: Path) -> None:
    classifier = CountingClassifier.load(model_path)
    good, bad, other = gathered(classifier, {"inputs": "good"}, {"inputs": "fail"}, {"inputs": "also"})
    assert isinstance(bad, RuntimeError)
    assert json.loads(good.body)["results"]
    assert json.loads(other.body)["results"]
