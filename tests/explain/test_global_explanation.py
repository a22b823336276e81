"""What a model goes by over many texts: sums worked by hand, shortcuts by their definition, bounded memory."""

import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest

from tests import explanations
from textcls import Classifier, ConfigError, Explanation, InputError
from textcls.evaluation.drift.drift import measure_drift
from textcls.explain.global_explanation.explainer import GlobalExplainer, explain_globally
from textcls.explain.global_explanation.groups import compare_groups
from textcls.explain.global_explanation.summary import DecidingWord, GlobalExplanation, TermAttribution
from textcls.model import tokenizer
from textcls.model.excerpts import AROUND, marked
from textcls.model.text_columns import join_columns


def made_up(text: str, *added: float, bias: float = 0.0) -> Explanation:
    """An explanation of labels x and y. What the tokens add to x is their evidence, since they add nothing to y."""
    return explanations.made_up(text, [(value, 0.0) for value in added], ("x", "y"), bias=(bias, 0.0))


def summary_of(*explanations: Explanation, top: int = 10, labels: Sequence[str | None] = ()) -> GlobalExplanation:
    explainer = GlobalExplainer(("x", "y"))
    for i, explanation in enumerate(explanations):
        explainer.add(explanation, labels[i] if labels else None)
    return explainer.summary(top)


def rows(terms: Sequence[TermAttribution]) -> list[tuple[str, float, float, int]]:
    return [(f.text, round(f.evidence, 5), round(f.mean, 5), f.count) for f in terms]


def test_evidence_of_words_is_summed_and_averaged_over_texts_in_lower_case() -> None:
    report = summary_of(made_up("Good film", 2.0, -0.5), made_up("good GOOD bad", 1.0, 0.5, -3.0))
    x, y = report.labels
    assert rows(x.words_for) == [("good", 3.5, 1.16667, 3)]
    assert rows(x.words_against) == [("bad", -3.0, -3.0, 1), ("film", -0.5, -0.5, 1)]
    assert rows(y.words_for) == [("bad", 3.0, 3.0, 1), ("film", 0.5, 0.5, 1)]
    assert (report.texts, report.tokens, report.dropped) == (2, 5, 0)


def test_evidence_of_a_pair_is_that_of_both_and_needs_two_occurrences() -> None:
    report = summary_of(
        made_up("not bad at", -1.0, -2.0, 0.25), made_up("Not  BAD", 0.5, 1.5), made_up("bad not", 9, 9)
    )
    x, _ = report.labels
    assert rows(x.pairs_for) == []
    assert rows(x.pairs_against) == [("not bad", -1.0, -0.5, 2)]


def test_of_three_labels_evidence_is_that_of_the_explanation(classifier: Classifier) -> None:
    texts = ["my card was charged twice", "My parcel, my card", "refund"]
    explainer = GlobalExplainer(classifier.labels)
    sums: dict[tuple[str, str], float] = {}
    for explanation in classifier.explain(texts):
        explainer.add(explanation)
        for label in classifier.labels:
            for token, value in zip(explanation.tokens, explanation.evidence(label).tolist(), strict=True):
                key = label, tokenizer.lower(token.text)
                sums[key] = sums.get(key, 0.0) + value
    for told in explainer.summary(99).labels:
        found = {f.text: f.evidence for f in (*told.words_for, *told.words_against)}
        assert found == pytest.approx({word: value for (name, word), value in sums.items() if name == told.label})


def test_only_the_strongest_are_reported_and_ties_keep_the_order_of_appearance() -> None:
    report = summary_of(made_up("a b c d e", 1.0, 3.0, 1.0, 2.0, 1.0), top=3)
    assert [f.text for f in report.labels[0].words_for] == ["b", "d", "a"]


def test_an_example_shows_the_word_where_it_contributes_what_it_does_as_a_rule() -> None:
    texts = [made_up("a fine day", 0, 1.0, 0), made_up("fine , not", -2.0, 0, 0), made_up("so fine", 0, 1.5)]
    (fine,) = (f for f in summary_of(*texts).labels[0].words_for if f.text == "fine")
    assert marked(fine.example) == ("so ", "fine", "")


