"""Training to prototypes: the graph repeats PyTorch and NumPy, held-out rows calibrate, what does not fit is told."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from faithfulness.benchmark import require_one_label
from tests.training.fit.test_interrupt import StopsAfter
from tests.training.helpers import SMALL
from textcls import Classifier, ConfigError
from textcls.model import artifact
from textcls.model.teaching import teach
from textcls.model.teaching.scores import padded, scores
from textcls.model.teaching.support import Support
from textcls.model.teaching.teach import embed
from textcls_training.config.settings import TrainConfig, from_options
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.fit.interrupt import Stop
from textcls_training.pipeline.training import train

FIELDS = {name: getattr(SMALL, name) for name in ("dim", "ngrams", "epochs", "max_tokens", "device", "vectors")}
CONFIG = TrainConfig(**FIELDS, head="prototypes")


@pytest.fixture(scope="module")
def path(sample: LabelledTexts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of prototypes."""
    path = tmp_path_factory.mktemp("prototypes") / "model.onnx"
    train(sample, path, CONFIG)
    return path


def test_the_graph_scores_as_the_definition_in_numpy(path: Path, sample: LabelledTexts) -> None:
    classifier = Classifier.load(path)
    support = Support.of_file(path.read_bytes(), path)
    texts = [*sample.texts[:20], "", "zqxjkvwq"]
    together = padded(np.concatenate(support.of_label), np.array(support.prototypes.counts))
    expected = scores(embed(classifier, texts)[0], *together, support.prototypes.scale)
    logits = [explanation.logit_values for explanation in classifier.explain(texts)]
    np.testing.assert_allclose(np.stack(logits), support.prototypes.scale * expected.cosine_BC, atol=1e-4)


def test_onnx_itself_finds_nothing_wrong_with_the_file(path: Path) -> None:
    model = onnx.load(path)
    model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 3))
    onnx.checker.check_model(model)


def test_the_same_rows_give_the_same_bytes(path: Path, sample: LabelledTexts, tmp_path: Path) -> None:
    train(sample, tmp_path / "again.onnx", CONFIG)
    assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()


def test_every_label_has_support_rows_which_stand_for_all_its_rows(path: Path, sample: LabelledTexts) -> None:
    info = Classifier.load(path).info
    assert info.format_version == 2
    assert info.prototypes is not None
    for label, rows in zip(info.labels, info.prototypes.support, strict=True):
        assert sum(row.rows for row in rows) == list(sample.labels).count(label)
        assert all(sample.labels[row.row - 1] == label and not row.taught and row.text is None for row in rows)


def test_held_out_rows_give_the_temperature_and_the_figures(path: Path, sample: LabelledTexts) -> None:
    info = Classifier.load(path).info
    assert info.training["held_out_rows"] == len(sample.texts)
    assert info.training["held_out_accuracy"] > 1 / len(info.labels)
    assert info.temperature not in (0.7, 1.0)
    assert sum(info.training["parts"]) == pytest.approx(1, abs=1e-5)


def test_texts_are_kept_only_where_that_is_asked_for(sample: LabelledTexts, tmp_path: Path) -> None:
    train(sample, tmp_path / "texts.onnx", TrainConfig(**{**FIELDS, "epochs": 1}, head="prototypes", keep_texts=True))
    found = Classifier.load(tmp_path / "texts.onnx").info.prototypes
    assert found is not None
    assert all(row.text == sample.texts[row.row - 1][:300] for rows in found.support for row in rows)


def test_a_training_that_is_stopped_leaves_a_model_that_can_be_taught(sample: LabelledTexts, tmp_path: Path) -> None:
    valid = LabelledTexts(texts=sample.texts[:60], labels=sample.labels[:60])
    given = LabelledTexts(texts=sample.texts[60:], labels=sample.labels[60:])
    stop, path = Stop(), tmp_path / "m.onnx"
    # 90 rows are 6 steps of 16: this is in the fourth epoch.
    config = replace(CONFIG, epochs=30)
    report = train(given, path, config, valid=valid, callback=StopsAfter(stop, 20), stop=stop)
    assert (report.interrupted, report.rows, report.held_out_rows) == (True, 90, 60)
    found = teach(Classifier.load(path), path.read_bytes(), {"dragons": ["a dragon", "the dragon"]})
    assert found.classifier.labels[-1] == "dragons"


def test_a_student_has_support_rows_of_the_labelled_texts_alone(sample: LabelledTexts, tmp_path: Path) -> None:
    given = LabelledTexts(texts=sample.texts[:100], labels=sample.labels[:100])
    texts = (UnlabelledText(text) for text in sample.texts[100:])
    unlabelled = UnlabelledTexts.sample(texts, 100, given.texts)
    config = replace(CONFIG, epochs=1, unlabelled_weight=1.0)
    train(given, tmp_path / "m.onnx", config, unlabelled=unlabelled)
    info = Classifier.load(tmp_path / "m.onnx").info
    assert info.training["distillation"]["rows"] == 50
    assert info.prototypes is not None
    assert sum(row.rows for rows in info.prototypes.support for row in rows) == 100


@pytest.mark.parametrize(
    "options",
    [{"mixing": "gmlp"}, {"attention": "cosine"}, {"embedding": "bits"}],
    ids=lambda options: next(iter(options)),
)
def test_what_prototypes_cannot_stand_beside_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="Prototypes cannot be combined with"):
        from_options({"head": "prototypes", **options})


def test_several_labels_a_text_are_refused_before_the_work(tmp_path: Path) -> None:
    given = LabelledTexts(texts=["a", "b"], label_sets=[{"x": 1.0}, {"y": 1.0}])
    with pytest.raises(ConfigError, match="one label per text"):
        train(given, tmp_path / "no.onnx", CONFIG)
    assert not (tmp_path / "no.onnx").exists()


def test_more_labels_than_a_file_can_hold_are_refused_before_the_work(tmp_path: Path) -> None:
    labels = [f"label {i}" for i in range(20_001)]
    given = LabelledTexts(texts=labels, labels=labels)
    with pytest.raises(ConfigError, match="20,001 support rows, and the maximum is 20,000; train with a linear head"):
        train(given, tmp_path / "no.onnx", CONFIG)


def test_texts_are_kept_in_files_of_prototypes_alone() -> None:
    with pytest.raises(ConfigError, match="no other model file holds texts"):
        TrainConfig(keep_texts=True)


def test_a_file_of_prototypes_says_the_number_of_its_labels_only_when_it_is_loaded(path: Path) -> None:
    shapes = {output.name: output.type.tensor_type.shape for output in onnx.load(path).graph.output}
    assert shapes["probabilities"].dim[1].dim_param == "labels"
    assert {artifact.EMBEDDING, artifact.SUPPORT} <= set(shapes)


def test_the_benchmark_of_explanations_refuses_prototypes(prototypes: Classifier) -> None:
    with pytest.raises(ConfigError, match="are prototypes, and explanations are measured of"):
        require_one_label(prototypes)
