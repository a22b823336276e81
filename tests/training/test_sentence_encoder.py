"""Sentence vectors and their cache, with a small sentence-transformers model that is made here."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.helpers import Recorder, make_sentence_encoder
from textcls.errors import InputError, SurroundingsError
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.vectors import sentence_encoder
from textcls_training.vectors.sentence_encoder import SentenceEncoder

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("encoder_folder", "encoder_cache")]


def test_vectors_have_length_one_and_stand_in_the_order_of_the_texts(
    encoder_folder: Path, sample: LabelledTexts
) -> None:
    vectors = SentenceEncoder(str(encoder_folder)).encode(sample.texts)
    assert vectors.shape == (150, 16)
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(np.float64), axis=1), 1, atol=1e-3)
    alone = SentenceEncoder(str(encoder_folder)).encode(sample.texts[7:8])
    np.testing.assert_allclose(alone[0], vectors[7], atol=1e-3)


def test_what_was_encoded_once_is_read_from_the_cache(
    encoder_folder: Path, sample: LabelledTexts, encoder_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentence_encoder, "CHUNK", 64)
    callback = Recorder()
    first = SentenceEncoder(str(encoder_folder)).encode([*sample.texts, *sample.texts[:5]], callback)
    np.testing.assert_array_equal(first[150:], first[:5])
    assert len([*encoder_cache.rglob("*.npy")]) == 3
    assert [note.rpartition(",")[0] for note in callback.notes] == [f"{n} of 150 new texts" for n in (64, 128, 150)]
    again, callback = SentenceEncoder(str(encoder_folder)), Recorder()
    monkeypatch.setattr(again, "_model", None)
    np.testing.assert_array_equal(again.encode(sample.texts[::-1], callback), first[149::-1])
    assert (callback.phases, callback.steps) == ([("encoding with small", 150)], [(150, None)])


def test_of_known_and_new_texts_the_new_ones_alone_are_encoded(encoder_folder: Path, sample: LabelledTexts) -> None:
    known = SentenceEncoder(str(encoder_folder)).encode(sample.texts[:100])
    callback = Recorder()
    found = SentenceEncoder(str(encoder_folder)).encode(sample.texts[50:], callback)
    np.testing.assert_array_equal(found[:50], known[50:])
    assert callback.steps == [(50, None), (50, None)]
    assert not (found == 0).all(1).any()


def test_other_weights_of_the_same_name_are_not_those_of_the_cache(encoder_folder: Path, tmp_path: Path) -> None:
    texts = ["my card", "my parcel"]
    other = make_sentence_encoder(tmp_path / encoder_folder.name, ["my", "card", "parcel"], seed=1)
    one, two = (SentenceEncoder(str(place)) for place in (encoder_folder, other))
    assert one.fingerprint != two.fingerprint
    assert SentenceEncoder(str(encoder_folder)).fingerprint == one.fingerprint
    assert not np.array_equal(one.encode(texts), two.encode(texts))


def test_a_damaged_file_of_the_cache_is_written_anew(encoder_folder: Path, encoder_cache: Path) -> None:
    first = SentenceEncoder(str(encoder_folder)).encode(["a card"])
    (path,) = encoder_cache.rglob("*.npy")
    for damage in (b"", b"no vectors", path.read_bytes()[:-3]):
        path.write_bytes(damage)
        np.testing.assert_array_equal(SentenceEncoder(str(encoder_folder)).encode(["a card"]), first)
        np.testing.assert_array_equal(np.load(path)["vector"], first)


def test_vectors_that_are_not_finite_are_neither_made_nor_read(
    encoder_folder: Path, encoder_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = SentenceEncoder(str(encoder_folder))
    first = encoder.encode(["a card"])
    (path,) = encoder_cache.rglob("*.npy")
    kept = np.load(path)
    kept["vector"] = np.nan
    np.save(path, kept)
    np.testing.assert_array_equal(encoder.encode(["a card"]), first)

    class Damaged:
        def encode(self, texts: list[str], **_: Any) -> Any:
            return np.full((len(texts), 16), np.nan)

    monkeypatch.setattr(encoder, "_model", Damaged())
    with pytest.raises(InputError, match="The teacher 'small' gives a vector that is not finite"):
        encoder.encode(["a parcel"])


def test_a_model_with_damaged_weights_is_told_from_what_is_no_model(encoder_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(encoder_folder, tmp_path / "copy"))
    (weights,) = folder.rglob("model.safetensors")
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(InputError, match=r"cannot be loaded: .*; get it anew if it is damaged"):
        SentenceEncoder(str(folder))


def test_a_stop_ends_the_encoding_between_two_chunks(encoder_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoder, "CHUNK", 2)
    assert not SentenceEncoder(str(encoder_folder)).encode(["a", "card"], stopped=lambda: True).any()


def test_what_is_no_model_is_refused_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        InputError, match=r"^The teacher '.*empty' is not a folder with a sentence-transformers model, and"
    ):
        SentenceEncoder(str(tmp_path / "empty"))


def test_a_cache_that_cannot_be_made_is_told(
    encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(sentence_encoder.CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(SurroundingsError, match=r"cannot be made: .*; set TEXTCLS_CACHE to another folder\.$"):
        SentenceEncoder(str(encoder_folder)).encode(["a"])


def test_an_encoder_teaches_and_the_same_inputs_give_the_same_bytes(
    encoder_folder: Path, sample: LabelledTexts, tmp_path: Path
) -> None:
    from textcls import Classifier
    from textcls_training.config.settings import TrainConfig
    from textcls_training.pipeline.training import train

    config = TrainConfig(
        dim=8, ngrams=(), epochs=2, device="cpu", vectors="none", teacher=str(encoder_folder), unlabelled_weight=1
    )
    labelled = LabelledTexts(texts=sample.texts[:80], labels=sample.labels[:80])
    unlabelled = UnlabelledTexts.sample(map(UnlabelledText, sample.texts[80:]), 1000, labelled.texts)
    reports = [train(labelled, tmp_path / name, config, unlabelled=unlabelled) for name in ("a.onnx", "b.onnx")]
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    told: dict[str, Any] = Classifier.load(tmp_path / "a.onnx").info.training["distillation"]
    assert (told["teacher"], told["rows"], told["weight"]) == ("small", len(unlabelled.texts), 1)
    assert re.fullmatch("[0-9a-f]{64}", told["teacher_sha256"])
    assert reports[0].distillation is not None
    assert [score.name for score in reports[0].distillation.scores] == ["teacher", "labels alone", "student"]
