"""Machines of one label against the rest beside the view of pieces."""

from pathlib import Path

import numpy as np
import pytest

from tests.training.helpers import SMALL, Trained
from textcls.model.classifier import Classifier
from textcls_training.config import resolve
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Float32
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.one_vs_rest.beside import MachinesBeside
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


def test_how_often_a_token_comes_changes_what_gradient_steps_say_and_nothing_of_machines(tmp_path: Path) -> None:
    view = trained_view(REPEATED, tmp_path / "model.onnx", TrainConfig(dim=8, epochs=2, vectors="none"))
    assert view.distinct == (False, True)
    width = view.classifier.config.dim - 2
    machines = view.classifier.folded(view.table_VD)[:, 1]
    assert not machines[:, -1].any()  # All tokens weigh alike.
    assert np.abs(machines[:, :-1]).max() > 0
    assert not view.classifier.folded(np.pad(view.table_VD[:, :width], ((0, 0), (0, 2))))[:, 1].any()


def test_machines_say_the_more_of_a_label_the_more_its_rows_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Float32] = []
    joined = MachinesBeside.joined

    def noted(self: MachinesBeside, view: HashedView, own_weight: float, weight: float) -> HashedView:
        found.append(self._view.bias_C)
        return joined(self, view, own_weight, weight)

    monkeypatch.setattr(MachinesBeside, "joined", noted)
    configs = [TrainConfig(dim=8, epochs=1, vectors="none", class_weight=one) for one in ("none", {"refund": 9.0})]
    for config in configs:
        run(REPEATED, tmp_path / "model.onnx", config)
    even_C, uneven_C = found
    assert uneven_C[0] > even_C[0]


@pytest.mark.parametrize(
    "config",
    [TrainConfig(dim=8, epochs=1, impl="reference", device="cpu"), TrainConfig(dim=8, epochs=1, ngrams=())],
    ids=["the reference", "no view of pieces"],
)
def test_some_models_have_no_machines(config: TrainConfig, tmp_path: Path) -> None:
    assert not any(run(REPEATED, tmp_path / "model.onnx", config).model.distinct)


def test_many_labels_have_no_machines(sample: LabelledTexts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "MOST_LABELS_BESIDE", 2)
    assert not any(run(sample, tmp_path / "model.onnx", SMALL).model.distinct)
