"""A tuned teacher: it learns from the rows that it is given alone, and what it has answered it answers again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.training.helpers import Recorder, dataset_of
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import hashes_of
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.distillation.teachers import EncoderTeacher
from textcls_training.pipeline.training import train
from textcls_training.vectors.sentence_encoder import SentenceEncoder

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("encoder_folder", "encoder_cache")]


def test_a_tuned_teacher_knows_more_than_a_frozen_one_and_answers_again_from_the_cache(
    encoder_folder: Path, sample: LabelledTexts, encoder_cache: Path
) -> None:
    from textcls_torch.distillation.tuned_teacher import TunedTeacher

    names = sample.label_names()
    rows = dataset_of(sample)
    label_R = rows.labels
    train_T, asked_A = np.arange(0, 100), np.arange(100, 150)
    hashes, encoder = hashes_of(sample.texts), SentenceEncoder(str(encoder_folder))
    frozen = EncoderTeacher("small", encoder.encode(sample.texts), hashes, len(names))

    def tuned(callback: Recorder, *, stopped: bool = False) -> TunedTeacher:
        return TunedTeacher(encoder, sample.texts, hashes, len(names), 0, callback, lambda: stopped)

    assert tuned(Recorder(), stopped=True).answers(train_T, rows.select(train_T), asked_A) is None
    found = tuned(first := Recorder()).answers(train_T, rows.select(train_T), asked_A)
    assert found is not None
    assert [name for name, _ in first.phases][1:] == ["tuning small", "asking small, tuned"]

    def loss(probability_AC: np.ndarray) -> float:
        return float(-np.log(probability_AC[np.arange(50), label_R[asked_A]]).mean())

    assert loss(found) < loss(frozen.answers(train_T, rows.select(train_T), asked_A))
    again = tuned(second := Recorder()).answers(train_T, rows.select(train_T), asked_A)
    assert again is not None
    np.testing.assert_array_equal(found, again)
    assert second.phases == []
    other = tuned(Recorder()).answers(train_T[:90], rows.select(train_T[:90]), asked_A)
    assert other is not None
    assert (other != found).any()


def test_a_student_of_a_tuned_teacher_says_so(encoder_folder: Path, sample: LabelledTexts, tmp_path: Path) -> None:
    labelled = LabelledTexts(texts=sample.texts[:80], labels=sample.labels[:80])
    texts = (UnlabelledText(text) for text in sample.texts[80:])
    unlabelled = UnlabelledTexts.sample(texts, 100, labelled.texts)
    config = TrainConfig(
        dim=8, ngrams=(), epochs=2, device="cpu", vectors="none", teacher=str(encoder_folder), unlabelled_weight=1
    )
    report = train(labelled, tmp_path / "m.onnx", replace(config, tune_teacher=True), unlabelled=unlabelled)
    assert report.distillation is not None
    assert report.distillation.teacher == "small, tuned"
    assert [score.name for score in report.distillation.scores] == ["teacher", "labels alone", "student"]
