"""The Open Inference Protocol, KServe's version 2, with Triton's extension for binary tensors: `/v2/...`.

One input of BYTES, one text per element. Outputs (the first three by default): `label` and `score` of each text,
`probabilities` of all labels, `labels` in their order, `logits`, and `explanation`, one JSON object per text. If a text
may have several labels, there is also `assigned`, by default as well: whether each label is assigned.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, Final

from fastapi import Response

from textcls import __version__
from textcls.errors import InputError, NotFoundError
from textcls.model.prediction import Prediction
from textcls.server.inference import answers
from textcls.server.inference.answers import EncodedAnswer, Request
from textcls.server.models.registry import Generation, Served
from textcls.server.monitoring.drift import Outcome
from textcls.server.routes.answering import json, takes
from textcls.server.routes.dependencies import FOR_ALL, Asked
from textcls.server.routes.wire import common
from textcls.server.routes.wire.kserve import problem
from textcls.server.settings import Limits

_LENGTH: Final = b"inference-header-content-length"
_DEFAULT: Final = ("label", "score", "probabilities")
# Only if a text may have several labels.
_ASSIGNED: Final = "assigned"
_OF_LABELS: Final = ("probabilities", "logits", _ASSIGNED)
_EXPLAINED: Final = ("logits", "explanation")
_KINDS: Final = {
    "label": "BYTES",
    "score": "FP32",
    "probabilities": "FP32",
    "labels": "BYTES",
    "logits": "FP32",
    "explanation": "BYTES",
    _ASSIGNED: "BOOL",
}
_FIELDS: Final = {"type": ["object", "null"]}
REQUEST: Final = common.schema_of(
    "inputs",
    id={"type": ["string", "null"]},
    inputs={
        "type": "array",
        "minItems": 1,
        "maxItems": 1,
        "items": {
            "type": "object",
            "required": ["datatype", "shape"],
            "description": "As many texts in data, or in the binary data behind the JSON, as the shape says.",
            "properties": {
                "name": common.TEXT,
                "datatype": {"const": "BYTES"},
                "shape": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer", "minimum": 1}},
                "data": {"type": "array", "items": {"anyOf": [common.TEXT, {"type": "array", "items": common.TEXT}]}},
                "parameters": _FIELDS,
            },
        },
    },
    outputs={
        "type": ["array", "null"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"enum": [*_KINDS]}}},
    },
    parameters=_FIELDS,
)


# About the service and its models

router = common.router(__doc__, problem)
# Like /livez and /readyz: health checks have no key.
health = common.router(__doc__, problem, FOR_ALL)


@router.get("/v2")
async def server() -> Response:
    """Return the name and version of the server."""
    return json({"name": "textcls", "version": __version__, "extensions": ["binary_tensor_data"]})


@health.get("/v2/health/live")
async def live() -> Response:
    """Answer as long as the process is able to."""
    return json({"live": True})


@health.get("/v2/health/ready", responses=common.READINESS)
async def ready(asked: Asked) -> Response:
    """Return whether texts can be classified."""
    return _readiness(asked)


@router.get("/v2/models/{name}")
async def model(name: str, asked: Asked) -> Response:
    """Return the tensors that a model takes and returns."""
    return json(_card(_get(asked.service.generation, name)))


@router.get("/v2/models/{name}/versions/{version}")
async def model_version(name: str, version: str, asked: Asked) -> Response:
    """Return the tensors that a model takes and returns."""
    return json(_card(_get(asked.service.generation, name, version)))


@router.get("/v2/models/{name}/ready", responses=common.READINESS)
async def model_ready(name: str, asked: Asked) -> Response:
    """Return whether a model is ready."""
    return _readiness(asked, name=_get(asked.service.generation, name).name)


@router.get("/v2/models/{name}/versions/{version}/ready", responses=common.READINESS)
async def model_version_ready(name: str, version: str, asked: Asked) -> Response:
    """Return whether a model is ready."""
    return _readiness(asked, name=_get(asked.service.generation, name, version).name)


@router.post("/v2/models/{name}/infer", openapi_extra=takes(REQUEST))
async def infer(name: str, asked: Asked) -> Response:
    """Return the requested outputs as tensors."""
    return await asked.classify(partial(_read, name, None, asked.headers.get(_LENGTH)))


@router.post("/v2/models/{name}/versions/{version}/infer", openapi_extra=takes(REQUEST))
async def infer_version(name: str, version: str, asked: Asked) -> Response:
    """Return the requested outputs as tensors."""
    return await asked.classify(partial(_read, name, version, asked.headers.get(_LENGTH)))


def _readiness(asked: Asked, **facts: str) -> Response:
    ready = not asked.service.draining
    return json({**facts, "ready": ready}, 200 if ready else 503)


def _card(served: Served) -> dict[str, Any]:
    labels = len(served.classifier.labels)
    shapes = {name: [-1, labels] for name in _OF_LABELS} | {"labels": [labels]}
    return {
        "name": served.name,
        "versions": [served.version],
        "platform": "textcls_onnx",
        "inputs": [{"name": "text", "datatype": "BYTES", "shape": [-1]}],
        "outputs": [
            {"name": output, "datatype": _KINDS[output], "shape": shapes.get(output, [-1])}
            for output in _outputs(served)
        ],
    }


def _get(generation: Generation, name: str, version: str | None = None) -> Served:
    served = generation.get(name)
    if version not in (None, served.version):
        raise NotFoundError(f"There is no such version of {served.name}; there is {served.version}.")
    return served


# Texts


def _read(
    name: str,
    version: str | None,
    length: bytes | None,
    generation: Generation,
    limits: Limits,
    body: bytes,
    content_type: bytes,
) -> Request:
    end = len(body) if length is None else _json_length(length, len(body))
    given, binary = common.read(body[:end], limits), body[end:]
    served = _get(generation, name, version)
    texts, shape = _texts(given, binary)
    wanted = _wanted(given, served)
    names = [output for output, _ in wanted]
    explain = any(name in _EXPLAINED for name in names)
    finish = partial(_finished, served, wanted, shape, common.field(given, "id", str))
    return common.ask(served, limits, texts, partial(_row, names), finish, explain=explain)


def _finished(
    served: Served,
    wanted: Sequence[tuple[str, bool]],
    shape: list[int],
    called: str | None,
    rows: list[dict[str, Any]],
    outcomes: list[Outcome],
) -> EncodedAnswer:
    outputs, tail = [], []
    for output, as_binary in wanted:
        data, dims = _output(output, served, rows, shape)
        tensor: dict[str, Any] = {"name": output, "shape": dims, "datatype": _KINDS[output]}
        if as_binary:
            tail.append(_binary(data, _KINDS[output]))
            tensor["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            tensor["data"] = data
        outputs.append(tensor)
    head = {"model_name": served.name, "model_version": served.version}
    if called is not None:
        head["id"] = called
    text = answers.encode({**head, "outputs": outputs})
    answer = EncodedAnswer(text + b"".join(tail), served, outcomes)
    if not tail:
        return answer
    return answer._replace(headers=[(_LENGTH, b"%d" % len(text))], kind=b"application/octet-stream")


def _json_length(declared: bytes, size: int) -> int:
    if not declared.isdigit() or len(declared) > 18 or int(declared) > size:
        raise InputError("The header Inference-Header-Content-Length is not the length of the body's JSON.")
    return int(declared)


def _texts(given: Mapping[str, Any], binary: bytes) -> tuple[list[str], list[int]]:
    """Return the texts, and the shape of their tensor."""
    inputs = given.get("inputs")
    if not isinstance(inputs, list) or len(inputs) != 1 or not isinstance(inputs[0], dict):
        raise InputError("inputs must be a list of one tensor, named text, of the datatype BYTES.")
    tensor = inputs[0]
    if tensor.get("datatype") != "BYTES":
        raise InputError("The datatype of the input must be BYTES: a text an element.")
    shape = tensor.get("shape")
    # In Python a bool is an int.
    if not isinstance(shape, list) or not all(type(size) is int and 0 < size < 1 << 32 for size in shape):
        raise InputError("The shape of the input must be a list of sizes, such as [2] for two texts.")
    if shape[1:] not in ([], [1]) or not shape:
        raise InputError("The shape of the input must be [N] or [N, 1]: a text an element.")
    size = common.field(common.field(tensor, "parameters", dict, default={}), "binary_data_size", int)
    texts = _flat(tensor.get("data")) if size is None else _strings(binary, size)
    if len(texts) != prod(shape):
        raise InputError(f"The input has {len(texts):,} elements and not those of its shape.")
    return texts, shape


def _flat(data: Any) -> list[str]:
    if not isinstance(data, list):
        raise InputError("The input needs data: a list of texts.")
    found = [text for row in data for text in (row if isinstance(row, list) else [row])]
    if not all(isinstance(text, str) for text in found):
        raise InputError("The data of the input must be texts.")
    return found


def _strings(binary: bytes, size: int) -> list[str]:
    """Read texts in Triton's form: the length of each in four bytes, then its UTF-8."""
    if size != len(binary):
        raise InputError(f"binary_data_size must be {len(binary):,}: so many bytes follow the body's JSON.")
    found, at = [], 0
    while at < size:
        end = at + 4 + int.from_bytes(binary[at : at + 4], "little")
        if at + 4 > size or end > size:
            raise InputError("The binary data of the input end within a text.")
        try:
            found.append(binary[at + 4 : end].decode())
        except UnicodeDecodeError:
            raise InputError(f"Text {len(found)} of the binary data is not UTF-8.") from None
        at = end
    return found


