"""Wire formats that others' clients speak, so that a program can change its server and nothing else.

`tei` is that of text-embeddings-inference, `hub` that of the Hugging Face inference clients, `kserve` KServe's
version 1, `open_inference` the Open Inference Protocol (KServe's version 2, Triton), `vllm` that of vLLM's classifiers.
Each is a pure function from a request's bytes to an answer; keys, limits, deadlines and counts are those of
`/v1/classify`.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textcls.server.problems import RefusalError
from textcls.server.wire import hub, kserve, open_inference, tei, vllm
from textcls.server.wire.common import Wire

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["MODULES", "PUBLIC", "Wire", "document", "find"]

# As /livez and /readyz: whoever asks these has no key.
PUBLIC: Final = frozenset({"/v2/health/live", "/v2/health/ready"})
MODULES: Final = (tei, hub, kserve, open_inference, vllm)
_TABLE: Final[list[tuple[str, re.Pattern[str], str, Callable[..., Wire]]]] = [
    (method, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route)), route, make)
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

    async def answer() -> None:
        raise RefusalError(500, "The gate is missing in front of this route.")

    for module in MODULES:
        about, _, details = (module.__doc__ or "").partition("\n\n")
        for method, route, _ in module.ROUTES:
            app.add_api_route(
                route,
                answer,
                methods=[method],
                name=re.sub(r"\W+", "_", f"{method}{route}").strip("_").lower(),
                summary=route.rpartition("/")[2] or "predict",
                description=details.strip(),
                tags=[about.partition(":")[0].rstrip(".")],
            )
