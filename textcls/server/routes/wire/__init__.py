"""Wire formats that others' clients speak, so that a program can change its server and nothing else.

`tei` is that of text-embeddings-inference, `hub` that of the Hugging Face inference clients, `kserve` KServe's
version 1, `open_inference` the Open Inference Protocol (KServe's version 2, Triton), `vllm` that of vLLM's classifiers.
Each module turns the body of a request into a `Request`; keys, limits, deadlines and counts are those of
`/v1/classify`.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from textcls.server.routes.routing import Route, RouteDoc
from textcls.server.routes.wire import hub, kserve, open_inference, tei, vllm

__all__ = ["MODULES", "routes"]

MODULES: Final = (tei, hub, kserve, open_inference, vllm)


def routes() -> Iterator[Route]:
    """Yield the routes of all formats, with what the service's description says of them."""
    for module in MODULES:
        tag, _, text = (module.__doc__ or "").partition("\n\n")
        for route in module.ROUTES:
            doc = RouteDoc(
                summary=route.path.rpartition("/")[2] or "predict",
                name=re.sub(r"\W+", "_", f"{route.method}{route.path}").strip("_").lower(),
                text=text.strip(),
                tag=tag.partition(":")[0].rstrip("."),
                body=module.REQUEST if route.reader else None,
                responses={status: {"description": HTTPStatus(status).phrase} for status in _errors(route)},
            )
            yield replace(route, doc=doc)


def _errors(route: Route) -> list[int]:
    """Return the statuses of errors, of which that of a wrong request is the format's own."""
    if route.handler:
        return [500, 503] if route.access == "public" else [401, 404, 500, 503]
    invalid, _ = route.problem(422, "")
    return sorted({invalid, 401, 404, 408, 413, 429, 500, 503, 504})
