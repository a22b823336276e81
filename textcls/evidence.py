"""What a model goes by, over many texts: the words and pairs of words for and against each label, and shortcuts.

Texts are read one at a time and forgotten; what is kept is a row of sums for each word and each pair of neighbours,
`CELLS` numbers at the most. Words are compared in lower case.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls import tokenizer
from textcls.explanation import Explanation, directions, label_number

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

# A shortcut decides more than this share of the answers of its label, and at least this many of them.
SHORTCUT_SHARE: Final = 0.10
SHORTCUT_ANSWERS: Final = 5
# A pair that stands once in all texts is an accident.
PAIR_COUNT: Final = 2
KEYS: Final = 200_000
CELLS: Final = 4_000_000
# Characters of an example on either side of the word.
AROUND: Final = 32
# Examples kept of each key, those in which it said most: among them one in which it said what it says as a rule.
EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Example:
    """Where a word or pair stood in a text in which it said much: `text[start:end]` is what is meant."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Finding:
    """What a word, or two neighbouring words together, said for a label.

    Attributes:
        text: the word or the pair, in lower case.
        evidence: the sum of its evidence for the label over all texts; negative speaks against it.
        mean: the mean of a single occurrence.
        count: occurrences.
        example: where it said much of that kind.
    """

    text: str
    evidence: float
    mean: float
    count: int
    example: Example


@dataclass(frozen=True, slots=True)
class Shortcut:
    """A word that alone decides a large share of a label's answers.

    It decides an answer if the label would no longer be the most probable without all that the word contributed.

    Attributes:
        label: the label answered.
        text: the word, in lower case.
        share: `decided / answers`.
        decided: texts answered with the label that the word decides.
        holding: texts answered with the label that hold the word.
        answers: texts answered with the label.
        wrong: how many of the decided carry another label; None if the texts carry none.
        example: where it said much for the label.
    """

    label: str
    text: str
    share: float
    decided: int
    holding: int
    answers: int
    wrong: int | None
    example: Example


@dataclass(frozen=True, slots=True)
class LabelEvidence:
    """What speaks for and against a label, strongest first, over all texts and not only over those answered with it."""

    label: str
    answers: int
    words_for: tuple[Finding, ...]
    words_against: tuple[Finding, ...]
    pairs_for: tuple[Finding, ...]
    pairs_against: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class EvidenceReport:
    """What a model went by over many texts.

    Attributes:
        texts: how many.
        tokens: how many in all texts.
        labelled: texts that carry a label.
        right: of those, how many were answered with it.
        dropped: words and pairs that were forgotten because there were too many, the rarest first; one that came back
            counts from there. Which words an answer holds, and which decide it, is forgotten by a bound of its own and
            not counted here; from then on `holding`, `decided` and `wrong` of a shortcut are lower bounds.
        shortcuts: the words that alone decide a large share of a label's answers, the worst first.
        labels: what speaks for and against each label, or each of those asked for.
        shortcut_share: a word that decides more than this share of a label's answers is called a shortcut.
        mirrored: whether these are the model's only two, so that what speaks for one speaks against the other.
    """

    texts: int
    tokens: int
    labelled: int
    right: int
    dropped: int
    shortcuts: tuple[Shortcut, ...]
    labels: tuple[LabelEvidence, ...]
    shortcut_share: float
    mirrored: bool

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return asdict(self)


