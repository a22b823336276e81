"""Texts without labels: of however many, a bounded sample that depends on the texts alone, and holds none twice."""

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
    """A text without a label, and what somebody says of it: a probability for each label, or nothing."""

    text: str
    probabilities: Sequence[float] | None = None


@dataclass(slots=True)
class AnswerCosts:
    """What answers of a model have taken, where their file says so, as that of `textcls annotate` does.

    Attributes:
        answers: how many there are.
        tokens: that were read and written.
        seconds: one after the other.
        dollars: 0 where no price is known.
    """

    answers: int = 0
    tokens: float = 0.0
    seconds: float = 0.0
    dollars: float = 0.0

    def add(self, fields: Mapping[str, object]) -> None:
        """Add what a row says of its answer."""
        tokens, seconds, dollars = (_number(fields.get(f"answered_{of}")) for of in ("tokens", "seconds", "dollars"))
        self.answers += tokens > 0
        self.tokens, self.seconds, self.dollars = self.tokens + tokens, self.seconds + seconds, self.dollars + dollars


def _number(cell: object) -> float:
    """Return the number in a cell, 0 where there is none."""
    try:
        found = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 0.0
    return found if 0 < found < math.inf else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlabelledTexts:
    """Texts without labels, each once.

    Attributes:
        texts: the texts.
        probability_UC: what somebody says of them [texts, labels], labels in the order of their names, or None.
        given: how many texts there were.
        copies: how many of them were left out because labelled rows hold the same tokens.
        of_labelled: what somebody says of these: probabilities by the hash of the text.
        costs: what that took.
    """

    texts: list[str]
    probability_UC: Float32 | None
    given: int
    copies: int
    of_labelled: Mapping[int, Sequence[float]] = field(default_factory=dict)
    costs: AnswerCosts = field(default_factory=AnswerCosts)

    @classmethod
    def sample(cls, rows: Iterable[UnlabelledText], limit: int, labelled: Iterable[str]) -> Self:
        """Keep at most `limit` of the texts: those of the smallest hashes, in the order of these.

        So neither the order of the rows nor copies among them count, and of a million texts no more are in memory than
        are kept. Of copies with other probabilities the means of these count. Texts without a token, and copies of
        labelled ones, are left out; of these copies the probabilities are kept, by which whoever gave them can be
        judged.

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
                # Among a million texts some other one has the hash of a labelled text, or of one that is kept.
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
        """Return a hash of the texts, and of what is said of them, in their order."""
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
    """What is said of texts, by their hashes: probabilities summed over the copies of each, and how many they are."""

    def add(self, number: int, probabilities: Sequence[float]) -> None:
        earlier, copies = self.get(number, ((0.0,) * len(probabilities), 0))
        self[number] = [one + other for one, other in zip(earlier, probabilities, strict=True)], copies + 1

    def mean(self, number: int) -> list[float]:
        total, copies = self[number]
        return [value / copies for value in total]


def _speaks(text: str) -> bool:
    return bool(tokenize(text))
