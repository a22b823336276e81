"""Survey the clusters that a model puts texts into: how many texts, which words, which examples.

However many texts there are, what is kept of them is bounded, except for the number of each one's cluster and label.
"""

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from textcls.errors import ConfigError
from textcls.explain.clusters import agreement
from textcls.explain.clusters.agreement import Agreement
from textcls.explain.global_explanation.explainer import CHUNK, GlobalExplainer
from textcls.explain.global_explanation.summary import TermAttribution
from textcls.model.classifier import Classifier
from textcls.model.prediction import Prediction

# The number of examples of each cluster.
EXAMPLES: Final = 5
WORDS: Final = 10
# The number of candidates that they are chosen from.
CANDIDATES: Final = 200
EXAMPLE_CHARACTERS: Final = 300


class AnsweredText(NamedTuple):
    """A text with its label, None if that is not known, and the model's explained answer."""

    text: str
    label: str | None
    prediction: Prediction


class Example(NamedTuple):
    """A text, cut if it is long, and the probability of its cluster."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster.

    Attributes:
        name: the label of the model.
        texts: the number of texts in it.
        share: the share of all texts.
        score: the mean probability of the cluster in its texts.
        words: the words that speak for it over all texts, the most informative first: frequent words that say a little
            each time come after rarer ones that say much.
        pairs: likewise, two neighbouring words.
        examples: the surest of its texts.
        matched: the label that agrees with it most, if texts have labels.
    """

    name: str
    texts: int
    share: float
    score: float
    words: tuple[TermAttribution, ...]
    pairs: tuple[TermAttribution, ...]
    examples: tuple[Example, ...]
    matched: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterSurvey:
    """The survey of the clusters.

    Attributes:
        texts: how many.
        clusters: the largest first; the empty ones as well.
        agreement: the agreement with the labels of the texts; None if none has a label.
    """

    texts: int
    clusters: tuple[Cluster, ...]
    agreement: Agreement | None

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        found = asdict(self)
        for cluster, plain in zip(self.clusters, found["clusters"], strict=True):
            plain["examples"] = [example._asdict() for example in cluster.examples]
        return found


def answered(classifier: Classifier, rows: Iterable[tuple[str, str | None]]) -> Iterator[AnsweredText]:
    """Yield texts and their labels with the model's answers, explained.

    Raises:
        ConfigError: the model may give several labels per text.
    """
    if classifier.info.several:
        raise ConfigError("The model may give a text several labels, so its labels are not clusters.")
    remaining = iter(rows)
    while chunk := list(islice(remaining, CHUNK)):
        predictions = classifier.predict([text for text, _ in chunk], explain=True)
        for (text, label), prediction in zip(chunk, predictions, strict=True):
            yield AnsweredText(text, label, prediction)


def survey_clusters(
    classifier: Classifier, answers: Iterable[AnsweredText], *, examples: int = EXAMPLES
) -> ClusterSurvey:
    """Return the survey of the clusters of texts.

    Args:
        classifier: the model, whose labels are the clusters.
        answers: the texts, as `answered` gives them; read once.
        examples: number of examples of each cluster.

    Raises:
        MissingExtraError: texts have labels, and scikit-learn is not installed.
    """
    found = _Collector(classifier.labels, examples)
    for answer in answers:
        found.add(answer)
    return found.survey()


class _Collector:
    """Collect answers one at a time."""

    def __init__(self, labels: tuple[str, ...], examples: int) -> None:
        self._labels, self._most_examples = labels, examples
        self._explainer = GlobalExplainer(labels)
        self._clusters: list[int] = []
        self._carried: list[str | None] = []
        self._scores = np.zeros(len(labels))
        # Heaps, from which the least sure example is removed first, and among equally sure ones the last.
        self._examples: list[list[tuple[float, int, str]]] = [[] for _ in labels]

    def add(self, answer: AnsweredText) -> None:
        """Add a text."""
        explanation = answer.prediction.explanation
        if explanation is None:
            raise TypeError("answers must be explained")
        number, cluster = len(self._clusters), int(answer.prediction.probabilities.argmax())
        self._explainer.add(explanation, answer.label)
        self._clusters.append(cluster)
        self._carried.append(answer.label)
        self._scores[cluster] += answer.prediction.score
        kept = (answer.prediction.score, -number, explanation.text[:EXAMPLE_CHARACTERS])
        heap = self._examples[cluster]
        (heapq.heappush if len(heap) < self._most_examples else heapq.heappushpop)(heap, kept)

    def survey(self) -> ClusterSurvey:
        """Return the survey."""
        agreed, texts = self._agreement(), len(self._clusters)
        sizes = np.bincount(np.array(self._clusters, np.int64), minlength=len(self._labels)).tolist()
        explained = self._explainer.summary(CANDIDATES).labels
        found = [
            Cluster(
                name=name,
                texts=size,
                share=size / max(1, texts),
                score=float(self._scores[i]) / max(1, size),
                words=_telling(explained[i].words_for, texts),
                pairs=_telling(explained[i].pairs_for, texts),
                examples=tuple(Example(text, score) for score, _, text in sorted(self._examples[i], reverse=True)),
                matched=agreed.matched.get(name) if agreed is not None else None,
            )
            for i, (name, size) in enumerate(zip(self._labels, sizes, strict=True))
        ]
        order = sorted(range(len(found)), key=lambda i: -found[i].texts)
        return ClusterSurvey(texts, tuple(found[i] for i in order), agreed)

    def _agreement(self) -> Agreement | None:
        rows = [(self._labels[c], label) for c, label in zip(self._clusters, self._carried, strict=True) if label]
        return agreement.agreement(*map(list, zip(*rows, strict=True))) if rows else None


def _telling(terms: Sequence[TermAttribution], texts: int) -> tuple[TermAttribution, ...]:
    """Return the terms with the most evidence, each weighted by a factor similar to its idf."""
    found = sorted(terms, key=lambda term: -term.evidence * math.log1p(texts / term.count))
    return tuple(found[:WORDS])
