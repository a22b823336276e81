"""The model as a table: its weights are those that answers are made of, and files hold them all."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import fail, read_rows, succeed, write_rows
from textcls import Classifier, ConfigError
from textcls.explain.lexicon.table import Lexicon, lexicon
from textcls.explain.lexicon.terms import beside

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
    weights = dict(zip(zip(many.kinds, many.terms, strict=True), many.weights, strict=True))
    for kind, term, weight in zip(few.kinds, few.terms, few.weights, strict=True):
        assert weights[kind, term] == pytest.approx(weight)


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
    assert " pieces -> " in said
    assert [row["term"] for row in rows] == [entry["term"] for entry in found]
    assert float(rows[0]["billing"]) == pytest.approx(found[0]["weights"]["billing"], abs=1e-4)
    words = tmp_path / "groups.txt"
    words.write_text("a, b\n", encoding="utf-8")
    assert "cannot be combined" in fail(2, *given, table, "--exchange", words)
    assert "--lexicon needs --evidence" in fail(2, "inspect", model_path, "--lexicon", table)


def test_pairs_with_the_edges_of_a_text_weigh_what_they_add_there(classifier: Classifier, sample_path: Path) -> None:
    found = lexicon(classifier, [row["text"] for row in read_rows(sample_path)])
    edges = [(i, term.split(" ")) for i, term in enumerate(found.terms) if term.startswith("\u27e8start\u27e9 ")]
    assert edges
    for i, (_, word) in edges[:5]:
        rows = classifier.graph.rows(word, 1).rows_KTGX[..., : len(classifier.labels)].sum(-2)
        assert found.weights[i] == pytest.approx(rows[1, 0])


def test_pieces_of_an_unknown_word_add_up_to_what_it_says(classifier: Classifier, sample_path: Path) -> None:
    texts = [row["text"] for row in read_rows(sample_path)]
    found = lexicon(classifier, [*texts, "chargedd"])
    piece = {term: i for i, term in enumerate(found.terms) if found.kinds[i] == "piece"}
    word, config, labels = "chargedd", classifier.info.features, len(classifier.labels)
    framed = f"<{word[: config.max_chars]}>"
    pieces = {framed[i : i + n] for n in config.ngram_sizes for i in range(len(framed) - n + 1)}
    rows = classifier.graph.rows(word, 1)
    assert rows.ngrams_UNGX is not None
    assert not rows.known_T[0]
    told = sum(found.weights[piece[one]] for one in pieces if one in piece)
    assert told == pytest.approx(rows.ngrams_UNGX[0, ..., :labels].sum((0, 1)), abs=1e-5)
    assert np.abs(told).max() > 0


def test_the_strongest_words_of_a_label_are_those_with_much_weight_and_many_texts() -> None:
    weights = np.array([[2.0, -2.0], [1.5, 0.0], [-1.0, 1.0], [3.0, -3.0]], np.float32)
    found = Lexicon(("a", "b"), ("word", "word", "pair", "piece"), ("w", "x", "y z", "<w"), (1, 9, 4, 9), weights, 0, 0)
    assert [found.terms[i] for i in found.top("a", 5)] == ["x", "w"]
    assert [found.terms[i] for i in found.top("a", 5, against=True)] == ["y z"]


def test_the_list_beside_a_model_gives_the_same_table_as_its_texts(
    model_path: Path, sample_path: Path, tmp_path: Path
) -> None:
    model = tmp_path / "tickets.onnx"
    model.write_bytes(model_path.read_bytes())
    classifier = Classifier.load(model)
    assert "train with --keep-words" in fail(3, "lexicon", model)
    assert "train with --keep-words" in fail(3, "inspect", model, "--words")
    found = lexicon(classifier, [row["text"] for row in read_rows(sample_path)])
    beside(model).write_text(found.as_list(classifier.info), encoding="utf-8")
    table, listed = tmp_path / "table.csv", tmp_path / "table.json"
    assert "words, " in succeed("lexicon", model, "--output", table)
    assert table.read_text(encoding="utf-8") == found.as_csv()
    succeed("lexicon", model, "--output", listed)
    assert len(json.loads(listed.read_text(encoding="utf-8"))) == len(found.terms)
    screen = succeed("lexicon", model)
    assert screen == succeed("inspect", model, "--words")
    assert "leave them out" in fail(2, "lexicon", model, "--output", table, "--top", "2")
    # Of other rows; a list that somebody made says of none.
    lines = beside(model).read_text(encoding="utf-8").splitlines(keepends=True)
    for head, fits in (("kind,term,count,sha256=0123\n", False), ("kind,term,count\n", True)):
        beside(model).write_text("".join([head, *lines[1:]]), encoding="utf-8")
        if fits:
            assert succeed("lexicon", model) == screen
        else:
            assert "lists the words of other rows than" in fail(3, "lexicon", model)
    assert succeed("lexicon", model, beside(model)) == screen
    strongest = found.terms[found.top("billing", 1)[0]]
    assert next(line for line in screen.splitlines() if line.startswith("billing")).split()[1].strip(",") == strongest
    assert "+" in succeed("lexicon", model, "--label", "billing", "--top", "2")


def test_a_plain_list_of_words_will_do(model_path: Path, tmp_path: Path, prototypes_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("card\ncharged twice\n", encoding="utf-8")
    assert "card" in succeed("lexicon", model_path, words)
    assert "has no weights of words" in fail(2, "lexicon", prototypes_path, words)
    assert "has no label" in fail(2, "lexicon", model_path, words, "--label", "nobody")


def test_a_table_is_written_only_by_a_name_that_tells_its_format_and_never_over_the_list_beside_the_model(
    model_path: Path, tmp_path: Path
) -> None:
    model, table = tmp_path / "m.onnx", tmp_path / "table.xlsx"
    model.write_bytes(model_path.read_bytes())
    listed = tmp_path / "m.words.csv"
    listed.write_text("card\n", encoding="utf-8")
    assert "does not say the format" in fail(2, "lexicon", model, "--output", table)
    assert "does not say the format" in fail(2, "inspect", model, "--evidence", listed, "--lexicon", table)
    assert "is also the input" in fail(3, "lexicon", model, "--output", listed)
    assert (table.exists(), listed.read_text(encoding="utf-8")) == (False, "card\n")


def test_words_are_kept_beside_the_model_on_request(tmp_path: Path, sample_path: Path) -> None:
    rows = read_rows(sample_path)[:150]
    table = write_rows(tmp_path / "rows.csv", [("text", "label"), *((row["text"], row["label"]) for row in rows)])
    quick = ("--epochs", "1", "--vectors", "none", "--quiet")
    succeed("train", table, "--output", tmp_path / "m.onnx", "--keep-words", *quick)
    assert {row["kind"] for row in read_rows(tmp_path / "m.words.csv")} == {"word", "pair", "piece"}
    assert "words, " in succeed("lexicon", tmp_path / "m.onnx")
    said = fail(2, "train", table, "--from", tmp_path, "--keep-words", *quick)
    assert "--keep-words lists the words of DATA, and --from is more than these" in said


def test_formulas_among_words_are_escaped_on_request(model_path: Path, tmp_path: Path) -> None:
    words, table = tmp_path / "words.txt", tmp_path / "table.csv"
    words.write_text("=refund\n+shipping\n@billing\nrefund\n", encoding="utf-8")
    succeed("lexicon", model_path, words, "--output", table, "--escape-formulas")
    with table.open(encoding="utf-8", newline="") as file:
        terms = [row["term"] for row in csv.DictReader(file)]
    assert "refund" in terms
    assert not any(term[0] in "=+-@" for term in terms)
