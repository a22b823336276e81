"""Words that are new, or more frequent than before by more than chance.

A word is counted once per text. Whether it occurs in more texts than before is tested by the likelihood ratio of
Dunning (1993), which is valid for rare words as well, with Bonferroni's correction for the number of words.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from textcls.evaluation.intervals import CHANCE
from textcls.model import tokenizer

# This many words are kept, and words that are merely unknown if they occur in at least that many texts.
MOST_WORDS: Final = 100
LEAST_TEXTS: Final = 2


class Word(NamedTuple):
    """A word of new texts.

    Attributes:
        word: in lower case.
        texts: how many of them contain it.
        share: the share of them that contain it.
        before: the share of earlier texts that contain it; None without earlier texts.
        known: whether the model knows it.
    """

    word: str
    texts: int
    share: float
    before: float | None
    known: bool

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return self._asdict()


class WordCounts:
    """Count in how many texts each word occurs."""

    def __init__(self) -> None:
        self.texts = 0
        self.of_word: Counter[str] = Counter()

    @classmethod
    def of(cls, texts: Iterable[str], most: int) -> "WordCounts":
        """Count the words of texts, among the first `most` tokens of each."""
        found = cls()
        for text in texts:
            found.add(set(tokenizer.tokenize(text)[:most]))
        return found

    def add(self, words: set[str]) -> None:
        """Count the words of one more text."""
        self.texts += 1
        self.of_word.update(words)


def changed_words(now: WordCounts, before: WordCounts | None, unknown: set[str]) -> tuple[Word, ...]:
    """Return the words that show a change, the strongest first.

    Args:
        now: counts of new texts.
        before: counts of texts of the training; without them unknown words are returned, the most frequent first.
        unknown: words that the model does not know.
    """
    if before is None:
        found = [(float(now.of_word[word]), word) for word in unknown if now.of_word[word] >= LEAST_TEXTS]
    else:
        found = list(_more_frequent(now, before))
    best = sorted(found, key=lambda pair: (-pair[0], pair[1]))[:MOST_WORDS]
    return tuple(_word(word, now, before, known=word not in unknown) for _, word in best)


def _more_frequent(now: WordCounts, before: WordCounts) -> Iterator[tuple[float, str]]:
    words = len(now.of_word)
    for word, texts in now.of_word.items():
        earlier = before.of_word[word]
        if texts * before.texts <= earlier * now.texts:
            continue
        ratio = likelihood_ratio(texts, now.texts, earlier, before.texts)
        # The tail of a chi-square with one degree of freedom, halved: words that have become rarer are not sought.
        if words * 0.5 * math.erfc(math.sqrt(ratio / 2)) < CHANCE:
            yield ratio, word


def likelihood_ratio(hits: int, rows: int, other_hits: int, other_rows: int) -> float:
    """Return twice the logarithm of how much likelier two shares are than a common one (Dunning 1993, section 5)."""
    common = (hits + other_hits) / max(1, rows + other_rows)
    found = sum(
        _log_likelihood(one, all_rows, one / max(1, all_rows)) - _log_likelihood(one, all_rows, common)
        for one, all_rows in ((hits, rows), (other_hits, other_rows))
    )
    return max(0.0, 2 * found)


def _log_likelihood(hits: int, rows: int, share: float) -> float:
    here = hits * math.log(share) if hits else 0.0
    return here + ((rows - hits) * math.log1p(-share) if rows > hits else 0.0)


def _word(word: str, now: WordCounts, before: WordCounts | None, *, known: bool) -> Word:
    texts = now.of_word[word]
    earlier = None if before is None else before.of_word[word] / max(1, before.texts)
    return Word(word, texts, texts / now.texts, earlier, known)
