"""The page's modules without a page: the same tokens and the same evidence as in Python, to the last text."""

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.explanations import opposed
from textcls import Classifier
from textcls.data import open_table
from textcls.display import text as display_text
from textcls.display.html import site
from textcls.display.passages import passages
from textcls.model import _unicode, tokenizer
from textcls.model.units import UNITS, Unit, unit_spans

Run = Callable[..., Any]
GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "tokens_v1.json").read_text(encoding="utf-8"))
TRICKY = (
    "aZ_09 .!'\t\n\r\x0b\x1c\x85\xa0\u2003\u2028\u3000\u200b\u200d\ufeff\0\x7f\xe9\xdf\u0130\u03a3\u2167\xb2"
    "\u0301\ufe0f\u0915\u094d\u0e01\u0e31\u0eaa\u0eb5\u179f\u17d2\u1019\u103a\u0645\u064e\u6771\u3005\U00020000\u304b\u3099\u30fb"
    "\uc548\u1112\u1161\U0001f469\U0001f3fd\U0001f1e9\U00010400\U000e0101\ue000\U0010ffff\ud800\udfff"
)
SPANS = """
import { spans, toCodePoints, fromCodePoints } from "./page/tokens.mjs";
found = given.map((text) => {
  const places = spans(text);
  const points = toCodePoints(text, places);
  const back = fromCodePoints(text, points);
  if (JSON.stringify(back) !== JSON.stringify(places)) throw new Error("the places do not come back");
  return [points, places.map(([start, end]) => text.slice(start, end))];
});
"""


def as_in_python(texts: list[str]) -> list[Any]:
    found = []
    for text in texts:
        places = list(tokenizer.token_spans(text))
        found.append([[list(place) for place in places], [text[start:end] for start, end in places]])
    return found


def test_the_golden_texts_are_cut_as_in_python(in_node: Run) -> None:
    texts = [case["text"] for case in GOLDEN]
    found = in_node(SPANS, texts)
    assert [points for points, _ in found] == [[list(token[1:]) for token in case["tokens"]] for case in GOLDEN]
    assert found == as_in_python(texts)


def test_texts_of_all_scripts_and_of_tricky_characters_are_cut_as_in_python(
    in_node: Run, golden_texts: list[str]
) -> None:
    # Two halves of a surrogate pair side by side are one character in JavaScript.
    chance = random.Random(7)
    texts = ["".join(chance.choices(TRICKY, k=chance.randrange(40))) for _ in range(2_000)]
    texts = [text for text in texts if "\ud800\udfff" not in text] + golden_texts
    assert in_node(SPANS, texts) == as_in_python(texts)


def test_long_tokens_are_given_to_the_model_as_in_python(in_node: Run) -> None:
    code = 'import { read } from "./page/tokens.mjs"; found = given.map(read);'
    texts = ["a" * 128, "b" * 129 + "! c", "\u0e01" + "\u0e31" * 200 + "d", "\U00010400" * 130 + " e", "\u6771" * 200]
    assert in_node(code, texts) == [tokenizer.shortened(tokenizer.clean(text)) for text in texts]


def test_every_assigned_range_is_in_the_tables_of_the_page() -> None:
    written = site.unicode_tables()
    for name in ("WORD", "UNSPACED", "MARK", "SPACE"):
        line = next(line for line in written.splitlines() if line.startswith(f"export const {name}="))
        ranges = json.loads(line.partition("=")[2].removesuffix(";"))
        assert [tuple(each) for each in ranges] == list(getattr(_unicode, name))


def test_phrases_and_sentences_are_those_of_python(in_node: Run, golden_texts: list[str]) -> None:
    chance = random.Random(9)
    marks = "ab A.. ,!?;:'-\u2014()\u201c\u201d\"\u3002\u061f\u0964\n3\u2026\xbf"
    texts = ["".join(chance.choices(marks, k=chance.randrange(30))) for _ in range(2_000)]
    texts += [*golden_texts, "J. Smith paid 3.50 (approx. five). Why?! \u201cNo.\u201d He left\u2026 don't ask"]
    texts += ["รอนานมาก ไม่อร่อย very bad จริงๆ", "カードが 使えない。\U00020000 \U00020001 \u4e00", "ຂອບໃຈ ຫຼາຍໆ"]
    code = """
import { spans } from "./page/tokens.mjs";
import { unitSpans } from "./page/units.mjs";
found = given.map((text) => ["phrase", "sentence"].map((unit) => unitSpans(text, spans(text), unit)));
"""
    places = {text: list(tokenizer.token_spans(text)) for text in texts}
    kinds: tuple[Unit, ...] = ("phrase", "sentence")
    expected = [[[list(unit) for unit in unit_spans(text, places[text], kind)] for kind in kinds] for text in texts]
    assert in_node(code, texts) == expected


