"""Machines of one label against the rest beside the view of pieces."""

from pathlib import Path

import numpy as np
import pytest

from tests.training.helpers import SMALL, Trained
from textcls.model.classifier import Classifier
from textcls_training.config import resolve
from textcls_training.config.settings import ModelConfig, TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.one_vs_rest.beside import COST, costs_beside
from textcls_training.models.ensemble import HashedView
from textcls_training.pipeline.training import run

# A word that says nothing of these labels comes often in the texts of one of them.
REPEATED = LabelledTexts(
    texts=[f"refund it please number {i}" for i in range(60)]
    + [f"where is it {'it ' * 20} number {i}" for i in range(60)],
    labels=["refund"] * 60 + ["where"] * 60,
)


def trained_view(rows: LabelledTexts, path: Path, config: TrainConfig) -> HashedView:
    view = run(rows, path, config).model.views[-1]
    assert isinstance(view, HashedView)
    return view


def test_the_view_of_pieces_has_machines_for_a_second_seed_which_counts_distinct_tokens_once(trained: Trained) -> None:
    info = Classifier.load(trained.path).info
    assert info.training["seeds"] == [1, 2]
    assert info.model["seeds"] == 1
    assert sum(info.training["shares"]) == pytest.approx(1, abs=1e-5)


def test_machines_weigh_all_distinct_tokens_alike_however_often_each_comes(tmp_path: Path) -> None:
    run(REPEATED, tmp_path / "model.onnx", TrainConfig(dim=8, epochs=2, vectors="none"))
    graph = Classifier.load(tmp_path / "model.onnx").graph
    once_TG, thrice_TG = graph.rows("it number", 2).weights_TG, graph.rows("it it it number", 4).weights_TG
    np.testing.assert_allclose(thrice_TG[:, -1] / thrice_TG[3, -1], [1 / 3, 1 / 3, 1 / 3, 1], rtol=1e-5)
    assert once_TG[0, -1] == pytest.approx(once_TG[1, -1])
    assert abs(once_TG[0, 1] - once_TG[1, 1]) > 1e-4


def test_what_is_told_of_the_attention_is_that_of_gradient_steps_alone(tmp_path: Path) -> None:
    view = trained_view(REPEATED, tmp_path / "model.onnx", TrainConfig(dim=8, epochs=2, vectors="none"))
    assert view.distinct == (False, True)
    np.testing.assert_array_equal(view.classifier.attention_S, [1, 0])


def test_a_mistake_costs_as_much_as_its_label_and_row_weigh_and_as_a_teacher_is_sure_of_it() -> None:
    corpus = Corpus.of(["a", "b", "c"], 9)
    rows = Dataset(corpus, np.array([0, 1, 1]), weight_R=np.array([1, 2, 1], np.float32))
    config = resolve.resolve(TrainConfig(class_weight={"x": 3.0, "y": 1.0}), ["a", "b", "c"], 3, 2, names=["x", "y"])
    signs_NC = np.array([[1, -1], [-1, 1], [-1, 1]])
    expected_NC = COST * np.array([[3], [2], [1]]) * signs_NC
    np.testing.assert_allclose(costs_beside(rows, 2, config), expected_NC, rtol=1e-6)
    answered = rows._replace(probability_RC=np.array([[0.9, 0.1], [0.4, 0.6], [0, 1]], np.float32))
    np.testing.assert_allclose(costs_beside(answered, 2, config), expected_NC * [[0.9], [0.6], [1]], rtol=1e-6)


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(dim=8, epochs=1, impl="reference", device="cpu"),
        TrainConfig(dim=8, epochs=1, ngrams=()),
        TrainConfig(dim=8, epochs=1, attention="softmax"),
        TrainConfig(epochs=1, model=ModelConfig(dim=8, seeds=2)),
    ],
    ids=["the reference", "no view of pieces", "features that are not normalised", "two seeds"],
)
def test_some_models_have_no_machines(config: TrainConfig, tmp_path: Path) -> None:
    assert not any(run(REPEATED, tmp_path / "model.onnx", config).model.distinct)


def test_many_labels_have_no_machines(sample: LabelledTexts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "MOST_LABELS_BESIDE", 2)
    assert not any(run(sample, tmp_path / "model.onnx", SMALL).model.distinct)


def test_what_goes_on_from_a_sample_of_its_rows_has_no_machines(tmp_path: Path) -> None:
    config = TrainConfig(dim=8, epochs=1, vectors="none", rehearsal_rows=40)
    assert any(run(REPEATED, tmp_path / "model.onnx", config, state=tmp_path / "state").model.distinct)
    new = LabelledTexts(texts=["where is my parcel", "refund the lamp"], labels=["where", "refund"])
    assert not any(run(new, tmp_path / "more.onnx", config, from_state=tmp_path / "state").model.distinct)
