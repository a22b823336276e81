"""A scikit-learn estimator: texts in, labels out, in pipelines, cross-validation and searches.

    model = TextClassifier(epochs=3).fit(texts, labels)
    model.predict(["my card was charged twice"])
    model.save("tickets.onnx")

What is fitted is the bytes of one ONNX file: that is what is pickled and what `save` writes.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from textcls.classifier import Classifier
from textcls.errors import ConfigError, InputError
from textcls.output import replacing
from textcls_training import run
from textcls_training.config import SEEDS, from_options
from textcls_training.run import Source

# Seeds that are drawn where `random_state` is a generator.
_DRAWN = 2**31
_NAME = Path("model.onnx")


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """`textcls train` as a scikit-learn estimator; X is a sequence of strings.

    Args are the options of `textcls train`, but those on rationales, under scikit-learn's names: `class_weight` is None
    or "balanced", and `random_state` is the seed. `ngrams` None chooses by script, and () reads none. A mistake in X, y
    or an option is a ValueError.

    Attributes:
        classes_: the labels, sorted.
        model_bytes_: the ONNX file.
    """

    def __init__(
        self,
        *,
        epochs: int | None = None,
        dim: int | None = None,
        size: str = "default",
        ngrams: Sequence[int] | None = None,
        bigrams: bool = True,
        max_tokens: int = 2048,
        mixing: str = "none",
        mixing_rate: float | None = None,
        embedding: str = "rows",
        attention: str = "norm",
        values: str = "token",
        class_weight: str | None = None,
        random_state: Any = 0,
        device: str = "auto",
    ) -> None:
        self.epochs = epochs
        self.dim = dim
        self.size = size
        self.ngrams = ngrams
        self.bigrams = bigrams
        self.max_tokens = max_tokens
        self.mixing = mixing
        self.mixing_rate = mixing_rate
        self.embedding = embedding
        self.attention = attention
        self.values = values
        self.class_weight = class_weight
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any) -> "TextClassifier":
        """Train on the texts X and their labels y."""
        texts = _texts(X)
        if y is None:
            raise ValueError("This TextClassifier requires y to be passed, but the target y is None.")
        labels = np.asarray(y)
        if labels.ndim != 1 or len(labels) != len(texts):
            raise ValueError(f"X has {len(texts)} texts and y the shape {labels.shape}; one label a text is needed.")
        check_classification_targets(labels)
        classes, number = np.unique(labels, return_inverse=True)
        names = [str(label) for label in classes]
        if len(set(names)) < len(names):
            raise ValueError("Two labels of y look alike as strings; make them differ.")
        options = {name: value for name, value in self.get_params().items() if name != "random_state"}
        options |= {"class_weight": self.class_weight or "none", "seed": self._seed()}
        options["ngrams"] = None if self.ngrams is None else tuple(self.ngrams)
        source = Source(texts=texts, labels=[names[i] for i in number])
        with tempfile.TemporaryDirectory(prefix="textcls-") as folder:
            path = Path(folder) / "model.onnx"
            try:
                run.train(source, path, from_options(len(names), options))
            except (InputError, ConfigError) as error:
                raise ValueError(str(error)) from error
            self.model_bytes_ = path.read_bytes()
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
        with replacing(Path(path)) as file:
            file.write(self.model_bytes_)

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            seed = int(self.random_state)
            if not 0 <= seed < SEEDS:
                raise ValueError(f"random_state must be 0 to {SEEDS - 1}, not {seed}.")
            return seed
        return int(check_random_state(self.random_state).randint(_DRAWN))

    def __getstate__(self) -> dict[str, Any]:
        # A session of ONNX Runtime stays behind; it is opened again from the bytes.
        state: dict[str, Any] = super().__getstate__()
        return {name: value if name != "_loaded" else None for name, value in state.items()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


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