def test_an_example_is_cut_at_spaces_around_the_word() -> None:
    text = "lorem " * 20 + "REFUND!" + " ipsum" * 20
    counts = [0.0] * 20 + [1.0] + [0.0] * 21
    (found,) = summary_of(made_up(text, *counts)).labels[0].words_for
    before, word, behind = marked(found.example)
    assert word == "REFUND"
    assert (set(before.split()), set(behind[1:].split())) == ({"lorem"}, {"ipsum"})
    assert max(len(before), len(behind)) <= AROUND


def test_an_example_of_text_without_spaces_is_cut_all_the_same() -> None:
    text = "\u3042" * 100
    (found,) = summary_of(made_up(text, *([0.0] * 50), 1.0, *([0.0] * 49))).labels[0].words_for
    assert len(found.example.text) == 2 * AROUND + 1


# Shortcuts


def deciding(count: int, others: int) -> list[Explanation]:
    """Texts answered x: in so many the word `free` alone decides, in the others it stands without deciding."""
    return [made_up("free money", 2.0, -1.0)] * count + [made_up("free prize", 1.0, 2.0)] * others


def test_a_word_without_which_the_label_would_not_be_answered_is_a_shortcut() -> None:
    # `prize` decides none: what `free` adds is enough.
    report = summary_of(*deciding(6, 4), made_up("no", -1.0))
    (found,) = report.deciding
    assert (found.label, found.text) == ("x", "free")
    assert (found.decided, found.holding, found.answers) == (6, 10, 10)
    assert found.share == pytest.approx(0.6)
    assert found.wrong is None


def test_what_the_other_label_is_answered_without_counts_for_that_label() -> None:
    report = summary_of(*[made_up("bad film", -2.0, 1.0)] * 5)
    assert [(s.label, s.text, s.share) for s in report.deciding] == [("y", "bad", 1.0)]


@pytest.mark.parametrize(("count", "others", "told"), [(5, 44, True), (5, 45, False), (4, 0, False), (50, 450, False)])
def test_a_shortcut_decides_five_answers_and_more_than_a_tenth(count: int, others: int, told: bool) -> None:
    report = summary_of(*deciding(count, others))
    assert bool(report.deciding) is told


def test_a_word_that_stands_twice_is_taken_away_as_one() -> None:
    # Either one alone would not decide.
    report = summary_of(*[made_up("Free free now", 1.0, 1.0, -0.5)] * 5)
    assert [(s.text, s.decided) for s in report.deciding] == [("free", 5)]


def test_of_labelled_texts_it_is_reported_how_many_shortcut_answers_are_wrong() -> None:
    report = summary_of(*deciding(6, 2), labels=["x", "y", "y", "x", None, "x", "y", "x"])
    (found,) = report.deciding
    assert found.wrong == 2
    assert (report.labelled, report.right) == (7, 4)


def test_the_threshold_can_be_chosen() -> None:
    explainer = GlobalExplainer(("x", "y"))
    for explanation in deciding(5, 45):
        explainer.add(explanation)
    assert explainer.summary(deciding_share=0.05).deciding[0].share == pytest.approx(0.1)


def test_shortcuts_of_a_model_are_those_of_the_definition(classifier: Classifier) -> None:
    texts = ["refund my card", "refund", "my refund is late", "where is my refund", "Refund please", "the parcel"] * 2
    explainer = GlobalExplainer(classifier.labels)
    answers: dict[str, int] = {}
    decided: dict[tuple[str, str], int] = {}
    for explanation in classifier.explain(texts):
        explainer.add(explanation)
        answers[explanation.label] = answers.get(explanation.label, 0) + 1
        for word in {tokenizer.lower(token.text) for token in explanation.tokens}:
            logits = dict(explanation.logits)
            for token in explanation.tokens:
                if tokenizer.lower(token.text) == word:
                    logits = {label: logits[label] - token.contributions[label] for label in logits}
            if max(logits, key=logits.__getitem__) != explanation.label:
                decided[explanation.label, word] = decided.get((explanation.label, word), 0) + 1
    expected = {key: n / answers[key[0]] for key, n in decided.items() if n >= 5 and n / answers[key[0]] > 0.1}
    assert expected
    assert {(s.label, s.text): s.share for s in explainer.summary().deciding} == pytest.approx(expected)


