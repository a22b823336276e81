"""A scikit-learn estimator: texts in, labels out, in pipelines, cross-validation and searches.

    model = TextClassifier(epochs=3).fit(texts, labels)
    model.predict(["my card was charged twice"])
    model.save("tickets.onnx")

If a text may have several labels, y is an indicator matrix, dense or sparse: one column per label, 1 if it applies.

The fitted state is the bytes of one ONNX file, which are pickled, and written by `save`.
"""

import inspect
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from textcls._util.atomic_write import atomic_write
from textcls.data.column_kinds import wanted_kinds
from textcls.errors import ConfigError, InputError
from textcls.model.classifier import Classifier
from textcls.model.labels import is_missing
from textcls.model.sequences import as_list, require_sequence
from textcls.model.text_columns import and_
from textcls_training.api import (
    checked_weights,
    joined,
    text_columns_of,
    unlabelled_texts,
    warn_if_not_calibrated,
    with_columns,
)
from textcls_training.config.settings import OPTIONS, TrainConfig, from_options
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.unlabelled import UnlabelledTexts
from textcls_training.pipeline import training as pipeline

# The range of seeds that are drawn if `random_state` is a generator.
_DRAWN: Final = 2**31
_NAME: Final = Path("model.onnx")
_NO_INDICATORS: Final = "An indicator matrix holds 1 where a label applies, and 0 elsewhere."
# The methods that convert a table to rows: polars, pyarrow.
_TABLES: Final = ("to_dicts", "to_pylist")
_NOT_OF_AN_ESTIMATOR: Final = ("rationale_weight", "rehearsal_rows", "seed")
# The options of an estimator, and their defaults: those of training, except those on rationales and on states, which
# `fit` does not take; the columns besides the text; the seed and "no class weight" under scikit-learn's names.
_OPTIONS: Final = {name: option for name, option in OPTIONS.items() if name not in _NOT_OF_AN_ESTIMATOR}
PARAMETERS: Final[Mapping[str, Any]] = {
    **{name: option.default for name, option in _OPTIONS.items()},
    "columns": None,
    "class_weight": None,
    "random_state": OPTIONS["seed"].default,
}


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """`textcls train` as a scikit-learn estimator; X is a sequence of strings.

    With `columns`, such as `["product", "price:number"]`, X is a DataFrame, or a list of mappings: these columns are
    read besides the text, which is all others joined.

    A mistake in X, y or an option is a ValueError. A label that no row has is never predicted, and a weight for one is
    ignored, each with a warning, so that folds may lack a rare one.

    Attributes:
        classes_: the labels, sorted; for an indicator matrix its columns, by number or, for a table, by name.
        multilabel_: whether a text may have several labels.
        model_bytes_: the ONNX file.

    Args are the options of `textcls train`, with the same values, except those on rationales and on states. None means
    the default. The seed is called `random_state`, and may be a `numpy.random.RandomState`.
    """

    __doc__ = f"{__doc__}\n" + "\n".join(f"        {name}: {option.help}" for name, option in _OPTIONS.items())

    def __init__(self, **parameters: Any) -> None:
        strange = sorted(set(parameters) - set(PARAMETERS))
        if strange:
            raise TypeError(f"TextClassifier has no option {strange[0]!r}; there are {', '.join(sorted(PARAMETERS))}.")
        for name, default in PARAMETERS.items():
            setattr(self, name, parameters.get(name, default))

    # scikit-learn reads the names and defaults of an estimator from its signature.
    __init__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
                for name, default in PARAMETERS.items()
            ),
        ]
    )

    def fit(self, X: Any, y: Any, sample_weight: Any = None, unlabelled: Any = None) -> "TextClassifier":
        """Train on the texts X and their labels y.

        Args:
            X: the texts.
            y: their labels, or an indicator matrix [texts, labels], dense or sparse.
            sample_weight: the weight of each text, at least 0; None for equal weights.
            unlabelled: texts without labels, which are labelled by the `teacher`, or by the model itself.
        """
        rows = self._read(X)
        targets = _targets(y, len(rows))
        try:
            config = self._config(targets)
            wanted = wanted_kinds(self.columns or ())
            read = text_columns_of(rows, list(wanted))
            texts = joined(rows, read, "X")
            given = replace(targets.of(texts), weights=_weights(sample_weight, len(texts)))
            if read is not None:
                given = with_columns(replace(given, text_columns=read), rows, wanted)
            more = None
            if unlabelled is not None:
                others = joined(self._read(unlabelled), read, "unlabelled")
                more = unlabelled_texts(others, targets.names, texts, config.unlabelled_rows)
            counting = given.counting()
            if len(given.labels_in_use()) > len(counting.labels_in_use()) == 1 and given.label_sets is None:
                raise ValueError("The texts whose weight is not 0 are of one class; give others a weight above 0.")
            self.model_bytes_ = _trained_bytes(counting, config, more)
        except (InputError, ConfigError) as error:
            raise ValueError(str(error)) from error
        self.classes_, self.multilabel_ = targets.classes, targets.matrix is not None
        self._sparse: type[Any] | None = targets.sparse
        self._loaded: Classifier | None = Classifier.from_bytes(self.model_bytes_, _NAME)
        return self

    def _read(self, X: Any) -> Any:
        """Return texts, or, if there are columns besides them, rows."""
        return _rows(X) if self.columns else _texts(X)

    def predict(self, X: Any) -> Any:
        """Return the most probable label of each text; with several the matrix of those assigned, as in `y`."""
        if not self._is_multilabel():
            return self.classes_[self.predict_proba(X).argmax(1)]
        probabilities = self._probabilities(X)
        thresholds = np.append(np.array(self.classifier_.info.thresholds, np.float32), np.float32(np.inf))[
            self._columns()
        ]
        assigned = (probabilities >= thresholds).astype(np.int64)
        return assigned if self._sparse is None else self._sparse(assigned)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the calibrated probabilities [texts, labels], labels in the order of `classes_`.

        Those of a text sum to 1, unless it may have several labels.
        """
        ordered = self._probabilities(X)
        if self._is_multilabel():
            return ordered.astype(np.float64)
        # In single precision they sum to 1 except for the last digits.
        return np.asarray(ordered / ordered.sum(1, keepdims=True, dtype=np.float64), np.float64)

    def _is_multilabel(self) -> bool:
        check_is_fitted(self, "model_bytes_")
        return bool(self.multilabel_)

    def _probabilities(self, X: Any) -> NDArray[np.float32]:
        try:
            answers = self.classifier_.predict(self._read(X))
        except InputError as error:
            raise ValueError(str(error)) from error
        found = np.array([answer.probabilities for answer in answers], np.float32)
        # The last column is for labels that no row had.
        padded = np.pad(found.reshape(-1, len(self.classifier_.labels)), ((0, 0), (0, 1)))
        return np.asarray(padded[:, self._columns()])

    def _columns(self) -> list[int]:
        """Return the number that each of `classes_` has in the model; -1 if no row had it."""
        number = {name: i for i, name in enumerate(self.classifier_.labels)}
        return [number.get(str(label), -1) for label in self.classes_]

    @property
    def classifier_(self) -> Classifier:
        """Return the model as a `textcls.Classifier`, which explains, abstains and describes itself."""
        check_is_fitted(self, "model_bytes_")
        if self._loaded is None:
            self._loaded = Classifier.from_bytes(self.model_bytes_, _NAME)
        return self._loaded

    def save(self, path: str | Path) -> None:
        """Write the model to one ONNX file, for `textcls serve` and everything else.

        Raises:
            SurroundingsError: it cannot be written.
        """
        check_is_fitted(self, "model_bytes_")
        with atomic_write(Path(path)) as file:
            file.write(self.model_bytes_)

    def _config(self, targets: "_Targets") -> TrainConfig:
        """Return the configuration for a model with these labels.

        Raises:
            ConfigError: a parameter does not allow its value.
        """
        options = self.get_params()
        del options["columns"]
        if options["class_weight"] and isinstance(options["class_weight"], Mapping):
            options["class_weight"] = targets.weights(options["class_weight"]) or None
        state = options.pop("random_state")
        if state is None or isinstance(state, np.random.RandomState):
            seed = int(check_random_state(state).randint(_DRAWN))
        else:
            seed = OPTIONS["seed"].checked("random_state", state)
        return from_options({**options, "seed": seed})

    def __getstate__(self) -> dict[str, Any]:
        # An ONNX Runtime session is not pickled; it is opened again from the bytes.
        state: dict[str, Any] = super().__getstate__()
        return {name: value if name != "_loaded" else None for name, value in state.items()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = True
        return tags


def _trained_bytes(given: LabelledTexts, config: TrainConfig, unlabelled: UnlabelledTexts | None) -> bytes:
    with tempfile.TemporaryDirectory(prefix="textcls-") as folder:
        path = Path(folder) / "model.onnx"
        warn_if_not_calibrated(pipeline.train(given, path, config, unlabelled=unlabelled, new_labels=False))
        return path.read_bytes()


class _Targets(NamedTuple):
    """The targets of texts.

    Attributes:
        classes: the labels.
        names: their names in a model.
        number: if each text has one label, the number of each text's label.
        matrix: if it may have several, the labels of each as an array [texts, labels].
        sparse: the type of that matrix if it was sparse.
    """

    classes: NDArray[Any]
    names: list[str]
    number: NDArray[np.intp] | None = None
    matrix: NDArray[np.bool_] | None = None
    sparse: type[Any] | None = None

    def of(self, texts: Sequence[str]) -> LabelledTexts:
        """Return the texts with their labels."""
        if self.matrix is not None:
            sets = [{self.names[i]: 1.0 for i in np.flatnonzero(row).tolist()} for row in self.matrix]
            for name in (missing := set(self.names) - set().union(*sets)):
                warnings.warn(f"No row has the label {name!r}, which is never answered.", stacklevel=3)
            return LabelledTexts(
                texts=texts, label_sets=sets, names=[name for name in self.names if name not in missing]
            )
        assert self.number is not None
        return LabelledTexts(texts=texts, labels=[self.names[i] for i in self.number])

    def weights(self, given: Mapping[Any, Any]) -> dict[str, Any]:
        """Return weights of labels by their names in a model. As in a mapping, 1 equals True and 1.0."""
        labels = (self.classes if self.matrix is None else self.classes[self.matrix.any(0)]).tolist()
        for label in [label for label in given if label not in labels]:
            warnings.warn(f"class_weight has {label!r}, which no row has: passed over.", stacklevel=4)
        return {str(label): given[label] for label in labels if label in given}


def _targets(y: Any, texts: int) -> _Targets:
    """Return the targets in `y` of this many texts.

    Raises:
        ValueError: it contains no targets that can be learned.
    """
    if y is None:
        raise ValueError("This TextClassifier requires y to be passed, but the target y is None.")
    sparse: type[Any] | None = type(y) if issparse(y) else None
    labels = _dense(y) if sparse is None else sparse.toarray(y)
    if labels.ndim not in (1, 2) or len(labels) != texts:
        raise ValueError(f"X has {texts} texts and y the shape {labels.shape}; give one label per text.")
    check_classification_targets(labels)
    if type_of_target(labels) == "multilabel-indicator":
        return _indicators(y, labels, sparse)
    if labels.ndim == 2:
        raise ValueError(
            f"y has the shape {labels.shape} and is not an indicator matrix of 0 and 1; give one label per text."
        )
    classes, number = np.unique(labels, return_inverse=True)
    return _Targets(classes, _names(classes), number)


def _dense(y: Any) -> NDArray[Any]:
    """Return labels, or a matrix, as an array of their own type; a single column as labels, with a warning.

    Raises:
        ValueError: a label is missing, or rows contain lists of labels.
    """
    one_d = hasattr(y, "to_pylist") and not hasattr(y, "column_names")
    given = as_list(y) if one_d or isinstance(y, Iterator) else y
    try:
        found = np.asarray(given)
    except ValueError as error:
        raise ValueError(
            "Rows of y hold different numbers of labels; make an indicator matrix of them with MultiLabelBinarizer."
        ) from error
    # Unconverted: NumPy turns missing values among strings into strings.
    objects = np.asarray(given, object)
    if found.ndim == 2 and found.shape[1] == 1:
        found, objects = column_or_1d(found, warn=True), objects.ravel()
    if (missing := _first_missing(objects)) is not None:
        # NumPy would turn it into a label if the others are strings.
        raise ValueError(f"Input y contains NaN: row {missing} has no label.")
    if found.ndim == 1 and found.dtype == object and any(isinstance(row, Set | Mapping) for row in found):
        raise ValueError("Rows of y hold sets of labels; make an indicator matrix of them with MultiLabelBinarizer.")
    if found.ndim == 1 and len({isinstance(label, str) for label in objects}) == 2:
        kinds = sorted({type(label).__name__ for label in objects})
        raise ValueError(f"y has labels of several types, {and_(kinds)}; make all of them strings.")
    if found.ndim == 2 and found.dtype == object:
        # Nullable and Arrow types become objects.
        try:
            return found.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(_NO_INDICATORS) from error
    return found


def _first_missing(labels: NDArray[Any]) -> int | None:
    """Return the number of the first row without a label: None, NaN, or the missing value of pandas."""
    for row, label in enumerate(labels.tolist() if labels.ndim == 1 else ()):
        if is_missing(label):
            return row
    return None


def _indicators(y: Any, matrix: NDArray[Any], sparse: type[Any] | None) -> _Targets:
    if matrix.size and not np.isin(matrix, (0, 1)).all():
        raise ValueError(_NO_INDICATORS)
    columns = getattr(y, "columns", None)
    classes = np.arange(matrix.shape[1]) if columns is None else np.asarray(columns)
    return _Targets(classes, _names(classes), matrix=matrix.astype(np.bool_), sparse=sparse)


def _names(classes: NDArray[Any]) -> list[str]:
    names = [str(label) for label in classes]
    if len(set(names)) < len(names):
        raise ValueError("Two labels of y look alike as strings; make them differ.")
    return names


def _weights(given: Any, texts: int) -> list[float] | None:
    """Return the weights of texts; None if they are equal.

    Raises:
        ValueError: these are not weights of this many texts.
        InputError: likewise.
    """
    if given is None:
        return None
    weights = np.asarray(given, np.float64)
    if weights.ndim == 0:
        weights = np.full(texts, weights)
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
    checked = checked_weights(weights.tolist(), texts)
    if not any(checked):
        raise ValueError("All sample weights are zero; a text counts only with a weight above 0.")
    return None if all(weight == 1 for weight in checked) else checked


def _rows(X: Any) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]]
    if getattr(X, "ndim", 1) == 2 and hasattr(X, "to_dict"):
        rows = [{str(name): value for name, value in row.items()} for row in X.to_dict("records")]
    else:
        how = next((name for name in _TABLES if hasattr(X, name)), None)
        rows = list(X) if how is None else getattr(X, how)()
    odd = next((i for i, row in enumerate(rows) if not isinstance(row, Mapping)), None)
    if odd is not None:
        kind = type(rows[odd]).__name__
        raise ValueError(f"Row {odd} of X is a {kind}; columns need a DataFrame, or a list of mappings.")
    return rows


def _texts(X: Any) -> list[str]:
    if isinstance(X, str):
        raise ValueError("X is one string; pass a sequence of strings, such as [text].")
    if getattr(X, "ndim", 1) != 1 and hasattr(X, "shape"):
        raise ValueError(
            f"X has the shape {X.shape}; pass a sequence of strings, such as one column of a table, or name the "
            "columns beside the text as `columns`."
        )
    try:
        require_sequence(X, "texts")
    except InputError as error:
        raise ValueError(f"X: {error}") from error
    texts = as_list(X)
    odd = next((i for i, text in enumerate(texts) if not isinstance(text, str)), None)
    if odd is not None:
        raise ValueError(f"Text {odd} of X is not a string but {type(texts[odd]).__name__}.")
    # numpy.str_ is a str that onnxruntime and others may not accept.
    return [str(text) for text in texts]
