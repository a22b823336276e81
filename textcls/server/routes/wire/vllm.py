"""vLLM's classifiers: `POST /vllm/classify`, and for OpenAI's clients `/vllm/v1/classify`.

Under a prefix, since `/v1/classify` is the server's own. `"use_activation": false` returns logits. If a text may have
several labels, `probs` do not add up to 1, `label` is the most probable assigned label, or null, and `labels`, which
vLLM does not have, are all assigned labels.
"""

import secrets
import time
from functools import partial
from typing import Any, Final

from fastapi import Response

from textcls.errors import InputError
from textcls.model.prediction import Prediction
from textcls.server.inference import answers
from textcls.server.inference.answers import Request
from textcls.server.models.registry import Generation, Served
from textcls.server.monitoring.drift import Outcome
from textcls.server.routes.answering import takes
from textcls.server.routes.dependencies import Asked
from textcls.server.routes.wire import common
from textcls.server.settings import Limits

_TYPES: Final = {
    401: "Unauthorized",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    429: "RateLimitError",
}

REQUEST: Final = common.schema_of(
    "input", input=common.TEXTS, model={"type": ["string", "null"]}, use_activation=common.FLAG
)


def _problem(status: int, message: str) -> tuple[int, bytes]:
    status = 400 if status == 422 else status
    usual = "BadRequestError" if status < 500 else "InternalServerError"
    error = {"message": message, "type": _TYPES.get(status, usual), "param": None, "code": status}
    return status, answers.encode({"error": error})


router = common.router(__doc__, _problem)


@router.post("/vllm/classify", openapi_extra=takes(REQUEST))
@router.post("/vllm/v1/classify", openapi_extra=takes(REQUEST))
async def classify(asked: Asked) -> Response:
    """Return the label of each text, and the probabilities of all labels."""
    return await asked.classify(_read)


def _read(generation: Generation, limits: Limits, body: bytes, content_type: bytes) -> Request:
    given = common.read(body, limits)
    if isinstance(given.get("input"), list) and given["input"] and not isinstance(given["input"][0], str):
        raise InputError("input must be a text or a list of texts; the numbers of tokens are another model's.")
    texts = common.texts(given.get("input"), "input")
    served = generation.get(common.field(given, "model", str))
    raw = common.field(given, "use_activation", bool) is False
    # Only an explained answer contains logits.
    return common.ask(served, limits, texts, _said, partial(_finished, served), explain=raw, top_k=1)


def _finished(served: Served, found: list[dict[str, Any]], outcomes: list[Outcome]) -> dict[str, Any]:
    tokens = sum(outcome.tokens for outcome in outcomes)
    return {
        "id": f"classify-{secrets.token_hex(16)}",
        "object": "list",
        "created": int(time.time()),
        "model": served.name,
        "data": [{"index": i, **result} for i, result in enumerate(found)],
        "usage": {
            "prompt_tokens": tokens,
            "total_tokens": tokens,
            "completion_tokens": 0,
            "prompt_tokens_details": None,
        },
    }


def _said(prediction: Prediction) -> dict[str, Any]:
    explanation = prediction.explanation
    result = {
        "label": prediction.label,
        "probs": (prediction.probabilities if explanation is None else explanation.logit_values).tolist(),
        "num_classes": len(prediction.label_names),
    }
    if prediction.several:
        assigned = prediction.assigned
        result |= {"label": assigned[0] if assigned else None, "labels": assigned}
    return result
