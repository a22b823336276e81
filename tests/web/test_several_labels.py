"""A model whose texts may have several labels, or none: in the page, in the browser and in Node."""

import csv
import io
import json
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.processes import PATIENCE
from tests.web.test_in_browser import ASK, ASK_IN_BATCHES, assert_same
from tests.web.test_page_in_browser import signed, told
from textcls import Classifier

Open = Callable[..., Any]
Run = Callable[..., Any]
TWO = "I forgot my password and want to cancel my subscription"
NONE = "Good morning team, all is well here."


def percent(share: float) -> str:
    return f"{share:.1%}"


def needed_logit(classifier: Classifier, label: str) -> float:
    """The logit at which the score of a label is its threshold."""
    info, number = classifier.info, classifier.labels.index(label)
    assert info.scale is not None
    assert info.shift is not None
    assert info.thresholds is not None
    threshold = info.thresholds[number]
    return (log(threshold / (1 - threshold)) - info.shift[number]) / info.scale[number]


# The page


def test_all_assigned_labels_are_the_verdict_and_a_screen_reader_is_told(
    visit: Open, address_of_several: str, several_labels: Classifier
) -> None:
    shown = visit(address_of_several).ask(TWO)
    answer = several_labels.predict(TWO)
    (first, one), (second, other) = [(x, s) for x, s in answer.top() if x in answer.assigned]
    assert shown.inner_text("#verdict") == f"{first} {percent(one)} · {second} {percent(other)}"
    assert shown.inner_text("#said") == f"{first}, {percent(one)}; {second}, {percent(other)}."
    assert shown.inner_text("#remarks") == ""
    assert "7 labels, several a text or none" in shown.inner_text("#about")


def test_each_label_stands_beside_its_threshold(
    visit: Open, address_of_several: str, several_labels: Classifier
) -> None:
    shown = visit(address_of_several).ask(TWO)
    answer, thresholds = several_labels.predict(TWO), several_labels.info.thresholds
    assert thresholds is not None
    limit = dict(zip(several_labels.labels, thresholds, strict=True))
    rows = shown.query_selector_all(".score-row")
    assert [row.query_selector(".called").inner_text() for row in rows] == [label for label, _ in answer.top()]
    for row, (label, score) in zip(rows, answer.top(), strict=True):
        assigned = label in answer.assigned
        assert ("best" in row.get_attribute("class").split()) is assigned
        assert row.query_selector(".of").inner_text() == percent(score)
        # Not by colour alone.
        assert row.query_selector(".limit").inner_text() == f"{'≥' if assigned else '<'} {percent(limit[label])}"
        place = row.query_selector(".track b").evaluate("mark => mark.style.left")
        assert float(place.removesuffix("%")) == pytest.approx(100 * limit[label], abs=0.06)
    assert "thresholds" in shown.inner_text("#scores legend")


def test_where_nothing_is_assigned_the_page_abstains_and_names_the_nearest_label(
    visit: Open, address_of_several: str, several_labels: Classifier
) -> None:
    shown = visit(address_of_several).ask(NONE)
    answer = several_labels.predict(NONE)
    assert answer.assigned == ()
    assert shown.inner_text("#verdict") == "No label"
    reason = str(answer.reason).replace("'", "").replace(": no", ". No")
    assert shown.inner_text("#remarks") == reason
    assert shown.query_selector_all(".score-row.best") == []


def test_a_label_is_explained_by_itself_or_against_another(
    visit: Open, address_of_several: str, several_labels: Classifier
) -> None:
    shown = visit(address_of_several).ask(TWO)
    explanation = several_labels.explain(TWO)
    assert shown.inner_text("#why-label") == "Why account"
    shown.get_by_role("radio", name="cancellation").check()
    assert shown.inner_text("#why-label") == "Why cancellation"
    attribution = explanation.attribution("cancellation")
    for number in (*attribution.values.tolist(), attribution.bias, attribution.total):
        assert signed(number) in shown.inner_text("#tables")
    assert signed(explanation.logits["cancellation"]) in shown.inner_text("#tables .total")
    assert f"assigned from\t{signed(needed_logit(several_labels, 'cancellation'))}" in shown.inner_text("#tables tbody")
    # The evidence is the contribution: it is not said twice.
    assert shown.inner_text("#tables thead").split() == ["token", "evidence", "attention"]
    shown.hover("[data-token='0']")
    assert shown.inner_text("#tip").split()[:2] == ["I", "evidence"]
    assert "cancellation" not in shown.inner_text("#tip")
    shown.get_by_role("radio", name="shipping").check()
    assert shown.inner_text("#why-label") == "Why not shipping"
    shown.get_by_label("against").select_option(label="account")
    assert shown.inner_text("#why-label") == "Why shipping and not account"
    attribution = explanation.attribution("shipping", "account")
    for number in (*attribution.values.tolist(), attribution.bias, attribution.total):
        assert signed(number) in shown.inner_text("#tables")


