"""From the bytes of a body to a request, or to one sentence that says what is wrong."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import orjson
from pydantic import ValidationError

from textcls.errors import InputError, TooLargeError
from textcls.server.inference.explaining import ExplainOptions
from textcls.server.inference.schemas import StrictRequest
from textcls.server.settings import Limits

_UNREADABLE: Final = (
    "The body cannot be read as JSON: it must be UTF-8, neither compressed nor deeply nested, and without numbers of "
    "thousands of digits."
)
_NO_JSON: Final = "The body must be JSON with the header 'content-type: application/json'."
_PHRASES: Final = {
    "is_instance_of": "must be a text",
    "list_type": "must be a text or a list of texts",
    "missing": "is missing",
    "string_too_short": "must not be empty",
    "string_type": "must be a text",
    "string_unicode": "holds an unpaired surrogate",
    "too_short": "must hold at least one text",
}
_LONGEST_NAME: Final = 40
# Bytes that a body may contain besides its texts, plus some per text. Parsing millions of brackets or numbers would
# hold the interpreter for a fifth of a second, ten times as long as two megabytes of text.
_BESIDE_BYTES: Final = 65_536
_BESIDE_BYTES_A_TEXT: Final = 16
Kind = TypeVar("Kind", bound=StrictRequest)


def parse(kind: type[Kind], body: bytes, content_type: bytes, limits: Limits) -> Kind:
    """Return the request in `body`, which must be of this kind.

    Raises:
        InputError: the body is not a valid request; the message says where, without repeating what was sent.
        TooLargeError: it contains too much besides texts.
    """
    if content_type != b"application/json" and not _is_json(content_type):
        raise InputError(_NO_JSON)
    if not body:
        raise InputError(sentence(kind, [{"type": "missing", "loc": (), "input": None}]))
    given = load_json(body, limits)
    try:
        request = kind.__pydantic_validator__.validate_python(given)
    except ValidationError as error:
        raise InputError(sentence(kind, error.errors(include_url=False))) from None
    except (ValueError, RecursionError):
        raise InputError(_UNREADABLE) from None
    if not isinstance(request, kind):
        raise TypeError("pydantic returned something else than the model asked for")
    return request


def load_json(body: bytes, limits: Limits) -> Any:
    """Return the JSON value of a body.

    Raises:
        InputError: the body is not valid JSON; the message says where, without repeating what was sent.
        TooLargeError: it contains too much besides texts.
    """
    try:
        if len(body) > _BESIDE_BYTES:
            _check_structure(body, limits)
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return _load_slowly(body)
    except ValueError:
        raise InputError(_UNREADABLE) from None


def _load_slowly(body: bytes) -> Any:
    """Return the JSON value of a body that orjson refuses: it may be valid, with unpaired surrogates in a text.

    Raises:
        InputError: it is not valid.
    """
    try:
        return json.loads(body)
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at")
        raise InputError(
            f"The body is not valid JSON at character {error.pos}: {reason[:1].lower()}{reason[1:]}."
        ) from None
    except (ValueError, RecursionError):
        raise InputError(_UNREADABLE) from None


def _check_structure(body: bytes, limits: Limits) -> None:
    """Refuse a body of many small values before parsing it.

    Raises:
        TooLargeError: it contains too much besides texts.
        ValueError: it cannot be decoded.
    """
    encoding = json.detect_encoding(body)
    if not encoding.startswith("utf-8"):
        body = body.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")
    most = max(_BESIDE_BYTES, _BESIDE_BYTES_A_TEXT * limits.max_inputs)
    # Without escaped backslashes and quotes, each quote starts or ends a text. If not, the body is not valid JSON, and
    # the parser stops there.
    rest = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # There is at least a comma between two texts.
    if rest.count(b'"') <= 2 * most and len(b"".join(rest.split(b'"')[::2]).translate(None, b" \t\r\n")) <= most:
        return
    raise TooLargeError(f"The body holds more than {most:,} bytes besides its texts: send little else.")


def sentence(kind: type[StrictRequest], errors: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence with the first problem, where it is, and how many more there are.

    An unknown field is reported before a missing one, since it is probably that one, misspelt.
    """
    first = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    where, problem = first["loc"], first["type"]
    if problem == "too_many_fields":
        message = first["msg"]
    elif not where and problem != "string_unicode":
        message = f"The body must be a JSON object such as {kind.such_as}"
    elif problem == "extra_forbidden":
        fields = ExplainOptions.model_fields if where[0] == "explain" and len(where) > 1 else kind.model_fields
        message = f"{_path(where)} is not a field of this request; its fields are {', '.join(fields)}"
    else:
        phrase = _PHRASES.get(problem) or first["msg"].replace("Input should", "must", 1)
        message = f"{_path(where) or 'The body'} {phrase}"
    more = len(errors) - 1
    return f"{message} (and {more:,} more problem{'s' if more > 1 else ''})." if more else f"{message}."


def _is_json(content_type: bytes) -> bool:
    kind = content_type.split(b";")[0].strip().lower()
    return kind == b"application/json" or (kind.startswith(b"application/") and kind.endswith(b"+json"))


def _path(where: Sequence[str | int]) -> str:
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)[1:]
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
