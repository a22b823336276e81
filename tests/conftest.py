"""What several tests share. Everything is built from files of this repository; nothing is downloaded."""

import gc
import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import settings

from tests.chance import draws
from tests.command_line import read_rows
from tests.model_metadata import metadata_of, with_held_out, with_metadata
from textcls import Classifier
from textcls.evaluation.drift.summary import HeldOutSummary, UnknownShare
from textcls.model import artifact

ROOT = Path(__file__).parent.parent
# Workers of the tests, and the services and trainings that they start, share the processors: threads of BLAS and
# PyTorch would spin beside each other, which takes half as much time again.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# The tests themselves are a million objects, among which garbage is looked for less often.
gc.set_threshold(50_000, 20, 50)
# How long one example takes depends on what else the machine does; what a run does not draw, another does.
settings.register_profile("drawn", deadline=None, derandomize=False, print_blob=True, max_examples=draws(100))
settings.load_profile("drawn")
# What starts processes, trains or exports for seconds, or reads gigabytes: `make quick` leaves it out.
SLOW = (
    "api", "cli", "jobs", "kernels", "labelling", "portable", "service", "training", "versions", "web", "wire",
    "model/teaching", "annotation/test_annotate.py", "data/test_jsonl.py", "data/test_label_levels.py",
    "data/test_label_tree.py", "data/test_long_rows.py", "data/test_storage.py", "display/test_plots.py",
    "evaluation/test_comparison_several.py", "evaluation/test_data_quality.py", "evaluation/test_drift_several.py",
    "evaluation/test_label_findings.py", "evaluation/test_label_paths.py", "evaluation/test_report_several.py",
    "explain/test_global_explanation.py", "explain/test_lexicon.py", "explain/test_shortcuts.py",
    "explain/test_stability.py", "model/test_model_files.py", "test_benchmarks.py", "test_damaged_files.py",
    "test_docs.py", "test_errors.py", "test_sample.py",
)  # fmt: skip
QUICK = tuple(
    f"training/{place}"
    for place in ("config", "data", "torch/models/test_ops.py", "torch/fit/test_loss.py", "fit/test_calibration.py",
                  "fit/test_label_set_calibration.py", "fit/test_selection.py", "fit/test_validation.py")
)  # fmt: skip


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark the tests of these places before any are left out, and put those in a browser last: its driver keeps an
    event loop running in the process, beside which no other can be started.
    """
    for item in items:
        inside = item.path.relative_to(ROOT / "tests").as_posix()
        if inside.startswith(SLOW) and not inside.startswith(QUICK):
            item.add_marker("slow")
    yield
    items.sort(key=lambda item: item.path.is_relative_to(ROOT / "tests" / "web"))


def pytest_collection_finish() -> None:
    """Look no more for garbage among the tests themselves, and hand on what PyTorch's fifty loggers say: to each that
    does not, pytest ties four handlers in each test.
    """
    gc.collect()
    gc.freeze()
    for name in [name for name in logging.Logger.manager.loggerDict if name.startswith("torch")]:
        logging.getLogger(name).propagate = True


@pytest.fixture(scope="session")
def sample_path() -> Path:
    """The bundled training table."""
    return ROOT / "textcls" / "demo" / "support_tickets.csv"


@pytest.fixture(scope="session")
def model_path() -> Path:
    """A small trained model, frozen: format version 1, dim 8, 64 tokens, no mixing, n-grams of 3 and 5."""
    return ROOT / "tests" / "golden" / "model_v1.onnx"


@pytest.fixture(scope="session")
def classifier(model_path: Path) -> Classifier:
    """The classifier of `model_path`."""
    return Classifier.load(model_path)


@pytest.fixture(scope="session")
def tickets(sample_path: Path) -> list[tuple[str, str]]:
    """The rows of the sample, in another order."""
    found = [(row["text"], row["label"]) for row in read_rows(sample_path)]
    return [found[i] for i in np.random.default_rng(0).permutation(len(found)).tolist()]


@pytest.fixture(scope="session")
def held_out(classifier: Classifier, tickets: list[tuple[str, str]]) -> HeldOutSummary:
    """The small model's answers to the first half of `tickets`."""
    half = tickets[: len(tickets) // 2]
    explanations = classifier.explain([text for text, _ in half])
    labels = np.array([classifier.labels.index(label) for _, label in half])
    known = np.concatenate([one.known for one in explanations])
    return HeldOutSummary.of(
        np.array([one.probability_values for one in explanations]),
        labels,
        np.array([len(one.known) for one in explanations]),
        UnknownShare(float((~known).mean()), 0.004),
        classifier.labels,
    )


@pytest.fixture(scope="session")
def watched_path(model_path: Path, held_out: HeldOutSummary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model with that summary in its file."""
    return with_held_out(model_path, held_out.to_json(), tmp_path_factory.mktemp("watched") / "tickets.onnx")


@pytest.fixture(scope="session")
def watched(watched_path: Path) -> Classifier:
    """The classifier of `watched_path`."""
    return Classifier.load(watched_path)


@pytest.fixture(scope="session")
def two_columns_path(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same small model as one that was trained on a subject and a body, with an example."""
    metadata = metadata_of(model_path) | {
        "text_columns": ["subject", "body"],
        "example": "Charged twice\nMy card, why?",
    }
    path = tmp_path_factory.mktemp("two") / "mails.onnx"
    path.write_bytes(with_metadata(model_path, metadata))
    return path


@pytest.fixture(scope="session")
def two_columns(two_columns_path: Path) -> Classifier:
    """The classifier of `two_columns_path`."""
    return Classifier.load(two_columns_path)


@pytest.fixture(scope="session")
def several_labels_path(model_path: Path) -> Path:
    """A small trained model whose texts may have several labels, or none, frozen: format version 2."""
    return model_path.with_name("model_v2.onnx")


@pytest.fixture(scope="session")
def several_labels(several_labels_path: Path) -> Classifier:
    """The classifier of `several_labels_path`."""
    return Classifier.load(several_labels_path)


@pytest.fixture(scope="session")
def prototypes_path(model_path: Path) -> Path:
    """A small trained model of prototypes, taught the label `returns`, frozen: format version 2."""
    return model_path.with_name("model_v2_prototypes.onnx")


@pytest.fixture(scope="session")
def prototypes(prototypes_path: Path) -> Classifier:
    """The classifier of `prototypes_path`."""
    return Classifier.load(prototypes_path)


@pytest.fixture(scope="session")
def many_labels_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 120 labels, of which each has a word of its own, that reads 2,048 tokens."""
    import textcls

    rows = [(f"word{label} other{row}", f"label-number-{label:03}") for label in range(120) for row in range(4)]
    path = tmp_path_factory.mktemp("many") / "many.onnx"
    textcls.train([text for text, _ in rows], [label for _, label in rows], path, epochs=1)
    return path


@pytest.fixture(scope="session")
def many_labels(many_labels_path: Path) -> Classifier:
    """The classifier of `many_labels_path`."""
    return Classifier.load(many_labels_path)


@pytest.fixture(scope="session")
def whole_tokens_path(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model as one that attributes to whole tokens only."""
    import onnx

    model = onnx.load(model_path)
    kept = [output for output in model.graph.output if output.name in artifact.OUTPUTS]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    path = tmp_path_factory.mktemp("whole") / "whole.onnx"
    onnx.save(model, path)
    return path


@pytest.fixture
def benchmark_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Import a module of benchmarks/, which is not a package: its files are run as scripts."""
    pytest.importorskip("sklearn", reason="the benchmarks need scikit-learn")
    pytest.importorskip("threadpoolctl", reason="the benchmarks need threadpoolctl")
    folder = str(ROOT / "benchmarks")
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]


@pytest.fixture(scope="session")
def with_columns_path() -> Path:
    """A small trained model with columns beside the text, frozen: format version 4; product, price and opened."""
    return Path(__file__).parent / "golden" / "model_v4.onnx"


@pytest.fixture(scope="session")
def with_columns(with_columns_path: Path) -> Classifier:
    return Classifier.load(with_columns_path)
