"""The HTML of explanations: well-formed, nothing in it runs or is fetched, the text comes back as it was given."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.explanations import explained, opposed
from textcls import Classifier, Explanation, Prediction
from textcls.display.html.explanation import (
    MOST_TITLES,
    SHOWN_TOKENS,
    explanation_fragment,
    prediction_fragment,
)
from textcls.display.html.fragments import document
from textcls.display.html.global_explanation import OPEN, global_explanation_fragment
from textcls.display.remarks import completeness_line, nothing_decides_line
from textcls.display.terminal.global_explanation import global_explanation_report
from textcls.display.text import named, visible
from textcls.display.token_table import sub_token_table
from textcls.explain.global_explanation.explainer import GlobalExplainer
from textcls.model.sub_token_attribution import Edge, Kind, SubTokenAttribution

VOID = {"meta", "br"}
HOSTILE = (
    "my card <script>alert(1)</script> & \"quoted\" 'single'",
    "</div></td></style><img src=x onerror=alert(1)> refund",
    'card" onmouseover="alert(1)',
    "controls \x1b[31m \x07 \x9b and a NUL \0",
    "half an emoji \ud83d refund",
    "\u0643\u062a\u0628\u062a \u0644\u0643\u0645 \u202egnirts\u202c \u2066x\u2069",
    "\U0001f621\U0001f469\u200d\U0001f469\u200d\U0001f467 e\u0301 \u6ce8\u6587",
    "",
    " \n\t ",
    "tabs\tand\r\nlines\n\n\nend ",
)


class Parsed(HTMLParser):
    """A page read by the rules: tags that nest, the text in the boxes of the text, the titles of the tokens."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.shown = ""
        self.visible = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("class") or ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if ("div", "text") in self.open:
            self.shown += data
        if not any(tag == "style" for tag, _ in self.open):
            self.visible += data

    def found(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def tokens(parsed: Parsed) -> list[dict[str, str | None]]:
    return [attributes for attributes in parsed.found("span") if "attention" in (attributes.get("title") or "")]


def predicted(classifier: Classifier, text: str) -> tuple[Prediction, Explanation]:
    answer = classifier.predict(text, explain=True)
    return answer, explained(answer)


def assert_harmless(parsed: Parsed) -> None:
    allowed = {"class", "style", "title", "dir", "scope", "colspan", "lang", "charset", "http-equiv", "content", "name"}
    for tag, attributes in parsed.tags:
        assert tag not in {"script", "img", "link", "iframe", "a", "object", "base", "form", "svg"}
        assert set(attributes) <= allowed | {"open"}
        assert "url" not in (attributes.get("style") or "")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_the_text_of_a_page_is_the_text_that_was_given(classifier: Classifier, text: str) -> None:
    answer, explanation = predicted(classifier, text)
    html = document("why", prediction_fragment(answer))
    html.encode()
    parsed = Parsed(html)
    assert_harmless(parsed)
    assert parsed.shown == visible(text)
    assert len(tokens(parsed)) == len(explanation.spans)
    assert not set("\x1b\x07\x9b\0\r\u202e") & set(html)


@settings(max_examples=80)
@given(text=st.text(max_size=120))
def test_any_text_comes_back(classifier: Classifier, text: str) -> None:
    parsed = Parsed(explanation_fragment(classifier.explain(text)))
    assert parsed.shown == visible(text)
    assert_harmless(parsed)


def test_what_is_visible_keeps_its_length() -> None:
    every = "".join(map(chr, [*range(0x300), *range(0x2000, 0x2100), 0xD800, 0xDFFF, 0x1F621]))
    shown = visible(every)
    assert len(shown) == len(every)
    assert {c for c in shown if ord(c) < 32} == {"\t", "\n"}
    assert not {chr(c) for c in (127, 0x80, 0x9F, 0x202E, 0x2066, 0xD800)} & set(shown)
    assert visible("\x00\x1b\x7f") == "\u2400\u241b\u2421"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("card", "card"),
        ("\u200d", "U+200D"),
        ("\ufe0f", "U+FE0F"),
        ("two\nlines", "two lines"),
        ("x" * 100, "x" * 59 + "\u2026"),
        ("\ud83d", "\ufffd"),
        ("\u6ce8", "\u6ce8"),
    ],
)
def test_a_token_is_named_so_that_it_can_be_seen(text: str, name: str) -> None:
    assert named(text) == name


