"""What the wire formats share: their routers, reading of fields, and calls of the model."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fastapi import APIRouter

from textcls.errors import InputError
from textcls.model.prediction import Prediction
from textcls.model.text_columns import and_
from textcls.server.inference import answers
from textcls.server.inference.answers import EncodedAnswer, Request
from textcls.server.inference.parsing import load_json
from textcls.server.models.registry import Served
from textcls.server.monitoring.drift import Outcome
from textcls.server.routes import answering
from textcls.server.routes.answering import Problem
from textcls.server.routes.dependencies import WITH_KEY
from textcls.server.settings import Limits

if TYPE_CHECKING:
    from fastapi.params import Depends
    from fastapi.routing import APIRoute

T = TypeVar("T")

# JSON Schema, for the service's description.
TEXT: Final[dict[str, Any]] = {"type": "string"}
TEXTS: Final[dict[str, Any]] = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}
FLAG: Final[dict[str, Any]] = {"type": ["boolean", "null"]}


# What routes that say whether something is ready add to their description.
READINESS: Final[dict[int | str, dict[str, Any]]] = {
    503: {
        "description": "Stopping",
        "content": {"application/json": {"schema": {"type": "object", "required": ["ready"]}}},
    }
}


def schema_of(required: str, **properties: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object with one required field; unknown fields are ignored."""
    return {"type": "object", "required": [required], "properties": properties}


def router(doc: str | None, problem: Problem, dependencies: "Sequence[Depends]" = WITH_KEY) -> APIRouter:
    """Return the router of a format.

    Args:
        doc: the docstring of its module, which starts with the name of the format.
        problem: writes an error in that format.
        dependencies: the dependencies of each route.
    """
    found = answering.router(dependencies, problem, tag=tag(doc))
    found.generate_unique_id_function = _operation
    error = {"application/json": {"schema": _schema_like(json.loads(problem(404, "Why.")[1]))}}
    found.responses = {
        "4XX": {"description": "Refused, in the form that errors have in this format", "content": error},
        "5XX": {"description": "Not answered, in the same form", "content": error},
    }
    return found


def _schema_like(value: Any) -> dict[str, Any]:
    """Return the JSON Schema of values like this one: objects, texts, whole numbers and nulls."""
    if isinstance(value, dict):
        of_fields = {name: _schema_like(field) for name, field in value.items()}
        return {"type": "object", "required": list(value), "properties": of_fields}
    return {"type": "null" if value is None else "integer" if isinstance(value, int) else "string"}


def tag(doc: str | None) -> str:
    """Return the name of a format, with which the docstring of its module starts."""
    return (doc or "").partition("\n")[0].partition(":")[0].rstrip(".")


def _operation(route: "APIRoute") -> str:
    """Return the name of an operation, unique even if one function answers several paths."""
    return re.sub(r"\W+", "_", f"{min(route.methods or ())}{route.path_format}").strip("_").lower()


def read(body: bytes, limits: Limits) -> dict[str, Any]:
    """Return the JSON object of a body; unknown fields are ignored, as by other servers of these formats.

    Raises:
        InputError: the body is not a JSON object.
        TooLargeError: it contains too much besides texts.
    """
    found = load_json(body, limits)
    if not isinstance(found, dict):
        raise InputError("The body must be a JSON object.")
    return found


def field(given: Mapping[str, Any], name: str, kind: type, default: Any = None) -> Any:
    """Return an optional field; null means that it is absent.

    Raises:
        InputError: it has another type.
    """
    value = given.get(name)
    if value is None:
        return default
    # JSON has only one kind of number: 3.0 is an integer.
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    # In Python a bool is an int.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        names = {bool: "true or false", int: "an integer", str: "a string", dict: "an object", list: "a list"}
        raise InputError(f"{name} must be {names[kind]}.")
    return value


def texts(value: Any, name: str) -> list[str]:
    """Return a text or a list of texts as a list.

    Raises:
        InputError: it is neither.
    """
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        raise InputError(f"{name} must be a text or a list of texts.")
    for i, text in enumerate(value):
        if not isinstance(text, str):
            raise InputError(f"{name}[{i}] must be a text.")
    return value


def ask(
    served: Served,
    limits: Limits,
    texts: Sequence[str],
    say: Callable[[Prediction], T],
    finish: Callable[[list[T], list[Outcome]], Any],
    *,
    explain: bool = False,
    top_k: int | None = None,
    rows: Sequence[object] | None = None,
) -> Request:
    """Return a request to a model.

    Args:
        served: the model.
        limits: the limits of a request.
        texts: the texts to classify.
        say: makes the result of one prediction, and keeps none of its arrays.
        finish: makes the answer from the results of all texts: plain data, or an `EncodedAnswer`.
        explain: also return what each token added.
        top_k: how many labels an explanation contains; None for all of them.
        rows: the rows that the texts came from, if the format has rows; None if it has only texts.

    Raises:
        InputError: the model reads several columns of a row, and the format has only texts.
        TooLargeError: the request exceeds a limit.
    """
    info = served.classifier.info
    if rows is None and len(names := [*info.text_columns, *(column.name for column in info.columns)]) > 1:
        raise InputError(
            f"The model {served.name!r} reads {and_(names)} of a row, which this format has no place for: send rows as "
            f"objects to POST /v1/classify or /v1/models/{served.name}:predict."
        )
    silent = answers.silent_values(served, rows) if rows is not None and info.columns else {}

    def write(predictions: Iterable[Prediction]) -> EncodedAnswer:
        found: list[T] = []
        outcomes: list[Outcome] = []
        for prediction in predictions:
            found.append(say(prediction))
            outcomes.append(answers.outcome(prediction))
        value = finish(found, outcomes)
        if isinstance(value, EncodedAnswer):
            return value
        return EncodedAnswer(answers.encode(value), served, outcomes, silent=silent)

    return answers.checked(Request(served, texts, write, explain, None, top_k), limits)


def error_body(message: str) -> bytes:
    """Return an error in the form that most formats use."""
    return answers.encode({"error": message})
