"""Proposals for a text, as plain data for the page: by a model with its reasons, by names, or by an audit."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from textcls.evaluation.data_quality.label_audit import SuspectRow
from textcls.model.classifier import Classifier

# The number of labels, the most probable ones, for which the tint of the text is sent.
TINTED: Final = 9


def by_model(classifier: Classifier, text: str, shown: int) -> dict[str, Any]:
    """Return the labels with their probabilities, and the evidence of each token of the first `shown` characters."""
    prediction = classifier.predict(text, explain=True)
    explanation = prediction.explanation
    assert explanation is not None
    spans = [span for span in explanation.spans if span[1] <= shown]
    return {
        "by": "model",
        "labels": [found._asdict() for found in prediction.top()],
        "assigned": list(prediction.assigned),
        "pieces": _pieces(text[:shown], spans),
        "known": explanation.known[: len(spans)].tolist(),
        "evidence": {
            found.label: np.round(explanation.attribution(found.label).values[: len(spans)], 4).tolist()
            for found in prediction.top(TINTED)
        },
    }


def by_names(labels: Sequence[str]) -> dict[str, Any] | None:
    """Return the labels whose names are nearest to the text, the nearest first; None if none are known."""
    return {"by": "names", "labels": [{"label": label} for label in labels]} if labels else None


def by_audit(suspect: SuspectRow) -> dict[str, Any]:
    """Return the label that a row probably should have, its own, and the words behind the first.

    With several labels per text these are those to be added and those to be removed, with all that are suggested.
    """
    own, other = ((one,) if isinstance(one, str) else one for one in (suspect.label, suspect.suggested))
    added, gone = [label for label in other if label not in own], [label for label in own if label not in other]
    labels = [
        *({"label": label, "score": suspect.probability_suggested} for label in added),
        *({"label": label, "score": suspect.probability} for label in gone),
    ]
    found = {"by": "audit", "labels": labels, "words": list(suspect.words)}
    if isinstance(suspect.label, str):
        return found
    return {**found, "added": added, "gone": gone, "assigned": list(other), "score": suspect.probability_suggested}


def _pieces(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Return the text in pieces: what precedes a token and the token, in turn, and what follows the last."""
    found, at = [], 0
    for start, end in spans:
        found += [text[at:start], text[start:end]]
        at = end
    return [*found, text[at:]]
