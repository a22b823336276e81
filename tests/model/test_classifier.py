"""The Python API: what goes in, what comes out, and what is refused."""

import copy
import json
import pickle
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textcls import Classifier, ConfigError, Explanation, InputError, LabelScore, Prediction
from textcls.errors import ArtifactError
from textcls.model import artifact
from textcls.model.cost import CALL_BYTES, CALL_TEXTS, Cost

TEXT = "My card  was\ncharged TWICE!!"
WORDS = (
    "refund",
    "parcel",
    "login",
    "card",
    "the",
    "my",
    "was",
    "price",
    "\u00fcber",
    "\u6771\u4eac",
    "\U0001f621",
    "42",
    "!",
)
# Batches of other sizes sum in another order; 32-bit rounding is all that may differ.
ROUNDING = 1e-6


def ragged_texts(count: int, longest: int = 90) -> list[str]:
    """Texts of 0 to `longest` words in no order of length."""
    rng = random.Random(7)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(longest + 1))) for _ in range(count)]


def explained(prediction: Prediction) -> Explanation:
    assert prediction.explanation is not None
    return prediction.explanation


def assert_same(a: Prediction, b: Prediction) -> None:
    """Both answer the same text alike, up to rounding; all labels, tokens and offsets are equal."""
    np.testing.assert_allclose(a.probabilities, b.probabilities, atol=ROUNDING, rtol=0)
    assert (a.label, a.decision, a.truncated) == (b.label, b.decision, b.truncated)
    if a.explanation is None or b.explanation is None:
        assert a.explanation is b.explanation
        return
    assert a.explanation.text == b.explanation.text
    assert a.explanation.spans == b.explanation.spans
    for name in ("logit_values", "attention", "contributions"):
        np.testing.assert_allclose(
            getattr(a.explanation, name), getattr(b.explanation, name), atol=10 * ROUNDING, rtol=ROUNDING
        )


def scored(*probabilities: float) -> Prediction:
    """An answer with given probabilities, labels a, b, c ..."""
    names = tuple("abcdefgh"[: len(probabilities)])
    return Prediction(names, np.array(probabilities, np.float32), "accept", False, None)


@pytest.fixture
def load_edited(model_path: Path, tmp_path: Path) -> Callable[..., Classifier]:
    """Load the small model with other metadata: `load_edited(threshold=0.5)`."""

    def load(**changes: Any) -> Classifier:
        info = replace(Classifier.load(model_path).info, **changes)
        model = onnx.load(model_path)
        onnx.helper.set_model_props(model, info.to_metadata())
        onnx.save(model, tmp_path / "edited.onnx")
        return Classifier.load(tmp_path / "edited.onnx")

    return load


# One text, several texts


def test_a_text_gives_an_answer_and_a_sequence_gives_a_list(classifier: Classifier) -> None:
    one = classifier.predict(TEXT)
    several = classifier.predict([TEXT])
    assert_type(one, Prediction)
    assert_type(several, list[Prediction])
    assert isinstance(one, Prediction)
    assert isinstance(several, list)
    assert_same(one, several[0])
    assert len(classifier.predict((TEXT, "refund"))) == 2


def test_no_texts_give_no_answers(classifier: Classifier) -> None:
    assert classifier.predict([]) == []
    assert classifier.predict([], explain=True) == []


def test_answers_keep_the_order_of_200_texts_of_mixed_length(classifier: Classifier) -> None:
    texts = ragged_texts(200)
    answers = classifier.predict(texts)
    assert len(answers) == 200
    for text, answer in zip(texts, answers, strict=True):
        assert_same(answer, classifier.predict(text))


def test_explained_batch_of_100_equals_100_of_one(classifier: Classifier) -> None:
    texts = ragged_texts(100)
    for text, answer in zip(texts, classifier.predict(texts, explain=True), strict=True):
        assert explained(answer).text == text
        assert_same(answer, classifier.predict(text, explain=True))


def test_answers_do_not_depend_on_the_rest_of_the_batch(classifier: Classifier) -> None:
    alone = classifier.predict([TEXT], explain=True)[0]
    beside_longer = classifier.predict(["word " * 60, TEXT, ""], explain=True)[1]
    assert_same(alone, beside_longer)


def test_copies_of_a_text_get_the_same_answer(classifier: Classifier) -> None:
    first, *others = classifier.predict([TEXT] * 130, explain=True)
    for other in others:
        assert_same(first, other)


