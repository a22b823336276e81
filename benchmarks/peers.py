"""What a person would use instead, through its own package: TF-IDF with a linear model, and fastText.

All peers get the tokens of textcls, so that languages without spaces are treated alike.
"""

import os
import pickle
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textcls.tokenizer import tokenize

Predict = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class Peer:
    """A trained peer: how it answers, and the bytes of its saved model."""

    predict: Predict
    size: int


def _linear(
    vectorizer: dict[str, Any], classifier: Callable[[], Any]
) -> Callable[[Sequence[str], Sequence[str]], Peer]:
    def fit(texts: Sequence[str], labels: Sequence[str]) -> Peer:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline

        model = make_pipeline(TfidfVectorizer(sublinear_tf=True, **vectorizer), classifier()).fit(texts, labels)
        return Peer(lambda given: list(model.predict(given)), len(pickle.dumps(model)))

    return fit


def _fasttext(**options: Any) -> Callable[[Sequence[str], Sequence[str]], Peer]:
    def fit(texts: Sequence[str], labels: Sequence[str]) -> Peer:
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

        def predict(given: Sequence[str]) -> list[str]:
            found = model.predict([" ".join(tokenize(text)) for text in given])[0]
            return [names[int(best[0].removeprefix("__label__"))] for best in found]

        return Peer(predict, size)

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

PEERS: dict[str, Callable[[Sequence[str], Sequence[str]], Peer]] = {
    "TF-IDF words + SVM": _linear(WORDS, _svc),
    "TF-IDF words + LR": _linear(WORDS, _logistic),
    "TF-IDF characters + SVM": _linear(CHARACTERS, _svc),
    "fastText bigrams": _fasttext(epoch=5, **BIGRAMS),
    "fastText bigrams, 25 epochs": _fasttext(epoch=25, **BIGRAMS),
    "fastText sub-words, 25 epochs": _fasttext(epoch=25, minn=3, maxn=5, **BIGRAMS),
}
