"""What would change an answer: found changes do, none is missed that is smaller, and words exchanged are compared."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import fail, succeed
from tests.model_metadata import metadata_of, with_metadata
from textcls import Classifier, ConfigError, InputError, TooLargeError
from textcls.display.remarks import change_line, search_line
from textcls.explain.counterfactual import MOST_ASKED, MOST_CHANGES, Search, counterfactual
from textcls.explain.exchanges import MOST_TEXTS, compare_exchanged
from textcls.explain.intervention import remove
from textcls.explain.word_groups import Term, read_groups
from textcls.model import tokenizer

TEXTS = ("my card was charged twice", "where is my parcel", "I want to return the lamp", "cancel my plan please")


@pytest.mark.parametrize("text", TEXTS)
def test_a_change_that_is_found_changes_the_answer_and_none_is_smaller(classifier: Classifier, text: str) -> None:
    before = classifier.predict(text).label
    search = counterfactual(classifier, text)
    spans = list(tokenizer.token_spans(text))
    single = [i for i in range(len(spans)) if classifier.predict(remove(text, spans, [i])).label != before]
    pairs = [
        p for p in combinations(range(len(spans)), 2) if classifier.predict(remove(text, spans, p)).label != before
    ]
    found = search.found
    if found is None:
        assert not single
        assert not pairs
        return
    assert classifier.predict(found.text).label == found.label != before
    assert found.text == remove(text, spans, [change.token for change in found.changes])
    assert len(found.changes) == (1 if single else 2 if pairs else len(found.changes))
    assert found.smallest is (len(found.changes) <= 2)
    assert len(found.changes) <= MOST_CHANGES
    assert search.unit == "token"
    assert search.tokens == len(spans)


def test_where_no_few_tokens_change_a_long_text_sentences_do_and_none_of_them_can_stay(classifier: Classifier) -> None:
    billing = " ".join(f"My card was charged twice for invoice {i}, please pay it back." for i in range(6))
    text = f"Where is my parcel, when will it arrive? {billing}"
    before = classifier.predict(text).label
    search = counterfactual(classifier, text)
    found = search.found
    assert found is not None
    assert (search.unit, found.before) == ("sentence", before)
    assert search.asked <= MOST_ASKED
    sentences = classifier.explain(search.text).grouped("sentence").spans
    left = [change.token for change in found.changes]
    assert found.text == remove(search.text, sentences, left)
    assert classifier.predict(found.text).label == found.label != before
    for each in left:
        fewer = [other for other in left if other != each]
        assert classifier.predict(remove(search.text, sentences, fewer)).label == before
    assert f"Without {len(left)} sentences, it would be {found.label}" in change_line(search)


def test_where_no_sentences_change_a_text_tokens_do_one_after_another_and_none_of_them_can_stay(
    classifier: Classifier,
) -> None:
    text = "There are scans at one hub and zero movement, and the label goes round and round the belt; relabel it. " * 8
    before = classifier.predict(text).label
    search = counterfactual(classifier, text)
    found = search.found
    assert found is not None
    assert (search.unit, search.one_by_one, found.before) == ("token", True, before)
    assert search.asked <= MOST_ASKED
    spans = classifier.explain(search.text).spans
    left = [change.token for change in found.changes]
    assert len(left) > MOST_CHANGES
    assert found.text == remove(search.text, spans, left)
    assert classifier.predict(found.text).label == found.label != before
    for each in left:
        fewer = [other for other in left if other != each]
        assert classifier.predict(remove(search.text, spans, fewer)).label == before
    assert f"Without {len(left)} tokens, it would be {found.label}" in change_line(search)
    assert "then tokens one after another" in search_line(search)


def test_of_letters_without_spaces_words_are_left_out(classifier: Classifier) -> None:
    text = "ช่วยลดความเสี่ยง"
    words = ["ช่วย", "ลด", "ความ", "เสี่ยง"]
    search = counterfactual(classifier, text)
    assert (search.by, search.tokens) == ("word", 4)
    assert "each of 4 words by itself" in search_line(search)
    if search.found is not None:
        assert {change.text for change in search.found.changes} <= set(words)


def test_nothing_is_said_of_what_was_not_tried(classifier: Classifier) -> None:
    for text in ("", "card"):
        assert "one after another" not in search_line(counterfactual(classifier, text))


@pytest.mark.parametrize("sentence", ["Cancel my plan. ", "My card was charged. "])
def test_what_says_one_thing_throughout_is_not_left_out_as_a_whole(classifier: Classifier, sentence: str) -> None:
    search = counterfactual(classifier, sentence * 30)
    assert search.asked <= MOST_ASKED
    assert search.sentences > 1
    assert f"then {search.sentences} whole sentences" in search_line(search)
    if search.found is not None:
        assert search.found.text.strip()


def test_sentences_are_told_of_only_where_they_were_tried(classifier: Classifier) -> None:
    for text in ("", "my card " * 60):
        assert "whole sentence" not in search_line(counterfactual(classifier, text))


def test_the_label_it_should_become_can_be_named(classifier: Classifier) -> None:
    text = "my card was charged twice and I want to return the lamp"
    before = classifier.predict(text).label
    other = next(label.label for label in classifier.predict(text).top() if label.label != before)
    found = counterfactual(classifier, text, against=other).found
    assert found is None or found.label == other
    none = Search(text, None, 3, 7, against=other)
    assert change_line(none) == f"No small change of the text would make it {other}."
    assert change_line(replace(none, against=None)) == "No small change of the text changes the answer."
    with pytest.raises(ConfigError, match="is the answer already"):
        counterfactual(classifier, text, against=before)
    with pytest.raises(ConfigError, match="no label 'Biling'"):
        counterfactual(classifier, text, against="Biling")


def test_an_answer_is_led_out_of_a_node_and_into_another(model_path: Path, tmp_path: Path) -> None:
    metadata = metadata_of(model_path)
    labels = [f"money > {one}" if i % 2 else f"goods > {one}" for i, one in enumerate(metadata["labels"])]
    path = tmp_path / "tree.onnx"
    path.write_bytes(with_metadata(model_path, metadata | {"labels": labels}))
    classifier = Classifier.load(path)

    def share(text: str, node: str) -> float:
        answer = classifier.predict(text)
        return float(sum(answer.probabilities[[name.startswith(node) for name in labels]]))

    for text in ("my card was charged twice", "where is my parcel"):
        before = classifier.predict(text)
        node, other = before.label.split(" > ")[0], "goods" if before.label.startswith("money") else "money"
        for search in (counterfactual(classifier, text, label=node), counterfactual(classifier, text, against=other)):
            assert search.found is not None
            assert search.found.label == (other if search.against else classifier.predict(search.found.text).label)
            assert share(search.found.text, node) < 0.5 < share(search.found.text, other)
        search = counterfactual(classifier, text, label=node)
        assert search.found is not None
        assert search.found.before == search.node == node
        assert search.found.before_score == pytest.approx(share(search.found.text, node), abs=1e-6)
        assert f", and {node} would get {search.found.before_score:.1%}." in change_line(search)
        # No smaller change: with one token less left out the node keeps more than half.
        spans, left_out = list(tokenizer.token_spans(text)), [change.token for change in search.found.changes]
        for kept in left_out:
            assert share(remove(text, spans, [token for token in left_out if token != kept]), node) > 0.5
        with pytest.raises(ConfigError, match=f"'{other}' is not the answer, with "):
            counterfactual(classifier, text, label=other)
        with pytest.raises(ConfigError, match=f"'{node}' is the answer already"):
            counterfactual(classifier, text, against=node)
    assert "takes it out of money" in change_line(Search("a", None, 1, 1, node="money"))


def test_words_of_a_group_are_tried_for_each_other(classifier: Classifier) -> None:
    groups = [(Term.of("card"), Term.of("parcel")), (Term.of("charged"), Term.of("delivered"))]
    text = "my card was charged"
    found = counterfactual(classifier, text, groups=groups).found
    assert found is not None
    assert classifier.predict(found.text).label == found.label
    assert {change.by for change in found.changes} <= {None, "parcel", "delivered"}


def test_a_text_without_tokens_has_nothing_to_change(classifier: Classifier) -> None:
    assert counterfactual(classifier, " ").found is None


def test_a_search_ends_when_its_time_is_up(classifier: Classifier) -> None:
    with pytest.raises(TooLargeError, match=r"took too long after 0 of \d+ texts; give a shorter one"):
        counterfactual(classifier, "my card was charged twice", seconds=0)


def test_of_several_labels_one_is_lost(several_labels: Classifier) -> None:
    text = "my card was charged twice, I want a refund"
    before = several_labels.predict(text)
    first = before.assigned[0]
    search = counterfactual(several_labels, text, label=first)
    assert search.found is not None
    assert first not in several_labels.predict(search.found.text).assigned
    assert f"{first} would not be assigned, " in change_line(search)
    other = next(name for name in several_labels.labels if name not in before.assigned)
    with pytest.raises(ConfigError, match=f"'{other}' is not assigned, so that no change can take it away"):
        counterfactual(several_labels, text, label=other)


def test_of_several_labels_one_is_lost_and_the_one_that_is_wanted_assigned(several_labels: Classifier) -> None:
    text = "my card was charged twice. Where is my parcel? I want a refund. Cancel my plan."
    before = several_labels.predict(text)
    for wanted in several_labels.labels:
        if wanted in before.assigned:
            with pytest.raises(ConfigError, match="is the answer already"):
                counterfactual(several_labels, text, against=wanted, label=before.assigned[0])
            continue
        search = counterfactual(several_labels, text, label=before.assigned[0], against=wanted)
        if search.found is not None:
            after = several_labels.predict(search.found.text).assigned
            assert wanted in after
            assert before.assigned[0] not in after
            assert f"{wanted} would, " in change_line(search)


def test_the_command_prints_the_change_and_writes_it(model_path: Path, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    given = ("explain", model_path, "--counterfactual", TEXTS[0])
    assert "Tried: each of 5 tokens by itself" in succeed(*given)
    printed = json.loads(succeed(*given, "--json"))["counterfactual"]
    assert printed["tokens"] == 5
    # Without colours, too, one sees what is left out.
    left_out = [change["text"] for change in printed["found"]["changes"]]
    assert all(f"[-{text}-]" in succeed(*given) for text in left_out)
    succeed(*given, "--html", page)
    assert "What would change it" in page.read_text(encoding="utf-8")
    words = tmp_path / "words.txt"
    words.write_text("card, parcel\n", encoding="utf-8")
    assert "--exchange needs --counterfactual" in fail(2, "explain", model_path, "--exchange", words, TEXTS[0])


# Words exchanged


def test_groups_are_read_a_line_each(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("he, she  # people\n\n# nothing\nBlack people, white people, HE\n", encoding="utf-8")
    assert read_groups(path) == [(("he",), ("she",)), (("black", "people"), ("white", "people"), ("he",))]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("he\n", "line 1: 1 different; write 2 to 50 words with commas"),
        ("he, He\n", "line 1: 1 different"),
        ("# none\n", "holds no words"),
        ("a, b\n" * 600, "more than 1,000 words"),
    ],
)
def test_a_file_that_holds_no_groups_is_refused_with_the_line(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "words.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read_groups(path)


def test_exchanged_words_are_compared_text_by_text(classifier: Classifier) -> None:
    texts = ["My card was charged", "a card is lost, the card", "where is it"]
    report = compare_exchanged(classifier, texts, [(Term.of("card"), Term.of("parcel"), Term.of("zzz"))])
    (one,) = [one for one in report.exchanges if (one.word, one.by) == ("card", "parcel")]
    before = classifier.predict(texts[:2])
    after = classifier.predict(["My parcel was charged", "a parcel is lost, the parcel"])
    number = classifier.labels.index(one.label)
    differences = [float(a.probabilities[number] - b.probabilities[number]) for a, b in zip(after, before, strict=True)]
    assert one.texts == 2
    assert one.difference == pytest.approx(sum(differences) / 2, abs=1e-6)
    assert one.error == pytest.approx(abs(differences[0] - differences[1]) / 2, abs=1e-6)
    assert one.largest == pytest.approx(max(differences, key=abs), abs=1e-6)
    assert one.changed == sum(a.label != b.label for a, b in zip(after, before, strict=True))
    assert report.absent == ("parcel", "zzz")
    assert report.texts == 3


def test_texts_of_a_word_are_bounded(classifier: Classifier) -> None:
    texts = ("my card" for _ in range(2 * MOST_TEXTS))
    report = compare_exchanged(classifier, texts, [(Term.of("card"), Term.of("parcel"))])
    assert [one.texts for one in report.exchanges] == [MOST_TEXTS]


def test_several_texts_are_no_text_to_change(classifier: Classifier) -> None:
    several: Any = ["my card was charged twice"]
    with pytest.raises(InputError, match="A list is not one text: pass one of its items"):
        counterfactual(classifier, several)


def test_of_several_labels_an_answer_is_another_one_if_any_label_is(several_labels: Classifier) -> None:
    texts = [f"{text.replace('card', 'bill')}; my parcel is late" for text in TEXTS]
    report = compare_exchanged(several_labels, texts, [(Term.of("parcel"), Term.of("card"))])
    one = next(one for one in report.exchanges if one.word == "parcel")
    before, after = (
        several_labels.predict([text.replace("parcel", word) for text in texts]) for word in ("parcel", "card")
    )
    assert one.changed == sum(set(a.assigned) != set(b.assigned) for a, b in zip(before, after, strict=True))
    assert one.changed > sum(a.label != b.label for a, b in zip(before, after, strict=True))
    refused: tuple[tuple[Any, str], ...] = (("abc", "one string"), ([{"text": "a"}], "Text 0 is not a string but dict"))
    for wrong, said in refused:
        with pytest.raises(InputError, match=said):
            compare_exchanged(several_labels, wrong, [])


def test_the_command_compares_exchanged_words_over_a_file(model_path: Path, sample_path: Path, tmp_path: Path) -> None:
    words, page = tmp_path / "words.txt", tmp_path / "words.html"
    words.write_text("card, parcel\nqqqq, wwww\nain't, \u5317\u4eac\n", encoding="utf-8")
    given = ("inspect", model_path, "--evidence", sample_path, "--exchange", words)
    shown = succeed(*given)
    assert "Words exchanged: " in shown
    # Named as they are written, and not as they are read.
    assert "In no text: qqqq, wwww, ain't, \u5317\u4eac." in shown
    assert {one["word"] for one in json.loads(succeed(*given, "--json"))["exchanges"]} == {"card", "parcel"}
    succeed(*given, "--html", page)
    assert "<h2>model_v1: words exchanged</h2>" in page.read_text(encoding="utf-8")
