"""A shadow costs no request its answer: slow, failing or under load, it is left behind, and that is counted."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.clients import numbers, post
from tests.service.processes import until
from tests.service.server import SlowClassifier, serving
from textcls import Classifier, Prediction
from textcls.server.inference import answers, shadowing
from textcls.server.inference.answers import Outcome, Request
from textcls.server.inference.shadowing import MOST_TEXTS, OTHER, Shadowing, compare
from textcls.server.models import registry
from textcls.server.models.registry import Served
from textcls.server.monitoring import metrics
from textcls.server.monitoring.metrics import Counts
from textcls.server.service import Service
from textcls.server.settings import Settings
from textcls.server.system import memory

OF = 'model="tickets",version="2"'
MANY = json.dumps({"inputs": ["my card was charged twice"] * 64, "top_k": 1}).encode()


class FailingClassifier(Classifier):
    """Loads, and fails on every text."""

    def predict(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("a graph that fails on some texts")


def shadowed(model: Classifier, shadow: Classifier) -> Served:
    """A model called tickets, and its shadow, version 2."""
    return replace(registry.serve(model, "tickets", "1"), shadow=registry.serve(shadow, "tickets", "2"))


def service(model: Classifier, shadow: Classifier) -> Service:
    return Service(registry.generation(1, [shadowed(model, shadow)]), Settings())


def counted(client: httpx.Client) -> dict[str, float]:
    """What was counted of the shadow, by the end of the name."""
    found = numbers(client)
    return {name: found[f"textcls_shadow_{name}_total{{{OF}}}"] for name in ("texts", "dropped", "errors")}


def test_a_shadow_that_hangs_delays_nobody_and_what_it_is_not_asked_is_counted(
    classifier: Classifier, slow: SlowClassifier
) -> None:
    with serving(service(classifier, slow)) as client:
        # Its gate is closed: each of these is answered while the shadow still has the first.
        for _ in range(12):
            assert post(client, MANY).status_code == 200
        assert counted(client)["texts"] == 0
        dropped = counted(client)["dropped"]
        assert 12 * 64 - MOST_TEXTS - 64 <= dropped <= 12 * 64 - MOST_TEXTS
        SlowClassifier.gate.set()
        until(lambda: counted(client) == {"texts": 12 * 64 - dropped, "dropped": dropped, "errors": 0})
        assert not any(name.startswith("textcls_shadow_disagreements_total") for name in numbers(client))


def test_a_shadow_that_fails_fails_nobody(
    classifier: Classifier, model_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failing = FailingClassifier.load(model_path)
    with serving(service(classifier, failing)) as client:
        for _ in range(3):
            assert post(client).status_code == 200
        until(lambda: counted(client) == {"texts": 0, "dropped": 0, "errors": 3})
        said = [record.getMessage() for record in caplog.records if "The shadow of" in record.getMessage()]
        assert said == ["The shadow of tickets, version 2, fails (RuntimeError); nobody waits for it."]


def test_what_is_not_answered_no_shadow_is_asked(classifier: Classifier) -> None:
    with serving(service(classifier, classifier)) as client:
        assert post(client, b'{"inputs": []}').status_code == 422
        assert post(client, b'{"inputs": "a"}').status_code == 200
        until(lambda: counted(client)["texts"] == 1)


def test_the_same_model_as_its_own_shadow_never_disagrees(classifier: Classifier, several_labels: Classifier) -> None:
    texts = ["my card was charged twice", "where is it", "", "語 é 👍", "cancel all " * 300]
    for model in (classifier, several_labels):
        with serving(service(model, model)) as client:
            for more in ({}, {"threshold": 0.1}, {"explain": True, "top_k": 2}):
                post(client, json.dumps({"inputs": texts, **more}).encode())
            until(lambda client=client: counted(client)["texts"] == 15)  # type: ignore[misc]
            found = numbers(client)
            assert found[f"textcls_shadow_difference_sum{{{OF}}}"] < 1e-4
            assert not any(name.startswith("textcls_shadow_disagreements_total") for name in found)


# Comparing


def prediction(names: Sequence[str], scores: Sequence[float], thresholds: float | None = None) -> Prediction:
    values = np.array(scores, np.float32)
    of_labels = None if thresholds is None else np.full_like(values, thresholds)
    return Prediction(tuple(names), values, "accept", False, None, thresholds=of_labels)


@given(st.lists(st.floats(0, 1, width=32), min_size=3, max_size=3), st.lists(st.floats(0, 1, width=32), min_size=3))
def test_two_answers_agree_if_their_most_probable_labels_are_one(ours: list[float], theirs: list[float]) -> None:
    names = [f"label {i}" for i in range(len(theirs))]
    one, other = prediction(names[:3], ours), prediction(names, theirs)
    found = compare(answers.outcome(one), other)
    assert list(found.pairs) == ([] if one.label == other.label else [(one.label, other.label)])
    assert found.difference == pytest.approx(abs(one.score - dict(other.top())[one.label]), abs=1e-6)


def test_a_label_that_the_shadow_does_not_know_has_no_probability_in_it() -> None:
    found = compare(Outcome(["refunds"], 0.75, False, 4, 0, "refunds"), prediction(["billing", "sales"], [0.4, 0.6]))
    assert found == (0.75, [("refunds", "sales")])


def test_of_several_labels_each_that_one_of_the_two_assigns_alone_is_told() -> None:
    ours = answers.outcome(prediction(["a", "b", "c"], [0.9, 0.8, 0.1], 0.5))
    found = compare(ours, prediction(["b", "a", "d"], [0.6, 0.2, 0.7], 0.5))
    assert found.pairs == [("a", ""), ("", "d")]
    assert found.difference == pytest.approx(0.7)
    # None assigned by either: the most probable label is told nevertheless.
    none = answers.outcome(prediction(["a", "b"], [0.3, 0.4], 0.5))
    found = compare(none, prediction(["a", "b"], [0.3, 0.1], 0.5))
    assert found.difference == pytest.approx(0.3)
    assert list(found.pairs) == []


# The queue


def offered(served: Served, shadowing: Shadowing, texts: Sequence[str]) -> None:
    """Offer texts that were answered."""
    request = Request(
        served, texts, lambda predictions: answers.Answer(b"", served, [*map(answers.outcome, predictions)])
    )
    shadowing.offer(request, answers.complete(request))


def total(counts: Counts, family: metrics.Family) -> float:
    return sum(values[0] for key, values in counts.read().items() if key[0] == family.name)


async def come(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not true():
            await asyncio.sleep(0.01)


def test_while_the_worker_is_busy_no_shadow_is_asked(classifier: Classifier) -> None:
    busy, counts, served = [True], Counts(), shadowed(classifier, classifier)

    async def play() -> None:
        asked = Shadowing(counts, 10**9, lambda: busy[0])
        offered(served, asked, ["my card"])
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert total(counts, metrics.SHADOW_TEXTS) == 0
        busy[0] = False
        await come(lambda: total(counts, metrics.SHADOW_TEXTS) == 1)
        # And again once all is done.
        offered(served, asked, ["my card", "another"])
        await come(lambda: total(counts, metrics.SHADOW_TEXTS) == 3)

    asyncio.run(play())


def test_texts_beyond_the_bytes_that_may_wait_or_that_a_call_may_take_are_dropped(classifier: Classifier) -> None:
    counts, served = Counts(), shadowed(classifier, classifier)

    async def play() -> None:
        offered(served, Shadowing(counts, 10**9, lambda: True), ["word " * 20_000] * 20)
        assert total(counts, metrics.SHADOW_DROPPED) == 10
        offered(served, Shadowing(counts, 4_000, lambda: True), ["word " * 100])
        assert total(counts, metrics.SHADOW_DROPPED) == 11

    asyncio.run(play())


def test_with_other_models_what_waits_is_dropped_and_their_shadows_count_from_zero(classifier: Classifier) -> None:
    counts, served = Counts(), shadowed(classifier, classifier)

    async def play() -> None:
        asked = Shadowing(counts, 10**9, lambda: True)
        offered(served, asked, ["a", "b"])
        asked.begin(registry.generation(2, [served]))
        assert total(counts, metrics.SHADOW_DROPPED) == 2
        assert counts.read()[("textcls_shadow_texts", "tickets", "2")] == [0.0]
        offered(served, asked, ["c"])
        assert total(counts, metrics.SHADOW_DROPPED) == 2

    asyncio.run(play())


def test_of_endless_pairs_of_labels_so_many_are_named_and_a_worker_that_follows_knows_them(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shadowing, "MOST_PAIRS", 3)
    counts = Counts(tmp_path)
    counts.set(metrics.GENERATION, 1)
    asked = Shadowing(counts, 1, lambda: False)
    pairs = [("tickets", "2", "a", str(i)) for i in range(5)]
    for pair in (*pairs, *pairs):
        counts.add(metrics.SHADOW_DISAGREEMENTS, *asked._named(pair))
    counts.close()
    after = Counts(tmp_path)
    again = Shadowing(after, 1, lambda: False)
    for pair in pairs:
        after.add(metrics.SHADOW_DISAGREEMENTS, *again._named(pair))
    found = {key[3:]: value for key, (value, *_) in after.read().items() if key[0] == "textcls_shadow_disagreements"}
    assert found == {("a", "0"): 3, ("a", "1"): 3, ("a", "2"): 3, (OTHER, OTHER): 6}
    after.close()


def test_shadows_are_part_of_the_memory_that_is_needed() -> None:
    plain = memory.needed(Settings(workers=2), 1_000_000)
    assert memory.needed(Settings(workers=2), 1_000_000, shadows=True) == plain + 2 * (4_000_000 + 32_000_000)


@pytest.fixture(autouse=True)
def opened() -> Iterator[None]:
    """No thread waits for a gate that a test has left closed."""
    yield
    SlowClassifier.gate.set()
