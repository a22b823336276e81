"""A scikit-learn estimator: texts in, labels out, in pipelines, cross-validation and searches.

    model = TextClassifier(epochs=3).fit(texts, labels)
    model.predict(["my card was charged twice"])
    model.save("tickets.onnx")

What is fitted is the bytes of one ONNX file: that is what is pickled and what `save` writes.
"""

import inspect
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from textcls._util.atomic_write import atomic_write
from textcls.classifier import Classifier
from textcls.errors import ConfigError, InputError
from textcls_training import pipeline
from textcls_training.api import unlabelled_texts
from textcls_training.config.settings import OPTIONS, TrainConfig, from_options
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.unlabelled import UnlabelledTexts

# Seeds that are drawn where `random_state` is a generator.
_DRAWN: Final = 2**31
_NAME: Final = Path("model.onnx")
# The options of an estimator, and their defaults: those of training, but those on rationales, which `fit` does not
# take; the seed and no class weight under scikit-learn's names.
PARAMETERS: Final[Mapping[str, Any]] = {
    **{name: option.default for name, option in OPTIONS.items() if name not in ("rationale_weight", "seed")},
    "class_weight": None,
    "random_state": OPTIONS["seed"].default,
}


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """`textcls train` as a scikit-learn estimator; X is a sequence of strings.

    Args are the options of `textcls train`, with the same values, but those on rationales; the seed is called
    `random_state`, and may be a generator. None is the default. A mistake in X, y or an option is a ValueError.

    Attributes:
        classes_: the labels, sorted.
        model_bytes_: the ONNX file.
    """

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

    def fit(self, X: Any, y: Any, unlabelled: Any = None) -> "TextClassifier":
        """Train on the texts X and their labels y.

        Args:
            X: the texts.
            y: their labels.
            unlabelled: texts without labels, which the option `teacher` answers, or the model itself.
        """
        texts = _texts(X)
        classes, names, number = _classes(y, len(texts))
        try:
            config = self._config()
            given = LabelledTexts(texts=texts, labels=[names[i] for i in number])
            more = None
            if unlabelled is not None:
                more = unlabelled_texts(_texts(unlabelled), names, texts, config.unlabelled_rows)
            self.model_bytes_ = _trained_bytes(given, config, more)
        except (InputError, ConfigError) as error:
            raise ValueError(str(error)) from error
        self.classes_ = classes
        self._loaded: Classifier | None = Classifier.from_bytes(self.model_bytes_, _NAME)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each text."""
        probabilities = self.predict_proba(X)
        found: NDArray[Any] = self.classes_[probabilities.argmax(1)]
        return found

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the calibrated probabilities [texts, labels], labels in the order of `classes_`."""
        classifier, texts = self.classifier_, _texts(X)
        probabilities = np.array([answer.probabilities for answer in classifier.predict(texts)], np.float64)
        column = {name: i for i, name in enumerate(classifier.labels)}
        ordered = probabilities.reshape(-1, len(column))[:, [column[str(label)] for label in self.classes_]]
        # Single precision adds up to 1 but for its last digits.
        return np.asarray(ordered / ordered.sum(1, keepdims=True), np.float64)

    @property
    def classifier_(self) -> Classifier:
        """The model as a `textcls.Classifier`, which explains, abstains and tells of itself."""
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

    def _config(self) -> TrainConfig:
        """Return what the parameters mean.

        Raises:
            ConfigError: one has no such value.
        """
        options = self.get_params()
        state = options.pop("random_state")
        if state is None or isinstance(state, np.random.RandomState):
            seed = int(check_random_state(state).randint(_DRAWN))
        else:
            seed = OPTIONS["seed"].checked("random_state", state)
        return from_options({**options, "seed": seed})

    def __getstate__(self) -> dict[str, Any]:
        # A session of ONNX Runtime stays behind; it is opened again from the bytes.
        state: dict[str, Any] = super().__getstate__()
        return {name: value if name != "_loaded" else None for name, value in state.items()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def _trained_bytes(given: LabelledTexts, config: TrainConfig, unlabelled: UnlabelledTexts | None) -> bytes:
    with tempfile.TemporaryDirectory(prefix="textcls-") as folder:
        path = Path(folder) / "model.onnx"
        pipeline.train(given, path, config, unlabelled=unlabelled)
        return path.read_bytes()


def _classes(y: Any, texts: int) -> tuple[NDArray[Any], list[str], NDArray[np.intp]]:
    """Return the distinct labels, their names in a model, and the number of each row's label."""
    if y is None:
        raise ValueError("This TextClassifier requires y to be passed, but the target y is None.")
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) != texts:
        raise ValueError(f"X has {texts} texts and y the shape {labels.shape}; one label a text is needed.")
    check_classification_targets(labels)
    classes, number = np.unique(labels, return_inverse=True)
    names = [str(label) for label in classes]
    if len(set(names)) < len(names):
        raise ValueError("Two labels of y look alike as strings; make them differ.")
    return classes, names, number


def _texts(X: Any) -> list[str]:
    if isinstance(X, str):
        raise ValueError("X is one string; a sequence of strings is needed, such as [text].")
    if getattr(X, "ndim", 1) != 1:
        raise ValueError(f"X has the shape {X.shape}; a sequence of strings is needed, such as one column of a table.")
    texts = list(X)
    odd = next((i for i, text in enumerate(texts) if not isinstance(text, str)), None)
    if odd is not None:
        raise ValueError(f"Text {odd} of X is not a string but {type(texts[odd]).__name__}.")
    # numpy.str_ is a str that onnxruntime and others need not know.
    return [str(text) for text in texts]
