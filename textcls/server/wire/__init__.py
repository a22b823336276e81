"""Wire formats that others' clients speak, so that a program can change its server and nothing else.

`tei` is that of text-embeddings-inference, `hub` that of the Hugging Face inference clients, `kserve` KServe's
version 1, `open_inference` the Open Inference Protocol (KServe's version 2, Triton), `vllm` that of vLLM's classifiers.
Each is a pure function from a request's bytes to an answer; keys, limits, deadlines and counts are those of
`/v1/classify`.
"""

import re
from collections.abc import Callable
from typing import Final

from textcls.server.wire import hub, kserve, open_inference, tei, vllm
from textcls.server.wire.common import Wire

__all__ = ["PUBLIC", "Wire", "find"]

# As /livez and /readyz: whoever asks these has no key.
PUBLIC: Final = frozenset({"/v2/health/live", "/v2/health/ready"})
_TABLE: Final[list[tuple[str, re.Pattern[str], str, Callable[..., Wire]]]] = [
    (method, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/:]+)", route)), route, make)
    for module in (tei, hub, kserve, open_inference, vllm)
    for method, route, make in module.ROUTES
]


def find(method: str, path: str) -> Wire | None:
    """Return what answers a path, if it is one of another wire format."""
    for wanted, pattern, route, make in _TABLE:
        if method == wanted and (match := pattern.fullmatch(path)):
            return make(route, **match.groupdict())
    return None
