"""`textcls serve`: a model over HTTP."""

from pathlib import Path
from typing import Final

import click

from textcls.cli.options import model_argument
from textcls.errors import MissingExtraError
from textcls.server.limits import Limits

_DEFAULTS: Final = Limits()
_COUNT: Final = click.IntRange(min=1)


@click.command(epilog="Example: textcls serve tickets.onnx --port 8000")
@model_argument
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 is every one.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port; 0 takes a free one."
)
@click.option("--max-inputs", type=_COUNT, default=_DEFAULTS.max_inputs, show_default=True, help="Texts a request.")
@click.option(
    "--max-characters", type=_COUNT, default=_DEFAULTS.max_characters, show_default=True, help="Characters a text."
)
@click.option(
    "--max-body-bytes", type=_COUNT, default=_DEFAULTS.max_body_bytes, show_default=True, help="Bytes a request."
)
def serve(model: Path, host: str, port: int, max_inputs: int, max_characters: int, max_body_bytes: int) -> None:
    """Answer POST /v1/classify with MODEL until Ctrl-C or SIGTERM.

    The interface is described at /docs and /openapi.json.
    """
    try:
        from textcls.server import run
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn"):
            raise
        raise MissingExtraError("textcls serve", error.name, "serve") from error
    limits = Limits(max_inputs=max_inputs, max_characters=max_characters, max_body_bytes=max_body_bytes)
    run.serve(model, host, port, limits, ready=lambda url: click.echo(f"Serving {model} on {url}"))
