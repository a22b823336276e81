"""What a person would use instead, through its own package: TF-IDF with a linear model, and fastText.

All peers get the tokens of textcls, so that languages without spaces are treated alike.
"""

import os
import pickle
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from measure import Float, Trained
from textcls.model.tokenizer import tokenize

Fit = Callable[[Sequence[str], Sequence[str]], Trained]


def _linear(vectorizer: dict[str, Any], classifier: Callable[[], Any], probabilities: bool = False) -> Fit:
    def fit(texts: Sequence[str], labels: Sequence[str]) -> Trained:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline

        model = make_pipeline(TfidfVectorizer(sublinear_tf=True, **vectorizer), classifier()).fit(texts, labels)

        def predict(given: Sequence[str]) -> list[str]:
            return list(model.predict(given))

        def score(given: Sequence[str]) -> tuple[list[str], Float]:
            scores = model.predict_proba(given) if probabilities else _columns(model.decision_function(given))
            confidence = scores.max(1) if probabilities else _margin(scores)
            return list(model.classes_[scores.argmax(1)]), confidence

        return Trained(predict, lambda text: predict([text]), score, probabilities, len(pickle.dumps(model)))

    return fit


def _columns(decisions: Float) -> Float:
    """Give the decisions of two labels, which scikit-learn returns as [texts], a column a label like those of more."""
    return np.stack([-decisions, decisions], 1) if decisions.ndim == 1 else decisions


def _margin(scores: Float) -> Float:
    """Return by how much the best label leads the second [texts], from the scores [texts, labels]."""
    second, best = np.partition(scores, -2, axis=1)[:, -2:].T
    return np.asarray(best - second)


def _fasttext(**options: Any) -> Fit:
    def fit(texts: Sequence[str], labels: Sequence[str]) -> Trained:
        import fasttext

        names = sorted(set(labels))
        number = {name: i for i, name in enumerate(names)}
        with tempfile.TemporaryDirectory() as folder:
            data, saved = Path(folder) / "train.txt", Path(folder) / "model.bin"
            lines = (f"__label__{number[y]} {' '.join(tokenize(t))}\n" for t, y in zip(texts, labels, strict=True))
            data.write_text("".join(lines), encoding="utf-8")
            try:
                model = fasttext.train_supervised(str(data), verbose=0, thread=os.cpu_count(), **options)
            except RuntimeError:  # "Encountered NaN": its threads race; one thread does not.
                model = fasttext.train_supervised(str(data), verbose=0, thread=1, **options)
            model.save_model(str(saved))
            size = saved.stat().st_size

        def ask(given: Sequence[str]) -> tuple[list[str], Any]:
            found, probabilities = model.predict([" ".join(tokenize(text)) for text in given])
            return [names[int(best[0].removeprefix("__label__"))] for best in found], probabilities

        def score(given: Sequence[str]) -> tuple[list[str], Float]:
            answers, probabilities = ask(given)
            # Its softmax adds 1e-5 to each probability.
            return answers, np.minimum([float(best[0]) for best in probabilities], 1.0)

        def predict(given: Sequence[str]) -> list[str]:
            return ask(given)[0]

        return Trained(predict, lambda text: predict([text]), score, True, size)

    return fit


def _svc() -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(random_state=0)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=10, max_iter=300)


WORDS = {"tokenizer": tokenize, "token_pattern": None, "lowercase": False, "ngram_range": (1, 2)}
CHARACTERS = {"analyzer": "char_wb", "ngram_range": (2, 5)}
BIGRAMS = {"lr": 0.5, "wordNgrams": 2, "dim": 50, "bucket": 200_000}

PEERS: dict[str, Fit] = {
    "TF-IDF words + SVM": _linear(WORDS, _svc),
    "TF-IDF words + LR": _linear(WORDS, _logistic, probabilities=True),
    "TF-IDF characters + SVM": _linear(CHARACTERS, _svc),
    "fastText bigrams": _fasttext(epoch=5, **BIGRAMS),
    "fastText bigrams, 25 epochs": _fasttext(epoch=25, **BIGRAMS),
    "fastText sub-words, 25 epochs": _fasttext(epoch=25, minn=3, maxn=5, **BIGRAMS),
}


def prepare(name: str) -> None:
    """Import the packages that a peer needs, so that their loading is not part of its seconds."""
    if name.startswith("fastText"):
        import fasttext  # noqa: F401
    else:
        import sklearn.feature_extraction.text
        import sklearn.linear_model
        import sklearn.pipeline
        import sklearn.svm  # noqa: F401