def test_labels_are_escaped_as_texts_are(classifier: Classifier) -> None:
    names = tuple(f"<b>{label}</b>\u202e" for label in classifier.labels)
    explanation = replace(classifier.explain("my card"), labels=names)
    html = explanation_fragment(explanation, against=names[-1])
    assert "<b>billing" not in html
    assert "\u202e" not in html
    assert_harmless(Parsed(html))


def test_tokens_are_tinted_by_sign_and_strength_and_carry_their_numbers() -> None:
    parsed = Parsed(explanation_fragment(opposed("best fine nil poor worst", 2.0, 0.7, 0.01, -1.0, -2.0)))
    marks = tokens(parsed)
    assert [mark.get("class") for mark in marks] == ["p9", "p4", None, "n5", "n9"]
    assert marks[0]["title"] == "evidence +4.000; good +2.000; bad -2.000; attention 0.200"


def test_the_sign_is_reported_by_more_than_colour() -> None:
    html = explanation_fragment(opposed("a b", 1.0, -1.0))
    assert re.search(r"\.p9\{background:[^}]+underline solid", html)
    assert re.search(r"\.n9\{background:[^}]+underline wavy", html)


def test_words_that_are_unknown_to_the_model_are_marked_and_named() -> None:
    parsed = Parsed(explanation_fragment(opposed("best flurbo", 2.0, -1.0, known=[True, False])))
    first, second = tokens(parsed)
    assert first.get("class") == "p9"
    assert second.get("class") == "n5 unknown"
    assert (second["title"] or "").endswith("; unknown to the model")
    assert "Unknown to the model: flurbo (1 of 2 tokens, 33.3% of the evidence)." in parsed.visible


def test_where_all_words_are_known_nothing_is_said_of_unknown_ones() -> None:
    assert "nknown to the model" not in Parsed(explanation_fragment(opposed("best", 2.0))).visible


def test_scores_are_bars_and_the_table_adds_up(classifier: Classifier) -> None:
    answer, explanation = predicted(classifier, "my card was charged twice")
    parsed = Parsed(prediction_fragment(answer))
    widths = [bar["style"] for bar in parsed.found("i") if (bar.get("style") or "").startswith("width")]
    assert widths == [f"width:{100 * score:.1f}%" for _, score in answer.top()]
    attribution = explanation.attribution()
    for number in (*attribution.values.tolist(), attribution.bias, attribution.total):
        assert f"{number:+.3f}" in parsed.visible
    assert "Checked: bias + tokens = logit" in parsed.visible
    assert "not a claim about causes" in parsed.visible


TWO = "I forgot my password and want to cancel my subscription"


def test_several_labels_stand_beside_their_thresholds_and_each_assigned_one_is_explained(
    several_labels: Classifier,
) -> None:
    answer, explanation = predicted(several_labels, TWO)
    html = prediction_fragment(answer)
    parsed = Parsed(html)
    assert answer.thresholds is not None
    limits = dict(zip(answer.label_names, answer.thresholds.tolist(), strict=True))
    for label, score in answer.top():
        sign = "≥" if label in answer.assigned else "<"
        assert f"{label}{score:.1%}{sign} {limits[label]:.1%}" in parsed.visible
    assert html.count("<tr class=first>") == len(answer.assigned) == 2
    for label in answer.assigned:
        assert f"Why {label}" in parsed.visible
        attribution = explanation.attribution(label)
        for number in (*attribution.values.tolist(), attribution.bias, attribution.total):
            assert f"{number:+.3f}" in parsed.visible
    assert "Why not shipping" in Parsed(prediction_fragment(answer, label="shipping")).visible
    assert (
        "Why shipping and not account"
        in Parsed(prediction_fragment(answer, label="shipping", against="account")).visible
    )


def test_where_no_label_is_assigned_it_abstains_and_tells_why_not_the_best(several_labels: Classifier) -> None:
    answer, _ = predicted(several_labels, "Good morning team, all is well here.")
    html = prediction_fragment(answer)
    assert "no label reaches its threshold" in html
    assert "<tr class=first>" not in html
    assert f"Why not {answer.label}" in Parsed(html).visible


def test_of_many_assigned_labels_the_first_are_explained_and_the_rest_counted(several_labels: Classifier) -> None:
    html = prediction_fragment(several_labels.predict(TWO, explain=True, threshold=0))
    assert html.count("<h3>") == 3
    assert "4 more assigned; name a label to see why it is." in html


def part(kind: Kind, start: int, end: int, value: float, edge: Edge | None = None) -> SubTokenAttribution:
    return SubTokenAttribution(kind, start, end, (0,), {"good": value, "bad": -value}, edge)


