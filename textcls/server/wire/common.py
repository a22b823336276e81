"""What the wire formats share: reading fields, asking the model, counting."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textcls.errors import InputError
from textcls.results import Prediction
from textcls.server import answers
from textcls.server.answers import Answer, Form, Outcome
from textcls.server.registry import Generation, Served
from textcls.server.schemas import ClassifyRequest
from textcls.server.settings import Limits

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """What answers a path of another wire format.

    Attributes:
        route: what it counts as.
        form: from the headers of a request to what reads and answers it; unused if there is `tell`.
        problem: how the format writes an error: from status and message to status and body.
        tell: answers a question about a model or the service, and whether the service is stopping; None if it is texts
            that are asked about.
    """

    route: str
    problem: Callable[[int, str], tuple[int, bytes]]
    form: Callable[[Headers], Form] = lambda headers: answers.answer
    tell: Callable[[Generation, bool], tuple[int, bytes]] | None = None


# A method, a path, and what makes of the names in the path what answers it.
Route = tuple[str, str, Callable[..., Wire]]


def read(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; fields that a format does not know are left alone, as its servers do.

    Raises:
        InputError: it is none.
    """
    try:
        # Not orjson, which refuses the unpaired surrogates that JSON may hold.
        found = json.loads(body)
    except json.JSONDecodeError as error:
        raise InputError(f"The body is no valid JSON at character {error.pos}.") from None
    except (ValueError, RecursionError):
        raise InputError("The body is no JSON that can be read: send UTF-8.") from None
    if not isinstance(found, dict):
        raise InputError("The body must be a JSON object.")
    return found


def field(given: Mapping[str, Any], name: str, kind: type, default: Any = None) -> Any:
    """Return an optional field; null is as good as none.

    Raises:
        InputError: it is of another kind.
    """
    value = given.get(name)
    if value is None:
        return default
    # A bool is an int to Python.
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
    served: Served, limits: Limits, wanted: Sequence[str], *, explain: bool = False, top_k: int | None = None
) -> list[Prediction]:
    """Ask a model.

    Raises:
        TooLargeError: it is beyond a limit.
    """
    request = ClassifyRequest.model_construct(inputs=list(wanted), explain=explain, top_k=top_k)
    answers.check(request, limits, served)
    return served.classifier.predict(list(wanted), explain=explain)


def written(
    value: Any, served: Served, wanted: Sequence[str], predictions: Sequence[Prediction], *, extra: bytes = b""
) -> Answer:
    """Return plain data as the answer to texts, and what there is to count.

    Args:
        value: the data.
        served: who answered.
        wanted: the texts.
        predictions: what was answered.
        extra: bytes that follow the JSON.
    """
    return Answer(answers.encode(value) + extra, served, outcomes(predictions), wanted)


def outcomes(predictions: Sequence[Prediction]) -> list[Outcome]:
    """Return what there is to count."""
    return [Outcome(p.label, p.score, p.decision == "abstain", p.heard) for p in predictions]


def said(message: str) -> bytes:
    """Return an error as most formats write it."""
    return answers.encode({"error": message})