# Some of the labels


def test_labels_are_reported_alone_and_in_the_order_asked_for() -> None:
    explainer = GlobalExplainer(("x", "y"))
    for explanation in (*deciding(6, 0), *[made_up("bad film", -2.0, 1.0)] * 5):
        explainer.add(explanation)
    every = explainer.summary()
    assert every.mirrored
    assert [s.label for s in every.deciding] == ["x", "y"]
    (y,) = explainer.summary(labels=["y", "y"]).labels
    assert y == every.labels[1]
    assert not explainer.summary(labels=["y"]).mirrored
    assert explainer.summary(labels=["y"]).deciding == every.deciding[1:]
    assert explainer.summary(labels=["y", "x"]).labels == every.labels[::-1]
    with pytest.raises(ConfigError, match="no label 'w'; its labels are x, y"):
        explainer.summary(labels=["w"])


# Awkward texts, and many


def test_texts_without_tokens_are_counted_and_say_nothing(classifier: Classifier) -> None:
    explainer = GlobalExplainer(classifier.labels)
    for explanation in classifier.explain(["", " ", "half \ud83d", "nul\0nul"]):
        explainer.add(explanation)
    report = explainer.summary()
    assert (report.texts, report.tokens) == (4, 4)
    assert {"half", "nul"} <= {f.text for label in report.labels for f in (*label.words_for, *label.words_against)}


def test_no_texts_give_an_empty_report() -> None:
    report = summary_of()
    assert (report.texts, report.deciding, [label.answers for label in report.labels]) == (0, (), [0, 0])
    assert report.labels[0].words_for == ()


def test_beyond_its_bound_the_rarest_words_are_dropped_and_summarised() -> None:
    explainer = GlobalExplainer(("x", "y"), keys=20)
    for i in range(100):
        explainer.add(made_up(f"common word{i}", 1.0, 5.0))
    report = explainer.summary(100)
    assert report.dropped > 0
    words = {f.text: f for f in report.labels[0].words_for}
    assert len(words) <= 20
    assert (words["common"].count, words["common"].evidence) == (100, 100.0)


def test_shortcuts_are_found_beyond_the_bound() -> None:
    explainer = GlobalExplainer(("x", "y"), keys=20)
    for i in range(100):
        explainer.add(made_up(f"free word{i}", 2.0, -1.0))
    (found,) = explainer.summary().deciding
    assert (found.text, found.decided, found.answers) == ("free", 100, 100)
    assert isinstance(found, DecidingWord)


def test_memory_does_not_grow_with_the_number_of_texts() -> None:
    explainer = GlobalExplainer(("x", "y"), keys=500)

    def add(first: int) -> None:
        for i in range(first, first + 1_000):
            explainer.add(made_up(f"free word{i} {'padding ' * 20}", 1.0, -1.0, *([0.1] * 20)))

    add(0)
    tracemalloc.start()
    try:
        add(1_000)
        add(2_000)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The texts alone are 360 KB.
    assert grown < 600_000


def test_the_report_is_plain_data() -> None:
    found = summary_of(*deciding(5, 5)).as_json()
    assert set(found) == {
        "texts",
        "tokens",
        "labelled",
        "right",
        "dropped",
        "deciding",
        "labels",
        "deciding_share",
        "mirrored",
        "audit",
    }
    assert found["deciding"][0]["example"]["text"]
    assert found["labels"][0]["words_for"][0]["text"] == "free"


# From Python


