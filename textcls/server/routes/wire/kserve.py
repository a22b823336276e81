"""KServe's version 1: `POST /v1/models/{name}:predict` and `:explain`, `GET /v1/models/{name}`.

An instance is a text, or an object with the field `text` or, if a model reads several columns, one field per column.
The answer contains results of `/v1/classify`; if a text may have several labels, they are in `assigned`.
"""

from functools import partial
from typing import Any, Final

import orjson
from fastapi import Response

from textcls.errors import InputError
from textcls.model.prediction import Prediction
from textcls.server.inference import answers
from textcls.server.inference.answers import Request
from textcls.server.models.registry import Generation, Served
from textcls.server.routes.answering import json, takes
from textcls.server.routes.dependencies import Asked
from textcls.server.routes.wire import common
from textcls.server.settings import Limits

REQUEST: Final = common.schema_of(
    "instances",
    instances={
        "type": "array",
        "minItems": 1,
        "items": {"anyOf": [common.TEXT, {"type": "object"}]},
    },
)


def problem(status: int, message: str) -> tuple[int, bytes]:
    """Write an error in the form of KServe, which uses 400 but not 422."""
    return 400 if status == 422 else status, common.error_body(message)


router = common.router(__doc__, problem)


@router.post("/v1/models/{name}:predict", openapi_extra=takes(REQUEST))
async def predict(name: str, asked: Asked) -> Response:
    """Return the results of `/v1/classify`."""
    return await asked.classify(partial(_read, name, False))


@router.post("/v1/models/{name}:explain", openapi_extra=takes(REQUEST))
async def explain(name: str, asked: Asked) -> Response:
    """Return the results of `/v1/classify`, explained."""
    return await asked.classify(partial(_read, name, True))


@router.get("/v1/models/{name}", responses=common.READINESS)
async def model(name: str, asked: Asked) -> Response:
    """Return whether a model is ready."""
    ready = not asked.service.draining
    return json({"name": asked.service.generation.get(name).name, "ready": ready}, 200 if ready else 503)


def _read(
    name: str, explain: bool, generation: Generation, limits: Limits, body: bytes, content_type: bytes
) -> Request:
    instances, served = _instances(common.read(body, limits)), generation.get(name)
    rows = [_row(served, instance, i) for i, instance in enumerate(instances)]
    texts = answers.texts_of(served, rows, "instances")
    field = "explanations" if explain else "predictions"
    return common.ask(served, limits, texts, _written, lambda found, _: {field: found}, explain=explain, rows=rows)


def _written(prediction: Prediction) -> orjson.Fragment:
    """Return a result as JSON, which takes a tenth of the memory of its objects."""
    return orjson.Fragment(answers.encode(prediction.as_json()))


def _instances(given: dict[str, Any]) -> list[Any]:
    found = given.get("instances")
    if not isinstance(found, list) or not found:
        raise InputError('The body must hold a list of texts: {"instances": ["a text"]}.')
    return found


def _row(served: Served, instance: Any, i: int) -> object:
    """Return an instance as a row; `text` may stand for the only text column, whatever its name."""
    columns = served.classifier.info.text_columns
    if isinstance(instance, str) or (isinstance(instance, dict) and (len(columns) > 1 or columns[0] in instance)):
        return instance
    if not isinstance(instance, dict) or not isinstance(instance.get("text"), str):
        raise InputError(f'instances[{i}] must be a text, or an object such as {{"text": "a text"}}.')
    return instance | {columns[0]: instance["text"]}
