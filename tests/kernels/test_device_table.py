"""The table on the device trains what the table on the CPU trains: batches, steps, whole trainings.

By the twin on any machine, by the kernels in Triton's interpreter or on the GPU where there is one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

pytest.importorskip("numba", reason="training needs its packages: pip install 'textcls[train]'")

import textcls
from textcls.model.features import FeatureConfig
from textcls_kernels.impl import Impl
from textcls_kernels.testing import count_launches
from textcls_torch.fit import view_learner
from textcls_torch.fit.trainer import Trainer
from textcls_torch.models.device_table import DeviceTable
from textcls_torch.models.embedding_table import EmbeddingTable
from textcls_torch.models.hashed_embedding import HashedEmbedding
from textcls_training.config.resolve import resolve
from textcls_training.config.settings import Device, ModelConfig, TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.fit.threads import reproducible

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs triton: pip install 'textcls[kernels]'")
every_impl = pytest.mark.parametrize("impl", ["reference", pytest.param("triton", marks=needs_triton)])
CONFIGS = {
    "words, bigrams, n-grams": FeatureConfig(ngram_sizes=(3, 5)),
    "words, bigrams": FeatureConfig(),
    "words, n-grams": FeatureConfig(bigrams=False, ngram_sizes=(2,), max_chars=4),
    "words": FeatureConfig(bigrams=False),
}
every_config = pytest.mark.parametrize("config", CONFIGS)
TEXTS = ("my card, my card!", "", "Card lost \u6771\u4eac", "aaaaaa refund", "  ", "my", "refund refund refund my card")
NEW_TEXTS = ("refund my \u6771 unseen", "", "card", "nothing known here")
EMPTY_TEXTS = ("", " ")
LABELS = np.array([0, 1, 1, 0, 1, 1, 0])
BATCHES = {"some": [3, 0, 1, 0, 2], "empty texts": [1, 1], "no texts": [], "one": [2]}
RATE, START, D = 0.3, 0.01, 5


def both_tables(config: FeatureConfig, impl: Impl) -> tuple[FeatureSpace, EmbeddingTable, DeviceTable]:
    space = FeatureSpace.fit(Corpus.of(TEXTS, 64), config)
    torch.manual_seed(0)
    host = EmbeddingTable(space.weight, D, 1.0, START)
    device = DeviceTable(host, DEVICE)
    device.impl = impl
    return space, host, device


@every_impl
@every_config
@pytest.mark.parametrize("which", BATCHES)
@pytest.mark.parametrize("texts", [TEXTS, NEW_TEXTS], ids=["training texts", "new texts"])
def test_a_batch_reads_and_moves_what_it_does_on_the_cpu(
    texts: Sequence[str], which: str, config: str, impl: Impl
) -> None:
    space, host, device = both_tables(CONFIGS[config], impl)
    encoded, text_B = space.encode(Corpus.of(texts, 64)), np.array(BATCHES[which], np.int64)
    on_host, on_device = host.batch(host.encode(encoded), text_B), device.batch(device.encode(encoded), text_B)
    assert torch.equal(on_device.mask_BT.cpu(), on_host.mask_BT)
    assert torch.equal(on_device.uses.row_R.cpu(), torch.from_numpy(on_host.row_R))
    assert torch.equal(on_device.uses.place_R.cpu(), torch.from_numpy(on_host.place_R))
    for ours, theirs in zip(device.read(on_device), host.read(on_host), strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-5, atol=1e-5)
    grad_BTD = torch.randn(*on_host.mask_BT.shape, D)
    device.update(on_device, grad_BTD.to(DEVICE), RATE)
    host.update(on_host, grad_BTD, RATE)
    np.testing.assert_allclose(device.row_VD, host.row_VD, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(device.sum_V, host.sum_V, rtol=1e-5)
    assert not device.row_VD[0].any()


def test_texts_without_a_token_are_read_as_nothing() -> None:
    space, _, device = both_tables(CONFIGS["words, bigrams"], "reference")
    texts = device.encode(space.encode(Corpus.of(EMPTY_TEXTS, 64)))
    x_BTD, squared_norm_BT1 = device.read(device.batch(texts, np.array([1, 0])))
    assert x_BTD.shape == (2, 1, D)
    assert not x_BTD.any()
    assert not squared_norm_BT1.any()
    assert len(texts) == 2


def test_a_table_that_was_brought_to_a_device_leaves_the_first_as_it_was() -> None:
    space, host, device = both_tables(CONFIGS["words"], "reference")
    before_VD = host.row_VD.copy()
    batch = device.batch(device.encode(space.encode(Corpus.of(TEXTS, 64))), np.array([0]))
    device.update(batch, torch.ones(*batch.mask_BT.shape, D), RATE)
    np.testing.assert_array_equal(host.row_VD, before_VD)
    assert (device.row_VD != before_VD).any()


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> list[Device]:
    """Trainings decide as they do on a GPU with Triton; where the CPU is their device, the table is there.

    Returns what they asked.
    """
    asked: list[Device] = []

    def runs_kernels(name: Device) -> bool:
        asked.append(name)
        return True

    monkeypatch.setattr(view_learner, "runs_kernels", runs_kernels)
    return asked


def trained(impl: Impl | None, epochs: int) -> tuple[list[NDArray[np.float32]], NDArray[np.float32]]:
    """The rows and accumulators of a few steps, and the answers after them."""
    dataset = Dataset(Corpus.of(TEXTS, 64), LABELS)
    place: Device = "cuda" if impl is not None and DEVICE.type == "cuda" else "cpu"
    settings = TrainConfig(model=ModelConfig(dim=8), epochs=epochs, impl="reference", device=place)
    resolved = resolve(settings, TEXTS, len(dataset.corpus.token), 2)
    resolved = replace(resolved, optim=replace(resolved.optim, batch_size=3, table_std=0.5, table_rate=0.03))
    with reproducible(0):
        trainer = Trainer(dataset, 2, resolved)
        for learner in trainer.learners:
            assert isinstance(learner.embedding, HashedEmbedding)
            assert isinstance(learner.embedding.table, EmbeddingTable if impl is None else DeviceTable)
            if isinstance(learner.embedding.table, DeviceTable) and impl is not None:
                learner.embedding.table.impl = impl
        with trainer.at_work():
            for number in range(1, epochs + 1):
                trainer.train_epoch(number)
        answers = trainer.predict(trainer.encode(Corpus.of(NEW_TEXTS, 64)))
    assert trainer.step_number == 3 * epochs
    return [array for learner in trainer.learners for array in learner.embedding.arrays().values()], answers


@every_impl
def test_some_steps_go_where_those_with_a_table_on_the_cpu_go(impl: Impl, request: pytest.FixtureRequest) -> None:
    wanted, wanted_answers = trained(None, 2)
    request.getfixturevalue("on_device")
    with count_launches() as launches:
        found, answers = trained(impl, 2)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(answers, wanted_answers, rtol=1e-5, atol=1e-5)
    if impl == "reference":
        assert launches == Counter()
    else:
        assert launches["adagrad_kernel"] == 6  # one of each step, for all views at once


@pytest.mark.skipif(DEVICE.type == "cpu", reason="needs a GPU")
def test_on_a_gpu_nothing_of_a_step_waits_for_it() -> None:
    dataset = Dataset(Corpus.of(TEXTS, 64), LABELS)
    settings = TrainConfig(model=ModelConfig(dim=8), epochs=3, impl="reference", device="cuda")
    trainer = Trainer(dataset, 2, resolve(settings, TEXTS, len(dataset.corpus.token), 2))
    trainer.losses_at_once = 1000
    trainer.train_epoch(1)  # compiles the kernels
    steps = [*trainer.batches(2)]
    torch.cuda.set_sync_debug_mode("error")
    try:
        for text_B in steps:
            trainer._step(text_B)
    finally:
        torch.cuda.set_sync_debug_mode("default")


KINDS = {"lost": ("lost card", "card stolen", "my card is gone"), "wait": ("where is it", "late parcel", "waiting")}
ROWS = [(f"{text} {i % 7}", label) for label, texts in KINDS.items() for text in texts for i in range(12)]
MORE = [f"{text} {i}" for texts in KINDS.values() for text in texts for i in range(9, 14)]
TRAININGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "mixing": {"mixing": "lambda"},
    "unlabelled texts": {"unlabelled": MORE},
    "rationales": {"rationales": [[(0, 4)]] * len(ROWS)},
}


@pytest.mark.parametrize("told", TRAININGS)
def test_a_whole_training_with_the_table_on_the_device_answers_alike(
    told: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    texts, labels = zip(*ROWS, strict=True)
    options = {**TRAININGS[told], "impl": "reference", "epochs": 2, "dim": 8, "vectors": "none", "device": "cpu"}
    found = []
    for name in ("host", "device"):
        asked = request.getfixturevalue("on_device") if name == "device" else []
        model = textcls.train(texts, labels, tmp_path / f"{name}.onnx", **options)
        assert bool(asked) == (name == "device")
        found.append(model.predict(["my card", "where is my parcel", "unseen"]))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.probabilities, theirs.probabilities, atol=1e-5)
