"""Training to prototypes: the graph repeats PyTorch and NumPy, held-out rows calibrate, what does not fit is told."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.training.helpers import SMALL
from textcls import Classifier, ConfigError, artifact
from textcls.teaching.scores import padded, scores
from textcls.teaching.support import Support
from textcls.teaching.teach import embed
from textcls_training.config.settings import TrainConfig, from_options
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline import train

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
    assert all(row.text == sample.texts[row.row - 1] for rows in found.support for row in rows)


@pytest.mark.parametrize(
    "options",
    [{"mixing": "gmlp"}, {"attention": "cosine"}, {"embedding": "bits"}],
    ids=lambda options: next(iter(options)),
)
def test_what_prototypes_cannot_stand_beside_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="Prototypes do not go together with"):
        from_options({"head": "prototypes", **options})


def test_several_labels_a_text_are_refused_before_the_work(tmp_path: Path) -> None:
    given = LabelledTexts(texts=["a", "b"], label_sets=[{"x": 1.0}, {"y": 1.0}])
    with pytest.raises(ConfigError, match="one label a text"):
        train(given, tmp_path / "no.onnx", CONFIG)
    assert not (tmp_path / "no.onnx").exists()


def test_texts_are_kept_in_files_of_prototypes_alone() -> None:
    with pytest.raises(ConfigError, match="no other file holds texts"):
        TrainConfig(keep_texts=True)


def test_a_file_of_prototypes_says_the_number_of_its_labels_only_when_it_is_loaded(path: Path) -> None:
    shapes = {output.name: output.type.tensor_type.shape for output in onnx.load(path).graph.output}
    assert shapes["probabilities"].dim[1].dim_param == "labels"
    assert {artifact.EMBEDDING, artifact.SUPPORT} <= set(shapes)