SUB_TOKENS = [
    part("word", 0, 4, 0.75),
    part("pair", 0, 4, -1.0, "start"),
    part("pair", 0, 8, 0.5),
    part("pair", 5, 8, -0.25, "end"),
    part("ngram", 5, 7, 2.0),
]


def test_sub_token_attributions_are_listed_strongest_first_with_their_sums() -> None:
    explanation = opposed("best <b>", 1.0, 1.0)
    table = sub_token_table(explanation, explanation.attribution(), SUB_TOKENS, 4)
    assert [tuple(row) for row in table.rows] == [
        ("<b", "piece", 4.0),
        ("\u27e8start\u27e9 best", "pair", -2.0),
        ("best", "word", 1.5),
        ("best <b>", "pair", 1.0),
    ]
    assert (table.others, table.rest, table.total, table.check) == (1, -0.5, 4.0, "parts = tokens, exactly")
    last = sub_token_table(explanation, explanation.attribution("bad"), SUB_TOKENS, 5)
    assert last.rows[-1] == ("<b> \u27e8end\u27e9", "pair", 0.5)
    assert (last.others, last.rest, last.total) == (0, 0.0, -4.0)


def test_sub_token_attributions_that_do_not_add_up_are_reported() -> None:
    explanation = opposed("best <b>", 1.0, 1.0)
    assert (
        sub_token_table(explanation, explanation.attribution(), SUB_TOKENS[1:], 4).check == "parts = tokens, to 8e-01"
    )


def test_sub_token_attributions_are_folded_away_in_a_page_and_only_there_if_given() -> None:
    explanation = opposed("best <b>", 1.0, 1.0)
    parsed = Parsed(explanation_fragment(explanation, top=2, sub_tokens=SUB_TOKENS))
    assert_harmless(parsed)
    assert "Words, sequences of words, and pieces of unknown words" in parsed.visible
    assert "\u27e8start\u27e9 best" in parsed.visible
    assert "3 others" in parsed.visible
    assert "Checked: parts = tokens, exactly." in parsed.visible
    assert len(parsed.found("details")) == 1
    assert "parts = tokens" not in Parsed(explanation_fragment(explanation, top=2)).visible


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_sub_token_attributions_of_hostile_texts_are_harmless(classifier: Classifier, text: str) -> None:
    answer, _ = predicted(classifier, text)
    html = prediction_fragment(answer, sub_tokens=classifier.parts(text))
    html.encode()
    assert_harmless(Parsed(html))
    assert not set("\x1b\x07\x9b\0\r\u202e") & set(html)


def test_a_contrast_is_reported_as_such(classifier: Classifier) -> None:
    explanation = classifier.explain("my card was charged twice")
    assert explanation.runner_up is not None
    parsed = Parsed(explanation_fragment(explanation, against=explanation.runner_up))
    assert f"Why {explanation.label} and not {explanation.runner_up}" in parsed.visible
    assert f"speaks for {explanation.runner_up}" in parsed.visible
    title = f"difference {explanation.contrast()[0]:+.3f}; "
    assert (tokens(parsed)[0]["title"] or "").startswith(title)


def test_an_answer_without_explanation_shows_its_scores_and_why_it_abstains(classifier: Classifier) -> None:
    answer = classifier.predict("hello", threshold=1.0)
    parsed = Parsed(prediction_fragment(answer))
    assert answer.reason is not None
    assert answer.reason in parsed.visible
    assert parsed.shown == ""


def test_what_the_model_did_not_read_is_shown_as_such(classifier: Classifier) -> None:
    text = "refund " * classifier.info.max_tokens + "and <i>this</i> was not read"
    answer, explanation = predicted(classifier, text)
    parsed = Parsed(prediction_fragment(answer))
    assert parsed.shown == text
    assert {"class": "unread", "title": "not read by the model"} in parsed.found("span")
    assert "longer than the model reads" in parsed.visible
    assert len(tokens(parsed)) == len(explanation.spans)


def test_contributions_that_do_not_add_up_are_not_passed_over() -> None:
    wrong = replace(opposed("a", 1.0), logit_values=np.array([3.0, -1.0], np.float32))
    assert "do not trust this split" in explanation_fragment(wrong)
    assert "to 2e+00" in completeness_line(wrong)


def long_text(count: int) -> Explanation:
    rng = np.random.default_rng(5)
    return opposed(" ".join(f"word{i}" for i in range(count)), *rng.normal(size=count).tolist())


