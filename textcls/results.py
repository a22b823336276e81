"""What a classifier answers: plain frozen objects over the arrays of the model, unfolded into Python on demand."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls import tokenizer
from textcls.errors import ConfigError

Float32 = NDArray[np.float32]
Decision = Literal["accept", "abstain"]


class LabelScore(NamedTuple):
    """A label and its calibrated probability."""

    label: str
    score: float


class TokenAttribution(NamedTuple):
    """One token and what it added.

    `text` is the token as the caller wrote it, `source[start:end]`; `attention` its share of the attention, which is
    at least 0; `contributions` what it added to the logit of each label, signed.
    """

    text: str
    start: int
    end: int
    attention: float
    contributions: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Explanation:
    """The exact split of a text's logits over its tokens.

    `bias[label] + sum(token.contributions[label] for token in tokens) == logits[label]`, up to 32-bit rounding
    (`completeness_error`). It is the accounting of this model's answer, not a claim about causes.

    Attributes:
        text: the classified text.
        labels: all labels, in the model's order.
        bias_values: logits of the empty text [labels].
        probability_values: calibrated probabilities of this text [labels].
        logit_values: logits of this text [labels].
        attention_output: the model's output for this text [T]; zero behind the last token.
        contribution_output: likewise [T, labels].
    """

    text: str
    labels: tuple[str, ...]
    bias_values: Float32
    probability_values: Float32
    logit_values: Float32
    attention_output: Float32
    contribution_output: Float32

    @property
    def bias(self) -> dict[str, float]:
        """The logits of the empty text."""
        return dict(zip(self.labels, self.bias_values.tolist(), strict=True))

    @property
    def logits(self) -> dict[str, float]:
        """The logits of this text, before calibration."""
        return dict(zip(self.labels, self.logit_values.tolist(), strict=True))

    @property
    def completeness_error(self) -> float:
        """The largest difference between a logit and the sum of its parts."""
        return float(np.abs(self.bias_values + self.contribution_output.sum(0) - self.logit_values).max())

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Start and end in `text` of each token that was read."""
        return tuple(tokenizer.token_spans(self.text, len(self.attention_output)))

    @property
    def attention(self) -> Float32:
        """Share of the attention of each token [tokens]: at least 0, sums to 1 unless there are no tokens."""
        return self.attention_output[: len(self.spans)]

    @property
    def contributions(self) -> Float32:
        """What each token added to each label's logit [tokens, labels]."""
        return self.contribution_output[: len(self.spans)]

    def evidence(self, label: str | None = None) -> Float32:
        """What each token added for `label` against all others [tokens]; by default for the most probable label.

        That is its contribution to the label less the mean of those to the others, weighted by their probabilities:
        to first order the change of the label's log-odds, in units of the temperature. Of two labels it is the
        difference.

        Raises:
            ConfigError: there is no such label.
        """
        number = int(self.probability_values.argmax()) if label is None else self._number(label)
        weight = self.probability_values.astype(np.float64)
        weight[number] = 0.0
        # Of a label that is certain the others' probabilities may all be zero.
        weight = weight / weight.sum() if weight.sum() else np.full(len(weight), 1 / max(1, len(weight) - 1))
        weight[number] = -1.0
        return (-self.contributions.astype(np.float64) @ weight).astype(np.float32)

    def _number(self, label: str) -> int:
        try:
            return self.labels.index(label)
        except ValueError as error:
            raise ConfigError(f"There is no label {label!r}; the model's are {', '.join(self.labels)}.") from error

    @cached_property
    def tokens(self) -> tuple[TokenAttribution, ...]:
        """The tokens in reading order."""
        rows = zip(self.spans, self.attention.tolist(), self.contributions.tolist(), strict=True)
        return tuple(
            TokenAttribution(self.text[start:end], start, end, share, dict(zip(self.labels, added, strict=True)))
            for (start, end), share, added in rows
        )


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The answer to one text.

    Attributes:
        probabilities: calibrated, one a label, in the model's order.
        decision: `abstain` if the best score is below the threshold asked for.
        truncated: whether the text is longer than the model reads; the rest was cut.
        explanation: present if it was asked for.
    """

    label_names: tuple[str, ...]
    probabilities: Float32
    decision: Decision
    truncated: bool
    explanation: Explanation | None

    @property
    def label(self) -> str:
        """The most probable label."""
        return self.label_names[int(self.probabilities.argmax())]

    @property
    def score(self) -> float:
        """The probability of `label`."""
        return float(self.probabilities.max())

    def top(self, k: int | None = None) -> list[LabelScore]:
        """The `k` most probable labels, best first; all of them by default. Ties keep the model's order.

        Raises:
            ConfigError: `k` is negative.
        """
        if k is not None and k < 0:
            raise ConfigError(f"There are no {k} best labels; ask for 0 or more.")
        order = np.argsort(-self.probabilities, kind="stable")[:k]
        return [LabelScore(self.label_names[i], float(self.probabilities[i])) for i in order]
