# ruff: noqa: RUF001 - marks of other scripts look like those of Latin
"""Phrases and sentences: where they end (`textcls.model.units`), and that contributions over them add up."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import succeed
from tests.explanations import made_up, opposed
from textcls import Classifier, ConfigError
from textcls.model import tokenizer
from textcls.model.prediction import explanation_of
from textcls.model.units import UNITS, Unit, reading_unit, unit_spans


def units(text: str, unit: Unit) -> list[str]:
    spans = list(tokenizer.token_spans(text))
    return [text[spans[first][0] : spans[behind - 1][1]] for first, behind in unit_spans(text, spans, unit)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Hello there. My card failed! Why?? I see", ["Hello there.", "My card failed!", "Why??", "I see"]),
        ("Ask J. Smith, approx. five of 3.5 now. Thanks", ["Ask J. Smith, approx. five of 3.5 now.", "Thanks"]),
        ("i paid. it failed . what now", ["i paid.", "it failed .", "what now"]),
        ('She said "go away." Then (quietly) she left.', ['She said "go away."', "Then (quietly) she left."]),
        ("one line\nanother", ["one line", "another"]),
        ("我的卡被扣了。为什么？请帮忙，谢谢", ["我的卡被扣了。", "为什么？", "请帮忙，谢谢"]),
        ("यह अच्छा है। वह बुरा है।", ["यह अच्छा है।", "वह बुरा है।"]),
        ("هل وصل؟ نعم", ["هل وصل؟", "نعم"]),
        ("", []),
    ],
)
def test_sentences_end_at_line_breaks_and_at_what_ends_sentences_in_each_script(
    text: str, sentences: list[str]
) -> None:
    assert units(text, "sentence") == sentences


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("a charming , moving film . but (oddly) dull", ["a charming ,", "moving film .", "but", "(oddly)", "dull"]),
        ("don't pay 3.50 for well-known, and/or old", ["don't pay 3.50 for well-known,", "and/or old"]),
        ("谢谢，再见", ["谢谢，", "再见"]),
        # Where words stand side by side a space ends a phrase; between other words it does not.
        ("รอนานมาก ไม่อร่อย very bad จริงๆ", ["รอนานมาก", "ไม่อร่อย very bad จริงๆ"]),
        ("カードが 使えない", ["カードが", "使えない"]),
    ],
)
def test_phrases_end_at_marks_that_stand_in_no_word(text: str, phrases: list[str]) -> None:
    assert units(text, "phrase") == phrases


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't pay 3.50", ["don", "'", "t", "pay", "3", ".", "50"]),
        ("มีไหมครับ 4D, ช่วยลดความเสี่ยง", ["มี", "ไหม", "ครับ", "4D", ",", "ช่วย", "ลด", "ความ", "เสี่ยง"]),
        ("我想退款，谢谢", ["我", "想", "退款", "，", "谢谢"]),
        ("我們今天去臺灣", ["我們", "今天", "去臺灣"]),
        ("人々が時々来る", ["人々が", "時々", "来る"]),
        ("ｶﾀｶﾅ", ["ｶﾀｶﾅ"]),
        ("カードが使えない。", ["カードが", "使えない", "。"]),
        ("ຂອບໃຈ ຫຼາຍໆ", ["ຂອບໃຈ", "ຫຼາຍໆ"]),
    ],
)
def test_words_are_tokens_where_spaces_stand_between_them_and_elsewhere_runs_of_letters(
    text: str, words: list[str]
) -> None:
    assert units(text, "word") == words


@pytest.mark.parametrize(
    ("text", "unit"),
    [("My card, 卡", "token"), ("Thanks so much! ขอบคุณ", "word"), ("人々", "word"), ("4000 !", "token"), ("", "token")],
)
def test_people_read_words_where_letters_stand_side_by_side(text: str, unit: Unit) -> None:
    assert reading_unit(text) == unit


@pytest.mark.parametrize("unit", UNITS)
def test_every_token_is_in_one_unit_whatever_the_text(unit: Unit) -> None:
    generator = np.random.default_rng(0)
    signs = list("ab cD. .!?,;()\"'\n-3。？ …’“”x")
    for _ in range(300):
        text = "".join(generator.choice(signs, 30))
        spans = list(tokenizer.token_spans(text))
        found = unit_spans(text, spans, unit)
        assert [i for first, behind in found for i in range(first, behind)] == list(range(len(spans)))
        assert all(first < behind for first, behind in found)


def test_a_sentence_has_the_sum_of_its_tokens_and_their_mean() -> None:
    explanation = made_up("Good film. Bad.", [(1.0, 0.0), (0.5, 0.25), (0.0, 0.0), (-2.0, 1.0), (0.0, 0.0)], ("x", "y"))
    by_sentence = explanation.grouped("sentence")
    first, second = by_sentence.tokens
    assert (first.text, first.start, first.end, dict(first.contributions)) == (
        "Good film.",
        0,
        10,
        {"x": 1.5, "y": 0.25},
    )
    assert (second.text, dict(second.contributions)) == ("Bad.", {"x": -2.0, "y": 1.0})
    assert by_sentence.attribution("x").means.tolist() == pytest.approx([1.25 / 3, -3.0 / 2])
    assert by_sentence.units_as_json(["x"])[0] == {
        "text": "Good film.",
        "start": 0,
        "end": 10,
        "tokens": [0, 3],
        "contributions": {"x": 1.5},
        "means": {"x": 0.5},
    }


def test_sums_over_units_are_those_over_tokens_for_every_text(classifier: Classifier) -> None:
    for text in ("My card was charged twice. Why? Send it back, please", "", "...", "no mark at all"):
        by_token = classifier.explain(text)
        for unit in UNITS:
            grouped = by_token.grouped(unit)
            assert grouped.contributions.sum(0) == pytest.approx(by_token.contributions.sum(0), abs=1e-5)
            assert grouped.attention.sum() == pytest.approx(by_token.attention.sum(), abs=1e-6)
            assert grouped.completeness_error < 1e-4
            assert int(grouped.sizes.sum()) == len(by_token.spans)


def test_a_unit_that_there_is_not_and_a_second_grouping_are_refused() -> None:
    explanation = opposed("good. bad.", 1.0, 0.0, -1.0, 0.0)
    with pytest.raises(ConfigError, match="no unit 'line'; choose from token, word, phrase, sentence"):
        explanation.grouped("line")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="grouped by sentences already"):
        explanation.grouped("sentence").grouped("phrase")


def test_a_unit_is_known_if_one_of_its_tokens_is() -> None:
    explanation = replace(opposed("all of. it.", *[1.0] * 5), known_output=np.array([True, False, True, False, False]))
    assert explanation.grouped("sentence").known.tolist() == [True, False]


def test_of_letters_without_spaces_people_are_shown_words_and_programs_tokens(model_path: Path) -> None:
    text = "ช่วยลดความเสี่ยง"
    shown = succeed("explain", model_path, text)
    assert "ความ" in shown
    assert "bias + words = logit" in shown
    assert "bias + tokens = logit" in succeed("explain", model_path, text, "--unit", "token")
    prediction = Classifier.load(model_path).predict(text, explain=True)
    for page in (prediction._repr_html_(), explanation_of(prediction)._repr_html_()):
        assert ">ความ<" in page
    printed = json.loads(succeed("explain", model_path, "--json", text))
    assert "units" not in printed
    assert printed["tokens"][0]["text"] == "ช่"


def test_the_command_lists_sentences_and_json_has_them_beside_the_tokens(model_path: Path) -> None:
    text = "My card was charged twice. I want my money back!"
    shown = succeed("explain", model_path, "--unit", "sentence", text)
    assert "I want my money back!" in shown
    assert "bias + sentences = logit" in shown
    printed = json.loads(succeed("explain", model_path, "--json", "--unit", "sentence", text))
    assert [unit["text"] for unit in printed["units"]] == ["My card was charged twice.", "I want my money back!"]
    assert [unit["tokens"] for unit in printed["units"]] == [[0, 6], [6, 12]]
    assert len(printed["tokens"]) == len(printed["evidence"]["tokens"]) == 12
