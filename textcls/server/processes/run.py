"""Listen, answer until asked to stop, and finish open requests: in one process, or several under a supervisor.

A separate thread reads and tests the models; the application, above all FastAPI, is imported meanwhile.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

from textcls.server.admission import auth
from textcls.server.http import listening
from textcls.server.http.listening import listen
from textcls.server.models.store import GenerationStore
from textcls.server.monitoring import logs
from textcls.server.processes.probes import probes
from textcls.server.settings import Settings, check_exposure
from textcls.server.system import memory, open_files, signals
from textcls.server.system.shared_folder import shared_folder


def serve(models: Sequence[str], settings: Settings, *, ready: Callable[[str], None] = lambda url: None) -> None:
    """Load the models, listen, and answer until SIGTERM or SIGINT; then finish open requests and return.

    SIGUSR1 reloads the model files. With several workers, SIGHUP replaces them one after the other; with a single one
    it is the same as SIGUSR1.

    Args:
        models: files, `NAME=FILE`, `NAME@VERSION=FILE`, or folders of files.
        settings: everything else.
        ready: called with the address of the service once it accepts connections.

    Raises:
        ArtifactError: a model cannot be used.
        ConfigError: the settings do not fit together, or keys cannot be read.
        MissingExtraError: tracing is enabled, and the package that sends spans is not installed.
        SurroundingsError: the address cannot be listened on, no folder can be written to, no worker can start, or
            the limit on open files is too low.
    """
    logs.configure(settings.log_level)
    memory.return_large()
    open_files.allow(settings.max_connections)
    keys, _ = auth.load(settings)
    check_exposure(settings, has_keys=bool(keys))
    with (
        logs.flushed(),
        # A reload that is requested before there are models to exchange follows after the start.
        signals.kept(),
        shared_folder(settings.runtime_dir) as folder,
        listen(settings.host, settings.port) as listener,
    ):
        store = GenerationStore(folder, models, settings)
        with ThreadPoolExecutor(1) as meanwhile:  # It is waited for: nothing can be imported while a process ends.
            if settings.workers == 1:
                meanwhile.submit(import_module, "textcls.server.processes.server")
            store.publish()
        memory.check_limit(settings, store.model_bytes())
        url = listening.url(settings.host, listener)
        with probes(store, settings):
            if settings.workers == 1:
                from textcls.server.processes.server import Server
                from textcls.server.service import Service

                server = Server(Service.of(store, settings), drain_seconds=settings.drain_seconds)
                with signals.stopped_by_signals(server):
                    ready(url)
                    server.run(sockets=[listener])
            else:
                from textcls.server.processes.supervisor import Supervisor

                if settings.tracing:
                    from textcls.server.monitoring.tracing import Tracing

                    # An error that would stop every worker is reported once, before any is started.
                    Tracing().close()
                Supervisor(store, settings, listener, lambda: ready(url)).run()