def test_asking_for_an_explanation_does_not_change_the_answer(classifier: Classifier) -> None:
    plain, told = classifier.predict(TEXT), classifier.predict(TEXT, explain=True)
    assert plain.explanation is None
    assert told.explanation is not None
    np.testing.assert_allclose(plain.probabilities, told.probabilities, atol=ROUNDING, rtol=0)


def test_eight_threads_get_the_answers_of_one(classifier: Classifier) -> None:
    texts = ragged_texts(60)
    expected = classifier.predict(texts, explain=True)
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: classifier.predict(texts, explain=True), range(24)))
    for answers in runs:
        for answer, right in zip(answers, expected, strict=True):
            assert_same(answer, right)


def test_a_model_is_loaded_from_a_string_or_a_path(model_path: Path) -> None:
    assert_same(Classifier.load(str(model_path)).predict(TEXT), Classifier.load(model_path).predict(TEXT))


# The numbers


@settings(max_examples=60)
@given(text=st.text(max_size=300))
def test_probabilities_of_any_text_lie_between_0_and_1_and_sum_to_1(classifier: Classifier, text: str) -> None:
    answer = classifier.predict(text)
    assert answer.probabilities.shape == (len(classifier.labels),)
    assert (answer.probabilities >= 0).all()
    assert answer.probabilities.sum() == pytest.approx(1, abs=1e-5)
    assert answer.score == answer.probabilities.max()
    assert answer.label == classifier.labels[answer.probabilities.argmax()]


@settings(max_examples=60)
@given(text=st.text(max_size=300))
def test_bias_and_contributions_of_any_text_add_up_to_its_logits(classifier: Classifier, text: str) -> None:
    explanation = explained(classifier.predict(text, explain=True))
    for label in classifier.labels:
        parts = explanation.bias[label] + sum(token.contributions[label] for token in explanation.tokens)
        assert parts == pytest.approx(explanation.logits[label], abs=1e-4)
    assert explanation.completeness_error < 1e-4


@settings(max_examples=60)
@given(text=st.text(max_size=300))
def test_attention_of_any_text_is_a_probability_of_its_tokens(classifier: Classifier, text: str) -> None:
    explanation = explained(classifier.predict(text, explain=True))
    assert len(explanation.tokens) == len(explanation.spans) == len(explanation.attention)
    assert (explanation.attention >= 0).all()
    assert explanation.attention.sum() == pytest.approx(1 if explanation.tokens else 0, abs=1e-5)


@settings(max_examples=60)
@given(text=st.text(max_size=300))
def test_offsets_of_any_text_point_into_the_text_as_it_was_given(classifier: Classifier, text: str) -> None:
    explanation = explained(classifier.predict(text, explain=True))
    assert explanation.text == text
    last = 0
    for token in explanation.tokens:
        assert last <= token.start < token.end <= len(text)
        assert token.text == text[token.start : token.end]
        last = token.end


def test_completeness_error_shows_when_contributions_and_logits_differ() -> None:
    zero, one = np.zeros(2, np.float32), np.ones(1, np.float32)
    parts = np.array([[1.0, -1.0]], np.float32)
    assert Explanation("a", ("x", "y"), zero, one, parts[0], one, parts, one > 0).completeness_error == 0
    assert Explanation("a", ("x", "y"), zero, one, parts[0] + 0.5, one, parts, one > 0).completeness_error == 0.5


def test_evidence_weighs_the_other_labels_by_their_probabilities() -> None:
    added = np.array([[1.0, 0.0, -1.0], [0.5, 0.5, 0.25]], np.float32)
    share = np.array([0.6, 0.3, 0.1], np.float32)
    half = np.array([0.5, 0.5], np.float32)
    found = Explanation("a b", ("x", "y", "z"), share, share, share, half, added, half > 0)
    # By hand: of x against y and z, which are 0.75 and 0.25 of the rest; of y against x and z, 6/7 and 1/7.
    np.testing.assert_allclose(found.evidence(), [1 + 0.25, 0.5 - (0.375 + 0.0625)], atol=1e-6)
    np.testing.assert_allclose(found.evidence("y"), [-(6 - 1) / 7, 0.5 - (3 + 0.25) / 7], atol=1e-6)
    with pytest.raises(ConfigError, match="no label 'w'; its labels are x, y, z"):
        found.evidence("w")


def test_evidence_is_the_gradient_of_the_log_odds(classifier: Classifier) -> None:
    explanation = explained(classifier.predict(TEXT, explain=True))
    logits, number = explanation.logit_values.astype(np.float64), int(explanation.logit_values.argmax())

    def log_odds(scale: float) -> float:
        # All tokens heard a little less or more.
        moved = (logits + (scale - 1) * explanation.contributions.sum(0)) / classifier.info.temperature
        p = np.exp(moved - moved.max())[number] / np.exp(moved - moved.max()).sum()
        return float(np.log(p / (1 - p)))

    slope = (log_odds(1 + 1e-4) - log_odds(1 - 1e-4)) / 2e-4
    assert slope * classifier.info.temperature == pytest.approx(float(explanation.evidence().sum()), rel=1e-3)


