"""Drift: nothing is told where nothing has changed, what was planted is found, and accuracy needs no labels."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from tests.command_line import fail, read_rows, run, succeed, write_rows
from tests.model_metadata import with_held_out
from textcls import ArtifactError, Classifier, ConfigError, InputError
from textcls.evaluation.drift.distance import Distance, distance
from textcls.evaluation.drift.drift import measure_drift
from textcls.evaluation.drift.expected_accuracy import expected_accuracy, of_another_kind
from textcls.evaluation.drift.summary import BINS, SCORE_STEP, HeldOutSummary, Histogram, UnknownShare
from textcls.evaluation.drift.tally import Bins, Differences, Tally, chance, compared
from textcls.evaluation.drift.unknown import UnknownSums, UnknownTokens
from textcls.evaluation.drift.words import WordCounts, changed_words, likelihood_ratio
from textcls.model.artifact import HELD_OUT

COUNTS = st.lists(st.integers(0, 50), min_size=2, max_size=12)


# What is told


def test_of_rows_like_those_of_the_training_nothing_is_told_and_the_accuracy_is_the_expected_one(
    watched: Classifier, tickets: list[tuple[str, str]]
) -> None:
    found = measure_drift(watched, tickets[len(tickets) // 2 :])
    assert not any(one.is_sure for one in found.distances.values())
    assert found.above(0) == [] or min(one.p_value for one in found.distances.values()) < 0.05
    assert found.accuracy is not None
    assert found.expected_accuracy is not None
    assert found.expected_accuracy.low < found.accuracy.value < found.expected_accuracy.high
    assert found.labelled == found.rows == len(tickets) - len(tickets) // 2
    assert found.unknown is not None
    assert not found.unknown.is_sure


def test_another_mix_of_labels_is_found_with_the_label_that_came(
    watched: Classifier, tickets: list[tuple[str, str]]
) -> None:
    found = measure_drift(watched, [(text, None) for text, label in tickets if label == "billing"])
    assert found.distances["labels"].is_sure
    assert found.labels[0].label == "billing"
    assert found.labels[0].now > 2 * (found.labels[0].before or 0)
    assert "labels" in found.above(0.25)
    assert (found.labelled, found.accuracy) == (0, None)


def test_of_very_many_labels_the_file_keeps_no_counts_and_that_is_told(tmp_path: Path) -> None:
    rows = [(f"{word} number{i}", f"label {i}") for i in range(257) for word in ("one", "two", "three")]
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), *rows])
    succeed("train", data, "--epochs", "1", "--vectors", "none", "--quiet")
    shown = succeed("drift", tmp_path / "rows.onnx", data).replace("\n", " ")
    assert "Labels cannot be compared: of more than 256 the model file keeps no counts." in shown
    assert "Of 257 labels these are the most frequent; --json has all." in shown


def test_words_that_the_model_does_not_know_are_told_with_their_share(
    watched: Classifier, tickets: list[tuple[str, str]]
) -> None:
    found = measure_drift(watched, [(f"zqxv wkjp frobnicate {text} grelbix", None) for text, _ in tickets[:60]])
    assert found.unknown is not None
    assert found.unknown.is_sure
    assert found.unknown.now > found.unknown.before
    assert {"zqxv", "wkjp", "frobnicate", "grelbix"} <= {word.word for word in found.words if not word.known}
    assert next(word for word in found.words if word.word == "zqxv").texts == 60


def test_known_words_that_came_are_found_beside_texts_of_the_training(
    watched: Classifier, tickets: list[tuple[str, str]]
) -> None:
    before = [text for text, _ in tickets[:300]]
    found = measure_drift(watched, [(f"refund {text}", None) for text, _ in tickets[300:400]], before)
    assert found.words[0].word == "refund"
    assert found.words[0].known
    assert found.words[0].share == 1
    assert measure_drift(watched, [(text, None) for text, _ in tickets[300:400]], before).words == ()


def test_files_give_the_same_answers_and_leave_texts_out_of_the_model(
    watched_path: Path, held_out: HeldOutSummary
) -> None:
    assert HeldOutSummary.of_model(Classifier.load(watched_path).info) == held_out
    written = held_out.to_json()
    assert len(json.dumps(written)) < 2000
    assert len(written.pop("names_sha256")) == 64
    assert set(re.findall("[a-z]{3,}", json.dumps(written))) == {
        "rows", "accuracy", "scores", "edges", "counts", "right", "labels", "lengths", "unknown", "share", "error"
    }  # fmt: skip


# Distances


@given(COUNTS, st.integers(1, 5))
def test_the_distance_of_equal_shares_is_small_and_no_direction_matters(counts: list[int], times: int) -> None:
    other = [times * count for count in counts]
    there, back = distance(counts, other), distance(other, counts)
    assert there.psi == pytest.approx(back.psi)
    assert there.psi >= 0
    assert not there.is_sure


def test_chance_alone_is_told_apart_from_a_change_as_often_as_it_says() -> None:
    rng, share = np.random.default_rng(2), np.full(BINS, 1 / BINS)
    drawn = [(rng.multinomial(300, share).tolist(), rng.multinomial(60, share).tolist()) for _ in range(200)]
    found = [distance(then, now, seed) for seed, (then, now) in enumerate(drawn)]
    assert 0.01 < np.mean([one.psi > one.by_chance for one in found]) < 0.1
    # By custom the half of these would be a change: so much is chance with 60 rows.
    assert np.mean([one.psi > 0.1 for one in found]) > 0.5


def test_a_histogram_counts_all_values_and_equal_ones_together() -> None:
    values = np.array([0.5] * 30 + [0.75] * 5 + [1.0] * 10)
    found = Histogram.of(values)
    assert found.count(values) == found.counts
    assert sum(found.counts) == 45
    assert max(found.counts) >= 30
    assert Histogram.of(np.zeros(0)).counts == (0,)


def test_scores_that_are_all_but_sure_lie_in_one_bin() -> None:
    found = Histogram.of(np.linspace(0.9981, 0.9991, 200), SCORE_STEP)
    assert found.count(np.linspace(0.9993, 1.0, 50)) == tuple(50 if count else 0 for count in found.counts)
    assert Histogram.of(np.linspace(0.3, 1.0, 700), SCORE_STEP).edges[:2] == (0.36, 0.43)


def answers(held_out: HeldOutSummary) -> st.SearchStrategy[list[tuple[int, float, int, int]]]:
    """Answers by the number of the label, the score, and tokens known and unknown; scores at the edges of bins, too."""
    scores = st.one_of(st.floats(0, 1, width=32), st.sampled_from(held_out.scores.edges))
    one = st.tuples(st.integers(0, len(held_out.labels or ()) - 1), scores, st.integers(0, 60), st.integers(0, 60))
    return st.lists(one, max_size=30)


@given(st.data())
def test_answers_counted_one_by_one_are_those_counted_at_once(
    classifier: Classifier, held_out: HeldOutSummary, data: st.DataObject
) -> None:
    found = data.draw(answers(held_out))
    bins = Bins(held_out, classifier.labels)
    row = [0.0] * (3 + bins.size)
    for label, score, known, unknown in found:
        bins.add(row, 3, [classifier.labels[label]], score, known + unknown, unknown)
    labels, scores, known_N, unknown_N = zip(*found, strict=True) if found else ((), (), (), ())
    tokens = [a + b for a, b in zip(known_N, unknown_N, strict=True)]
    assert bins.tally(row[3:]) == Tally.of(held_out, labels, np.array(scores), tokens, unknown_N)
    assert row[:3] == [0.0] * 3
    assert row[3] == len(found)
    assert Bins.from_json(json.loads(json.dumps(bins.to_json()))).fingerprint == bins.fingerprint
    assert Bins(replace(held_out, accuracy=0.1), classifier.labels).fingerprint != bins.fingerprint


def test_a_score_that_is_no_probability_is_counted_nowhere(classifier: Classifier, held_out: HeldOutSummary) -> None:
    bins = Bins(held_out, classifier.labels)
    row = [0.0] * bins.size
    for score in (float("nan"), float("inf"), -0.1):
        bins.add(row, 0, classifier.labels[0], score, 3, 1)
    assert not any(row)


def test_without_counts_by_label_scores_and_lengths_are_held_against_each_other(
    classifier: Classifier, held_out: HeldOutSummary
) -> None:
    bins = Bins(replace(held_out, labels=None), classifier.labels)
    row = [0.0] * bins.size
    bins.add(row, 0, classifier.labels[0], 0.5, 3, 1)
    assert bins.tally(row).labels is None
    assert set(bins.names()) == {name for name, *_ in compared(bins.held_out, bins.tally(row))} == {"scores", "lengths"}


@given(st.lists(st.integers(0, 60), min_size=2, max_size=6).filter(any), st.integers(1, 5000))
@settings(max_examples=20)
def test_chance_alone_is_that_of_the_same_shares_at_a_few_texts_less(before: list[int], texts: int) -> None:
    found = chance(tuple(before), texts)
    fewer, shares = chance(tuple(before), max(1, int(texts * 0.93))), np.array(before) / sum(before)
    # By another number of draws: the quantile of 400 lies within a third of that of 2,000.
    told = distance(before, (shares * texts).round().astype(int).tolist()).by_chance
    assert found == pytest.approx(told, rel=0.4, abs=0.01) or texts < 100
    assert fewer == pytest.approx(told, rel=0.4, abs=0.01) or texts < 100


UNKNOWN: st.SearchStrategy[list[tuple[int, int]]] = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20
)


@given(UNKNOWN, st.floats(0, 1), st.floats(0, 0.1))
def test_unknown_tokens_are_more_than_chance_gives_just_where_the_share_is_beyond_it(
    found: list[tuple[int, int]], share: float, error: float
) -> None:
    unknown, tokens = [one for one, _ in found], [one + more for one, more in found]
    told = UnknownTokens.of(UnknownShare(share, error), UnknownSums.of(unknown, tokens))
    assert told.now == pytest.approx(sum(unknown) / max(1, sum(tokens)))
    if told.now > share and told.by_chance < 1 and abs(told.now - told.by_chance) > 1e-9:
        assert (told.now > told.by_chance) == (told.p_value < 0.05)
    residuals = np.array(unknown) - told.now * np.array(tokens)
    expected = np.hypot(max(1.0, float(np.sqrt(residuals @ residuals))) / max(1, sum(tokens)), error)
    assert told.by_chance == pytest.approx(min(1, share + 1.96 * expected), abs=1e-4)


# The accuracy to expect


def held_out_rows(edges: Sequence[float], counts: Sequence[int], right: Sequence[int]) -> HeldOutSummary:
    return HeldOutSummary(
        rows=sum(counts),
        accuracy=sum(right) / sum(counts),
        scores=Histogram(tuple(edges), tuple(counts)),
        right=tuple(right),
        labels=None,
        lengths=Histogram((), (1,)),
        unknown=None,
    )


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=4, max_size=4),
    st.lists(st.floats(0.2, 1), min_size=1, max_size=30),
)
def test_the_expected_accuracy_is_a_share_with_an_interval_whatever_held_out_rows_say(
    bins: list[tuple[int, int]], scores: list[float]
) -> None:
    right, counts = [hits for hits, _ in bins], [hits + misses + 10 for hits, misses in bins]
    found = expected_accuracy(held_out_rows((0.4, 0.6, 0.8), [*counts[:3], counts[3] + 10], right), np.array(scores))
    assert found is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


def test_the_expected_accuracy_is_what_the_scores_promise_and_fewer_held_out_rows_make_it_less_sure() -> None:
    scores = np.linspace(0.3, 0.9, 101)
    few, many = (expected_accuracy(held_out_rows((0.5,), (n, n), (n // 4, n)), scores) for n in (50, 5000))
    assert few is not None
    assert many is not None
    assert few.value == many.value == pytest.approx(0.6)
    assert few.low < many.low < 0.6 < many.high < few.high


def test_the_interval_holds_the_accuracy_of_new_rows_as_often_as_it_says() -> None:
    rng, truth = np.random.default_rng(3), np.linspace(0.4, 0.99, BINS)
    edges = (truth[1:] + truth[:-1]) / 2
    held, draws = 0, 500
    for _ in range(draws):
        counts = rng.multinomial(400, np.full(BINS, 0.1))
        now = rng.multinomial(200, np.linspace(0.19, 0.01, BINS))  # Scores have fallen.
        seen = held_out_rows(edges.tolist(), counts.tolist(), rng.binomial(counts, truth).tolist())
        found = expected_accuracy(seen, np.repeat(truth, now))
        assert found is not None
        held += found.low <= rng.binomial(now, truth).sum() / 200 <= found.high
    assert held / draws > 0.92


def test_the_further_texts_are_the_wider_is_the_interval() -> None:
    seen, scores = held_out_rows((0.5,), (5000, 5000), (1250, 5000)), np.linspace(0.3, 0.9, 101)
    near = Differences({"scores": Distance(0.02, 0.05, 0.3, 100, 100)}, UnknownTokens(0.1, 0.1, 0.12, 0.5))
    far = Differences({"scores": Distance(0.8, 0.05, 0.0, 100, 100)}, UnknownTokens(0.1, 0.1, 0.12, 0.5))
    strange = Differences({"scores": Distance(9.0, 0.05, 0.0, 100, 100)}, UnknownTokens(0.1, 0.3, 0.12, 0.0))
    kinds = [of_another_kind(each) for each in (near, far, strange)]
    assert kinds[0] == 0 < kinds[1] < kinds[2]
    widths = [found.high - found.low for kind in kinds if (found := expected_accuracy(seen, scores, kind)) is not None]
    assert widths[0] < widths[1] < widths[2]


def test_texts_of_another_kind_are_called_so_and_the_same_texts_are_not(
    watched_path: Path, sample_path: Path, tmp_path: Path
) -> None:
    said = "The texts are of another kind than those of the training"
    usual = [[row["text"]] for row in read_rows(sample_path)[:150]]
    strange = [["quux blorp " * (1 + i % 9)] for i in range(150)]
    half = write_rows(tmp_path / "half.csv", [["text"], *usual, *strange])
    assert said in succeed("drift", watched_path, half)
    assert said not in succeed("drift", watched_path, sample_path)


def test_few_held_out_rows_say_nothing_of_the_accuracy(
    model_path: Path, held_out: HeldOutSummary, tmp_path: Path, sample_path: Path
) -> None:
    few = Histogram(held_out.scores.edges, (4,) * len(held_out.scores.counts))
    given = replace(held_out, rows=4 * len(few.counts), scores=few, right=(4,) * len(few.counts))
    path = with_held_out(model_path, given.to_json(), tmp_path / "few.onnx")
    said = succeed("drift", path, sample_path)
    assert "The accuracy to expect is unknown: the training held out 40 rows, and 50 are needed." in said


# Words


@given(st.integers(0, 30), st.integers(1, 20), st.integers(0, 30), st.integers(1, 20))
def test_the_likelihood_ratio_is_that_of_a_table_of_two_by_two(a: int, more_a: int, b: int, more_b: int) -> None:
    if a + b:
        found = chi2_contingency([[a, more_a], [b, more_b]], correction=False, lambda_="log-likelihood")
        assert likelihood_ratio(a, a + more_a, b, b + more_b) == pytest.approx(found.statistic, abs=1e-9)


def test_by_chance_alone_hardly_a_word_is_more_frequent() -> None:
    def counts(seed: int) -> WordCounts:
        rng = np.random.default_rng(seed)
        return WordCounts.of((" ".join(f"w{i}" for i in rng.zipf(1.5, 8) if i < 999) for _ in range(200)), 64)

    alarms = sum(bool(changed_words(counts(2 * seed), counts(2 * seed + 1), set())) for seed in range(40))
    assert alarms <= 5


# The command


def test_the_command_tells_people_and_programs_the_same(watched_path: Path, sample_path: Path) -> None:
    found = json.loads(succeed("drift", watched_path, sample_path, "--json"))
    said = succeed("drift", watched_path, sample_path)
    assert f"expected accuracy {found['expected_accuracy']['value']:.1%}" in said
    assert f"real accuracy {found['accuracy']['value']:.1%}" in said
    assert f"{found['distances']['scores']['psi']:.3f}" in said
    assert found["words"]
    assert not found["against_texts"]
    with_texts = succeed("drift", watched_path, sample_path, "--before", sample_path)
    assert "No word is more frequent than by chance." in with_texts


def test_a_cron_job_sees_what_has_changed_by_the_exit_code(
    watched_path: Path, tickets: list[tuple[str, str]], sample_path: Path, tmp_path: Path
) -> None:
    billing = [[text] for text, label in tickets if label == "billing"]
    result = run("drift", watched_path, write_rows(tmp_path / "b.csv", [["text"], *billing]), "--fail-above", "0.25")
    assert result.exit_code == 1
    assert "\nMore than 0.25 from the training: labels" in result.stderr
    assert "only labels can show" in result.stdout
    assert run("drift", watched_path, sample_path, "--fail-above", "0.25").exit_code == 0
    assert "nan is above none" in fail(2, "drift", watched_path, sample_path, "--fail-above", "nan")
    assert "only once" in fail(2, "drift", watched_path, "-", "--before", "-")


def test_labels_that_the_model_does_not_know_are_named_beside_the_real_accuracy(
    watched_path: Path, tmp_path: Path
) -> None:
    rows = write_rows(tmp_path / "rows.csv", [("text", "label"), ("my card", "Bill-ing"), ("hello", "gossip")])
    said = succeed("drift", watched_path, rows)
    assert "2 rows with a label: real accuracy 0.0%" in said
    assert "The model does not know 'Bill-ing' (did you mean 'billing'?), 'gossip'" in said
    assert json.loads(succeed("drift", watched_path, rows, "--json"))["unknown_labels"] == ["Bill-ing", "gossip"]


def test_what_cannot_be_watched_is_refused_with_what_to_do(
    model_path: Path, several_labels_path: Path, watched_path: Path, sample_path: Path, tmp_path: Path
) -> None:
    assert "train it again" in fail(3, "drift", model_path, sample_path)
    assert "train it again" in fail(3, "drift", several_labels_path, sample_path)
    assert "has no rows" in fail(3, "drift", watched_path, write_rows(tmp_path / "none.csv", [["text"]]))
    with pytest.raises(InputError, match="no rows"):
        measure_drift(Classifier.load(watched_path), [])


def test_labels_that_were_taught_later_are_unknown_to_held_out_rows(
    model_path: Path, held_out: HeldOutSummary, tmp_path: Path
) -> None:
    found = {**held_out.to_json(), "labels": [1, 2]}
    with pytest.raises(ConfigError, match="taught labels after its training"):
        HeldOutSummary.of_model(Classifier.load(with_held_out(model_path, found, tmp_path / "t.onnx")).info)


@pytest.mark.parametrize("counted", [True, False], ids=["counts by label", "too many labels for counts"])
def test_other_labels_than_those_of_the_training_are_noticed_if_there_are_as_many(
    watched: Classifier, held_out: HeldOutSummary, counted: bool
) -> None:
    found = {**as_read(held_out), **({} if counted else {"labels": None})}
    info = replace(watched.info, training={HELD_OUT: found})
    assert HeldOutSummary.of_model(info).rows == held_out.rows
    for labels in ((*info.labels[:-1], "taught"), info.labels[::-1]):
        with pytest.raises(ConfigError, match="taught labels after its training"):
            HeldOutSummary.of_model(replace(info, labels=labels))


def test_a_file_of_before_names_were_kept_is_held_against_the_number_of_labels(
    watched: Classifier, held_out: HeldOutSummary
) -> None:
    found = as_read(held_out)
    del found["names_sha256"]
    info = replace(watched.info, training={HELD_OUT: found})
    assert HeldOutSummary.of_model(info) == replace(held_out, names_sha256=None)
    with pytest.raises(ConfigError, match="taught labels after its training"):
        HeldOutSummary.of_model(replace(info, labels=(*info.labels, "taught")))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", 0),
        ("rows", True),
        ("accuracy", float("inf")),
        ("accuracy", 2),
        ("right", [10**6] * 10),
        ("right", []),
        ("labels", [-1, 2]),
        ("labels", "abc"),
        ("scores", None),
        ("scores", {"edges": [2, 1], "counts": [1, 1, 1]}),
        ("lengths", {"edges": [1], "counts": [1]}),
        ("lengths", {"edges": list(range(5000)), "counts": [0] * 5001}),
        ("unknown", {"share": "a", "error": 0}),
        ("names_sha256", 1),
        ("names_sha256", "a" * 65),
    ],
)
def test_a_damaged_summary_is_refused(classifier: Classifier, held_out: HeldOutSummary, name: str, value: Any) -> None:
    training = {**classifier.info.training, HELD_OUT: {**as_read(held_out), name: value}}
    with pytest.raises(ArtifactError, match="damaged"):
        HeldOutSummary.of_model(replace(classifier.info, training=training))


@pytest.mark.parametrize("found", [[], "text", 1, {}])
def test_a_summary_that_is_none_is_refused(classifier: Classifier, found: Sequence[object]) -> None:
    with pytest.raises(ArtifactError, match="damaged"):
        HeldOutSummary.of_model(replace(classifier.info, training={**classifier.info.training, HELD_OUT: found}))


def as_read(held_out: HeldOutSummary) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(held_out.to_json()))
    return found