def _outputs(served: Served) -> list[str]:
    """Return the outputs that a model has."""
    return [name for name in _KINDS if name != _ASSIGNED or served.classifier.info.several]


def _wanted(given: Mapping[str, Any], served: Served) -> list[tuple[str, bool]]:
    """Return the requested outputs, and whether each is wanted as binary data."""
    known = _outputs(served)
    default = [name for name in known if name in (*_DEFAULT, _ASSIGNED)]
    parameters = common.field(given, "parameters", dict, default={})
    binary = common.field(parameters, "binary_data_output", bool, default=False)
    outputs = common.field(given, "outputs", list, default=[]) or [{"name": name} for name in default]
    found = []
    for output in outputs:
        name = output.get("name") if isinstance(output, dict) else None
        if not isinstance(name, str) or name not in known:
            raise InputError(f"There is no such output; there are {', '.join(known)}.")
        own = common.field(output, "parameters", dict, default={})
        found.append((name, common.field(own, "binary_data", bool, default=binary)))
    if len({name for name, _ in found}) < len(found):
        raise InputError("An output is named twice.")
    return found


def _output(
    name: str, served: Served, rows: Sequence[Mapping[str, Any]], shape: list[int]
) -> tuple[list[Any], list[int]]:
    labels = served.classifier.labels
    if name == "labels":
        return list(labels), [len(labels)]
    if name in _OF_LABELS:
        return [value for row in rows for value in row[name]], [len(rows), len(labels)]
    return [row[name] for row in rows], shape