def test_words_without_spaces_are_those_of_the_browser_and_other_words_are_tokens(in_node: Run) -> None:
    texts = ["มีไหมครับ 4D, ช่วยลดความเสี่ยง", "我想退款。谢谢", "don't pay 3.50", ""]
    code = """
import { spans } from "./page/tokens.mjs";
import { readingUnit, unitSpans } from "./page/units.mjs";
found = given.map((text) => {
  const places = spans(text);
  const words = unitSpans(text, places, "word");
  return [readingUnit(text), words.map(([first, behind]) => text.slice(places[first][0], places[behind - 1][1]))];
});
"""
    expected = [
        ["word", ["มี", "ไหม", "ครับ", "4D", ",", "ช่วย", "ลด", "ความ", "เสี่ยง"]],
        ["word", ["我想", "退款", "。", "谢谢"]],
        ["token", ["don", "'", "t", "pay", "3", ".", "50"]],
        ["token", []],
    ]
    assert in_node(code, texts) == expected


def test_what_is_shown_first_of_a_long_text_is_that_of_python(in_node: Run) -> None:
    drawn = random.Random(7)
    words = ["my", "card", "parcel", "arrived", "twice", "please", "cancel", "refund.", "Now", "late!", "plan,"]
    texts = [" ".join(drawn.choices(words, k=size)) for size in (100, 140, 300, 700)] + ["cancel " * 400]
    asked, expected = [], []
    for text in texts:
        explanation = opposed(text, *(drawn.gauss(0, 1) for _ in tokenizer.token_spans(text)))
        for unit in UNITS:
            shown = explanation.grouped(unit)
            attribution = shown.attribution("good")
            # Places in JavaScript's sense: here no character takes two.
            asked.append([text, [list(span) for span in shown.spans], attribution.values.tolist(), unit])
            expected.append([list(part) for part in passages(shown, attribution)])
    code = """
import { passages } from "./page/units.mjs";
found = given.map(([text, places, values, unit]) => passages(text, places, values, unit));
"""
    assert in_node(code, asked) == expected
    assert sum(map(bool, expected)) >= 4


def test_evidence_and_contrasts_are_those_of_python(
    in_node: Run, classifier: Classifier, golden_texts: list[str]
) -> None:
    explanations = [e for e in classifier.explain(golden_texts) if len(e.spans)]
    code = """
import { attribution, level } from "./page/explain.mjs";
found = given.map(([result, label, against]) => {
  const { values, bias, total, largest, order } = attribution(result, label, against);
  return { values, bias, total, order, levels: values.map((value) => level(value, largest)) };
});
"""
    asked, expected = [], []
    for explanation in explanations:
        result = explanation.as_json() | {
            "labels": [
                {"label": label, "score": float(score)}
                for label, score in zip(explanation.labels, explanation.probability_values, strict=True)
            ]
        }
        for label, against in ((explanation.label, None), (explanation.labels[-1], None), ("billing", "sales")):
            asked.append([result, label, against])
            expected.append(explanation.attribution(label, against))
    for found, attribution in zip(in_node(code, asked), expected, strict=True):
        assert found["values"] == pytest.approx(attribution.values.tolist(), abs=1e-6)
        assert (found["bias"], found["total"]) == pytest.approx((attribution.bias, attribution.total), abs=1e-5)


def test_what_steers_or_cannot_be_seen_is_shown_as_in_python(in_node: Run) -> None:
    texts = [*map(chr, range(0x300)), *map(chr, range(0x2000, 0x20A0)), "\ud800", "x\udfffy", "x" * 100, "two\nlines"]
    code = """
import { visible, named } from "./page/explain.mjs";
found = given.map((text) => [visible(text), named(text)]);
"""
    for text, (visible, named) in zip(texts, in_node(code, texts), strict=True):
        assert visible == display_text.visible(text)
        if text.strip():
            assert named == display_text.named(text), ascii(text)


