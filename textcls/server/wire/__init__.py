"""Wire formats that others' clients speak, so that a program can change its server and nothing else.

`tei` is that of text-embeddings-inference, `hub` that of the Hugging Face inference clients, `kserve` KServe's
version 1, `open_inference` the Open Inference Protocol (KServe's version 2, Triton), `vllm` that of vLLM's classifiers.
Each is a pure function from the bytes of a request to what it asks; keys, limits, deadlines and counts are those of
`/v1/classify`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from starlette.convertors import StringConvertor, register_url_convertor

from textcls.server.problems import RefusalError
from textcls.server.wire import hub, kserve, open_inference, tei, vllm
from textcls.server.wire.common import Wire

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["MODULES", "PUBLIC", "Wire", "document", "find"]

_NAME: Final = re.compile(r"\{(\w+)\}")


class _Segment(StringConvertor):
    """A name in a path, for the description: behind a colon stands what is asked of a model."""

    regex = "[^/:]+"


# As /livez and /readyz: whoever asks these has no key.
PUBLIC: Final = frozenset({"/v2/health/live", "/v2/health/ready"})
MODULES: Final = (tei, hub, kserve, open_inference, vllm)
_TABLE: Final[list[tuple[str, re.Pattern[str], str, Callable[..., Wire]]]] = [
    (method, re.compile(_NAME.sub(r"(?P<\1>[^/]+)", route)), route, make)
    for module in MODULES
    for method, route, make in module.ROUTES
]


def find(method: str, path: str) -> Wire | None:
    """Return what answers a path, if it is one of another wire format."""
    for wanted, pattern, route, make in _TABLE:
        if method == wanted and (match := pattern.fullmatch(path)):
            return make(route, **match.groupdict())
    return None


def document(app: "FastAPI") -> None:
    """List the paths in the service's description; the gate answers them before FastAPI sees them."""
    register_url_convertor("segment", _Segment())

    async def answer() -> None:
        raise RefusalError(500, "The gate is missing in front of this route.")

    for module in MODULES:
        about, _, details = (module.__doc__ or "").partition("\n\n")
        for method, route, make in module.ROUTES:
            names = _NAME.findall(route)
            wire = make(route, **dict.fromkeys(names, ""))
            app.add_api_route(
                _NAME.sub(r"{\1:segment}", route),
                answer,
                methods=[method],
                openapi_extra=_description(names, None if wire.tell else module.REQUEST),
                responses={status: {"description": HTTPStatus(status).phrase} for status in _errors(wire)},
                name=re.sub(r"\W+", "_", f"{method}{route}").strip("_").lower(),
                summary=route.rpartition("/")[2] or "predict",
                description=details.strip(),
                tags=[about.partition(":")[0].rstrip(".")],
            )


def _description(names: Sequence[str], request: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what OpenAPI is told of the names in a path and of the body, if texts are asked about."""
    said: dict[str, Any] = {
        "parameters": [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    }
    if request is not None:
        said["requestBody"] = {"required": True, "content": {"application/json": {"schema": request}}}
    return said


def _errors(wire: Wire) -> list[int]:
    """Return the statuses of errors, of which that of a wrong request is the format's own."""
    if wire.tell is not None:
        return [401, 404, 500, 503]
    invalid, _ = wire.problem(422, "")
    return sorted({invalid, 401, 404, 408, 413, 429, 500, 503, 504})
