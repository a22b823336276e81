"""Explained answers over HTTP.

`http` takes a request from the socket to its route; `routes` has the handlers, by wire format. Requests about texts go
to `service`, which all requests of a worker share, and from there to `inference`. `models` loads and exchanges models;
`admission` decides who may ask, how much and how often; `monitoring` has logs, metrics and traces. `processes` starts,
runs and stops the workers; `system` talks to the operating system. `settings` are the operator's, and `problems` the
form of error responses.

`application` is all of it as a FastAPI application, which `textcls serve` runs, too. `create_app` is imported on first
use, so that `textcls.server.settings` can be imported without the extra `serve`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textcls.server.application import create_app
    from textcls.server.settings import Settings

__all__ = ["Settings", "create_app"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    from textcls._util import optional_dependencies

    if name == "create_app":
        return optional_dependencies.load("textcls.server.application:create_app", "textcls.server.create_app")
    if name == "Settings":
        return optional_dependencies.load("textcls.server.settings:Settings", "textcls.server.Settings")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
