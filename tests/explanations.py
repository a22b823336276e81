"""Explanations made by hand."""

from collections.abc import Sequence

import numpy as np

from textcls import Explanation, Prediction


def explained(prediction: Prediction) -> Explanation:
    """The explanation of a prediction, which must have one."""
    assert prediction.explanation is not None
    return prediction.explanation


def made_up(
    text: str,
    added: Sequence[Sequence[float]],
    labels: Sequence[str],
    *,
    bias: Sequence[float] | None = None,
    probabilities: Sequence[float] | None = None,
    known: Sequence[bool] | None = None,
    padding: int = 0,
) -> Explanation:
    """An explanation in which the tokens of `text` added so much to the logits [tokens, labels].

    Args:
        text: with as many tokens as there are rows in `added`.
        added: what each token contributed to each label.
        labels: names of the labels.
        bias: by default none.
        probabilities: by default the softmax of the logits.
        known: by default all tokens.
        padding: rows behind the last token, as in a batch.
    """
    contributions = np.zeros((len(added) + padding, len(labels)), np.float32)
    contributions[: len(added)] = np.array(added, np.float32).reshape(-1, len(labels))
    bias_values = np.zeros(len(labels), np.float32) if bias is None else np.array(bias, np.float32)
    logits = bias_values + contributions.sum(0)
    scores = np.exp(logits) / np.exp(logits).sum() if probabilities is None else np.array(probabilities, np.float32)
    attention = np.zeros(len(contributions), np.float32)
    attention[: len(added)] = 1 / max(1, len(added))
    known_tokens = np.zeros(len(contributions), np.bool_)
    known_tokens[: len(added)] = True if known is None else known
    return Explanation(text, tuple(labels), bias_values, scores, logits, attention, contributions, known_tokens)


def opposed(text: str, *added: float, known: Sequence[bool] | None = None) -> Explanation:
    """An explanation in which the tokens added so much to the label good, and the opposite to the label bad."""
    rows = [(value, -value) for value in added]
    return made_up(text, rows, ("good", "bad"), probabilities=(0.9, 0.1), known=known)
