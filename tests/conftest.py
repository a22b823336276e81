"""What several tests share. Everything is built from files of this repository; nothing is downloaded."""

from pathlib import Path

import pytest

from textcls import Classifier

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def sample_path() -> Path:
    """The bundled training table."""
    return ROOT / "examples" / "support_tickets.csv"


@pytest.fixture(scope="session")
def model_path() -> Path:
    """A small trained model, frozen: format version 1, dim 8, 64 tokens, no mixing, n-grams of 3 and 5."""
    return ROOT / "tests" / "golden" / "model_v1.onnx"


@pytest.fixture(scope="session")
def classifier(model_path: Path) -> Classifier:
    """The classifier of `model_path`."""
    return Classifier.load(model_path)
