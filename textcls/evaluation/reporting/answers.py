"""What is kept of each row while a model answers and explains it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from textcls.evaluation.reporting.slices import ReadText
from textcls.explain.global_explanation.explainer import explain_globally, named_parts
from textcls.explain.global_explanation.summary import GlobalExplanation
from textcls.model.classifier import Classifier
from textcls.model.excerpts import Excerpt, excerpt
from textcls.model.explanation import Explanation

# The place of what is beside the text.
NOWHERE: Final = (0, 0)
# The number of words reported for a wrong answer.
REASONS: Final = 3
# The number of words for and against each label.
WORDS: Final = 8

Right = TypeVar("Right", str, frozenset[str])
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class AnsweredRows(Generic[Right, Kept]):
    """Rows and the answers to them.

    Attributes:
        texts: the texts of the rows.
        right: the label of each row, or its labels.
        answers: what is kept of the answer to each.
        probabilities: the probabilities of each row [rows, labels].
        evidence: what the model relied on over all of them.
    """

    texts: list[str]
    right: list[Right]
    answers: list[Kept]
    probabilities: NDArray[np.float32]
    evidence: GlobalExplanation


def answered(
    classifier: Classifier, rows: Iterable[tuple[str, Right]], keep: Callable[[Explanation, Right], Kept]
) -> AnsweredRows[Right, Kept]:
    """Answer and explain each row once; `keep` returns what is kept of the explanation of a row."""
    texts, right, answers = list[str](), list[Right](), list[Kept]()
    probabilities = [np.zeros((0, len(classifier.labels)), np.float32)]

    def read() -> Iterator[tuple[str, Right]]:
        for text, labels in rows:
            texts.append(text)
            right.append(labels)
            yield text, labels

    def one(explanation: Explanation) -> None:
        answers.append(keep(explanation, right[len(answers)]))
        probabilities.append(explanation.probability_values[None])

    evidence = explain_globally(classifier, read(), top=WORDS, each=one)
    return AnsweredRows(texts, right, answers, np.concatenate(probabilities), evidence)


class RowSummary(NamedTuple):
    """What is kept of a row.

    Attributes:
        label: the answer.
        confidence: its probability.
        read: the properties of its text.
        words: those that speak most for the answer, over the row's label, or over the next most probable one if the
            answer is right: words in lower case, and columns, `product = lamp`.
        place: start and end of the first that occurs in the text; both 0 if none does.
        example: the text around it; None without one.
    """

    label: str
    confidence: float
    read: ReadText
    words: tuple[str, ...]
    place: tuple[int, int]
    example: Excerpt | None

    @classmethod
    def of(cls, explanation: Explanation, right: str) -> "RowSummary":
        """Keep what is needed of the explanation of a row with the label `right`."""
        answered = explanation.label
        # The same measure applies to wrong and right answers: what decides between two labels.
        rival = right if right in explanation.labels and right != answered else _second(explanation)
        places = _reasons(explanation.readable(), rival)
        place = next((place for place in places.values() if place != NOWHERE), NOWHERE)
        return cls(
            label=answered,
            confidence=float(explanation.probability_values.max()),
            read=ReadText.of(explanation),
            words=tuple(places),
            place=place,
            example=excerpt(explanation.text, *place) if places else None,
        )


def _second(explanation: Explanation) -> str:
    """Return the most probable label other than the answer."""
    first, second = np.argsort(-explanation.probability_values, kind="stable")[:2].tolist()
    return str(explanation.labels[second if explanation.labels[first] == explanation.label else first])


def _reasons(explanation: Explanation, against: str) -> dict[str, tuple[int, int]]:
    """Return the words, and columns, that speak most for the answer over another label, and the place of each."""
    attribution = explanation.attribution(explanation.label, against)
    values = np.append(attribution.values, [added for _, _, added in attribution.cells])
    names, places = named_parts(explanation)
    order: NDArray[np.int64] = (-values).argsort(kind="stable")
    spans: dict[str, tuple[int, int]] = {}
    for t in order.tolist():
        if values[t] <= 0 or len(spans) == REASONS:
            break
        spans.setdefault(names[t], places[t])
    return spans
