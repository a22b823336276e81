"""The answers of a classifier: plain frozen objects over the arrays of the model, converted to Python on demand."""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from textcls._util.optional_dependencies import above
from textcls.errors import ConfigError
from textcls.model.contrast import Float32
from textcls.model.explanation import Explanation
from textcls.model.label_paths import SURE, LabelPaths, Node

Decision = Literal["accept", "abstain"]


def checked_threshold(threshold: float) -> float:
    """Return `threshold` as a Python float.

    Raises:
        ConfigError: it is not a probability.
    """
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not 0 <= threshold <= 1:
        raise ConfigError(f"threshold must be a number from 0 to 1, not {threshold!r}.")
    return float(threshold)


class LabelScore(NamedTuple):
    """A label and its calibrated probability.

    Examples:
        >>> answer = textcls.Classifier.load("tickets.onnx").predict("my card was charged twice")
        >>> answer.top(1)[0].label
        'billing'
    """

    label: str
    score: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Prediction:
    """The answer to one text.

    Attributes:
        probabilities: calibrated, one per label, in the model's order.
        decision: `abstain` if the best score is below the threshold; with several labels, if none is assigned.
        truncated: whether the text is longer than the model reads; the rest was ignored.
        explanation: present if it was asked for.
        threshold: the score below which the decision is `abstain`; None never abstains.
        tokens_read: how many tokens of the text were read: those with an attention probability above 0.
        thresholds: if a text may have several labels: the probability from which each is assigned [labels]; None if it
            has one.
        tokens_unknown: how many of the tokens read are unknown to the model.
        tree: the tree of the labels if they are paths, else None.

    Examples:
        >>> answer = textcls.Classifier.load("tickets.onnx").predict("my card was charged twice")
        >>> answer.label, answer.decision
        ('billing', 'accept')
    """

    label_names: tuple[str, ...]
    probabilities: Float32
    decision: Decision
    truncated: bool
    explanation: Explanation | None
    threshold: float | None = None
    tokens_read: int = 0
    thresholds: Float32 | None = None
    tokens_unknown: int = 0
    tree: LabelPaths | None = None

    def _repr_html_(self) -> str:
        shown = self if self.explanation is None else replace(self, explanation=self.explanation.readable())
        return str(above("textcls.display.html.explanation:prediction_fragment")(shown))  # called by notebooks

    @property
    def several(self) -> bool:
        """Whether a text may have several labels, or none."""
        return self.thresholds is not None

    @property
    def assigned(self) -> tuple[str, ...]:
        """The labels of the text, most probable first: those that reach their thresholds, or the one label.

        If a text has one label, this is empty when the decision is `abstain`.
        """
        if self.thresholds is None:
            return (self.label,) if self.decision == "accept" else ()
        reached = np.flatnonzero(self.probabilities >= self.thresholds)
        best_first = reached[np.argsort(-self.probabilities[reached], kind="stable")]
        return tuple(self.label_names[i] for i in best_first.tolist())

    @property
    def label(self) -> str:
        """The most probable label."""
        return self.label_names[int(self.probabilities.argmax())]

    @property
    def score(self) -> float:
        """The probability of `label`."""
        return float(self.probabilities.max())

    @property
    def node(self) -> Node | None:
        """The deepest node that reaches the threshold, by default one half; None if there is none, or no tree."""
        if self.tree is None:
            return None
        return self.tree.deepest(self.probabilities[None], SURE if self.threshold is None else self.threshold)[0]

    @property
    def reason(self) -> str | None:
        """Why the decision is `abstain`, in a sentence or two; None if it is not."""
        if self.decision == "accept":
            return None
        if self.thresholds is not None:
            return self._nothing_assigned(self.thresholds)
        reason = f"It abstains: the best score, {self.score:.1%}, is below the threshold."
        if self.threshold is not None:
            score, threshold = _told_apart(self.score, self.threshold)
            reason = f"It abstains: the best score, {score}, is below the threshold of {threshold}."
        if self.explanation is None:
            return reason
        unknown, tokens = len(self.explanation.unknown), len(self.explanation.spans)
        if not tokens:
            return f"{reason} The text has no tokens."
        return f"{reason} Of its {tokens:,} tokens, {unknown:,} {'is' if unknown == 1 else 'are'} unknown to the model."

    def _nothing_assigned(self, thresholds: Float32) -> str:
        best = int((self.probabilities - thresholds).argmax())
        return (
            f"It abstains: no label reaches its threshold; the nearest is {self.label_names[best]!r}, with "
            f"{self.probabilities[best]:.1%} of {thresholds[best]:.1%}."
        )

    @property
    def remarks(self) -> list[str]:
        """Remarks to show with the answer: why it abstains, and that the text was too long, if so."""
        found = [] if self.reason is None else [self.reason]
        if self.tree is not None:
            node = self.node
            if node is None:
                found.append("No node of the tree is sure.")
            elif self.decision == "abstain" or self.tree.name(node.path) != self.label:
                found.append(f"Only {self.tree.name(node.path)!r} is sure, at {node.score:.1%}.")
        if self.truncated:
            found.append("The text is longer than the model reads; the rest was cut.")
        if self.explanation is not None and not self.explanation.spans:
            what = "the bias and the columns beside the text" if self.explanation.cells else "the bias alone"
            found.append(f"The text has no tokens: the answer is {what}.")
        return found

    def top(self, k: int | None = None) -> list[LabelScore]:
        """The `k` most probable labels, best first; all of them by default. Ties keep the model's order.

        Raises:
            ConfigError: `k` is negative.
        """
        if k is not None and (type(k) is not int or k < 0):
            raise ConfigError(f"k must be a whole number from 0, not {k!r}.")
        order = np.argsort(-self.probabilities, kind="stable")[:k]
        return [LabelScore(self.label_names[i], float(self.probabilities[i])) for i in order]

    def as_json(self, top_k: int | None = None) -> dict[str, Any]:
        """The prediction as plain data: a result of `POST /v1/classify`.

        Args:
            top_k: how many labels it contains, best first; all by default.
        """
        scores = self.probabilities.tolist()
        # Like `top`, but in a fifth of the time if there are few labels. Ties keep the model's order.
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        names = self.label_names
        best, order = order[0], order[:top_k]
        result: dict[str, Any] = {
            "label": names[best],
            "score": scores[best],
            "labels": [{"label": names[i], "score": scores[i]} for i in order],
            "decision": self.decision,
            "truncated": self.truncated,
        }
        if self.thresholds is not None:
            result["assigned"] = list(self.assigned)
        result |= self.node_as_json()
        if self.explanation is not None:
            result.update(self.explanation.as_json([names[i] for i in order]))
        return result

    def node_as_json(self) -> dict[str, Any]:
        """The deepest sure node as plain data; empty if there is no tree."""
        if self.tree is None:
            return {}
        node = self.node
        return {"node": None if node is None else {"path": list(node.path), "score": node.score}}

    def __repr__(self) -> str:
        explained = "" if self.explanation is None else f", explanation={self.explanation!r}"
        return f"Prediction(label={self.label!r}, score={self.score:.4f}, decision={self.decision!r}{explained})"


def explanation_of(prediction: Prediction) -> Explanation:
    """Return the explanation of an answer that was requested with one."""
    if prediction.explanation is None:
        raise ValueError("the answer was asked for without an explanation")
    return prediction.explanation


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """Return two shares in percent, with as many digits as are needed to tell them apart."""
    pairs = ((f"{one:.{digits}%}", f"{other:.{digits}%}") for digits in range(1, 7))
    return next((pair for pair in pairs if pair[0] != pair[1]), (str(one), str(other)))
