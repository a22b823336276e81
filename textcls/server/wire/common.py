"""What the wire formats share: reading fields, asking the model, counting."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from textcls.errors import InputError
from textcls.results import Prediction
from textcls.server import answers
from textcls.server.answers import Answer, Form, Outcome
from textcls.server.parsing import load_json
from textcls.server.registry import Generation, Served
from textcls.server.schemas import ClassifyRequest
from textcls.server.settings import Limits

Headers = Sequence[tuple[bytes, bytes]]
T = TypeVar("T")

# JSON Schema, for the service's description.
TEXT: Final[dict[str, Any]] = {"type": "string"}
TEXTS: Final[dict[str, Any]] = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}
FLAG: Final[dict[str, Any]] = {"type": ["boolean", "null"]}


def schema_of(required: str, **properties: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object, of which one field must be there; others are left alone."""
    return {"type": "object", "required": [required], "properties": properties}


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
        InputError: the body is not a JSON object.
    """
    found = load_json(body)
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
    # JSON knows one kind of number: 3.0 is an integer of it.
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
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
    served: Served,
    limits: Limits,
    wanted: Sequence[str],
    say: Callable[[Prediction], T],
    *,
    explain: bool = False,
    top_k: int | None = None,
) -> tuple[list[T], list[Outcome]]:
    """Ask a model; return what the format says of each text, and what there is to count.

    Args:
        served: the model.
        limits: of a request.
        wanted: the texts.
        say: makes of a prediction what is said of it, and keeps nothing of its arrays.
        explain: also ask what each token added.
        top_k: of how many labels an explanation will be told; None is all of them.

    Raises:
        TooLargeError: it is beyond a limit.
    """
    request = ClassifyRequest.model_construct(inputs=list(wanted), explain=explain, top_k=top_k)
    answers.check(request, limits, served)
    found: list[T] = []
    outcomes: list[Outcome] = []
    for prediction in answers.predict(served.classifier, request.inputs, explain=explain):
        found.append(say(prediction))
        abstains = prediction.decision == "abstain"
        outcomes.append(Outcome(prediction.label, prediction.score, abstains, prediction.tokens_read))
    return found, outcomes


def written(value: Any, served: Served, wanted: Sequence[str], outcomes: Sequence[Outcome]) -> Answer:
    """Return plain data as the answer to texts, with what there is to count."""
    return Answer(answers.encode(value), served, outcomes, wanted)


def said(message: str) -> bytes:
    """Return an error as most formats write it."""
    return answers.encode({"error": message})
