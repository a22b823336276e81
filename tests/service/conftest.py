"""A server in a thread, models that may be exchanged, and a classifier that can be held up."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.server import SlowClassifier, service_of, serving
from textcls import Classifier
from textcls.server.models import registry
from textcls.server.models.store import GenerationStore
from textcls.server.settings import Settings


@pytest.fixture(scope="module")
def client(classifier: Classifier) -> Iterator[httpx.Client]:
    """A client of a server of the small model, under the name of its file, whose limits are low."""
    settings = Settings(max_inputs=8, max_characters=5_000, max_body_bytes=60_000)
    with serving(service_of([registry.serve(classifier)], settings)) as client:
        yield client


@pytest.fixture
def model(model_path: Path, tmp_path: Path) -> Path:
    """A copy of the small model that may be exchanged."""
    return Path(shutil.copy(model_path, tmp_path / "tickets.onnx"))


@pytest.fixture
def store(model: Path, tmp_path: Path) -> GenerationStore:
    """The small model, published once."""
    (tmp_path / "run").mkdir()
    store = GenerationStore(tmp_path / "run", [str(model)], Settings())
    store.publish()
    return store


@pytest.fixture
def slow(model_path: Path) -> Iterator[SlowClassifier]:
    """A classifier that answers once its gate is set."""
    SlowClassifier.gate.clear()
    classifier = SlowClassifier.load(model_path)
    assert isinstance(classifier, SlowClassifier)
    yield classifier
    SlowClassifier.gate.set()


@pytest.fixture
def trail(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The lines of requests and of the audit trail."""
    caplog.set_level(logging.INFO, "textcls.audit")
    caplog.set_level(logging.INFO, "textcls.requests")
    return caplog
