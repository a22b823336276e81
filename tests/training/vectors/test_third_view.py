"""Vectors as a third view: what it learns, what a saved model makes of it, and that all sums stay exact."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from faithfulness.gradients import SavedHead
from tests.training.helpers import LABELS, Trained, fit_all, logits_of, module_of, random_model, resolved
from tests.training.vectors.conftest import TWINS
from textcls import Classifier
from textcls.errors import ConfigError
from textcls.model import artifact, features
from textcls.model.features import FeatureConfig
from textcls_torch.models.vector_embedding import VectorEmbedding, vector_classifier
from textcls_training.config.settings import ModelConfig, TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.export.heads.scoring_head import scoring_head
from textcls_training.export.prune import lookup_tables
from textcls_training.export.save import build_graph
from textcls_training.models.calibration import Calibration
from textcls_training.models.ensemble import TrainedModel
from textcls_training.pipeline import training as pipeline
from textcls_training.vectors import file
from textcls_training.vectors.word_vectors import WordVectors

TEXTS = (
    "",
    "refund",
    "zzqqxx",
    "please remunerate my remittance",
    "My card was chargedd twice, remunerate nobodyy!",
    "consignment consignment consignment",
)


@pytest.fixture(scope="module")
def vectors(vectors_path: Path) -> WordVectors:
    return file.load(vectors_path)


@pytest.fixture(scope="module")
def model(with_vectors: Trained) -> Classifier:
    return Classifier.load(with_vectors.path)


@pytest.mark.parametrize("text", TEXTS)
def test_contributions_and_their_parts_add_up_to_the_logits(model: Classifier, text: str) -> None:
    answer = model.predict(text, explain=True)
    found = answer.explanation
    assert found is not None
    logits = np.array([*found.logits.values()])
    scale = 1e-4 * (1 + np.abs(logits).max())
    np.testing.assert_allclose(model.info.bias + found.contributions.sum(0), logits, atol=scale)
    parts = [[*part.contributions.values()] for part in model.parts(text)]
    total = np.sum(parts, 0) if parts else np.zeros(len(model.labels))
    np.testing.assert_allclose(total, found.contributions.sum(0), atol=scale)


@pytest.mark.parametrize(("word", "twin"), TWINS.items())
def test_a_word_that_training_has_never_seen_speaks_through_its_vector(
    model: Classifier, trained: Trained, word: str, twin: str
) -> None:
    answer = model.predict(word, explain=True)
    assert answer.explanation is not None
    assert answer.explanation.known == (True,)
    assert np.abs(answer.explanation.contributions).max() > 0.05
    without = Classifier.load(trained.path).predict(word, explain=True).explanation
    assert without is not None
    assert without.known == (False,)


def test_every_word_of_the_vectors_is_known_to_the_saved_model(model: Classifier, vectors: WordVectors) -> None:
    answers = model.predict([*vectors.words[-50:]], explain=True)
    assert all(answer.explanation and all(answer.explanation.known) for answer in answers)


def test_training_learns_from_vectors_and_leaves_the_other_views_as_they_were(
    sample: LabelledTexts, vectors: WordVectors
) -> None:
    dataset = Dataset.of(sample, sample.label_names(), 48)
    config = resolved(dataset, epochs=12)
    plain, more = fit_all(dataset, config), fit_all(dataset, replace(config, vectors=vectors))
    alone, together = logits_of(plain, dataset.corpus), logits_of(more, dataset.corpus)
    assert len(together) == len(alone) + 1 == 3
    np.testing.assert_array_equal(together[[0, 2]], alone)
    right = (together[1].argmax(1) == dataset.labels).mean()
    assert right > 0.35  # of seven labels, by 24 random numbers a word


def test_a_fresh_view_of_vectors_says_nothing_and_attends_alike(vectors: WordVectors) -> None:
    classifier = vector_classifier(ModelConfig(), vectors, LABELS)
    embedding = VectorEmbedding(vectors)
    corpus = Corpus.of(["refund my parcel zzqqxx", "my"], 48)
    batch = embedding.batch(embedding.encode(corpus), np.arange(2))
    x_btd, squared_norm_bt1 = embedding.read(batch)
    logits, attention, _ = classifier.explain(x_btd, squared_norm_bt1, batch.mask_BT)
    assert not logits.detach().numpy().any()
    np.testing.assert_allclose(attention.detach().numpy(), np.array([[0.25] * 4, [1, 0, 0, 0]]))
    assert x_btd[0, 2].norm().item() == pytest.approx(10 * squared_norm_bt1[0, 2].sqrt().item())
    assert not x_btd[0, 3].numpy().any()
    assert not x_btd[1, 1:].numpy().any()


def random_third_view(corpus: Corpus, vectors: WordVectors, config: ModelConfig) -> TrainedModel:
    """A random model of words, vectors and pieces."""
    plain = random_model(config, FeatureConfig(ngram_sizes=(3, 5)).views(), corpus)
    classifier = vector_classifier(config, vectors, LABELS).eval()
    generator = np.random.default_rng(1)
    for parameter in classifier.parameters():
        parameter.data += parameter.data.new_tensor(0.1 * generator.standard_normal(parameter.shape))
    words, pieces = plain.views
    view = VectorEmbedding(vectors).view(classifier)
    return TrainedModel(corpus.types, [words, view, pieces], (0.3, 0.5, 0.2))


@pytest.mark.parametrize(
    "config", [ModelConfig(dim=8), ModelConfig(dim=8, attention="metric"), ModelConfig(dim=8, seeds=2)], ids=str
)
def test_tables_and_graph_answer_as_the_classifier_of_the_view(
    sample: LabelledTexts, vectors: WordVectors, config: ModelConfig
) -> None:
    corpus = Corpus.of(sample.texts, 48)
    model = random_third_view(corpus, vectors, config)
    tables = lookup_tables(model, corpus)
    view = model.vector_view
    assert view is not None
    text = "please remunerate zzqqxx my remittance"
    _, token_1tgx = tables.read(Corpus.of([text], 48))
    embedding = VectorEmbedding(vectors)
    batch = embedding.batch(embedding.encode(Corpus.of([text], 48)), np.arange(1))
    x_1td, squared_norm_1t1 = embedding.read(batch)
    folded = module_of(view).fold(x_1td[0]).detach().numpy()
    folded[..., :-1] *= 0.5
    group = slice(config.seeds, 2 * config.seeds)
    found = token_1tgx[0, :, group]
    np.testing.assert_allclose(found[..., :-1], folded, atol=0.1 * np.abs(folded).max())
    np.testing.assert_allclose(found[:, 0, -1], squared_norm_1t1[0, :, 0], atol=1e-3)
    # Writing the graph compares it with PyTorch.
    head = scoring_head(model, Calibration(model.ensemble_weights, 1.0))
    names = {output.name for output in build_graph(tables, head, 48).graph.output}
    assert names == {*artifact.OUTPUTS, *artifact.ROW_OUTPUTS}


def test_a_smaller_file_leaves_out_words_of_the_vectors_that_are_rare(
    sample: LabelledTexts, vectors_path: Path, tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    words = [f"word{i}" for i in range(20_000)]
    path = tmp_path / "many.vectors"
    file.save(path, words, rng.standard_normal((len(words), 8)).astype(np.float32), {}, 8)
    corpus = Corpus.of(sample.texts, 48)
    model = random_third_view(corpus, file.load(path), ModelConfig(dim=8))
    kept = lookup_tables(model, corpus, 200_000)
    _, _, unseen = kept.index.kinds
    assert 0 < unseen < len(words)
    assert lookup_tables(model, corpus).index.kinds[2] == len(words)
    size = sum(rows.step_RGY.nbytes // 2 for kind in kept.kinds for rows in kind if rows is not None)
    assert size < 200_000

    def known(some: list[str]) -> float:
        return float((kept.index.rows(features.word_hashes(some)) != kept.index.absent).mean())

    assert known(words[:500]) > known(words[-500:]) + 0.2


def test_the_same_rows_and_vectors_give_the_same_bytes(with_vectors: Trained, tmp_path: Path) -> None:
    again = tmp_path / "again.onnx"
    pipeline.train(with_vectors.texts, again, with_vectors.config)
    assert again.read_bytes() == with_vectors.path.read_bytes()


def test_the_file_says_where_its_vectors_come_from(with_vectors: Trained, model: Classifier) -> None:
    found = model.info.training["vectors"]
    assert found["source"] == "dice"
    assert found["licence"] == "CC0"
    assert found["known_tokens"] == 1
    assert found["dim"] == 24
    assert len(model.info.training["shares"]) == 3
    report = with_vectors.report
    assert report.vectors is not None
    assert report.vectors.ensemble_weight == pytest.approx(report.ensemble_weights[1], abs=1e-6)
    assert report.to_json()["vectors"]["sha256"] == found["sha256"]


def test_the_scoring_head_can_be_rebuilt_for_gradients(model: Classifier) -> None:
    head = SavedHead(model)  # Which compares its answers with those of the file.
    token_1tgx = head.token_sums("please remunerate my refund")
    assert token_1tgx.shape[2] == 4  # That of pieces has machines beside it.


def test_without_vectors_nothing_of_them_stands_in_the_file(trained: Trained) -> None:
    assert "vectors" not in Classifier.load(trained.path).info.training


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mixing": "gmlp"}, "mixing 'gmlp'"),
        ({"attention": "cosine"}, "attention 'cosine'"),
        ({"embedding": "bits"}, "embedding 'bits'"),
        ({"model": ModelConfig(mixing="pool")}, "mixing 'pool'"),
    ],
    ids=str,
)
def test_vectors_beside_what_cannot_be_folded_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=f"^Word vectors cannot be combined with {words}; leave one of the two out"):
        TrainConfig(vectors="some.vectors", **options)  # type: ignore[arg-type]


def test_more_labels_than_a_row_is_wide_are_folded_all_the_same(vectors_path: Path, tmp_path: Path) -> None:
    words = file.load(vectors_path).words
    texts = [f"{words[i % 100]} {words[(i + 7) % 100]}" for i in range(200)]
    given = LabelledTexts(texts=texts, labels=[f"label {i % 100:03}" for i in range(200)])
    path = tmp_path / "many.onnx"
    config = TrainConfig(dim=8, epochs=1, device="cpu", vectors=vectors_path)
    pipeline.train(given, path, config)
    answer = Classifier.load(path).predict("remunerate " + words[3], explain=True)
    assert answer.explanation is not None
    total = Classifier.load(path).info.bias + answer.explanation.contributions.sum(0)
    np.testing.assert_allclose(total, [*answer.explanation.logits.values()], atol=1e-4 * (1 + np.abs(total).max()))
