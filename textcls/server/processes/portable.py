"""Serve on systems where processes cannot share sockets or get signals, such as Windows: one process of plain uvicorn.

Everything below the application is then uvicorn's: requests that never end are not limited.
"""

from collections.abc import Callable, Sequence
from typing import Final

import uvicorn

from textcls.errors import ConfigError
from textcls.server.admission import auth
from textcls.server.application import assembled
from textcls.server.http import listening
from textcls.server.monitoring import logs
from textcls.server.settings import Settings, check_exposure
from textcls.server.system.signals import stopped_by_signals

# Settings that need several processes, signals, or our own connections.
_WITHOUT_EFFECT: Final = ("workers", "probe_port", "drain_seconds", "receive_seconds")


def serve(models: Sequence[str], settings: Settings, *, ready: Callable[[str], None] = lambda url: None) -> None:
    """Load the models, listen, and answer until Ctrl-C; then finish open requests and return.

    Args:
        models: files, `NAME=FILE`, `NAME@VERSION=FILE`, or folders of files.
        settings: everything else.
        ready: called with the address of the service once it accepts connections.

    Raises:
        ConfigError: a setting has no effect here; otherwise as `run.serve` does.
    """
    usual = Settings()
    for name in _WITHOUT_EFFECT:
        if getattr(settings, name) != getattr(usual, name):
            raise ConfigError(
                "On this system one process answers, by uvicorn alone: leave "
                f"--{name.replace('_', '-')} out, or use the Docker image."
            )
    logs.configure(settings.log_level)
    keys, _ = auth.load(settings)
    check_exposure(settings, has_keys=bool(keys))
    with logs.flushed(), listening.listen(settings.host, settings.port) as listener:
        url = listening.url(settings.host, listener)
        server = uvicorn.Server(
            uvicorn.Config(
                assembled(models, settings, follows=True),
                # The other parser mistakes the body after an offer of another protocol for data of that protocol.
                http="h11",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # the application reads them, from trusted proxies
                limit_concurrency=settings.max_connections,
                timeout_keep_alive=settings.keep_alive_seconds,
                timeout_graceful_shutdown=settings.stop_seconds,
            )
        )
        with stopped_by_signals(server):
            ready(url)
            server.run(sockets=[listener])
