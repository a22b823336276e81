"""Texts without labels: a bounded sample that depends only on the texts and contains none twice."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple, Self

import numpy as np

from textcls.model.tokenizer import tokenize
from textcls_training.data.arrays import Float32
from textcls_training.data.split import hash_of


class UnlabelledText(NamedTuple):
    """A text without a label, and a given probability for each label, or nothing."""

    text: str
    probabilities: Sequence[float] | None = None


@dataclass(slots=True)
class AnswerCosts:
    """What the answers of a model have cost, if their file says so, as that of `textcls annotate` does.

    Attributes:
        answers: the number of answers.
        tokens: how many were read and written.
        seconds: the time of all answers, one after the other.
        dollars: 0 if no price is known.
    """

    answers: int = 0
    tokens: float = 0.0
    seconds: float = 0.0
    dollars: float = 0.0

    def add(self, fields: Mapping[str, object]) -> None:
        """Add what a row says about its answer."""
        tokens, seconds, dollars = (_number(fields.get(f"answered_{of}")) for of in ("tokens", "seconds", "dollars"))
        self.answers += tokens > 0
        self.tokens, self.seconds, self.dollars = self.tokens + tokens, self.seconds + seconds, self.dollars + dollars


def _number(cell: object) -> float:
    """Return the number in a cell, 0 if there is none."""
    try:
        found = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 0.0
    return found if 0 < found < math.inf else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlabelledTexts:
    """Texts without labels, without duplicates.

    Attributes:
        texts: the texts.
        probability_UC: the probabilities given for them [texts, labels], labels in the order of their names, or None.
        given: how many texts there were.
        copies: how many of them were left out because labelled rows contain the same tokens.
        of_labelled: the probabilities given for these copies, by the hash of the text.
        costs: what these answers cost.
    """

    texts: list[str]
    probability_UC: Float32 | None
    given: int
    copies: int
    of_labelled: Mapping[int, Sequence[float]] = field(default_factory=dict)
    costs: AnswerCosts = field(default_factory=AnswerCosts)

    @classmethod
    def sample(cls, rows: Iterable[UnlabelledText], limit: int, labelled: Iterable[str]) -> Self:
        """Keep at most `limit` of the texts: those with the smallest hashes, in the order of their hashes.

        So neither the order of the rows nor copies among them matter, and no more texts are in memory than are kept. If
        copies have different probabilities, their means count. Texts without a token, and copies of labelled ones, are
        left out; the probabilities of these copies are kept, so that their source can be judged.

        Args:
            rows: the texts, read once.
            limit: how many are kept at most.
            labelled: texts that must not be among them: training and validation rows.
        """
        known = {hash_of(text): text for text in labelled}
        kept: dict[int, str] = {}
        said, of_labelled = _Answers(), _Answers()
        largest: list[int] = []  # a heap of negative hashes
        given = copies = 0
        for row in rows:
            given += 1
            number = hash_of(row.text)
            if number in known:
                copies += 1
                # Among a million texts, a different one may have the hash of a labelled text, or of one that is kept.
                if row.probabilities is not None and tokenize(row.text) == tokenize(known[number]):
                    of_labelled.add(number, row.probabilities)
                continue
            if number not in kept:
                if not _speaks(row.text) or (len(kept) == limit and number >= -largest[0]):
                    continue
                if len(kept) == limit:
                    gone = -heappop(largest)
                    del kept[gone]
                    said.pop(gone, None)
                heappush(largest, -number)
                kept[number] = row.text
            if row.probabilities is not None and (number not in said or tokenize(row.text) == tokenize(kept[number])):
                said.add(number, row.probabilities)
        answered = [said.mean(number) for number in sorted(said)]
        return cls(
            texts=[kept[number] for number in sorted(kept)],
            probability_UC=np.array(answered, np.float32) if answered else None,
            given=given,
            copies=copies,
            of_labelled={number: of_labelled.mean(number) for number in of_labelled},
        )

    def sha256(self) -> str:
        """Return a hash of the texts, and of their probabilities, in order."""
        digest = hashlib.sha256()
        for text in self.texts:
            encoded = text.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
        if self.probability_UC is not None:
            digest.update(self.probability_UC.astype("<f4").tobytes())
        for number, values in sorted(self.of_labelled.items()):
            digest.update(number.to_bytes(8, "big") + np.array(values, "<f4").tobytes())
        return digest.hexdigest()


class _Answers(dict[int, tuple[Sequence[float], int]]):
    """Given probabilities by the hash of the text: summed over its copies, with the number of copies."""

    def add(self, number: int, probabilities: Sequence[float]) -> None:
        earlier, copies = self.get(number, ((0.0,) * len(probabilities), 0))
        self[number] = [one + other for one, other in zip(earlier, probabilities, strict=True)], copies + 1

    def mean(self, number: int) -> list[float]:
        total, copies = self[number]
        return [value / copies for value in total]


def _speaks(text: str) -> bool:
    return bool(tokenize(text))
