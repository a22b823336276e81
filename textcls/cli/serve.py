"""`textcls serve`: models over HTTP. Every setting of `textcls.server.settings` is an option here."""

import sys
from typing import Any, Final

import click

from textcls._util import optional_dependencies
from textcls._util.options import options_of
from textcls.cli.checked_options import config_options
from textcls.cli.grouped_help import Group, GroupedCommand
from textcls.server.settings import ENVIRONMENT, Settings
from textcls.server.system import signals

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
        ("same-labels", "load-seconds", "max-model-bytes"),
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
@config_options(options_of(Settings))
def serve(models: tuple[str, ...], **given: Any) -> None:
    """Serve MODEL over HTTP, with a page to try it on, until Ctrl-C or SIGTERM.

    MODEL is a file, NAME=FILE, NAME@VERSION=FILE, a folder of *.onnx, or a registry of textcls publish, of which the
    promoted version answers; several are served by their names. Each option can also be set by an environment variable,
    such as TEXTCLS_SERVE_MAX_INPUTS. SIGUSR1 reloads the files.
    """
    with signals.kept():
        with optional_dependencies.needed_by("textcls serve"):
            # Much of it is imported only while models are loaded.
            optional_dependencies.look_for_all_of("serve")
            if sys.platform == "win32":
                from textcls.server.processes.portable import serve as answer
            else:
                from textcls.server.processes.run import serve as answer
        answer(models, Settings(**given), ready=lambda url: click.echo(f"Serving {' '.join(models)} on {url}"))
