"""What several tests share. Everything is built from files of this repository; nothing is downloaded."""

from pathlib import Path

import pytest

from textcls import Classifier, artifact

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


@pytest.fixture(scope="session")
def knowing(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Classifier:
    """The small model, which says on top that it knows the words with more than 15 % of the attention."""
    import onnx

    model = onnx.load(model_path)
    bar = onnx.helper.make_tensor("known_bar", onnx.TensorProto.FLOAT, [], [0.15])
    model.graph.initializer.append(bar)
    model.graph.node.append(onnx.helper.make_node("Greater", ["attention", "known_bar"], [artifact.KNOWN_OUTPUT]))
    output = onnx.helper.make_tensor_value_info(artifact.KNOWN_OUTPUT, onnx.TensorProto.BOOL, ["batch", "tokens"])
    model.graph.output.append(output)
    path = tmp_path_factory.mktemp("knowing") / "knowing.onnx"
    onnx.save(model, path)
    return Classifier.load(path)
