"""A real server over a real socket, in a thread of the tests."""

import asyncio
import threading
import warnings
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import httpx
import pytest
from fastapi import FastAPI

from tests.service.clients import KEYS, client_of
from tests.service.processes import PATIENCE
from textcls import Classifier
from textcls.server.admission.auth import Keys
from textcls.server.http.listening import listen
from textcls.server.models import registry
from textcls.server.models.manifest import NOTHING_SERVED
from textcls.server.models.registry import Served
from textcls.server.models.store import GenerationStore
from textcls.server.processes.server import Server
from textcls.server.service import Service
from textcls.server.settings import Settings

with warnings.catch_warnings():
    # That another HTTP client is to be its base one day.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient as TestClient

T = TypeVar("T")
# Gone with the process.
_FOLDERS: list[TemporaryDirectory[str]] = []
NAMED = Keys([f"desk:{KEYS[0]}", f"shop: {KEYS[1]}"])


def service(classifier: Classifier, settings: Settings | None = None, **given: Any) -> Service:
    """A service of one model, which is called tickets."""
    return service_of([registry.serve(classifier, "tickets")], settings, **given)


def service_of(models: Sequence[Served], settings: Settings | None = None, **given: Any) -> Service:
    """A service of models, whatever their files are by now."""
    settings = settings or Settings()
    folder = TemporaryDirectory(prefix="textcls-service-", ignore_cleanup_errors=True)
    _FOLDERS.append(folder)
    manifest = NOTHING_SERVED.followed_by(NOTHING_SERVED.found)
    (Path(folder.name) / "generation.json").write_bytes(manifest.to_bytes())
    return Service(registry.generation(1, models), settings, GenerationStore(Path(folder.name), [], settings), **given)


def awaited(coroutine: Coroutine[Any, Any, T]) -> T:
    """What comes of it, in a thread of its own: a browser of other tests leaves its event loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def local(app: FastAPI) -> TestClient:
    """A client of an application in this process, which asks it by a name of this machine."""
    return TestClient(app, base_url="http://localhost")


@contextmanager
def listening(service: Service) -> Iterator[str]:
    """The address of a server, while it is wanted."""
    with listen("127.0.0.1", 0) as listener:
        server = Server(service, drain_seconds=0)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = server._hurry = True
            thread.join(PATIENCE)


@contextmanager
def serving(service: Service) -> Iterator[httpx.Client]:
    """A client of a server, while it is wanted."""
    with listening(service) as url, client_of(url) as client:
        yield client


def lines(caplog: pytest.LogCaptureFixture, name: str = "textcls.audit") -> list[dict[str, Any]]:
    """What a server in this process has logged under a name."""
    return [vars(record) for record in caplog.records if record.name == name]


class SlowClassifier(Classifier):
    """Answers when it is let."""

    gate = threading.Event()

    def predict(self, texts: Any, *, explain: bool = False, threshold: float | None = None) -> Any:
        self.gate.wait(PATIENCE)
        return super().predict(texts, explain=explain, threshold=threshold)
