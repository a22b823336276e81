"""Wire formats of other servers, so that a program can change its server and nothing else.

`tei` is that of text-embeddings-inference, `hub` that of the Hugging Face inference clients, `kserve` KServe's
version 1, `open_inference` the Open Inference Protocol (KServe's version 2, Triton), `vllm` that of vLLM's classifiers.
Each module turns the body of a request into a `Request`; keys, limits, deadlines and counts are the same as for
`/v1/classify`.
"""

from typing import Any, Final

from textcls.server.routes.wire import common, hub, kserve, open_inference, tei, vllm

__all__ = ["MODULES", "ROUTERS", "tags"]

MODULES: Final = (tei, hub, kserve, open_inference, vllm)
ROUTERS: Final = (
    tei.router,
    tei.health,
    hub.router,
    kserve.router,
    open_inference.router,
    open_inference.health,
    vllm.router,
)


def tags() -> list[dict[str, Any]]:
    """Return the OpenAPI tags that describe the formats."""
    found = []
    for module in MODULES:
        name, _, text = (module.__doc__ or "").partition("\n\n")
        found.append({"name": common.tag(name), "description": text.strip()})
    return found