DELIMITED = [
    "text,label\na,x\n",
    'text,label\n"a ""b"", c",x\r\n"two\nlines",y',
    "text;label\na;x\n\nb;y\n",
    "a\tb|c\n1\t2|3\n",
    " text , n \nx,1\n",
    "one\nx\ny",
    "a,b;c\n1,2;3\n",
    'a,b\n"",\n,""\n',
    "text,label\n" + "x,y\n" * 30 + "a;b;c,d\n",
    "title;text\rold;mac\r",
]


@pytest.mark.parametrize("content", DELIMITED)
def test_tables_are_read_as_in_python(in_node: Run, tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content, newline="")
    with open_table(path) as table:
        columns = list(table.parts[0].columns)
        rows = [list(row.fields.values()) for row in table.rows]
    code = """
import { table } from "./page/table.mjs";
found = table(given, ",");
"""
    found = in_node(code, content)
    assert (found["columns"], found["rows"]) == (columns, rows)


def test_any_records_come_back_as_they_were_written(in_node: Run) -> None:
    chance = random.Random(11)
    tables = [
        [["".join(chance.choices('a,;\t|"\n\r \u2028é', k=chance.randrange(6))) for _ in range(3)] for _ in range(9)]
        for _ in range(300)
    ]
    code = """
import { records, written, DELIMITERS } from "./page/table.mjs";
found = given.flatMap((rows) => DELIMITERS.map((sign) => [...records(written(rows, sign), sign)]));
"""
    assert in_node(code, tables) == [rows for rows in tables for _ in range(4)]


def test_the_column_of_the_texts_is_found_as_in_python(in_node: Run) -> None:
    headers = [["id", "text"], ["id", "Message"], ["text", "review"], ["title", "review"], ["a", "b"], ["x"], []]
    code = """
import { textColumns } from "./page/table.mjs";
found = given.map((columns) => textColumns(columns, ["text"]));
"""
    assert in_node(code, headers) == [[1], [1], [0], None, None, [0], None]
    code = code.replace('["text"]', '["subject", "body"]')
    assert in_node(code, [["body", "id", "subject"], ["body", "text"]]) == [[2, 0], None]


def test_the_file_says_what_it_is_without_onnx_runtime(in_node: Run, model_path: Path, classifier: Classifier) -> None:
    code = """
import { readInfo } from "./page/model.mjs";
found = readInfo(readIt(given));
"""
    found = in_node(code, str(model_path))
    assert tuple(found["labels"]) == classifier.labels
    assert found["bias"] == pytest.approx(classifier.info.bias)
    assert found["max_tokens"] == classifier.info.max_tokens


@pytest.mark.parametrize("damage", [b"", b"no model at all", b"\x08"])
def test_a_file_that_is_no_model_is_refused_in_a_sentence(in_node: Run, tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(damage)
    code = """
import { readInfo } from "./page/model.mjs";
try { readInfo(readIt(given)); } catch (error) { found = error.message; }
"""
    assert in_node(code, str(tmp_path / "model.onnx")).endswith(".")


def test_the_example_in_node_gives_the_numbers_of_python(
    node: str, node_modules: Path, site_folder: Path, classifier: Classifier
) -> None:
    if not (node_modules / "onnxruntime-node").is_dir():
        pytest.skip("onnxruntime-node is not installed: npm install in tests/web")
    example = Path(__file__).parent.parent.parent / "examples" / "classify.mjs"
    code = [line for line in example.read_text().splitlines() if line and not line.startswith("//")]
    assert len(code) <= 10
    shutil.copy(example, site_folder.parent)
    done = subprocess.run([node, "classify.mjs"], cwd=site_folder.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = classifier.predict("my card was charged twice", explain=True)
    assert answer.explanation is not None
    expected = [f"{answer.label} {answer.score:.4f}"]
    expected += [f"{token.text} {token.contributions[answer.label]:.4f}" for token in answer.explanation.tokens]
    assert done.stdout.splitlines() == expected