def test_a_long_text_is_folded_and_stays_below_a_megabyte() -> None:
    explanation = long_text(2_000)
    html = document("long", explanation_fragment(explanation))
    assert len(html.encode()) < 1_000_000
    parsed = Parsed(html)
    assert parsed.shown.endswith(explanation.text)
    assert len(parsed.found("details")) == 2
    assert "The sentences that decide: 480 of 2,000 tokens, " in parsed.visible
    assert "All 2,000 tokens in reading order" in parsed.visible
    share = explanation.covered(SHOWN_TOKENS)
    assert f"The 20 tokens shown carry {share:.1%} of the evidence." in parsed.visible


def test_a_very_long_text_tells_the_numbers_of_its_strongest_tokens() -> None:
    explanation = long_text(MOST_TITLES + 500)
    parsed = Parsed(explanation_fragment(explanation))
    assert parsed.shown.endswith(explanation.text)
    assert len(tokens(parsed)) >= MOST_TITLES
    assert "The 2,000 strongest of 2,500 tokens in reading order" in parsed.visible


def test_many_labels_are_folded() -> None:
    names = tuple(f"label {i}" for i in range(30))
    flat = np.full(30, 1 / 30, np.float32)
    answer = Prediction(names, flat, "accept", False, None)
    parsed = Parsed(prediction_fragment(answer))
    assert "22 more labels" in parsed.visible
    assert all(name in parsed.visible for name in names)


def test_the_same_explanation_gives_the_same_bytes(classifier: Classifier) -> None:
    first, second = (explanation_fragment(classifier.explain("my card")) for _ in range(2))
    assert first == second


def test_notebooks_are_shown_the_fragment(classifier: Classifier) -> None:
    answer, explanation = predicted(classifier, "my card")
    assert answer._repr_html_() == prediction_fragment(answer)
    assert explanation._repr_html_() == explanation_fragment(explanation)


def test_every_rule_of_style_is_bound_to_the_fragment() -> None:
    style = re.search(r"<style>(.*?)</style>", explanation_fragment(opposed("a", 1.0)), re.DOTALL)
    assert style is not None
    rules = re.sub(r"@media\([^)]*\)", "", style[1])
    for selectors in re.findall(r"(?:^|[{}])([^{}]+)\{", rules):
        assert all(selector.startswith(".textcls") for selector in selectors.split(",")), selectors


def test_a_page_forbids_itself_to_run_or_fetch_anything(classifier: Classifier) -> None:
    html = document("<title>", explanation_fragment(classifier.explain("hi")))
    assert "default-src 'none'; style-src 'unsafe-inline'" in html
    assert "<title>&lt;title&gt;</title>" in html
    assert "http://" not in html
    assert "https://" not in html


def test_what_a_model_goes_by_is_a_page_of_its_own(classifier: Classifier) -> None:
    explainer = GlobalExplainer(classifier.labels)
    texts = ["refund <b>my</b> card now", "refund \x1b my card \ud83d", "where is my parcel", "x\u202e"]
    for explanation in classifier.explain(texts * 6):
        explainer.add(explanation, "billing")
    report = explainer.summary(4)
    assert report.deciding
    html = document("by", global_explanation_fragment("by", report))
    html.encode()
    parsed = Parsed(html)
    assert_harmless(parsed)
    assert not set("\x1b\u202e") & set(html)
    for label in report.labels:
        assert f"{label.label} {label.answers:,} answers" in parsed.visible
        for term in label.words_for:
            assert f"{term.evidence:+,.1f}" in parsed.visible
    assert len(parsed.found("mark")) == sum(
        len(x.words_for) + len(x.words_against) + len(x.pairs_for) + len(x.pairs_against) for x in report.labels
    ) + len(report.deciding)


def test_of_many_labels_the_first_are_unfolded() -> None:
    explainer = GlobalExplainer([f"label {i}" for i in range(30)])
    html = global_explanation_fragment("by", explainer.summary())
    assert (html.count("<details"), html.count("<details open")) == (30, OPEN)


@pytest.mark.parametrize(("share", "told"), [(0.1, "10%"), (0.25, "25%"), (0.005, "0.5%")])
def test_the_page_and_the_terminal_name_the_share_that_makes_a_word_decide(share: float, told: str) -> None:
    report = GlobalExplainer(("x", "y")).summary(deciding_share=share)
    line = f"No word alone decides more than {told} of a label's answers."
    assert nothing_decides_line(report) == line
    assert line in Parsed(global_explanation_fragment("what it goes by", report)).visible
    assert line in [str(part) for part in global_explanation_report(report, 80)]