def test_probabilities_are_the_logits_divided_by_the_temperature(classifier: Classifier) -> None:
    answer = classifier.predict(TEXT, explain=True)
    scaled = np.exp(explained(answer).logit_values / classifier.info.temperature)
    np.testing.assert_allclose(answer.probabilities, scaled / scaled.sum(), atol=1e-6)


def test_tokens_are_given_as_written_with_their_places(classifier: Classifier) -> None:
    tokens = explained(classifier.predict(TEXT, explain=True)).tokens
    assert [(t.text, t.start, t.end) for t in tokens] == [
        ("My", 0, 2),
        ("card", 3, 7),
        ("was", 9, 12),
        ("charged", 13, 20),
        ("TWICE", 21, 26),
        ("!", 26, 27),
        ("!", 27, 28),
    ]
    assert all(tuple(token.contributions) == classifier.labels for token in tokens)


@pytest.mark.parametrize("text", ["", " ", "\n\t \u3000\u00a0", "\0"], ids=["empty", "space", "spaces", "NUL"])
def test_a_text_without_tokens_gets_the_bias(classifier: Classifier, text: str) -> None:
    answer = classifier.predict(text, explain=True)
    explanation = explained(answer)
    assert explanation.tokens == ()
    np.testing.assert_allclose(explanation.logit_values, classifier.info.bias, atol=1e-6)
    assert explanation.bias == pytest.approx(explanation.logits, abs=1e-6)
    assert not answer.truncated


# Awkward texts


def test_nul_is_read_as_a_space_and_moves_no_offset(classifier: Classifier) -> None:
    answer = classifier.predict("my\0card", explain=True)
    np.testing.assert_allclose(answer.probabilities, classifier.predict("my card").probabilities, atol=ROUNDING)
    assert [(t.text, t.start) for t in explained(answer).tokens] == [("my", 0), ("card", 3)]


def test_a_lone_surrogate_is_one_token_and_is_given_back_as_written(classifier: Classifier) -> None:
    answer = classifier.predict("my \ud83d card", explain=True)
    np.testing.assert_allclose(answer.probabilities, classifier.predict("my \ufffd card").probabilities, atol=ROUNDING)
    assert [t.text for t in explained(answer).tokens] == ["my", "\ud83d", "card"]


@pytest.mark.parametrize("text", ["word " * 200_000, "x" * 1_000_000], ids=["words", "one-word"])
def test_a_text_of_a_megabyte_is_answered(classifier: Classifier, text: str) -> None:
    answer = classifier.predict(text, explain=True)
    assert answer.truncated == (" " in text)
    assert explained(answer).tokens[-1].end <= len(text)
    assert explained(answer).completeness_error < 1e-4


def test_a_text_is_truncated_only_beyond_the_tokens_that_are_read(classifier: Classifier) -> None:
    limit = classifier.info.max_tokens
    full = " ".join(["refund", "parcel"] * (limit // 2))
    exact, spaced, longer = classifier.predict([full, full + " \n" * 99, full + " login now"], explain=True)
    assert not exact.truncated
    assert not spaced.truncated
    assert longer.truncated
    assert len(explained(longer).tokens) == limit
    np.testing.assert_allclose(longer.probabilities, exact.probabilities, atol=ROUNDING)


# The decision


def test_nothing_abstains_by_default(classifier: Classifier) -> None:
    assert classifier.info.threshold is None
    assert {answer.decision for answer in classifier.predict(ragged_texts(20))} == {"accept"}


def test_an_answer_below_the_threshold_abstains_and_still_names_its_best_label(classifier: Classifier) -> None:
    answer = classifier.predict(TEXT)
    below, at = (classifier.predict(TEXT, threshold=t) for t in (answer.score + 0.01, answer.score))
    assert (below.decision, below.label) == ("abstain", answer.label)
    assert at.decision == "accept"


def test_the_threshold_holds_for_each_text_of_a_batch(classifier: Classifier) -> None:
    answers = classifier.predict(ragged_texts(50, longest=8), threshold=0.6)
    decisions = ["accept" if answer.score >= 0.6 else "abstain" for answer in answers]
    assert [answer.decision for answer in answers] == decisions
    assert set(decisions) == {"accept", "abstain"}


def test_the_model_can_bring_its_own_threshold_and_the_caller_overrules_it(
    load_edited: Callable[..., Classifier],
) -> None:
    careful = load_edited(threshold=0.9999)
    assert careful.predict(TEXT).decision == "abstain"
    assert careful.predict([TEXT], threshold=0)[0].decision == "accept"


@pytest.mark.parametrize("threshold", [np.float32(0.5), np.float64(0.5), np.int64(1), 1, 0.5])
def test_any_kind_of_number_is_a_threshold_and_comes_back_as_pythons_own(
    classifier: Classifier, threshold: float
) -> None:
    answer = classifier.predict(TEXT, threshold=threshold)
    assert (type(answer.threshold), answer.threshold) == (float, threshold)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), 50, True, "0.5"])
