"""Find other values of a category beside the text that change the answer: one column at a time, with the same text."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from textcls.explain.wanted_answer import WantedAnswer
from textcls.model.classifier import Classifier
from textcls.model.columns import columns_of_cells, pack
from textcls.model.explanation import Explanation
from textcls.model.prediction import Prediction

# The number of values tried, the most frequent in training first, per column and for all columns together.
VALUES_TRIED: Final = 20
MOST_TRIED: Final = 400


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """Another value of one column that changes the answer.

    Attributes:
        column: its name.
        value: its present value; empty if it is missing.
        by: the value that would change the answer; among several, the one that does so most surely.
        label: the answer then; the other attributes are those of `textcls.explain.counterfactual.Counterfactual`.
    """

    column: str
    value: str
    by: str
    label: str
    score: float
    before: str
    before_score: float
    several: bool

    def as_json(self) -> dict[str, Any]:
        """The change as plain data."""
        names = ("column", "value", "by", "label", "score", "before", "before_score")
        return {name: getattr(self, name) for name in names}


def column_changes(classifier: Classifier, explanation: Explanation, wanted: WantedAnswer) -> tuple[ColumnChange, ...]:
    """Return what changes the answer to a row: at most one value for each category beside its text.

    Args:
        classifier: the model.
        explanation: the explanation of the row.
        wanted: what is wanted instead of its answer.
    """
    tried = list(islice(_others(classifier, explanation), MOST_TRIED))
    cells = [one.cell for one in explanation.cells]
    rows = [pack([*cells[:place], value, *cells[place + 1 :]], explanation.text) for place, value in tried]
    surest: dict[int, tuple[float, str, Prediction]] = {}
    for (place, value), answer in zip(tried, classifier.predict(rows) if rows else [], strict=True):
        far, least = wanted.margin(answer), surest[place][0] if place in surest else 0.0
        if far < least:
            surest[place] = far, value, answer
    found = []
    for place, (_, value, answer) in surest.items():
        label, score, before_score = wanted.told(answer)
        cell = explanation.cells[place]
        found.append(
            ColumnChange(cell.name, cell.value, value, label, score, wanted.before.name, before_score, answer.several)
        )
    return tuple(found)


def _others(classifier: Classifier, explanation: Explanation) -> Iterator[tuple[int, str]]:
    """Yield the cells that contain categories, each with the values that it might contain."""
    columns = classifier.info.columns
    by_name = {column.name: column for column in columns if column.kind == "category"}
    for place, name in enumerate(columns_of_cells(columns)):
        if name in by_name:
            values = [value for value in by_name[name].values if value and value != explanation.cells[place].cell]
            yield from ((place, value) for value in values[:VALUES_TRIED])
