"""Estimates of the cost of answers in advance: processor time and memory, by tokens, labels and the kind of model.

The estimates are conservative: a text counts as `tokenizer.most_tokens` tokens. The numbers were measured on models
with 2, 7, 120 and 1,000 labels, with 14 mixing layers, and texts of 10 to 4,000 tokens, explained and not (peaks of
`VmHWM`, and thread time on a busy core, twice that of an idle one).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from textcls.model import tokenizer
from textcls.model.artifact import ModelInfo

# Most texts of one model call, and roughly how much memory it may take; a single text may take more.
CALL_TEXTS: Final = 64
CALL_BYTES: Final = 32_000_000

# A call copies the values it looked up about seven times; in addition, per token, label, character and pair of tokens:
_COPIED_BYTES, _TOKEN_BYTES, _LABEL_BYTES, _CHARACTER_BYTES, _PAIR_BYTES = 170, 1_000, 12, 40, 16
# Python objects per token and per number in it while an explanation is written; and per label of any answer.
_OBJECT_BYTES, _NUMBER_BYTES, _SCORE_BYTES = 800, 112, 300
# Bytes of JSON, besides the text and the names of the labels.
_TOKEN_JSON, _NUMBER_JSON, _SCORE_JSON = 100, 26, 48
_HEADS: Final = 4
# Three views, each together with machines.
_MOST_GROUPS: Final = 6
# For prototypes: most views, entries of the spelling; then costs per number a text is compared with, and per token.
_VIEWS, _SPELLING = 3, 256
_COMPARED_BYTES, _COMPARED_US, _PROTOTYPE_TOKEN_US = 16, 0.003, 6.0


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a model's answers.

    Attributes:
        labels: how many it knows.
        name_bytes: mean length of their names as JSON.
        max_tokens: the number of tokens of a text that are read.
        token_bytes: memory of a call per token, including padding.
        pair_bytes: likewise per pair of tokens of a text; 0 if tokens do not see each other.
        token_us: processor time of a call per token, in microseconds.
        text_bytes: memory of a call per text, in addition to its tokens.
        text_us: processor time per text, likewise.
    """

    labels: int
    name_bytes: int
    max_tokens: int
    token_bytes: int
    pair_bytes: int
    token_us: float
    text_bytes: int = 0
    text_us: float = 0.0

    @classmethod
    def of(cls, info: ModelInfo, *, folded: bool) -> "Cost":
        """Return the cost of a model's answers.

        Args:
            info: the model.
            folded: whether its rows are values of labels rather than vectors.
        """
        labels, mixing = len(info.labels), str(info.model.get("mixing", "none"))
        dim, seeds = _number(info, "dim", 64), _number(info, "seeds", 1)
        width: float = (labels + 2) * _groups(info) / 2 if folded else dim + 1
        compared = 0
        if info.prototypes is not None:
            # Tokens have vectors of three views; a text has these and the spelling, and a prototype per label.
            width = _VIEWS * dim
            compared = labels * (max(info.prototypes.counts) + _VIEWS * dim + _SPELLING)
        mixes = mixing != "none"
        return cls(
            labels=labels,
            name_bytes=sum(len(label.encode("utf-8", "replace")) for label in info.labels) // labels + 1,
            max_tokens=info.max_tokens,
            token_bytes=_TOKEN_BYTES + round(_COPIED_BYTES * width) + _LABEL_BYTES * labels * seeds,
            pair_bytes=_PAIR_BYTES * (_HEADS if mixing.endswith(":heads") else 1) if mixes else 0,
            token_us=1.5 + 0.02 * labels + (0.15 * dim if mixes else 0.0) + (_PROTOTYPE_TOKEN_US if compared else 0.0),
            text_bytes=_COMPARED_BYTES * compared,
            text_us=_COMPARED_US * compared,
        )

    def tokens(self, text: str) -> int:
        """Return an upper bound on the number of tokens of `text` that are read."""
        return min(tokenizer.most_tokens(text), self.max_tokens)

    def microseconds(self, texts: Sequence[str], explained_labels: int) -> float:
        """Return an estimate of how long an answer takes, in microseconds.

        Args:
            texts: the texts of the request.
            explained_labels: the number of labels in an explanation; 0 without one.
        """
        token_us = self.token_us + (2.5 + 0.15 * explained_labels if explained_labels else 0.0)
        # Many texts are counted at once, too.
        tokens = tokenizer.most_tokens(texts[0] if len(texts) == 1 else "\n".join(texts))
        return (20.0 + 0.5 * self.labels + self.text_us) * len(texts) + token_us * min(
            tokens, self.max_tokens * len(texts)
        )

    def call_bytes(self, texts: int, characters: int) -> int:
        """Return an estimate of the memory that a model call takes, in bytes.

        Args:
            texts: the number of texts.
            characters: length of the longest, to which all are padded.
        """
        tokens = min(characters, self.max_tokens)
        return texts * (
            self.text_bytes + tokens * (self.token_bytes + self.pair_bytes * tokens) + _CHARACTER_BYTES * characters
        )

    def divide(self, lengths: Sequence[int], order: Iterable[int]) -> Iterator[list[int]]:
        """Yield the numbers of texts, in batches that fit into one model call.

        Args:
            lengths: the length of each text, in characters.
            order: the numbers of the texts, in the order to use.
        """
        if 0 < len(lengths) <= CALL_TEXTS and self.call_bytes(len(lengths), max(lengths, default=0)) <= CALL_BYTES:
            yield list(order)
            return
        some: list[int] = []
        longest = 0
        for i in order:
            longest = max(longest, lengths[i])
            if some and (len(some) == CALL_TEXTS or self.call_bytes(len(some) + 1, longest) > CALL_BYTES):
                yield some
                some, longest = [], lengths[i]
            some.append(i)
        if some:
            yield some

    def answer_bytes(self, texts: Sequence[str], explained_labels: int) -> int:
        """Return an estimate of the size of an answer as JSON, in bytes."""
        found = len(texts) * (200 + self.labels * (_SCORE_JSON + self.name_bytes))
        if explained_labels:
            tokens = sum(map(self.tokens, texts))
            found += sum(map(len, texts)) + tokens * (_TOKEN_JSON + explained_labels * (_NUMBER_JSON + self.name_bytes))
        return found

    def working_bytes(self, texts: Sequence[str], explained_labels: int) -> int:
        """Return an estimate of the memory for making an answer, including the answer and its parts, in bytes."""
        longest = max(map(len, texts))
        arrays = min(self.call_bytes(len(texts), longest), max(CALL_BYTES, self.call_bytes(1, longest)))
        objects = len(texts) * self.labels * _SCORE_BYTES
        if explained_labels:
            most = max(map(self.tokens, texts))
            objects += most * (_OBJECT_BYTES + explained_labels * _NUMBER_BYTES)
        # Few arrays of a call are left when the answer is written.
        return max(arrays, arrays // 8 + objects + 3 * self.answer_bytes(texts, explained_labels))


def _groups(info: ModelInfo) -> int:
    """Return how many seeds the views have together: 2 for the usual two views, more if a view also has machines."""
    seeds = info.training.get("seeds")
    if isinstance(seeds, list) and all(isinstance(number, int) for number in seeds):
        return min(max(2, sum(seeds)), _MOST_GROUPS)
    return 2


def _number(info: ModelInfo, name: str, default: int) -> int:
    found = info.model.get(name)
    return found if isinstance(found, int) else default
