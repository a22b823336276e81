"""Two classifiers on the same rows: what is said of their difference, and of the answers that changed."""

import json
import socketserver
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import f1_score

import textcls
from tests.command_line import fail, run, succeed, write_rows
from tests.model_metadata import metadata_of, with_metadata
from tests.service.clients import KEYS
from tests.service.server import NAMED, listening, service
from tests.threaded import threaded
from textcls import Classifier, ConfigError, InputError, SurroundingsError
from textcls.evaluation.comparison.paired import Agreement, difference
from textcls.evaluation.comparison.sides import ModelSide, SideAnswers
from textcls.evaluation.comparison.words import changed_words
from textcls.evaluation.intervals import drawn_answers
from textcls.model.artifact import LABELS_RENAMED

ROWS = [("my card was charged twice", "billing"), ("where is my parcel", "shipping"), ("send it back", "returns")] * 20
TEXTS, LABELS = [text for text, _ in ROWS], [label for _, label in ROWS]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Labelled rows."""
    return write_rows(tmp_path / "data.csv", [("text", "label"), *ROWS])


def answers(path: Path, labels: list[str], column: str = "predicted_label") -> Path:
    """A table of answers."""
    return write_rows(path, [("text", column), *zip(TEXTS, labels, strict=False)])


def wrong(labels: list[str], *rows: int) -> list[str]:
    """The labels, but for some rows that get another one."""
    return ["sales" if i in rows else label for i, label in enumerate(labels)]


def numbers(labels: str) -> NDArray[np.int64]:
    """Labels as numbers."""
    return np.array(["abc".index(label) for label in labels], np.int64)


def test_rows_are_counted_by_who_is_right() -> None:
    found = Agreement.of(numbers("aabbc"), numbers("abbac"), numbers("aaaac"))
    assert found == Agreement(both=2, first=1, second=1, neither=1, same=3)


@pytest.mark.parametrize(
    ("first", "second", "p"), [(0, 0, 1.0), (1, 1, 1.0), (0, 5, 2 / 32), (1, 9, 2 * 11 / 1024), (5, 0, 2 / 32)]
)
def test_the_paired_test_is_a_coin_for_each_row_that_one_side_alone_gets_right(
    first: int, second: int, p: float
) -> None:
    assert Agreement(100, first, second, 7, 0).p_value() == pytest.approx(p)


def test_figures_are_those_of_scikit_learn_and_lie_in_their_intervals() -> None:
    rng = np.random.default_rng(0)
    right = rng.integers(0, 4, 300)
    first, second = (np.where(rng.random(300) < share, right, rng.integers(0, 4, 300)) for share in (0.6, 0.8))
    one, other = drawn_answers(right, [first, second], 5)  # A label that does not occur counts nowhere.
    macro = [f1_score(right, answers, average="macro") for answers in (first, second)]
    for found, before, after in (
        (difference(one.exact, other.exact), (first == right).mean(), (second == right).mean()),
        (difference(one.macro_f1, other.macro_f1), *macro),
    ):
        assert (found.before, found.after) == pytest.approx((before, after))
        assert found.low < found.difference < found.high
        assert found.is_sure
    assert other.f1[0] == pytest.approx([*f1_score(right, second, average=None), 0.0])


def test_the_interval_of_accuracies_is_as_wide_as_the_normal_one() -> None:
    rng = np.random.default_rng(1)
    right = np.zeros(2000, np.int64)
    first, second = (rng.random(2000) < 0.2).astype(np.int64), (rng.random(2000) < 0.2).astype(np.int64)
    found = difference(*(side.exact for side in drawn_answers(right, [first, second], 2)))
    gain = (second == right).astype(float) - (first == right)
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * gain.std() / 2000**0.5, rel=0.08)
    assert not found.is_sure


def test_a_side_that_mends_more_than_it_breaks_is_better_and_every_change_is_told(tmp_path: Path) -> None:
    before = answers(tmp_path / "before.csv", wrong(LABELS, *range(12)))
    after = answers(tmp_path / "after.csv", wrong(LABELS, 30))
    found = textcls.compare(before, after, ROWS)
    assert found.better is not None
    assert found.better.name == str(after)
    assert found.agreement == Agreement(both=47, first=1, second=12, neither=0, same=47)
    assert [flip.kind for flip in found.flips] == ["mended"] * 12 + ["broken"]
    assert found.words == ()
    assert json.loads(json.dumps(found.as_json()))["agreement"]["p_value"] == pytest.approx(found.p_value)


def test_sides_that_differ_by_chance_are_called_so(tmp_path: Path, data: Path) -> None:
    before, after = answers(tmp_path / "before.csv", wrong(LABELS, 1)), answers(tmp_path / "after.csv", LABELS)
    assert textcls.compare(before, after, ROWS).better is None
    assert "Neither is better by more than chance" in succeed("compare", before, after, data)


def test_a_model_is_equal_to_itself_and_to_its_answers_in_a_table(
    model_path: Path, tmp_path: Path, data: Path, classifier: Classifier
) -> None:
    succeed("predict", model_path, data, "--output", tmp_path / "answers.csv")
    for other in (model_path, tmp_path / "answers.csv"):
        output = succeed("compare", model_path, other, data)
        assert "They answer every row alike." in output
    found = textcls.compare(classifier, tmp_path / "answers.csv", ROWS)
    assert found.accuracy.difference == 0
    assert (found.sides[0].ece is None, found.sides[1].ece is None) == (False, True)
    assert found.sides[0].bytes == model_path.stat().st_size


def test_answers_of_a_table_are_read_by_their_spelling(model_path: Path, data: Path, tmp_path: Path) -> None:
    loud = answers(tmp_path / "loud.csv", [label.upper() for label in LABELS])
    other = answers(tmp_path / "other.csv", LABELS)
    same, spelt = (json.loads(run("compare", model_path, side, data, "--json").stdout) for side in (other, loud))
    assert spelt["accuracy"] == same["accuracy"]
    assert "Note: Labels are read as the model has them: " in run("compare", model_path, loud, data).stderr


def test_a_service_answers_as_its_model_does(model_path: Path, classifier: Classifier, data: Path) -> None:
    with listening(service(classifier)) as address:
        found = textcls.compare(model_path, address, ROWS * 3)  # more than a request holds
        assert "They answer every row alike." in succeed("compare", address, model_path, data)
    assert not found.flips


def test_a_service_of_a_model_with_several_text_columns_is_asked_for_whole_rows(
    two_columns_path: Path, two_columns: Classifier, tmp_path: Path
) -> None:
    rows = [(text, "please help", label) for text, label in ROWS]
    table = write_rows(tmp_path / "rows.csv", [("subject", "body", "label"), *rows])
    with listening(service(two_columns)) as address:
        assert "They answer every row alike." in succeed("compare", address, two_columns_path, table)
        said = fail(6, "compare", address, "--label-column", "label", table, table, "--text-column", "subject")
    assert "refuses with status 422: inputs[0] is one text, and the model 'tickets' was trained on 'subject'" in said


def test_reasons_of_a_change_are_words_of_the_text_and_sums_are_those_of_both_models(
    classifier: Classifier, prototypes_path: Path
) -> None:
    other = Classifier.load(prototypes_path)
    found = textcls.compare(classifier, other, ROWS[:3])
    assert found.flips
    for flip in found.flips:
        assert all(word in flip.text.lower() for reasons in flip.reasons for word in reasons)
    texts = [text for text, _ in ROWS]
    words = changed_words(found.flips, texts, classifier, other)
    assert list(words) == list(found.words)
    flip, known = found.flips[0], set(classifier.labels) & set(other.labels)
    alone = [one for one in (flip,) if {one.first, one.second} <= known]
    for model, which in ((classifier, "before"), (other, "after")):
        expected = sum(model.explain(one.text).contrast(str(one.second), str(one.first)).sum() for one in alone)
        got = sum(getattr(word, which) for word in changed_words(alone, texts, classifier, other))
        assert got == pytest.approx(float(expected), abs=1e-4)


def test_each_side_has_the_reasons_of_its_own_model(classifier: Classifier, prototypes_path: Path) -> None:
    sides = classifier, Classifier.load(prototypes_path)
    flips = textcls.compare(*sides, ROWS[:3]).flips
    for flip in flips:
        for model, own, other, reasons in zip(
            sides, (flip.first, flip.second), (flip.second, flip.first), flip.reasons, strict=True
        ):
            explanation = model.explain(flip.text)
            most = int(explanation.contrast(str(own), str(other)).argmax())
            assert reasons[0] == explanation.tokens[most].text
    assert any(flip.reasons[0] != flip.reasons[1] for flip in flips)


def test_each_side_tells_the_labels_that_it_does_not_know(tmp_path: Path, model_path: Path) -> None:
    rows = [*ROWS, ("a", "gossip")]
    table = write_rows(tmp_path / "answers.csv", [("predicted_label",), *((label,) for _, label in rows)])
    found = textcls.compare(model_path, table, rows)
    assert [side.unknown_labels for side in found.sides] == [("gossip",), ()]
    found = textcls.compare(table, model_path, rows)
    assert [side.unknown_labels for side in found.sides] == [(), ("gossip",)]


def test_what_cannot_be_compared_is_refused_in_one_sentence(
    tmp_path: Path, data: Path, model_path: Path, several_labels_path: Path
) -> None:
    few = answers(tmp_path / "few.csv", LABELS[:5])
    many = write_rows(tmp_path / "many.csv", [("predicted_label",), *([label] for label in [*LABELS, "sales"])])
    odd = answers(tmp_path / "odd.csv", LABELS, "guess")
    empty = answers(tmp_path / "empty.csv", ["billing", "", *LABELS[2:]])
    assert "has 5 answers for 60 rows" in fail(3, "compare", model_path, few, data)
    succeed("predict", model_path, data, "--output", tmp_path / "answers.csv")
    head, *lines = (tmp_path / "answers.csv").read_text().splitlines(keepends=True)
    mixed = tmp_path / "mixed.csv"
    mixed.write_text("".join([head, *reversed(lines)]))
    assert "in another order, as its column 'text' tells" in fail(3, "compare", model_path, mixed, data)
    assert "has more answers for 60 rows" in fail(3, "compare", model_path, many, data)
    assert "no column 'predicted_label'" in fail(3, "compare", odd, model_path, data)
    assert "empty.csv, line 3 has no answer in column 'predicted_label'" in fail(3, "compare", empty, model_path, data)
    said = fail(2, "compare", several_labels_path, model_path, data)
    assert "model_v1.onnx gives a text one label, and it is compared where texts may have several" in said
    said = fail(6, "compare", "http://me:of-mine@127.0.0.1:9?key=of-mine", model_path, data)
    assert "Error: http://127.0.0.1:9/v1/classify cannot be reached" in said
    assert run("compare", tmp_path / "no.onnx", model_path, data).exit_code == 4
    with pytest.raises(InputError, match="no rows"):
        textcls.compare(model_path, model_path, [])
    with pytest.raises(InputError, match="Row 0 is not a pair of a text and what it should get"):
        textcls.compare(model_path, model_path, [("a", "billing", 1.0)])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="gives a text one label, and it is compared where texts may have several"):
        textcls.compare(several_labels_path, model_path, ROWS)


def test_a_service_that_wants_a_key_says_which_variable_holds_it(classifier: Classifier) -> None:
    with listening(service(classifier, keys=NAMED)) as address:
        with pytest.raises(SurroundingsError, match="set TEXTCLS_API_KEY to its key"):
            textcls.compare(address, address, ROWS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TEXTCLS_API_KEY", KEYS[0])
            assert textcls.compare(address, address, ROWS).accuracy.difference == 0


@pytest.mark.parametrize(
    "answer",
    [
        b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n20\r\n{"results"',
        b'HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{"results":[]}',
    ],
)
def test_an_answer_that_ends_within_or_lacks_a_text_is_no_answer_of_a_service(answer: bytes) -> None:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            self.wfile.write(answer)

    with threaded(socketserver.TCPServer(("127.0.0.1", 0), Handler)) as server:
        side = f"http://127.0.0.1:{server.server_address[1]}"
        with pytest.raises(SurroundingsError, match="does not answer as textcls serve does"):
            textcls.compare(side, side, ROWS)


def test_labels_of_rows_that_no_side_knows_are_refused_and_some_are_named(model_path: Path, tmp_path: Path) -> None:
    other = write_rows(tmp_path / "other.csv", [("text", "label"), *((text, f"no {label}") for text, label in ROWS)])
    said = fail(3, "compare", model_path, model_path, other)
    assert f"None of the 60 rows has a label that {model_path} knows, but 'no billing', 'no returns'" in said
    table = answers(tmp_path / "answers.csv", LABELS)
    assert "has a label that" in fail(3, "compare", table, table, other)
    upper = write_rows(tmp_path / "upper.csv", [("text", "label"), *((text, label.upper()) for text, label in ROWS)])
    assert "answers with, but 'BILLING' (did you mean 'billing'?)" in fail(3, "compare", table, table, upper)
    odd = write_rows(tmp_path / "odd.csv", [("text", "label"), *ROWS, ("hello", "gossip")])
    said = succeed("compare", model_path, model_path, odd)
    assert f"{model_path} does not know 'gossip': rows with such labels count as errors." in said


def test_a_model_that_was_loaded_is_compared_whatever_has_become_of_its_file(
    classifier: Classifier, model_path: Path, several_labels_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model_path.read_bytes())
    loaded = Classifier.load(path)
    path.write_bytes(several_labels_path.read_bytes())
    for one in (loaded, Classifier.from_bytes(model_path.read_bytes(), "none.onnx")):
        found = textcls.compare(one, classifier, ROWS)
        assert found.agreement.same == len(ROWS)
        assert found.sides[0].bytes == model_path.stat().st_size


def test_where_a_model_took_two_labels_for_one_both_sides_are_judged_by_that_one(
    classifier: Classifier, model_path: Path, tmp_path: Path
) -> None:
    metadata = metadata_of(model_path)
    labels = ["money" if label == "billing" else label for label in metadata["labels"]]
    training = metadata["training"] | {LABELS_RENAMED: {"billing": "money", "account": "money"}}
    other = tmp_path / "renamed.onnx"
    other.write_bytes(with_metadata(model_path, metadata | {"labels": labels, "training": training}))
    with pytest.warns(UserWarning, match="'billing' as 'money'"):
        found = textcls.compare(classifier, other, ROWS)
    assert (found.accuracy.difference, [side.unknown_labels for side in found.sides]) == (0, [(), ()])
    assert found.sides[0].cross_entropy == pytest.approx(found.sides[1].cross_entropy)
    assert set(found.labels) == {"money", "returns", "shipping"}


def test_labels_that_become_one_are_as_probable_as_all_of_them() -> None:
    probabilities = np.array([[0.5, 0.2, 0.3]], np.float32)
    of_one = SideAnswers(["a"], probabilities, ("a", "b", "c")).renamed({"a": "c"})
    assert (of_one.labels, of_one.names) == (["c"], ("c", "b"))
    assert of_one.probabilities is not None
    np.testing.assert_allclose(of_one.probabilities, [[0.8, 0.2]])
    of_several = SideAnswers([("a", "c")], probabilities, ("a", "b", "c")).renamed({"a": "c"})
    assert of_several.labels == [("c",)]
    assert of_several.probabilities is not None
    np.testing.assert_allclose(of_several.probabilities, [[0.5, 0.2]])


def test_that_a_model_knows_no_label_of_the_rows_is_told_before_any_is_answered(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ModelSide, "answers", lambda *_: pytest.fail("a row was answered"))
    with pytest.raises(InputError, match=r"None of the 2 rows has a label that .*model_v1\.onnx knows"):
        textcls.compare(classifier, classifier, [("a", "up"), ("b", "down")])


def test_what_cannot_be_compared_is_named(classifier: Classifier) -> None:
    with pytest.raises(InputError, match="A list cannot be compared: pass a model, a file of answers"):
        textcls.compare(classifier, LABELS, ROWS)  # type: ignore[arg-type]


def test_a_row_whose_label_is_none_is_named(classifier: Classifier) -> None:
    rows: list[Any] = [("my card was charged twice", None)]
    with pytest.raises(InputError, match="Row 0 has no label; leave it out"):
        textcls.compare(classifier, classifier, rows)
