"""What an explanation says of itself, worked out by hand: attributions, contrast, the strongest tokens, its JSON."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_type

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests import explanations
from textcls import Classifier, ConfigError, Explanation, InputError, Prediction
from textcls.model.contrast import evidence_of_all, one_against_rest
from textcls.model.label_paths import LabelPaths
from textcls.model.labels import label_number

TEXT = "My card was charged TWICE!!"


def made_up(
    text: str,
    added: Sequence[Sequence[float]],
    probabilities: Sequence[float] = (0.6, 0.3, 0.1),
    known: Sequence[bool] | None = None,
) -> Explanation:
    """An explanation of labels x, y, z with a bias of 0.5, 0.25 and 0, padded by two rows as in a batch."""
    count = len(probabilities)
    return explanations.made_up(
        text,
        added,
        "xyz"[:count],
        bias=(0.5, 0.25, 0.0)[:count],
        probabilities=probabilities,
        known=known,
        padding=2,
    )


THREE = made_up("a b c", [[1.0, 0.0, -1.0], [0.5, 0.5, 0.25], [0.0, 2.0, 0.0]])


TREE = ("money > billing", "money > refund", "parcel > late", "parcel > lost")


def of_a_tree(logits: Sequence[float], temperature: float = 1.0) -> Explanation:
    """An explanation of four labels in a tree, by one token a label and a bias."""
    scores = np.exp(np.array(logits) / temperature)
    added = np.diag(np.array(logits) - 0.5)
    made = explanations.made_up(
        "a b c d", added.tolist(), TREE, bias=[0.5] * 4, probabilities=(scores / scores.sum()).tolist()
    )
    return replace(made, tree=LabelPaths(TREE, " > "))


# The winner and the one behind it


def test_the_winner_and_the_runner_up_are_the_most_probable_labels() -> None:
    assert (THREE.label, THREE.runner_up) == ("x", "y")
    assert made_up("a", [[0, 0, 0]], (0.2, 0.2, 0.6)).runner_up == "x"


def test_of_equal_labels_the_first_wins_and_the_second_is_behind() -> None:
    tied = made_up("a", [[0, 0, 0]], (0.4, 0.2, 0.4))
    assert (tied.label, tied.runner_up) == ("x", "z")


@settings(max_examples=50)
@given(st.lists(st.floats(-4, 4), min_size=4, max_size=4), st.floats(0.5, 2))
def test_the_evidence_for_a_node_adds_up_and_is_how_its_log_odds_move(logits: list[float], temperature: float) -> None:
    made = of_a_tree(logits, temperature)
    found = made.attribution("money")
    assert found.bias + found.values.sum() == pytest.approx(found.total, abs=1e-4)

    def log_odds(of: NDArray[np.float64]) -> float:
        power = np.exp(of / temperature)
        return float(np.log(power[:2].sum() / power[2:].sum()))

    steps = [np.where(np.arange(4) == i, 1e-4, 0) for i in range(4)]
    slopes = [(log_odds(logits + step) - log_odds(logits - step)) / 2e-4 for step in steps]
    assert found.contrast / temperature == pytest.approx(slopes, abs=1e-3)


def test_a_node_has_the_probability_of_the_labels_below_it_and_is_held_against_a_sibling() -> None:
    made = of_a_tree([2.0, 1.0, 0.5, -1.0])
    assert made.score("money") == pytest.approx(made.probability_values[:2].sum())
    assert made.score("money > refund") == made.probability_values[1]
    one = made.attribution("money > refund", "parcel")
    assert one.contrast[:2].tolist() == [0, 1]
    assert one.contrast[2:].sum() == pytest.approx(-1)
    assert made.columns(made.attribution("money")) == []
    assert made.contrast("money").tolist() == made.attribution("money", "parcel > late").values.tolist()


def test_the_last_part_of_a_name_is_enough_where_no_other_node_has_it() -> None:
    made = of_a_tree([2.0, 1.0, 0.5, -1.0])
    found = made.attribution("refund", "late")
    assert (found.label, found.against) == ("money > refund", "parcel > late")
    assert made.score("refund") == made.score("money > refund")


def test_where_a_label_stands_above_others_a_sign_behind_it_names_the_node() -> None:
    labels = ("money", "money > refund", "parcel > late", "parcel > lost")
    made = replace(of_a_tree([2.0, 1.0, 0.5, -1.0]), labels=labels, tree=LabelPaths(labels, " > "))
    assert made.score("money") == made.probability_values[0]
    assert made.score("money >") == made.score(" money> ") == pytest.approx(made.probability_values[:2].sum())
    assert made.attribution("money> ").label == "money >"
    # Where no label stands there, the sign says nothing more.
    assert made.attribution("parcel >").label == "parcel"
    with pytest.raises(ConfigError, match="cannot be contrasted with itself"):
        made.attribution("parcel >", "parcel")


def test_a_name_that_several_nodes_have_is_not_guessed_at() -> None:
    labels = ("food > cook", "food > bake", "sales > cook", "sales > call")
    made = replace(of_a_tree([1, 2, 3, 4]), labels=labels, tree=LabelPaths(labels, " > "))
    with pytest.raises(ConfigError, match="'cook' may be 'food > cook' or 'sales > cook': name one by its whole path"):
        made.attribution("cook")


@pytest.mark.parametrize(
    ("label", "against", "said"),
    [
        ("money", "money > refund", "'money' and 'money > refund' one stands above the other"),
        ("money > refund", "money", "one stands above the other"),
        ("parcel", "parcel", "'parcel' cannot be contrasted with itself"),
        ("mone", None, "has no label 'mone'"),
        ("money > re", None, "has no label 'money > re'"),
        ("Money", None, r"no label 'Money' \(did you mean 'money'\?\)"),
    ],
)
def test_what_is_no_node_or_stands_above_the_other_is_refused(label: str, against: str | None, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        of_a_tree([1, 2, 3, 4]).attribution(label, against)


def test_a_node_above_all_labels_is_held_against_nothing() -> None:
    below = tuple(f"all > {label}" for label in TREE)
    made = replace(of_a_tree([1, 2, 3, 4]), labels=below, tree=LabelPaths(below, " > "))
    assert made.score("all > money") < made.score("all") == pytest.approx(1)
    with pytest.raises(ConfigError, match="All labels of the model stand below 'all'"):
        made.attribution("all")


def test_a_lone_label_has_no_runner_up_and_nothing_to_contrast() -> None:
    lone = made_up("a", [[2.0]], (1.0,))
    assert lone.runner_up is None
    assert lone.evidence().tolist() == [2.0]
    with pytest.raises(ConfigError, match="knows only the label 'x'"):
        lone.contrast()


# Contrast


def test_contrast_is_the_difference_of_two_contributions() -> None:
    assert THREE.contrast().tolist() == [1.0, 0.0, -2.0]
    assert THREE.contrast("x", "z").tolist() == [2.0, 0.25, 0.0]
    assert THREE.contrast("z", "x").tolist() == [-2.0, -0.25, 0.0]


def test_contrast_holds_a_loser_against_the_winner_unless_told_otherwise() -> None:
    assert THREE.contrast("y").tolist() == [-1.0, 0.0, 2.0]
    assert THREE.contrast(against="z").tolist() == THREE.contrast("x", "z").tolist()


@settings(max_examples=40)
@given(text=st.text(max_size=200))
def test_contrast_and_bias_add_up_to_the_difference_of_the_logits(classifier: Classifier, text: str) -> None:
    explanation = classifier.explain(text)
    a, b = explanation.label, explanation.runner_up
    assert b is not None
    bias, logits = explanation.bias, explanation.logits
    parts = bias[a] - bias[b] + float(explanation.contrast().sum())
    assert parts == pytest.approx(logits[a] - logits[b], abs=1e-4)


def test_of_two_labels_contrast_is_evidence() -> None:
    two = made_up("a b", [[1.0, -0.5], [0.25, 2.0]], (0.7, 0.3))
    np.testing.assert_allclose(two.contrast(), two.evidence(), atol=1e-6)


@pytest.mark.parametrize(("label", "against"), [("w", None), (None, "w"), ("w", "x")])
def test_a_label_that_does_not_exist_is_refused(label: str | None, against: str | None) -> None:
    with pytest.raises(ConfigError, match="no label 'w'; its labels are x, y, z"):
        THREE.contrast(label, against)


def test_a_label_is_not_held_against_itself() -> None:
    with pytest.raises(ConfigError, match="'x' cannot be contrasted with itself"):
        THREE.contrast("x", "x")


def test_a_misspelt_label_is_answered_with_the_nearest() -> None:
    found = replace(THREE, labels=("Billing", "Returns", "z"))
    with pytest.raises(ConfigError, match=r"no label 'biling' \(did you mean 'Billing'\?\); its labels are Billing,"):
        found.evidence("biling")


# Attributions


@settings(max_examples=40)
@given(text=st.text(max_size=200))
def test_every_attribution_adds_up(classifier: Classifier, text: str) -> None:
    explanation = classifier.explain(text)
    for label in explanation.labels:
        others = [None, *(other for other in explanation.labels if other != label)]
        for attribution in (explanation.attribution(label, other) for other in others):
            assert attribution.bias + float(attribution.values.sum()) == pytest.approx(attribution.total, abs=1e-4)


@given(
    logits=st.lists(st.floats(-60, 60, width=32), min_size=1, max_size=6),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_evidence_of_all_labels_at_once_is_that_of_each_by_itself(logits: list[float], seed: int) -> None:
    share = np.exp(np.array(logits) - max(logits))
    probabilities = (share / share.sum()).astype(np.float32)
    added = np.random.default_rng(seed).normal(size=(4, len(logits)))
    every = added @ one_against_rest(probabilities, range(len(logits)))
    np.testing.assert_allclose(evidence_of_all(probabilities, added), every, atol=1e-9)


def test_where_the_others_have_no_probability_left_they_count_alike() -> None:
    sure = made_up("a", [[3.0, 1.0, 2.0]], (1.0, 0.0, 0.0))
    assert sure.evidence().tolist() == [1.5]


# The strongest tokens


def test_the_strongest_tokens_come_first_whatever_their_sign() -> None:
    found = made_up("a b c d", [[1, -1], [-2, 2], [0.5, -0.5], [2, -2]], (0.6, 0.4))
    assert [token.text for token in found.top(3)] == ["b", "d", "a"]
    assert found.top(1)[0].contributions == {"x": -2, "y": 2}
    assert len(found.top(99)) == 4
    assert found.top(0) == ()


def test_covered_is_the_share_of_the_evidence_that_the_strongest_carry() -> None:
    # |evidence| is 2, 4, 1 and 3.
    found = made_up("a b c d", [[1, -1], [-2, 2], [0.5, -0.5], [1.5, -1.5]], (0.6, 0.4))
    assert [found.covered(k) for k in range(6)] == pytest.approx([0, 0.4, 0.7, 0.9, 1, 1])
    assert found.covered(1, "y") == pytest.approx(0.4)


def test_all_of_no_evidence_is_covered() -> None:
    assert made_up("a", [[0.0, 0.0]], (0.5, 0.5)).covered(0) == 1
    assert made_up("", [], (0.5, 0.5)).covered(3) == 1


@pytest.mark.parametrize("ask", ["top", "covered"])
def test_fewer_than_no_tokens_and_labels_that_are_no_strings_are_refused(ask: str) -> None:
    for wrong in (-1, "3", 2.5):
        with pytest.raises(ConfigError, match=f"k must be a whole number from 0, not {wrong!r}"):
            getattr(THREE, ask)(wrong)
    with pytest.raises(ConfigError, match="A label is named by a string, not 0"):
        getattr(THREE, ask)(1, 0)


# Words that are unknown to the model


def test_unknown_words_are_listed_with_the_share_of_the_evidence_on_the_others() -> None:
    found = made_up("a b c", [[1, -1], [-2, 2], [0.5, -0.5]], (0.6, 0.4), [True, False, True])
    assert found.known.tolist() == [True, False, True]
    assert [token.text for token in found.unknown] == ["b"]
    assert found.known_share == pytest.approx(3 / 7)
    assert [token.known for token in found.tokens] == [True, False, True]
    assert [token.known for token in found.top(2)] == [False, True]
    assert [token["known"] for token in found.as_json()["tokens"]] == [True, False, True]


def test_where_all_words_are_known_none_is_listed() -> None:
    assert THREE.known.all()
    assert THREE.unknown == ()
    assert THREE.known_share == 1


def test_the_model_says_which_words_it_knows(classifier: Classifier) -> None:
    short, longer = classifier.explain(["My card, zqxv", "Zqxv my " * 20])
    assert [(token.text, token.known) for token in short.tokens] == [
        ("My", True),
        ("card", True),
        (",", True),
        ("zqxv", False),
    ]
    assert longer.known.tolist() == [False, True] * 20


def test_an_answer_that_abstains_says_why(classifier: Classifier) -> None:
    text = "my card zqxv"
    answer = classifier.predict(text, explain=True, threshold=1.0)
    below = f"It abstains: the best score, {answer.score:.1%}, is below the threshold of 100.0%."
    assert answer.reason == f"{below} Of its 3 tokens, 1 is unknown to the model."
    two = classifier.predict("zqxv zqxw", explain=True, threshold=1.0).reason
    assert two is not None
    assert two.endswith("Of its 2 tokens, 2 are unknown to the model.")
    assert classifier.predict(text, threshold=1.0).reason == below
    assert classifier.predict(TEXT).reason is None
    nothing = classifier.predict("", explain=True, threshold=1.0).reason
    assert nothing is not None
    assert nothing.endswith("The text has no tokens.")


def test_a_prediction_made_without_a_threshold_can_abstain_all_the_same() -> None:
    answer = Prediction(("x", "y"), np.array([0.6, 0.4], np.float32), "abstain", False, None)
    assert answer.reason == "It abstains: the best score, 60.0%, is below the threshold."


def test_beside_a_label_the_closest_other_one_is_told() -> None:
    def told(label: str | None = None, against: str | None = None) -> list[str]:
        return [THREE.labels[i] for i in THREE.columns(THREE.attribution(label, against))]

    assert told() == ["x", "y"]
    assert told("y") == ["y", "x"]
    assert told("z") == ["z", "x"]
    assert told("y", "z") == ["y", "z"]
    lone = made_up("a", [[2.0]], (1.0,))
    assert lone.columns(lone.attribution()) == [0]


def test_where_a_text_may_have_several_labels_one_stands_alone_and_nothing_beside_it(
    several_labels: Classifier,
) -> None:
    explanation = several_labels.explain("I forgot my password and want to cancel my subscription")
    for number, label in enumerate(explanation.labels):
        alone = explanation.attribution(label)
        assert explanation.columns(alone) == []
        assert alone.values.tolist() == explanation.contributions[:, number].tolist()
        assert alone.bias + alone.values.sum() == pytest.approx(explanation.logits[label], abs=1e-5)
    pair = explanation.attribution("billing", "sales")
    assert [explanation.labels[i] for i in explanation.columns(pair)] == ["billing", "sales"]


def test_what_the_numbers_are_called_says_what_they_are_held_against() -> None:
    assert (THREE.attribution().kind, THREE.attribution("x", "y").kind) == ("evidence", "difference")


def test_what_is_remarked_beside_an_answer_is_why_it_abstains_and_that_the_text_was_cut(
    classifier: Classifier,
) -> None:
    assert classifier.predict(TEXT).remarks == []
    answer = classifier.predict("a " * 100, threshold=1.0)
    assert answer.remarks == [answer.reason, "The text is longer than the model reads; the rest was cut."]


# JSON


def test_json_holds_the_contributions_to_the_labels_asked_for() -> None:
    assert THREE.as_json(["z", "x"]) == {
        "label": "x",
        "runner_up": "y",
        "bias": {"z": 0.0, "x": 0.5},
        "logits": {"z": -0.75, "x": 2.0},
        "completeness_error": 0.0,
        "tokens": [
            {
                "text": "a",
                "start": 0,
                "end": 1,
                "attention": 1 / np.float32(3),
                "contributions": {"z": -1, "x": 1},
                "known": True,
            },
            {
                "text": "b",
                "start": 2,
                "end": 3,
                "attention": 1 / np.float32(3),
                "contributions": {"z": 0.25, "x": 0.5},
                "known": True,
            },
            {
                "text": "c",
                "start": 4,
                "end": 5,
                "attention": 1 / np.float32(3),
                "contributions": {"z": 0, "x": 0},
                "known": True,
            },
        ],
    }


def test_json_of_all_labels_is_that_of_the_tokens(classifier: Classifier) -> None:
    explanation = classifier.explain(TEXT)
    found = json.loads(json.dumps(explanation.as_json()))
    assert found["bias"] == explanation.bias
    for token, written in zip(explanation.tokens, found["tokens"], strict=True):
        assert {**token._asdict(), "contributions": dict(token.contributions)} == written


def test_json_of_a_label_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="The model has no label 'w'; its labels are x, y, z"):
        THREE.as_json(["x", "w"])
    with pytest.raises(ConfigError, match=r"labels are a list of labels, as in \['x'\], not one string"):
        THREE.as_json("x")


def test_an_attribution_is_plain_data() -> None:
    assert THREE.attribution("x", "z").as_json() == {
        "label": "x",
        "against": "z",
        "bias": 0.5,
        "tokens": [2.0, 0.25, 0.0],
        "total": 2.75,
    }


# Asking for explanations alone


def test_explain_gives_the_explanation_of_a_text_and_a_list_of_those_of_several(classifier: Classifier) -> None:
    one, several = classifier.explain(TEXT), classifier.explain([TEXT, "", "refund"])
    assert_type(one, Explanation)
    assert_type(several, list[Explanation])
    assert [found.text for found in several] == [TEXT, "", "refund"]
    np.testing.assert_allclose(one.contributions, several[0].contributions, atol=1e-6)
    assert classifier.explain([]) == []
    with pytest.raises(InputError, match="Text 1 is not a string but int"):
        classifier.explain(["a", 1])  # type: ignore[list-item]


def test_an_unknown_label_among_many_is_refused_in_a_short_sentence() -> None:
    labels = [f"label number {i} {'x' * 900}" for i in range(5000)]
    with pytest.raises(ConfigError, match="and 4,980 more") as refused:
        label_number(labels, "y" * 2_000_000)
    assert len(str(refused.value)) < 3000
    assert label_number(labels, labels[4999]) == 4999


def test_the_share_of_tokens_counts_what_columns_add() -> None:
    attribution = explanations.made_up("one two", [(2, 0), (0, 1)], ("a", "b")).attribution("a", "b")
    first = attribution.strongest(1)
    assert attribution.share(first) == pytest.approx(2 / 3)
    assert replace(attribution, cells=(("rating", "2", -5.0),)).share(first) == pytest.approx(2 / 8)