@pytest.mark.parametrize("texts", [TEXT, [TEXT], []], ids=["text", "list", "none"])
def test_a_threshold_that_is_no_probability_is_refused(
    classifier: Classifier, texts: str | list[str], threshold: float
) -> None:
    with pytest.raises(ConfigError, match=f"^threshold must be a number from 0 to 1, not {threshold!r}\\.$"):
        classifier.predict(texts, threshold=threshold)


# The best labels


def test_top_gives_all_labels_best_first(classifier: Classifier) -> None:
    answer = classifier.predict(TEXT)
    every = answer.top()
    assert every[0] == LabelScore(answer.label, answer.score)
    assert sorted(every, key=lambda scored: -scored.score) == every
    assert {scored.label for scored in every} == set(classifier.labels)
    for label, score in every:
        assert score == answer.probabilities[classifier.labels.index(label)]


def test_top_k_gives_the_first_k_labels(classifier: Classifier) -> None:
    answer = classifier.predict(TEXT)
    assert answer.top(3) == answer.top()[:3]
    assert answer.top(1) == [(answer.label, answer.score)]
    assert answer.top(0) == []
    assert answer.top(99) == answer.top()


def test_ties_keep_the_order_of_the_model() -> None:
    assert [label for label, _ in scored(0.2, 0.3, 0.2, 0.3).top()] == ["b", "d", "a", "c"]
    assert scored(0.2, 0.3, 0.2, 0.3).label == "b"
    assert [label for label, _ in scored(0.25, 0.25, 0.25, 0.25).top(2)] == ["a", "b"]


# What is refused


@pytest.mark.parametrize(
    ("wrong", "kind"), [(3, "int"), (None, "NoneType"), (b"refund", "bytes"), (["refund"], "list")]
)
def test_something_else_than_text_in_a_list_is_named(classifier: Classifier, wrong: object, kind: str) -> None:
    texts: Any = ["refund", wrong, "parcel"]
    with pytest.raises(InputError, match=f"^Text 1 is not a string but {kind}\\.$"):
        classifier.predict(texts)


@pytest.mark.parametrize("wrong", [None, 3, 0.5], ids=lambda wrong: type(wrong).__name__)
def test_something_else_than_texts_is_named(classifier: Classifier, wrong: Any) -> None:
    with pytest.raises(InputError, match=type(wrong).__name__):
        classifier.predict(wrong)


def test_an_answer_counts_the_unknown_tokens_of_its_text_alone_and_in_a_batch(classifier: Classifier) -> None:
    texts = ["zqxv", "my card", "", "my card was zqxv charged twice wkjp on monday"]
    for answer, text in zip(classifier.predict(texts), texts, strict=True):
        known = classifier.explain(text).known
        assert (answer.tokens_read, answer.tokens_unknown) == (len(known), int((~known).sum()))
        assert classifier.predict(text).tokens_unknown == answer.tokens_unknown
    assert classifier.predict(texts[3]).tokens_unknown >= 2