class _Sums:
    """Sums of evidence by key; bounded, by forgetting the rarest."""

    def __init__(self, labels: int, keys: int) -> None:
        self.most = max(2, min(keys, CELLS // labels))
        self.number: dict[str, int] = {}
        self.evidence = np.zeros((64, labels))
        self.count = np.zeros(64, np.int64)
        # What an occurrence has to say to be kept as an example.
        self.bar = np.full(64, -1.0)
        self.examples: list[list[tuple[float, NDArray[np.float32], Example]]] = []
        self.dropped = 0

    def add(self, keys: Sequence[str], added: Float64, text: str, spans: Sequence[tuple[int, int]]) -> None:
        """Add the evidence [keys, labels] of one text's keys, which stand at `spans`."""
        if not keys:
            return
        number = self.number
        numbers = np.array([number.setdefault(key, len(number)) for key in keys])
        self._grow(len(number))
        np.add.at(self.evidence, numbers, added)
        np.add.at(self.count, numbers, 1)
        strength = np.abs(added).max(1)
        for i in np.flatnonzero(strength > self.bar[numbers]).tolist():
            self._keep(int(numbers[i]), float(strength[i]), added[i], text, spans[i])
        if len(number) > self.most:
            self._forget()

    def ranked(self, label: int, sign: int, top: int, least: int) -> tuple[Finding, ...]:
        """The `top` keys that occur `least` times and whose evidence has this sign, strongest first."""
        size = len(self.number)
        evidence = sign * self.evidence[:size, label]
        able = np.flatnonzero((self.count[:size] >= least) & (evidence > 0))
        # Ties in the order of appearance; the sort of the few that matter only.
        if len(able) > top:
            bound = -np.partition(-evidence[able], top - 1)[top - 1] if top else np.inf
            able = able[evidence[able] >= bound]
        order = able[np.argsort(-evidence[able], kind="stable")][:top].tolist()
        texts = dict.fromkeys(order, "")
        texts.update({i: key for key, i in self.number.items() if i in texts})
        return tuple(
            Finding(
                texts[i],
                float(self.evidence[i, label]),
                float(self.evidence[i, label] / self.count[i]),
                int(self.count[i]),
                self.example(i, label, sign),
            )
            for i in order
        )

    def example(self, number: int, label: int, sign: int) -> Example:
        """Of the examples kept, the one in which the key said most for the label (`sign` 1) or against it (-1)."""
        return max(self.examples[number], key=lambda kept: sign * float(kept[1][label]))[2]

    def _keep(self, number: int, strength: float, added: Float64, text: str, span: tuple[int, int]) -> None:
        kept = self.examples[number]
        if len(kept) == EXAMPLES and strength <= kept[-1][0]:
            return
        kept.append((strength, added.astype(np.float32), _excerpt(text, *span)))
        kept.sort(key=lambda example: -example[0])
        del kept[EXAMPLES:]
        if len(kept) == EXAMPLES:
            self.bar[number] = kept[-1][0]

    def _grow(self, size: int) -> None:
        self.examples += [[] for _ in range(size - len(self.examples))]
        if size > len(self.count):
            more = max(size, 2 * len(self.count)) - len(self.count)
            self.evidence = np.concatenate([self.evidence, np.zeros((more, self.evidence.shape[1]))])
            self.count = np.concatenate([self.count, np.zeros(more, np.int64)])
            self.bar = np.concatenate([self.bar, np.full(more, -1.0)])

    def _forget(self) -> None:
        """Keep the more frequent half; of those equally frequent, the earlier."""
        size = len(self.number)
        kept = np.sort(np.argsort(-self.count[:size], kind="stable")[: self.most // 2])
        keys = list(self.number)
        self.number = {keys[i]: new for new, i in enumerate(kept.tolist())}
        self.examples = [self.examples[i] for i in kept.tolist()]
        self.evidence, self.count, self.bar = self.evidence[kept], self.count[kept], self.bar[kept]
        self.dropped += size - len(kept)


class EvidenceCounter:
    """Adds up what explanations say, one at a time.

    Args:
        labels: the model's labels, in its order.
        keys: words, and pairs, that are kept at the most; less if there are many labels (`CELLS`).
    """

    def __init__(self, labels: Sequence[str], keys: int = KEYS) -> None:
        self.labels = tuple(labels)
        self._words, self._pairs = _Sums(len(labels), keys), _Sums(len(labels), keys)
        self._answers = np.zeros(len(labels), np.int64)
        self._most = keys
        # By answer and word: how many answers hold it, how many it decides, and how many of those are wrong.
        self._holding: Counter[tuple[int, str]] = Counter()
        self._decided: Counter[tuple[int, str]] = Counter()
        self._wrong: Counter[tuple[int, str]] = Counter()
        self._texts = self._tokens = self._labelled = self._right = 0

    def add(self, explanation: Explanation, right: str | None = None) -> None:
        """Add one text; `right` is the label it carries, None if it carries none."""
        answer = int(explanation.probability_values.argmax())
        self._texts += 1
        self._tokens += len(explanation.spans)
        self._answers[answer] += 1
        self._labelled += right is not None
        self._right += right == explanation.label
        spans = explanation.spans
        if not spans:
            return
        text = tokenizer.lower(tokenizer.clean(explanation.text))
        words = [text[start:end] for start, end in spans]
        added = explanation.contributions.astype(np.float64)
        evidence = added @ directions(explanation.probability_values, range(len(self.labels)))
        self._words.add(words, evidence, explanation.text, spans)
        # Tokens hold no white space, so a pair has one spelling.
        pairs = [f"{a} {b}" for a, b in pairwise(words)]
        places = [(a, b) for (a, _), (_, b) in pairwise(spans)]
        self._pairs.add(pairs, evidence[:-1] + evidence[1:], explanation.text, places)
        self._decide(words, added, explanation.logit_values, answer, right)

    def report(self, top: int = 10, share: float = SHORTCUT_SHARE, only: Sequence[str] | None = None) -> EvidenceReport:
        """Return what was found.

        Args:
            top: words, and pairs, for and against each label.
            share: a word that decides more than this share of a label's answers is called a shortcut.
            only: the labels to tell of, in this order; all by default.

        Raises:
            ConfigError: there is no such label.
        """
        names = self.labels if only is None else tuple(dict.fromkeys(only))
        told = [label_number(self.labels, name) for name in names]
        labels = tuple(
            LabelEvidence(
                self.labels[i],
                int(self._answers[i]),
                self._words.ranked(i, 1, top, 1),
                self._words.ranked(i, -1, top, 1),
                self._pairs.ranked(i, 1, top, PAIR_COUNT),
                self._pairs.ranked(i, -1, top, PAIR_COUNT),
            )
            for i in told
        )
        return EvidenceReport(
            texts=self._texts,
            tokens=self._tokens,
            labelled=self._labelled,
            right=self._right,
            dropped=self._words.dropped + self._pairs.dropped,
            shortcuts=self._shortcuts(share, told),
            labels=labels,
            shortcut_share=share,
            mirrored=len(told) == len(self.labels) == 2,
        )

    def _decide(
        self, words: Sequence[str], added: Float64, logits: NDArray[np.float32], answer: int, right: str | None
    ) -> None:
        """Take each word's contributions away, wherever it stands in the text, and see whether the answer changes."""
        distinct = {word: i for i, word in enumerate(dict.fromkeys(words))}
        parts = np.zeros((len(distinct), len(self.labels)))
        np.add.at(parts, [distinct[word] for word in words], added)
        decides = (logits.astype(np.float64) - parts).argmax(1) != answer
        keys = [(answer, word) for word in distinct]
        decided = [key for key, decided in zip(keys, decides.tolist(), strict=True) if decided]
        self._holding.update(keys)
        self._decided.update(decided)
        if right is not None and right != self.labels[answer]:
            self._wrong.update(decided)
        if len(self._holding) > 2 * self._most:
            # What stands in many answers stays; a shortcut does.
            self._holding = Counter(dict(self._holding.most_common(self._most)))
            for counter in (self._decided, self._wrong):
                for key in [key for key in counter if key not in self._holding]:
                    del counter[key]

    def _shortcuts(self, share: float, told: Sequence[int]) -> tuple[Shortcut, ...]:
        found = [
            Shortcut(
                label=self.labels[label],
                text=word,
                share=decided / int(self._answers[label]),
                decided=decided,
                holding=self._holding[label, word],
                answers=int(self._answers[label]),
                wrong=self._wrong[label, word] if self._labelled else None,
                example=self._words.example(self._words.number[word], label, 1),
            )
            for (label, word), decided in self._decided.items()
            if label in told
            and decided >= SHORTCUT_ANSWERS
            and decided > share * int(self._answers[label])
            and word in self._words.number
        ]
        return tuple(sorted(found, key=lambda s: (-s.share, s.label, s.text)))


def _excerpt(text: str, start: int, end: int) -> Example:
    """What stands around `text[start:end]`, cut at spaces where there are some."""
    first, last = max(0, start - AROUND), min(len(text), end + AROUND)
    first = text.find(" ", first, start) + 1 or first if first else 0
    last = max(text.rfind(" ", end, last), end) if last < len(text) and " " in text[end:last] else last
    return Example(text[first:last], start - first, end - first)


def marked(example: Example) -> tuple[str, str, str]:
    """Return what stands before, what is meant, and what stands behind."""
    return example.text[: example.start], example.text[example.start : example.end], example.text[example.end :]
