"""Predictions as the JSON of `schemas.ClassifyAnswer`.

The answer is built from plain objects: a response model would check each of thousands of numbers that are right anyway.
"""

import json
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from textcls.classifier import Classifier
from textcls.results import Prediction
from textcls.server.schemas import ClassifyRequest


def classify(classifier: Classifier, request: ClassifyRequest) -> bytes:
    """Answer `request` with the bytes of a `ClassifyAnswer`."""
    predictions = classifier.predict(request.inputs, explain=request.explain, threshold=request.threshold)
    info = classifier.info
    model = {"name": classifier.path.stem, "format_version": info.format_version, "labels": len(info.labels)}
    # Result by result, so that the objects of one explanation are gone before those of the next are made.
    results = b",".join(_encode(_result(prediction, request.top_k)) for prediction in predictions)
    return b'{"model":%b,"results":[%b]}' % (_encode(model), results)


def _result(prediction: Prediction, top_k: int | None) -> dict[str, Any]:
    top = prediction.top(top_k)
    result: dict[str, Any] = {
        "label": prediction.label,
        "score": prediction.score,
        "labels": [{"label": label, "score": score} for label, score in top],
        "decision": prediction.decision,
        "truncated": prediction.truncated,
    }
    if prediction.explanation is not None:
        result.update(prediction.explanation.as_json([label for label, _ in top]))
    return result


def _encode(value: dict[str, Any]) -> bytes:
    try:
        return to_json(value)
    except PydanticSerializationError:
        # An unpaired surrogate in a token has no UTF-8 form; escaped, the caller gets back what was sent.
        return json.dumps(value, separators=(",", ":")).encode()
