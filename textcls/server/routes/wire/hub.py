"""The inference interface of the Hugging Face clients for text classification: `POST /models/{name}`.

The answer is always a list of lists: one list of labels and scores per text. If a text may have several labels, a score
is the calibrated sigmoid of its label alone.
"""

from functools import partial
from math import exp
from typing import Any, Final

from fastapi import Response

from textcls.errors import InputError
from textcls.model.prediction import Prediction
from textcls.server.inference.answers import Request
from textcls.server.models.registry import Generation
from textcls.server.routes.answering import takes
from textcls.server.routes.dependencies import Asked
from textcls.server.routes.wire import common
from textcls.server.settings import Limits

_FUNCTIONS: Final = ("softmax", "sigmoid", "none")
_NO_SOFTMAX: Final = (
    "function_to_apply must be sigmoid or none: this model gives a text several labels, whose scores share no whole."
)
REQUEST: Final = common.schema_of(
    "inputs",
    inputs=common.TEXTS,
    parameters={
        "type": ["object", "null"],
        "properties": {
            "function_to_apply": {"enum": [*_FUNCTIONS, None]},
            "top_k": {"type": ["integer", "null"], "minimum": 1},
        },
    },
)


def _problem(status: int, message: str) -> tuple[int, bytes]:
    return status, common.error_body(message)


router = common.router(__doc__, _problem)


@router.post("/models/{name}", openapi_extra=takes(REQUEST))
async def classify(name: str, asked: Asked) -> Response:
    """Return a list of labels and scores for each text."""
    return await asked.classify(partial(_read, name))


def _read(name: str, generation: Generation, limits: Limits, body: bytes, content_type: bytes) -> Request:
    given = common.read(body, limits)
    texts = common.texts(given.get("inputs"), "inputs")
    parameters = common.field(given, "parameters", dict, default={})
    function = common.field(parameters, "function_to_apply", str)
    if function not in (*_FUNCTIONS, None):
        raise InputError(f"function_to_apply must be one of {', '.join(_FUNCTIONS)}.")
    top_k = common.field(parameters, "top_k", int)
    if top_k is not None and top_k < 1:
        raise InputError("top_k must be 1 or more.")
    served = generation.get(name)
    several = served.classifier.info.several
    if several and function == "softmax":
        raise InputError(_NO_SOFTMAX)
    calibrated = "sigmoid" if several else "softmax"
    return common.ask(
        served,
        limits,
        texts,
        partial(_scored, function=function),
        lambda found, _: [scores[:top_k] for scores in found],
        # Only an explained answer contains logits.
        explain=function not in (calibrated, None),
        top_k=1,
    )


def _scored(prediction: Prediction, function: str | None) -> list[dict[str, Any]]:
    if prediction.explanation is None:
        return [{"label": label, "score": score} for label, score in prediction.top()]
    logits = prediction.explanation.logits
    order = sorted(logits, key=lambda label: -logits[label])
    return [{"label": x, "score": logits[x] if function == "none" else _sigmoid(logits[x])} for x in order]


def _sigmoid(value: float) -> float:
    return 1 / (1 + exp(-value)) if value >= 0 else exp(value) / (1 + exp(value))
