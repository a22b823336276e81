"""Small servers that tests ask, each in a thread of its own while it is wanted."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from typing import TypeVar

S = TypeVar("S", bound=BaseServer)


@contextmanager
def threaded(server: S) -> Iterator[S]:
    """Serve in a thread, and close the server at the end."""
    # A server looks so often, in seconds, whether it is to end; usually twice a second, which tests would wait for.
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    with server:
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
