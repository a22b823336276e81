"""The scikit-learn estimator: scikit-learn's own checks as far as they go for texts, and its tools at work."""

import operator
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas  # type: ignore[import-untyped]
import pytest
import sklearn.utils.estimator_checks as checks
from scipy.sparse import csc_matrix, csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from textcls import Classifier, SurroundingsError
from textcls_training.sklearn import TextClassifier

SMALL: dict[str, Any] = {"epochs": 1, "dim": 2, "ngrams": (), "vectors": "none", "device": "cpu"}
LONGER = {**SMALL, "epochs": 4}
TEXTS = [f"{word} please {i}" for i in range(20) for word in ("refund", "parcel", "cancel")]
LABELS = ["billing", "shipping", "account"] * 20


@pytest.fixture(scope="module")
def fitted() -> TextClassifier:
    """A small estimator, fitted."""
    return TextClassifier(**LONGER).fit(TEXTS, LABELS)


class OfNumbers(TextClassifier):
    """Each row of numbers as a text: scikit-learn's checks of what fitting does know no other input."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, unlabelled: Any = None) -> "OfNumbers":
        super().fit(self._words(X), y, sample_weight, None if unlabelled is None else self._words(unlabelled))
        return self

    def _probabilities(self, X: Any) -> Any:
        return super()._probabilities(self._words(X))

    @staticmethod
    def _words(X: Any) -> list[str]:
        rows = np.asarray(X)
        if rows.ndim != 2:
            raise ValueError(f"Expected 2D array, got {rows.ndim}D array instead. Reshape your data.")
        return [" ".join(f"c{j}v{value:.0f}" for j, value in enumerate(row)) for row in rows.tolist()]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array = True, False
        tags.classifier_tags.poor_score = True
        tags.no_validation = True
        return tags


# What OfNumbers does not do, and why a classifier of texts need not.
NOT_OF_TEXTS = {
    "check_fit2d_1sample": "one row is refused, in words of our own",
    "check_sample_weight_equivalence_on_dense_data": "rows are dealt to steps and validation one by one, not by weight",
    "check_estimator_sparse_tag": "texts are not sparse",
    "check_estimator_sparse_array": "texts are not sparse",
    "check_estimator_sparse_matrix": "texts are not sparse",
}


@checks.parametrize_with_checks(  # type: ignore[untyped-decorator]
    [OfNumbers(**SMALL)], expected_failed_checks=lambda _: NOT_OF_TEXTS
)
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn_pass_where_each_row_is_written_as_a_text(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        checks.check_estimator_cloneable,
        checks.check_estimator_tags_renamed,
        checks.check_valid_tag_types,
        checks.check_estimator_repr,
        checks.check_no_attributes_set_in_init,
        checks.check_get_params_invariance,
        checks.check_set_params,
        checks.check_do_not_raise_errors_in_init_or_set_params,
        checks.check_mixin_order,
        checks.check_parameters_default_constructible,
    ],
)
def test_the_checks_of_scikit_learn_that_fit_nothing_pass(check: Any) -> None:
    check("TextClassifier", TextClassifier())


def test_its_tags_say_that_it_reads_texts() -> None:
    tags = get_tags(TextClassifier())
    assert (tags.input_tags.string, tags.input_tags.two_d_array, tags.estimator_type) == (True, False, "classifier")


def test_probabilities_stand_in_the_order_of_the_classes_and_add_up_to_one(fitted: TextClassifier) -> None:
    assert fitted.classes_.tolist() == ["account", "billing", "shipping"]
    probabilities = fitted.predict_proba(TEXTS)
    assert probabilities.shape == (60, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-12)
    assert fitted.predict(TEXTS).tolist() == fitted.classes_[probabilities.argmax(1)].tolist()
    assert fitted.score(TEXTS, LABELS) > 0.9
    assert fitted.predict([]).tolist() == []
    answers = fitted.classifier_.predict(TEXTS)
    np.testing.assert_allclose(probabilities.max(1), [answer.score for answer in answers], rtol=1e-6)


def test_labels_may_be_numbers_whose_order_is_not_that_of_their_digits() -> None:
    numbers = np.array([{"billing": 10, "shipping": 9, "account": -1}[label] for label in LABELS])
    model = TextClassifier(**LONGER).fit(np.array(TEXTS, object), numbers)
    assert model.classes_.tolist() == [-1, 9, 10]
    assert model.predict(["refund please", "parcel please", "cancel please"]).tolist() == [10, 9, -1]
    assert model.predict(TEXTS).dtype == numbers.dtype


def test_it_is_pickled_and_saved_by_its_file(fitted: TextClassifier, tmp_path: Path) -> None:
    expected = fitted.predict_proba(TEXTS)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(TEXTS), expected)
    assert again.model_bytes_ == fitted.model_bytes_
    fitted.save(tmp_path / "tickets.onnx")
    assert (tmp_path / "tickets.onnx").read_bytes() == fitted.model_bytes_
    assert Classifier.load(tmp_path / "tickets.onnx").predict("refund please").label == "billing"
    with pytest.raises(SurroundingsError, match="does not exist"):
        fitted.save(tmp_path / "no" / "tickets.onnx")


def test_the_same_seed_gives_the_same_file() -> None:
    first, second, other = (TextClassifier(**SMALL, random_state=seed).fit(TEXTS, LABELS) for seed in (1, 1, 2))
    assert first.model_bytes_ == second.model_bytes_
    assert first.model_bytes_ != other.model_bytes_
    TextClassifier(**SMALL, random_state=np.random.RandomState(3)).fit(TEXTS, LABELS)


def test_cross_validation_searches_and_pipelines_take_it() -> None:
    model = TextClassifier(**LONGER)
    assert cross_val_score(model, TEXTS, LABELS, cv=2).min() > 0.6
    search = GridSearchCV(model, {"dim": [2, 4]}, cv=2).fit(TEXTS, LABELS)
    assert search.best_params_["dim"] in (2, 4)
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = make_pipeline(lower, model).set_params(textclassifier__dim=3).fit(TEXTS, LABELS)
    assert pipeline.predict(["REFUND PLEASE"]).tolist() == ["billing"]
    assert clone(pipeline).get_params()["textclassifier__dim"] == 3


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        ("one text", ["x"], "X is one string"),
        (np.zeros((2, 2)), ["x", "y"], r"X has the shape \(2, 2\)"),
        (["a", 3], ["x", "y"], "Text 1 of X is not a string but int."),
        (["a", "b"], ["x"], "give one label per text"),
        (["a", "b"], ["x", "x"], "a classifier needs at least two"),
        (["a", "b"], [0.5, 1.7], "Unknown label type"),
        (["a", "b"], None, "requires y to be passed"),
    ],
)
def test_mistakes_are_value_errors(X: Any, y: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TextClassifier(**SMALL).fit(X, y)


def test_options_that_make_no_sense_are_told_when_fitting() -> None:
    with pytest.raises(ValueError, match=r"^size must be one of tiny, small, default, full, not 'big'\.$"):
        TextClassifier(size="big").fit(TEXTS, LABELS)


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_random_state_out_of_range_is_told_by_its_own_name(seed: int) -> None:
    with pytest.raises(ValueError, match=rf"^random_state must be 0 to 9223372036854775807, not {seed}\.$"):
        TextClassifier(**SMALL, random_state=seed).fit(TEXTS, LABELS)


def test_embedding_and_mixing_rate_are_options() -> None:
    model = TextClassifier(**SMALL, embedding="bits", mixing="pool", mixing_rate=0.25).fit(TEXTS, LABELS)
    info = model.classifier_.info
    assert (info.model["embedding"], info.model["mixing"]) == ("bits", "pool")
    assert info.training["optim"]["mixing_rate"] == 0.25


def test_texts_without_labels_are_learned_from_and_the_estimator_says_what_is_wrong_with_them() -> None:
    more = [f"{word} please {i}" for i in range(20, 30) for word in ("refund", "parcel", "cancel")]
    model = TextClassifier(**SMALL, unlabelled_weight=1).fit(TEXTS, LABELS, unlabelled=more)
    assert model.classifier_.info.training["distillation"]["rows"] == 30
    with pytest.raises(ValueError, match="There are no unlabelled texts, only duplicates of labelled ones"):
        model.fit(TEXTS, LABELS, unlabelled=TEXTS)
    with pytest.raises(ValueError, match="A teacher needs unlabelled texts to label, and there are none"):
        TextClassifier(**SMALL, teacher="x").fit(TEXTS, LABELS)


# Several labels a text

NAMED = {"billing": "refund", "shipping": "parcel", "account": "cancel"}
MATRIX = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)] * 12)
SET_TEXTS = [
    " ".join([*(word for word, there in zip(NAMED.values(), row, strict=True) if there), f"please {i}"])
    for i, row in enumerate(MATRIX.tolist())
]


@pytest.fixture(scope="module")
def several() -> TextClassifier:
    """A small estimator, fitted with an indicator matrix."""
    return TextClassifier(**{**LONGER, "epochs": 12, "vectors": "auto"}).fit(SET_TEXTS, MATRIX)


def test_an_indicator_matrix_is_answered_by_one(several: TextClassifier) -> None:
    assert several.multilabel_
    assert several.classes_.tolist() == [0, 1, 2]
    found, probabilities = several.predict(SET_TEXTS), several.predict_proba(SET_TEXTS)
    assert (found.shape, found.dtype.kind) == (MATRIX.shape, "i")
    assert probabilities.shape == MATRIX.shape
    assert probabilities.dtype == np.float64
    assert several.score(SET_TEXTS, MATRIX) > 0.9
    answers = several.classifier_.predict(SET_TEXTS)
    assert [np.flatnonzero(row).tolist() for row in found] == [sorted(map(int, a.assigned)) for a in answers]
    np.testing.assert_array_equal(probabilities, [answer.probabilities for answer in answers])
    assert several.predict([]).shape == (0, 3)
    assert get_tags(several).classifier_tags.multi_label


@pytest.mark.parametrize("kind", [csr_matrix, csr_array, csc_matrix])
def test_a_sparse_matrix_is_answered_by_a_sparse_one(kind: Any) -> None:
    model = TextClassifier(**SMALL).fit(SET_TEXTS, kind(MATRIX))
    dense = TextClassifier(**SMALL).fit(SET_TEXTS, MATRIX)
    assert model.model_bytes_ == dense.model_bytes_
    found = model.predict(SET_TEXTS)
    assert type(found) is kind
    np.testing.assert_array_equal(found.toarray(), dense.predict(SET_TEXTS))
    assert type(pickle.loads(pickle.dumps(model)).predict(SET_TEXTS)) is kind


def test_columns_stand_in_their_own_order_and_not_in_that_of_their_digits() -> None:
    matrix = np.zeros((120, 12), int)
    matrix[np.arange(120), np.arange(120) % 12] = 1
    texts = [f"word{i % 12} please {i}" for i in range(120)]
    probabilities = TextClassifier(**{**LONGER, "epochs": 20, "dim": 16}).fit(texts, matrix).predict_proba(texts[:12])
    assert probabilities.argmax(1).tolist() == list(range(12))


@pytest.mark.parametrize(("X", "y"), [(TEXTS, LABELS), (SET_TEXTS, MATRIX)], ids=["one label", "several"])
def test_weights_of_ones_change_nothing_and_others_do(X: Any, y: Any) -> None:
    plain, ones, others = (
        TextClassifier(**SMALL).fit(X, y, weights).model_bytes_
        for weights in (None, np.ones(len(X)), np.arange(len(X)))
    )
    assert plain == ones
    assert plain != others


def test_rows_and_labels_of_little_weight_are_not_answered() -> None:
    texts, labels = ["refund now"] * 60, ["yes", "no", "no"] * 20
    zero = TextClassifier(**LONGER).fit(texts, labels, sample_weight=[1, 0.001, 0.001] * 20)
    light = TextClassifier(**LONGER, class_weight={"no": 0.001}).fit(texts, labels)
    bare = TextClassifier(**LONGER).fit(texts, labels)
    assert [model.classifier_.explain("refund now").label for model in (zero, light, bare)] == ["yes", "yes", "no"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"y": MATRIX[:-1]}, r"X has 96 texts and y the shape \(95, 3\)"),
        ({"y": MATRIX * 2}, "An indicator matrix holds 1 where a label applies, and 0 elsewhere."),
        (
            {"y": MATRIX + (np.arange(96) % 3)[:, None]},
            "is not an indicator matrix of 0 and 1; give one label per text",
        ),
        ({"sample_weight": [1.0]}, "There are 96 texts and 1 weights"),
        ({"sample_weight": np.ones((96, 2))}, "Sample weights must be 1D array or scalar"),
        ({"sample_weight": -np.ones(96)}, "Weights: number 0 is '-1.0'; write a number of 0 or more."),
        ({"sample_weight": np.zeros(96)}, "All sample weights are zero"),
    ],
)
def test_mistakes_in_matrices_and_weights_are_value_errors(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TextClassifier(**SMALL).fit(**{"X": SET_TEXTS, "y": MATRIX, **arguments})


def test_before_fitting_nothing_is_answered(tmp_path: Path) -> None:
    model = TextClassifier()
    for call in (lambda: model.predict(TEXTS), lambda: model.save(tmp_path / "m.onnx"), lambda: model.classifier_):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            call()


@pytest.mark.parametrize("missing", [None, float("nan"), pandas.NA])
def test_a_row_without_a_label_is_told_and_is_no_class(missing: Any) -> None:
    labels = [*LABELS[:7], missing, *LABELS[8:]]
    for y in (labels, pandas.Series(labels), np.array(labels, dtype=object)):
        with pytest.raises(ValueError, match="Input y contains NaN: row 7 has no label"):
            TextClassifier(**SMALL).fit(TEXTS, y)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_columns_come_from_the_tables_of_others(kind: str) -> None:
    rows = [{"text": text, "product": product} for text, product in (("charged twice", "a"), ("late", "b"))] * 10
    frames = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table.from_pylist"}
    package = pytest.importorskip(kind)
    table = operator.attrgetter(frames[kind])(package)(rows)
    model = TextClassifier(columns=["product"], epochs=1).fit(table, ["x", "y"] * 10)
    assert model.predict(table).tolist() == model.predict(rows).tolist()


def test_rows_that_cannot_be_answered_are_a_value_error() -> None:
    rows = [{"text": "hello there", "product": product} for product in ("a", "b")] * 40
    model = TextClassifier(columns=["product"], epochs=1).fit(rows, ["x", "y"] * 40)
    assert model.predict(rows[:2]).tolist() == ["x", "y"]
    for odd, said in (
        ({"product": "a"}, "has no 'text'"),
        ({"text": "a", "prodct": "a"}, "has 'prodct', and the model"),
    ):
        with pytest.raises(ValueError, match=said):
            model.predict([odd])


def test_a_label_that_no_row_of_a_fold_has_is_never_answered_and_that_is_said() -> None:
    y = np.stack([np.array(LABELS) == name for name in ("billing", "shipping", "refused")], 1).astype(int)
    with pytest.warns(UserWarning, match="No row has the label '2'"):
        model = TextClassifier(**SMALL).fit(TEXTS, y)
    assert model.predict(TEXTS).shape == y.shape
    assert not model.predict(TEXTS)[:, 2].any()
    assert not model.predict_proba(TEXTS)[:, 2].any()
    # One row has the label, and is held out once.
    y[0, 2] = 1
    with pytest.warns(UserWarning, match="No row has the label '2'"):
        assert not np.isnan(cross_val_score(TextClassifier(**SMALL), TEXTS, y, cv=3, scoring="f1_micro")).any()


def test_a_weight_of_a_label_that_no_row_has_is_passed_over_and_that_is_said() -> None:
    with pytest.warns(UserWarning, match="class_weight has 'refused', which no row has"):
        model = TextClassifier(**SMALL, class_weight={"billing": 2, "refused": 5}).fit(TEXTS, LABELS)
    assert model.model_bytes_ == TextClassifier(**SMALL, class_weight={"billing": 2}).fit(TEXTS, LABELS).model_bytes_


@pytest.mark.parametrize("kind", [bool, int, float])
def test_weights_of_labels_are_found_by_what_is_equal(kind: type) -> None:
    y = (np.array(LABELS) == "billing").astype(kind)
    weighted = TextClassifier(**LONGER, class_weight={0: 1, 1: 50}).fit(TEXTS, y)
    assert (
        weighted.predict_proba(["what is it"])[0, 1]
        > TextClassifier(**LONGER).fit(TEXTS, y).predict_proba(["what is it"])[0, 1]
    )


def test_few_rows_warn_that_probabilities_are_not_calibrated() -> None:
    with pytest.warns(UserWarning, match="Not calibrated: 30 validation rows, and 50 are needed"):
        TextClassifier(**SMALL).fit(TEXTS[:30], LABELS[:30])


def test_a_column_of_labels_is_read_with_the_warning_of_scikit_learn() -> None:
    with pytest.warns(DataConversionWarning):
        model = TextClassifier(**SMALL).fit(TEXTS, np.array(LABELS)[:, None])
    assert list(model.classes_) == ["account", "billing", "shipping"]


def test_columns_of_other_tables_are_texts_and_tables_are_refused() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"text": TEXTS, "label": LABELS})
    model = TextClassifier(**SMALL).fit(table["text"], table["label"])
    assert model.model_bytes_ == TextClassifier(**SMALL).fit(TEXTS, LABELS).model_bytes_
    assert len(model.classifier_.predict(table["text"])) == len(TEXTS)
    for given in (table, {"text": TEXTS}, set(TEXTS)):
        with pytest.raises(ValueError, match="pass"):
            model.predict(given)


def test_a_weight_of_a_column_that_no_row_has_is_passed_over_too() -> None:
    y = np.stack([np.array(LABELS) == name for name in ("billing", "shipping", "refused")], 1).astype(int)
    with pytest.warns(UserWarning, match="no row has|No row has") as said:
        TextClassifier(**SMALL, class_weight={0: 2, 2: 5}).fit(TEXTS, y)
    assert "class_weight has 2, which no row has: passed over." in [str(one.message) for one in said]


def test_a_missing_label_in_a_column_is_told_by_its_row() -> None:
    with pytest.warns(DataConversionWarning), pytest.raises(ValueError, match="row 1 has no label"):
        TextClassifier(**SMALL).fit(TEXTS[:2], np.array([["a"], [None]], object))


@pytest.mark.parametrize("kind", [int, bool, float])
def test_a_column_of_numbers_is_read_like_one_of_strings(kind: type) -> None:
    y = (np.array(LABELS) == "billing").astype(kind)
    with pytest.warns(DataConversionWarning):
        model = TextClassifier(**SMALL).fit(TEXTS, pandas.DataFrame({"billing": y}))
    assert model.classes_.dtype == y.dtype
    assert model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("kind", ["Int64", "boolean", "bool[pyarrow]"])
def test_an_indicator_table_may_have_types_that_can_lack_a_value(kind: str) -> None:
    pytest.importorskip("pyarrow")
    table = pandas.get_dummies(pandas.Series(LABELS))
    model = TextClassifier(**SMALL).fit(TEXTS, table.astype(kind))
    assert model.classes_.tolist() == ["account", "billing", "shipping"]
    assert model.model_bytes_ == TextClassifier(**SMALL).fit(TEXTS, table).model_bytes_
    lacking = table.astype("Int64")
    lacking.iloc[3, 1] = pandas.NA
    with pytest.raises(ValueError, match="An indicator matrix holds 1 where a label applies"):
        TextClassifier(**SMALL).fit(TEXTS, lacking)


def test_weights_all_of_which_are_passed_over_weigh_nothing() -> None:
    with pytest.warns(UserWarning, match="class_weight has 'refused'"):
        weighted = TextClassifier(**SMALL, class_weight={"refused": 5}).fit(TEXTS, LABELS)
    assert weighted.model_bytes_ == TextClassifier(**SMALL).fit(TEXTS, LABELS).model_bytes_


def test_labels_may_be_yielded() -> None:
    model = TextClassifier(**SMALL).fit(iter(TEXTS), iter(LABELS))
    assert model.model_bytes_ == TextClassifier(**SMALL).fit(TEXTS, LABELS).model_bytes_


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([["a", "b"], ["a"]] * 30, "make an indicator matrix of them with MultiLabelBinarizer"),
        ([{"a", "b"}, {"a"}] * 30, "make an indicator matrix of them with MultiLabelBinarizer"),
        (pandas.Series(["a", 1] * 30, dtype=object), "labels of several types, 'int' and 'str'"),
        (["a", 1] * 30, "labels of several types, 'int' and 'str'"),
    ],
)
def test_labels_of_odd_shapes_and_types_are_told(y: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TextClassifier(**SMALL).fit(TEXTS, y)


@pytest.mark.parametrize("missing", [None, float("nan"), pandas.NA])
def test_a_missing_label_is_told_in_a_column_and_where_labels_are_yielded(missing: Any) -> None:
    labels = ["billing", missing, "shipping"] * 20
    with pytest.raises(ValueError, match="row 1 has no label"):
        TextClassifier(**SMALL).fit(TEXTS, iter(labels))
    with pytest.warns(DataConversionWarning), pytest.raises(ValueError, match="row 1 has no label"):
        TextClassifier(**SMALL).fit(TEXTS, [[label] for label in labels])


def test_a_table_of_arrow_with_one_column_is_labels() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.warns(DataConversionWarning):
        model = TextClassifier(**SMALL).fit(TEXTS, pyarrow.table({"label": LABELS}))
    assert list(model.classes_) == ["account", "billing", "shipping"]
