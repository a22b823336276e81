"""Choose the texts to label next, for `textcls suggest`, and for `textcls label` between two trainings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from textcls.evaluation.data_quality.duplicates import near
from textcls.labelling.choice import Float32, Float64, choose, doubt
from textcls.labelling.vectors import text_vectors
from textcls.model.classifier import Classifier
from textcls.model.prediction import Prediction

# If there are more texts, this many are considered, evenly spaced from the first to the last.
MOST_CANDIDATES: Final = 20_000
SEED: Final = 0


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text to label next.

    Attributes:
        row: its number, from 0.
        text: the text itself.
        label: the model's answer; None without a model.
        score: the probability of that label.
        doubt: how unsure the model is, from 0 to 1: how near the second label is to the first.
    """

    row: int
    text: str
    label: str | None = None
    score: float | None = None
    doubt: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"row": self.row + 1, "text": self.text} | self.columns()

    def columns(self) -> dict[str, Any]:
        """Return the columns that are added to the row in a file."""
        if self.label is None or self.score is None or self.doubt is None:
            return {}
        return {"suggested_label": self.label, "score": round(self.score, 4), "doubt": round(self.doubt, 4)}


@dataclass(frozen=True, slots=True)
class Pool:
    """Texts to choose from: the first of each group of near copies.

    Attributes:
        texts: all texts.
        rows: the numbers of those that may be chosen.
        keys: for each of these, the key that its near copies share.
        vector_RF: the vector of each.
    """

    texts: Sequence[str]
    rows: list[int]
    keys: list[int]
    vector_RF: Float32

    @classmethod
    def of(cls, texts: Sequence[str], most: int = MOST_CANDIDATES) -> "Pool":
        """Return the pool of `texts`, without those that contain no characters."""
        first: dict[int, int] = {}
        for row, text in enumerate(texts):
            if text.strip():
                first.setdefault(near(text), row)
        keys = list(first)
        if len(keys) > most:
            keys = [keys[i] for i in np.linspace(0, len(keys) - 1, most).astype(np.int64).tolist()]
        rows = [first[key] for key in keys]
        return cls(texts, rows, keys, text_vectors([texts[row] for row in rows]))

    def ask(self, classifier: Classifier) -> list[Prediction]:
        """Return a model's answers to the texts of the pool."""
        return classifier.predict([self.texts[row] for row in self.rows])

    def choose(
        self, count: int, known: Iterable[str] = (), predictions: Sequence[Prediction] | None = None
    ) -> list[int]:
        """Return the numbers of `count` texts to label next, the most informative first.

        Args:
            count: how many, if there are as many.
            known: texts that have a label, whose near copies are left out.
            predictions: a model's answers to the pool (`ask`); without a model texts are random, and unlike each other.
        """
        labelled = {near(text) for text in known}
        labelled_R = np.array([key in labelled for key in self.keys], np.bool_)
        several = predictions is not None and any(one.several for one in predictions)
        probability_RC = None if predictions is None else probabilities(predictions)
        chosen = choose(self.vector_RF, labelled_R, count, probability_RC, several=several)
        return [self.rows[i] for i in chosen]


def probabilities(predictions: Sequence[Prediction]) -> Float64:
    """Return the probabilities of some predictions [R, C]."""
    if not predictions:
        return np.zeros((0, 0))
    return np.stack([prediction.probabilities for prediction in predictions]).astype(np.float64)


def at_random(texts: Sequence[str], count: int, classifier: Classifier | None = None) -> list[Suggestion]:
    """Return texts drawn uniformly at random, whose labels show how good the answers to all texts are.

    The same texts are drawn each time, and smaller samples begin larger ones. A model specifies the columns.
    """
    order = np.random.default_rng(SEED).permutation(len(texts))[:count]
    return [Suggestion(row, _text_of(texts[row], classifier)) for row in order.tolist()]


def suggest(
    texts: Sequence[str], count: int, classifier: Classifier | None = None, known: Iterable[str] = ()
) -> list[Suggestion]:
    """Return the texts to label next, the most informative first.

    Args:
        texts: those without labels.
        count: how many to choose.
        classifier: a model of the labels so far; without one texts are random, and unlike each other.
        known: texts that have a label, whose near copies are left out.
    """
    pool = Pool.of(texts)
    predictions = None if classifier is None else pool.ask(classifier)
    chosen = pool.choose(count, known, predictions)
    if predictions is None:
        return [Suggestion(row, texts[row]) for row in chosen]
    several = bool(predictions) and predictions[0].several
    doubt_R = doubt(probabilities(predictions), several=several) if predictions else np.zeros(0)
    of_row = dict(zip(pool.rows, zip(predictions, doubt_R.tolist(), strict=True), strict=True))
    return [
        Suggestion(row, _text_of(texts[row], classifier), of_row[row][0].label, of_row[row][0].score, of_row[row][1])
        for row in chosen
    ]


def _text_of(row: str, classifier: Classifier | None) -> str:
    """Return the text of a row without the columns beside it."""
    return row if classifier is None else classifier.info.text_of(row)