def _row(names: Sequence[str], prediction: Prediction) -> dict[str, Any]:
    """Return the requested outputs of one text."""
    return {name: _OUTPUTS[name](prediction) for name in names if name in _OUTPUTS}


def _logits(prediction: Prediction) -> list[float]:
    if prediction.explanation is None:
        raise TypeError("logits were not asked for")
    found: list[float] = prediction.explanation.logit_values.tolist()
    return found


def _assigned(prediction: Prediction) -> list[bool]:
    if prediction.thresholds is None:
        raise TypeError("the model gives a text one label")
    found: list[bool] = (prediction.probabilities >= prediction.thresholds).tolist()
    return found


_OUTPUTS: Final[Mapping[str, Callable[[Prediction], Any]]] = {
    "label": lambda prediction: prediction.label,
    "score": lambda prediction: prediction.score,
    "probabilities": lambda prediction: prediction.probabilities.tolist(),
    "logits": _logits,
    _ASSIGNED: _assigned,
    "explanation": lambda prediction: answers.encode(prediction.as_json()).decode(),
}


def _binary(data: Sequence[Any], kind: str) -> bytes:
    if kind == "FP32":
        return struct.pack(f"<{len(data)}f", *data)
    if kind == "BOOL":
        return bytes(data)
    parts = [text.encode() for text in data]
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)
