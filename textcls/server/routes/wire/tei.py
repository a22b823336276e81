"""text-embeddings-inference: `POST /predict`, by its other names `/` and `/invocations`.

`GET /health`, and SageMaker's `GET /ping`, say whether texts can be classified.

A text gets one flat list of labels and scores, best first; a batch, sent as a list of one-text lists, gets a list of
such lists. In this format a list of two texts is a pair, for models that compare; these classify single texts. If a
text may have several labels, each score is that of its label alone; the format cannot say which ones are assigned.
"""

from functools import partial
from typing import Any, Final

from fastapi import Response

from textcls.errors import InputError
from textcls.model.prediction import Prediction
from textcls.server.http.response import Ready
from textcls.server.inference import answers
from textcls.server.inference.answers import Request
from textcls.server.models.registry import Generation
from textcls.server.routes.answering import takes
from textcls.server.routes.dependencies import FOR_ALL, Asked
from textcls.server.routes.wire import common
from textcls.server.settings import Limits

_TYPES: Final = {429: "Overloaded", 503: "Unhealthy", 500: "Backend", 504: "Backend"}
_SHAPE: Final = 'inputs must be a text, or a batch as a list of lists of one text each: [["a text"], ["another"]].'
_BATCH: Final = {"type": "array", "minItems": 1, "maxItems": 1, "items": common.TEXT}
REQUEST: Final = common.schema_of(
    "inputs",
    inputs={"anyOf": [common.TEXT, _BATCH, {"type": "array", "minItems": 1, "items": _BATCH}]},
    raw_scores=common.FLAG,
)
_PAIR: Final = (
    "is a pair of texts, and this model classifies single texts: send a batch as a list of lists of one text each, "
    'as in [["a text"], ["another"]].'
)


def _problem(status: int, message: str) -> tuple[int, bytes]:
    return status, answers.encode({"error": message, "error_type": _TYPES.get(status, "Validation")})


router = common.router(__doc__, _problem)
_STOPPING: Final[dict[int | str, dict[str, Any]]] = {503: {"description": "Stopping; without a body, like 200"}}
# Like /livez and /readyz: health checks have no key.
health = common.router(__doc__, _problem, FOR_ALL)


@health.get("/health", response_class=Response, responses=_STOPPING)
@health.get("/ping", response_class=Response, responses=_STOPPING)
async def healthy(asked: Asked) -> Response:
    """Return, by the status alone, whether texts can be classified."""
    return Ready(b"", status=503 if asked.service.draining else 200)


@router.post("/predict", openapi_extra=takes(REQUEST))
@router.post("/", openapi_extra=takes(REQUEST))
@router.post("/invocations", openapi_extra=takes(REQUEST))
async def predict(asked: Asked) -> Response:
    """Return labels and scores, best first."""
    return await asked.classify(_read)


def _read(generation: Generation, limits: Limits, body: bytes, content_type: bytes) -> Request:
    given = common.read(body, limits)
    raw = common.field(given, "raw_scores", bool, default=False)
    texts, batch = _texts(given.get("inputs"))
    return common.ask(
        generation.get(None),
        limits,
        texts,
        partial(scored, raw=raw),
        lambda found, _: found if batch else found[0],
        # Only an explained answer contains logits.
        explain=raw,
        top_k=1,
    )


def scored(prediction: Prediction, *, raw: bool) -> list[dict[str, Any]]:
    """Return labels and scores, or logits, best first."""
    if not raw or prediction.explanation is None:
        return [{"score": score, "label": label} for label, score in prediction.top()]
    logits = prediction.explanation.logits
    return [{"score": logits[label], "label": label} for label in sorted(logits, key=lambda x: -logits[x])]


def _texts(inputs: Any) -> tuple[list[str], bool]:
    """Return the texts, and whether they are a batch."""
    if isinstance(inputs, str):
        return [inputs], False
    if not isinstance(inputs, list) or not inputs:
        raise InputError(_SHAPE)
    if isinstance(inputs[0], str):
        return [_single(inputs, "inputs")], False
    return [_single(one, f"inputs[{i}]") for i, one in enumerate(inputs)], True


def _single(given: Any, where: str) -> str:
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given) or len(given) not in (1, 2):
        raise InputError(_SHAPE)
    if len(given) == 2:
        raise InputError(f"{where} {_PAIR}")
    text: str = given[0]
    return text