def test_many_texts_are_explained_as_one_by_one(classifier: Classifier) -> None:
    rows = [(f"refund my card {i}", "billing" if i % 2 else None) for i in range(300)]
    explainer = GlobalExplainer(classifier.labels)
    for text, label in rows:
        explainer.add(classifier.explain(text), label)
    found = explain_globally(classifier, iter(rows), top=3)
    one_by_one = explainer.summary(3)
    assert (found.texts, found.labelled, found.right) == (300, 150, one_by_one.right)
    assert [label.label for label in found.labels] == list(classifier.labels)
    for some, others in zip(found.labels, one_by_one.labels, strict=True):
        assert [term.text for term in some.words_for] == [term.text for term in others.words_for]


def test_a_label_that_does_not_exist_is_refused_before_any_row_is_read(classifier: Classifier) -> None:
    rows = iter([("refund", None)])
    with pytest.raises(ConfigError, match="The model has no label 'Biling'"):
        explain_globally(classifier, rows, labels=["Biling"])
    assert next(rows) == ("refund", None)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["ab", "cd"], "Row 0 is not a pair of a text and what it should get: pass zip"),
        ([{"text": "a", "label": "billing"}], "Row 0 is not a pair"),
        (
            [("a", "billing"), ("b", 3.5)],
            r"Row 1 has a label that is not a string but float; give str\(label\)",
        ),
        ([("a", ["billing", "returns"])], "Row 0 has labels in a list, and this model gives one label per text"),
        ([(5, None)], "Row 0 has a text that is not a string but int"),
        (None, "The rows are not a sequence but NoneType"),
    ],
)
def test_what_is_no_row_is_refused_by_all_that_read_rows_with_or_without_labels(
    classifier: Classifier, watched: Classifier, rows: Any, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        explain_globally(classifier, rows)
    with pytest.raises(InputError, match=said):
        measure_drift(watched, rows)


def test_no_rows_and_values_out_of_their_range_are_refused(classifier: Classifier) -> None:
    with pytest.raises(InputError, match="There are no rows"):
        explain_globally(classifier, [])
    for wrong, said in (({"deciding_share": 5}, "a share from 0 and below 1, not 5"), ({"labels": "billing"}, "list")):
        with pytest.raises(ConfigError, match=said):
            explain_globally(classifier, [("a", None)], **wrong)


def test_a_top_that_is_no_number_is_refused(classifier: Classifier) -> None:
    for top in (0, -1, 2.5):
        with pytest.raises(ConfigError, match="top must be a whole number from 1"):
            explain_globally(classifier, [("a", None)], top=top)  # type: ignore[arg-type]


def test_columns_are_ranked_and_decide_as_words_do_a_category_by_value_and_a_number_by_name(
    with_columns: Classifier,
) -> None:
    info = with_columns.info
    products = ["sofa", "phone", "lamp", None]
    rows = [
        join_columns({"text": "hello", "product": product, "price": 10.0 + i}, info.text_columns, info.columns)
        for i in range(40)
        for product in products
    ]
    found = explain_globally(with_columns, [(row, None) for row in rows])
    for label in found.labels:
        sums = {term.text: term for term in (*label.words_for, *label.words_against)}
        assert (sums["product = sofa"].count, sums["product is missing"].count, sums["price"].count) == (40, 40, 160)
        evidence = [one.attribution(label.label).cells for one in with_columns.explain(rows)]
        expected = sum(
            added for cells in evidence for name, value, added in cells if (name, value) == ("product", "sofa")
        )
        assert sums["product = sofa"].evidence == pytest.approx(expected, abs=1e-3)
    of_sofa = [one for one in found.deciding if one.text == "product = sofa"]
    assert of_sofa
    for decides in of_sofa:
        answered = [row for row in rows if with_columns.predict(row).label == decides.label]
        assert 5 <= decides.decided <= decides.holding <= len(answered) == decides.answers
        assert decides.example.text == "hello"


def test_two_groups_differ_by_their_columns_too(with_columns: Classifier) -> None:
    info = with_columns.info
    lamps, sofas = (
        [join_columns({"text": "hello", "product": product}, info.text_columns, info.columns)] * 60
        for product in ("lamp", "sofa")
    )
    found = compare_groups(with_columns, lamps, sofas)
    assert all("product = sofa" in {term.text for term in (*label.more, *label.less)} for label in found.labels)
