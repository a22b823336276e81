"""One file, three places: the server, the browser and Node give the same answers, to rounding."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.processes import PATIENCE

Open = Callable[..., Any]
ASK = """
import { readFileSync } from "node:fs";
import ort from "onnxruntime-node";
import { load } from "./site/page/model.mjs";
const model = await load(ort, readFileSync("./site/model.onnx"));
found = [];
for (const text of given) found.push(...(await model.classify([text], { explain: true })));
"""
ASK_IN_BATCHES = """
import { readFileSync } from "node:fs";
import ort from "onnxruntime-node";
import { load } from "./site/page/model.mjs";
const model = await load(ort, readFileSync("./site/model.onnx"));
found = await model.classify(given, { explain: true, threshold: 0.5 });
"""
EXACT = ("start", "end", "text", "known")


@pytest.fixture(scope="module")
def answers(address: str, golden_texts: list[str]) -> list[dict[str, Any]]:
    """What the server says of the golden texts, one request each."""
    found = []
    with httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False) as client:
        for text in golden_texts:
            content = json.dumps({"inputs": text, "explain": True})
            response = client.post("/v1/classify", content=content, headers={"content-type": "application/json"})
            assert response.status_code == 200, response.text
            found += response.json()["results"]
    return found


def assert_same(found: list[Any], expected: list[Any]) -> None:
    """Check that two lists of results are equal, numbers to rounding."""
    for one, other in zip(found, expected, strict=True):
        assert list(one) == list(other)
        assert [one[name] for name in ("label", "decision", "truncated", "runner_up")] == [
            other[name] for name in ("label", "decision", "truncated", "runner_up")
        ]
        assert one.get("assigned") == other.get("assigned")
        assert scores(one) == pytest.approx(scores(other), abs=1e-5)
        for name in ("bias", "logits"):
            assert one[name] == pytest.approx(other[name], abs=1e-4)
        assert one["completeness_error"] < 1e-4
        for token, like in zip(one["tokens"], other["tokens"], strict=True):
            assert [token[name] for name in EXACT] == [like[name] for name in EXACT]
            assert token["contributions"] == pytest.approx(like["contributions"], abs=1e-4)
            assert token["attention"] == pytest.approx(like["attention"], abs=1e-5)


def scores(result: dict[str, Any]) -> dict[str, float]:
    return {each["label"]: each["score"] for each in result["labels"]}


def test_the_golden_texts_are_many_and_in_ten_scripts(golden_texts: list[str]) -> None:
    rows = json.loads((Path(__file__).parent.parent / "golden" / "texts_v1.json").read_text(encoding="utf-8"))
    assert len({row["script"] for row in rows}) >= 10
    assert len(set(golden_texts)) >= 100


def test_the_browser_says_what_the_server_says(
    visit: Open, static_address: str, answers: list[dict[str, Any]], golden_texts: list[str]
) -> None:
    page = visit(static_address).ready()
    ask = """async (texts) => {
      const { classify } = await import("./page/answer.mjs");
      const found = [];
      for (const text of texts) found.push(...(await classify([[text]], { explain: true })));
      return JSON.stringify(found);
    }"""
    assert_same(json.loads(page.evaluate(ask, golden_texts)), answers)


def test_node_says_what_the_server_says(
    in_node: Callable[..., Any], site_folder: Path, answers: list[dict[str, Any]], golden_texts: list[str]
) -> None:
    assert_same(in_node(ASK, golden_texts, site_folder.parent), answers)


def test_a_batch_says_what_its_texts_say_alone_and_abstains_below_a_threshold(
    in_node: Callable[..., Any], site_folder: Path, answers: list[dict[str, Any]], golden_texts: list[str]
) -> None:
    expected = [{**answer, "decision": "accept" if answer["score"] >= 0.5 else "abstain"} for answer in answers]
    assert_same(in_node(ASK_IN_BATCHES, golden_texts, site_folder.parent), expected)


def test_the_static_page_explains_without_a_server(visit: Open, static_address: str) -> None:
    opened = visit(static_address)
    page = opened.ask("my card was charged twice")
    assert "nothing is sent" in page.inner_text("#about")
    assert page.inner_text("#verdict").startswith("billing ")
    assert len(page.query_selector_all("#tinted .token")) == 5
    assert page.get_by_role("button", name="Copy as command").is_visible()


def test_the_policy_of_the_static_page_lets_the_model_run_and_nothing_else(visit: Open, static_address: str) -> None:
    opened = visit(static_address)
    page = opened.ready()
    policy = page.get_attribute("meta[http-equiv]", "content")
    assert "script-src 'self' 'wasm-unsafe-eval';" in policy
    assert "'unsafe-" not in policy
    assert (
        page.evaluate(
            "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
            " document.body.append(s); return window.ran ?? null; }"
        )
        is None
    )
    opened.wrong.clear()