def test_only_the_outputs_asked_for_are_computed(classifier: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    class Session:
        def run(self, names: tuple[str, ...], given: dict[str, Any], options: Any) -> list[Any]:
            assert options.only_execute_path_to_fetches
            assert set(given) == {artifact.INPUT}
            asked.append(names)
            answer: list[Any] = real.run(names, given, options)
            return answer

    real = classifier.graph.session
    monkeypatch.setattr(classifier.graph, "session", Session())
    classifier.predict(TEXT)
    classifier.predict(TEXT, explain=True)
    assert asked[0] == ("probabilities", "attention", "known")
    assert set(asked[1]) == {"probabilities", "logits", "attention", "contributions", "known"}


@given(st.lists(st.integers(0, 150_000), max_size=300))
def test_calls_hold_every_text_once_and_stay_within_their_bounds(classifier: Classifier, lengths: list[int]) -> None:
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    calls = list(classifier.cost.divide(lengths, order))
    assert [i for call in calls for i in call] == order
    for call in calls:
        longest = max(lengths[i] for i in call)
        assert len(call) <= CALL_TEXTS
        assert len(call) == 1 or classifier.cost.call_bytes(len(call), longest) <= CALL_BYTES


@pytest.mark.parametrize(
    ("seeds", "groups"),
    [(None, 2), ([1, 2], 3), ([1, 1, 2], 4), ([], 2), (["many"], 2), ("3", 2), ([10**9], 6)],
    ids=str,
)
def test_a_token_takes_memory_in_each_group_whatever_a_file_says_of_them(
    classifier: Classifier, seeds: object, groups: int
) -> None:
    told = {} if seeds is None else {"seeds": seeds}
    untold = {name: value for name, value in classifier.info.training.items() if name != "seeds"}
    usual, found = (
        Cost.of(replace(classifier.info, training={**untold, **more}), folded=True).token_bytes for more in ({}, told)
    )
    assert found - usual == (groups - 2) * 85 * (len(classifier.info.labels) + 2)


def test_a_classifier_goes_to_another_process_as_its_file(classifier: Classifier) -> None:
    again = pickle.loads(pickle.dumps(classifier))
    assert again.path == classifier.path
    assert again.predict("refund").score == classifier.predict("refund").score


def test_a_classifier_is_small_on_its_way_whatever_its_size(many_labels: Classifier) -> None:
    assert len(pickle.dumps(many_labels)) < 1000


def test_a_classifier_that_was_loaded_by_a_relative_path_finds_its_file_from_elsewhere(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model_path.parent)
    loaded = Classifier.load(model_path.name)
    sent = pickle.dumps(loaded)
    monkeypatch.chdir(tmp_path)
    assert pickle.dumps(loaded) == sent
    assert pickle.loads(sent).predict("refund").label


def test_a_classifier_that_was_made_of_bytes_takes_them_along(model_path: Path, tmp_path: Path) -> None:
    made = Classifier.from_bytes(model_path.read_bytes(), str(tmp_path / "none.onnx"))
    again = pickle.loads(pickle.dumps(made))
    assert again.graph.sha256 == made.graph.sha256
    assert copy.deepcopy(made) is copy.copy(made) is made
    for same in (bytearray(model_path.read_bytes()), memoryview(model_path.read_bytes())):
        assert Classifier.from_bytes(same, "a.onnx").graph.sha256 == made.graph.sha256
    with pytest.raises(InputError, match="The content of a model file is bytes, not str"):
        Classifier.from_bytes("model.onnx", "a.onnx")  # type: ignore[arg-type]


def test_a_file_that_was_exchanged_meanwhile_is_not_taken_for_the_classifier(
    model_path: Path, several_labels_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model_path.read_bytes())
    sent = pickle.dumps(Classifier.load(path))
    path.write_bytes(several_labels_path.read_bytes())
    with pytest.raises(ArtifactError, match="holds another model than the classifier that was sent there"):
        pickle.loads(sent)


def test_a_classifier_that_arrives_where_its_file_is_not_says_so(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model_path.read_bytes())
    sent = pickle.dumps(Classifier.load(path))
    path.unlink()
    with pytest.raises(ArtifactError, match=r"There is no model file .*model\.onnx on .*put that there under the same"):
        pickle.loads(sent)


def test_a_classifier_is_not_made_of_a_path() -> None:
    with pytest.raises(InputError, match=r"loaded from its file, as in textcls\.Classifier\.load"):
        Classifier("model.onnx")  # type: ignore[arg-type]


def test_a_prediction_shows_what_matters_in_a_line(classifier: Classifier) -> None:
    answer = classifier.predict("my card was charged twice", explain=True)
    shown = f"Prediction(label='billing', score={answer.score:.4f}, decision='accept', "
    assert repr(answer) == shown + "explanation=Explanation(label='billing', tokens=5))"


def test_a_prediction_as_plain_data_has_the_best_labels_and_its_explanation(classifier: Classifier) -> None:
    answer = classifier.predict("my card was charged twice", explain=True)
    plain = json.loads(json.dumps(answer.as_json(2)))
    assert (plain["label"], plain["score"], plain["decision"]) == (answer.label, answer.score, "accept")
    assert [each["label"] for each in plain["labels"]] == [best.label for best in answer.top(2)]
    assert [token["text"] for token in plain["tokens"]] == ["my", "card", "was", "charged", "twice"]
    assert set(plain["tokens"][0]["contributions"]) == {best.label for best in answer.top(2)}
