"""Explained answers over HTTP.

A request comes in by `http`, from the socket to its route; `routes` says who answers it, and in which wire format. What
asks about texts goes to `service`, which requests of a worker share, and from there to `inference`. `models` is what
answers, and how it is exchanged; `admission` who may ask, how much and how often; `monitoring` what is told of it all.
`processes` start, answer and stop, with what `system` asks of the operating system. `settings` is what an operator
chooses, `problems` what errors look like.

`application` is all of it as a FastAPI application, which `textcls serve` runs, too. `create_app` is imported when
somebody asks for it, so that `textcls.server.settings` can be read without the extra `serve`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textcls.server.application import create_app
    from textcls.server.settings import Settings

__all__ = ["Settings", "create_app"]


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    from textcls._util import optional_dependencies

    if name == "create_app":
        return optional_dependencies.load("textcls.server.application:create_app", "textcls.server.create_app")
    if name == "Settings":
        return optional_dependencies.load("textcls.server.settings:Settings", "textcls.server.Settings")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