def test_a_file_of_lines_becomes_a_table_and_a_download_of_several_labels(
    visit: Open, address_of_several: str, several_labels: Classifier, tmp_path: Path
) -> None:
    lines = [TWO, NONE, "refund"]
    (tmp_path / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    shown = visit(address_of_several).ready()
    shown.set_input_files("#file", tmp_path / "lines.txt")
    shown.wait_for_selector("#download:not([hidden])")
    assert [cell.inner_text() for cell in shown.query_selector_all("#rows td.label")] == [
        "account\ncancellation",
        "none (abstains)",
        "returns",
    ]
    with shown.expect_download() as download:
        shown.click("#download")
    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"), newline="")))
    assert rows[0] == ["text", "predicted_labels", "scores", "decision"]
    for row, answer in zip(rows[1:], several_labels.predict(lines), strict=True):
        scores = [score for label, score in answer.top() if label in answer.assigned]
        assert (row[1], row[3]) == (";".join(answer.assigned), answer.decision)
        assert [float(each) for each in row[2].split(";") if each] == pytest.approx(scores, abs=1e-6)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_several_labels_fit_a_phone(visit: Open, address_of_several: str, scheme: str) -> None:
    opened = visit(address_of_several, viewport={"width": 320, "height": 640}, color_scheme=scheme, has_touch=True)
    assert opened.ask(TWO).evaluate("document.documentElement.scrollWidth <= 320")


# Without a server


@pytest.fixture(scope="module")
def answers(address_of_several: str, golden_texts: list[str]) -> list[dict[str, Any]]:
    """What the server says of the golden texts, one request each."""
    found = []
    with httpx.Client(base_url=address_of_several, timeout=PATIENCE, trust_env=False) as client:
        for text in (TWO, NONE, *golden_texts):
            content = json.dumps({"inputs": text, "explain": True})
            response = client.post("/v1/classify", content=content, headers={"content-type": "application/json"})
            assert response.status_code == 200, response.text
            found += response.json()["results"]
    return found


def test_the_browser_assigns_and_explains_as_the_server_does(
    visit: Open, static_address_of_several: str, answers: list[dict[str, Any]], golden_texts: list[str]
) -> None:
    page = visit(static_address_of_several).ready()
    ask = """async (texts) => {
      const { classify } = await import("./page/answer.mjs");
      const found = [];
      for (const text of texts) found.push(...(await classify([[text]], { explain: true })));
      return JSON.stringify(found);
    }"""
    assert_same(json.loads(page.evaluate(ask, [TWO, NONE, *golden_texts])), answers)


def test_node_assigns_and_explains_as_the_server_does(
    in_node: Run, site_folder_of_several: Path, answers: list[dict[str, Any]], golden_texts: list[str]
) -> None:
    found = in_node(ASK, [TWO, NONE, *golden_texts], site_folder_of_several.parent)
    assert_same(found, answers)
    assert [one["assigned"] for one in found[:2]] == [["account", "cancellation"], []]


def test_a_threshold_in_node_is_one_for_all_labels(
    in_node: Run, site_folder_of_several: Path, answers: list[dict[str, Any]], golden_texts: list[str]
) -> None:
    expected = []
    for answer in answers:
        reached = [each["label"] for each in answer["labels"] if each["score"] >= 0.5]
        expected.append({**answer, "assigned": reached, "decision": "accept" if reached else "abstain"})
    assert_same(in_node(ASK_IN_BATCHES, [TWO, NONE, *golden_texts], site_folder_of_several.parent), expected)


def test_the_static_page_shows_several_labels_and_their_thresholds(visit: Open, static_address_of_several: str) -> None:
    shown = visit(static_address_of_several).ask(TWO)
    assert shown.inner_text("#verdict").startswith("account ")
    assert "cancellation" in shown.inner_text("#verdict")
    assert len(shown.query_selector_all(".score-row .limit")) == 7
    shown.fill("#text", NONE)
    shown.click("#classify")
    told(shown, "verdict", "No label")


# The modules without a page


def test_the_evidence_of_several_labels_is_that_of_python(in_node: Run, several_labels: Classifier) -> None:
    code = """
import { attribution } from "./page/explain.mjs";
found = given.map(([result, label, against]) => {
  const { values, bias, total, alone } = attribution(result, label, against);
  return { values, bias, total, alone };
});
"""
    prediction = several_labels.predict(TWO, explain=True)
    explanation = prediction.explanation
    assert explanation is not None
    pairs = [(label, None) for label in several_labels.labels] + [("billing", "sales")]
    found = in_node(code, [[prediction.as_json(), label, against] for label, against in pairs])
    for one, (label, against) in zip(found, pairs, strict=True):
        attribution = explanation.attribution(label, against)
        assert one["values"] == pytest.approx(attribution.values.tolist(), abs=1e-6)
        assert (one["bias"], one["total"]) == pytest.approx((attribution.bias, attribution.total), abs=1e-5)
        assert one["alone"] is (against is None)


def test_a_file_of_format_2_is_read_and_of_a_newer_one_refused(in_node: Run, several_labels_path: Path) -> None:
    code = """
import { readInfo } from "./page/model.mjs";
const bytes = readIt(given);
const said = [readInfo(bytes).thresholds.length];
const newer = Buffer.from(bytes.toString("latin1").replace('"format_version": 2', '"format_version": 5'), "latin1");
try { readInfo(newer); } catch (error) { said.push(error.message); }
found = said;
"""
    found = in_node(code, str(several_labels_path))
    assert found == [7, "The file has format version 5, and this page reads up to 4: make the page anew."]
