"""The model as a table: its weights are those that answers are made of, and files hold them all."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import fail, succeed
from textcls import Classifier, ConfigError
from textcls.lexicon import lexicon

TEXTS = ["my card was charged twice", "My card, my parcel", "zzqx parcel"]


def test_weights_of_words_and_pairs_are_the_rows_of_which_answers_are_made(classifier: Classifier) -> None:
    found = lexicon(classifier, TEXTS)
    by_term = dict(zip(zip(found.kinds, found.terms, strict=True), found.weights, strict=True))
    counts = dict(zip(found.terms, found.counts, strict=True))
    assert (counts["my"], counts["card"]) == (3, 2)
    assert ("word", "zzqx") not in by_term
    assert found.unknown >= 1
    text, labels = TEXTS[0], len(classifier.labels)
    rows = classifier.graph.rows(text, 5).rows_KTGX[..., :labels].sum(-2)
    for i, word in enumerate(text.split()):
        assert by_term.get(("word", word), np.zeros(labels)) == pytest.approx(rows[0, i])
    largest = np.abs(found.weights).max(1)
    assert largest.tolist() == sorted(largest.tolist(), reverse=True)


def test_a_pair_is_half_its_left_word_s_and_half_its_right_one_s(classifier: Classifier, sample_path: Path) -> None:
    with sample_path.open(encoding="utf-8", newline="") as file:
        found = lexicon(classifier, [row["text"] for row in csv.DictReader(file)])
    pair = found.kinds.index("pair")
    rows = classifier.graph.rows(found.terms[pair], 2).rows_KTGX[..., : len(classifier.labels)].sum(-2)
    assert found.weights[pair] == pytest.approx(rows[2, 0] + rows[1, 1])
    assert rows[2, 0].any()


def test_the_rarest_words_are_dropped_beyond_a_bound(classifier: Classifier) -> None:
    found = lexicon(classifier, ["card"] * 9 + [f"word{i}" for i in range(50)], most=20)
    assert found.dropped > 0
    assert found.terms[0] == "card" or "card" in found.terms


def test_many_words_are_asked_about_in_several_calls(classifier: Classifier) -> None:
    few = lexicon(classifier, TEXTS)
    many = lexicon(classifier, [*TEXTS, " ".join(f"w{i}" for i in range(200))])
    weights = dict(zip(many.terms, many.weights, strict=True))
    for term, weight in zip(few.terms, few.weights, strict=True):
        assert weights[term] == pytest.approx(weight)


def test_a_model_without_rows_has_no_lexicon(whole_tokens_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no weights of words"):
        lexicon(Classifier.load(whole_tokens_path), TEXTS)


def test_the_command_writes_it_as_csv_and_json(model_path: Path, sample_path: Path, tmp_path: Path) -> None:
    table, listed = tmp_path / "words.csv", tmp_path / "words.json"
    given = ("inspect", model_path, "--evidence", sample_path, "--lexicon")
    said = succeed(*given, table)
    succeed(*given, listed)
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = json.loads(listed.read_text(encoding="utf-8"))
    assert f"{len(rows):,} words and pairs -> " in said
    assert [row["term"] for row in rows] == [entry["term"] for entry in found]
    assert float(rows[0]["billing"]) == pytest.approx(found[0]["weights"]["billing"], abs=1e-4)
    words = tmp_path / "groups.txt"
    words.write_text("a, b\n", encoding="utf-8")
    assert "one at a time" in fail(2, *given, table, "--exchange", words)
    assert "--lexicon needs --evidence" in fail(2, "inspect", model_path, "--lexicon", table)
