"""Count which words alone decide answers: those without whose contributions another label would be answered."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Decisions:
    """Counts by answer and word, in bounded memory.

    Attributes:
        holding: how many answers' texts contain the word.
        decided: how many it decides.
        wrong: how many of those are wrong.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.holding: Counter[tuple[int, str]] = Counter()
        self.decided: Counter[tuple[int, str]] = Counter()
        self.wrong: Counter[tuple[int, str]] = Counter()

    def add(
        self,
        words: Sequence[str],
        added: NDArray[np.float64],
        logits: NDArray[np.float32],
        answer: int,
        *,
        wrong: bool,
        cut: float | None = None,
    ) -> None:
        """Subtract each word's contributions, over the whole text, and count whether the answer changes.

        Args:
            words: the words of the text, in lower case.
            added: what each contributed [words, labels].
            logits: those of the text [labels].
            answer: the number of the label answered.
            wrong: whether the text has another label.
            cut: if a text may have several labels, the logit from which on the label is assigned; None if the largest
                logit is the answer.
        """
        distinct = {word: i for i, word in enumerate(dict.fromkeys(words))}
        parts = np.zeros((len(distinct), len(logits)))
        np.add.at(parts, [distinct[word] for word in words], added)
        without = logits.astype(np.float64) - parts
        decides = without.argmax(1) != answer if cut is None else without[:, answer] < cut
        keys = [(answer, word) for word in distinct]
        decided = [key for key, decided in zip(keys, decides.tolist(), strict=True) if decided]
        self.holding.update(keys)
        self.decided.update(decided)
        if wrong:
            self.wrong.update(decided)
        if len(self.holding) > 2 * self.most:
            self._forget()

    def _forget(self) -> None:
        """Keep words that occur in many answers, as shortcuts do; from here on, counts are lower bounds."""
        self.holding = Counter(dict(self.holding.most_common(self.most)))
        for counter in (self.decided, self.wrong):
            for key in [key for key in counter if key not in self.holding]:
                del counter[key]
