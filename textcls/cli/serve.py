"""`textcls serve`: models over HTTP. Every setting of `textcls.server.settings` is an option here."""

import sys
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Final

import click

from textcls._util import optional_dependencies
from textcls.cli.grouped_help import Group, GroupedCommand
from textcls.server.settings import ENVIRONMENT, Settings
from textcls.server.system import signals


def _type(field: Field[Any]) -> Any:
    about = field.metadata
    if about["choices"]:
        return click.Choice(about["choices"])
    kinds = {
        int: click.IntRange(min=int(about["least"]), max=about["most"]),
        float: click.FloatRange(min=about["least"], max=about["most"]),
        bool: bool,
        str: str,
        Path | None: click.Path(path_type=Path),
        tuple[str, ...]: str,
    }
    return kinds[field.type]  # type: ignore[index]


def _option(field: Field[Any]) -> Callable[[Any], Any]:
    flag = field.name.replace("_", "-")
    several = field.type == tuple[str, ...]
    return click.option(
        # What is on by default needs a way to be switched off.
        f"--{flag}/--no-{flag}" if field.default is True else f"--{flag}",
        field.name,
        type=_type(field),
        default=field.default,
        is_flag=field.type is bool,
        multiple=several,
        show_default=field.default not in (None, False, ()),
        help=field.metadata["about"],
    )


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for field in reversed(fields(Settings)):
        command = _option(field)(command)
    return command


_GROUPS: Final = (
    Group("Where", ("host", "port", "page", "workers"), ("threads", "batching", "docs", "runtime-dir")),
    Group(
        "Who may ask",
        ("api-keys-file", "no-auth", "cors-origin"),
        ("admin-key-file", "allowed-host", "trusted-proxy", "key-rate", "key-burst", "key-concurrency"),
    ),
    Group(
        "Models",
        ("watch-seconds",),
        ("same-labels", "load-seconds", "max-model-bytes", "teaching", "max-taught-bytes"),
    ),
    Group(
        "Bounds",
        ("max-inputs", "max-characters"),
        ("max-body-bytes", "max-explained", "max-queue", "max-held-bytes", "max-connections", "request-seconds",
         "receive-seconds", "keep-alive-seconds", "drain-seconds", "stop-seconds"),
    ),
    Group(
        "Watching it",
        ("log-requests", "log-level"),
        ("log-addresses", "log-texts", "public-metrics", "probe-port", "drift-window", "tracing"),
    ),
)  # fmt: skip


@click.command(cls=GroupedCommand, groups=_GROUPS, epilog="Example: textcls serve tickets.onnx --port 8000")
@click.argument("models", nargs=-1, required=True, envvar=f"{ENVIRONMENT}MODELS", metavar="MODEL...")
@_options
def serve(models: tuple[str, ...], **given: Any) -> None:
    """Serve MODEL over HTTP, with a page to try it on, until Ctrl-C or SIGTERM.

    MODEL is a file, NAME=FILE, NAME@VERSION=FILE, a folder of *.onnx, or a registry of textcls publish, of which the
    promoted version answers; several are served by their names. Each option can also be set by an environment variable,
    such as TEXTCLS_SERVE_MAX_INPUTS. SIGUSR1 reloads the files.
    """
    with signals.kept():
        with optional_dependencies.needed_by("textcls serve"):
            # It is imported only once somebody asks for the description of the service.
            optional_dependencies.look_for("fastapi")
            if sys.platform == "win32":
                from textcls.server.processes.portable import serve as answer
            else:
                from textcls.server.processes.run import serve as answer
        answer(models, Settings(**given), ready=lambda url: click.echo(f"Serving {' '.join(models)} on {url}"))
