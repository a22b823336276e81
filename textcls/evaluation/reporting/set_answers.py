"""What is kept of each row while a model that may give several labels answers and explains it.

Shapes: P parts of a row, its tokens and the cells beside its text; C labels.
"""

import numpy as np
from numpy.typing import NDArray

from textcls.evaluation.reporting.slices import ReadText
from textcls.explain.global_explanation.explainer import named_parts
from textcls.model.explanation import Explanation, added_by_parts

Int32 = NDArray[np.int32]
# The word number that stands for no word.
NO_WORD = -1


class SetAnswers:
    """For each label and row, the numbers of the words, or cells beside the text, that speak most for and against it.

    Any of the labels may turn out to be missed or superfluous, so the words of all are kept, at eight bytes per label.

    Args:
        labels: the labels of the model.

    Attributes:
        words: as `named_parts` returns them, by number.
    """

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.words: list[str] = []
        self._number: dict[str, int] = {}
        self._none_C = np.full(len(labels), NO_WORD, np.int32)
        self._for: list[Int32] = []
        self._against: list[Int32] = []

    def add(self, explanation: Explanation) -> ReadText:
        """Keep what is needed of the explanation of the next row."""
        shown = explanation.readable()
        values_PC = added_by_parts(shown)
        if len(values_PC):
            number_P = np.array([self._number_of(name) for name in named_parts(shown)[0]], np.int32)
            for_C, against_C = number_P[values_PC.argmax(0)], number_P[values_PC.argmin(0)]
            self._for.append(np.where(values_PC.max(0) > 0, for_C, NO_WORD))
            self._against.append(np.where(values_PC.min(0) < 0, against_C, NO_WORD))
        else:
            self._for.append(self._none_C)
            self._against.append(self._none_C)
        return ReadText.of(explanation)

    def strongest_for(self) -> Int32:
        """Return the number of the word that speaks most for each label in each row [rows, labels]."""
        return np.array(self._for)

    def strongest_against(self) -> Int32:
        """Return the number of the word that speaks most against each label in each row [rows, labels]."""
        return np.array(self._against)

    def _number_of(self, word: str) -> int:
        if (found := self._number.get(word)) is not None:
            return found
        self.words.append(word)
        return self._number.setdefault(word, len(self._number))
