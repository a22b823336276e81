"""Pre-training by masked words with its tables on the device learns what it does with tables on the CPU, unread.

By the twin on any machine, by the kernels in Triton's interpreter or on the GPU where there is one.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

pytest.importorskip("numba", reason="training needs its packages: pip install 'textcls[train]'")


from tests.kernels.unwaiting import unwaiting
from textcls_kernels.impl import Impl
from textcls_kernels.testing import count_launches
from textcls_torch.models.device_table import DeviceTable
from textcls_torch.models.embedding_table import EmbeddingTable
from textcls_torch.pretraining.masked import trainer as masked_trainer
from textcls_torch.pretraining.masked.report import MaskedReport
from textcls_torch.pretraining.masked.trainer import MaskedTrainer
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.config.settings import Device
from textcls_training.data.batches import epoch_batches
from textcls_training.data.corpus import Corpus
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.fit.callbacks import NOBODY
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.threads import reproducible
from textcls_training.pretraining.run import pretrain
from textcls_training.pretraining.texts import PretrainingTexts
from textcls_training.pretraining.vocabulary import Vocabulary
from textcls_training.vectors.file import load

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs triton: pip install 'textcls[kernels]'")
every_impl = pytest.mark.parametrize("impl", ["reference", pytest.param("triton", marks=needs_triton)])
every_mixing = pytest.mark.parametrize("mixing", ["none", "lambda", "gmlp", "softmax"])
START, D = 0.01, 5
STEPS = 4


def rows(texts: int) -> list[str]:
    """Texts of a few words, of which some have nothing that could be guessed."""
    rng = np.random.default_rng(0)
    return ["", "alone", *(" ".join(f"w{i}" for i in rng.integers(20, size=n)) for n in rng.integers(1, 8, texts))]


@every_impl
@pytest.mark.parametrize("row", [[3, 1, 3, 0, 2], []], ids=["some", "none"])
def test_rows_are_read_and_moved_as_on_the_cpu(row: list[int], impl: Impl) -> None:
    torch.manual_seed(0)
    host = EmbeddingTable(np.array([0, 1, 0.5, 2], np.float32), D, 1.0, START)
    device = DeviceTable(host, DEVICE)
    device.impl = impl
    row_X = np.array(row, np.int32)
    on_host, on_device = host.rows(row_X), device.rows(row_X)
    assert torch.equal(on_device.mask_BT.cpu(), on_host.mask_BT)
    for ours, theirs in zip(device.read(on_device), host.read(on_host), strict=True):
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-5, atol=1e-5)
    grad_1XD = torch.randn(1, len(row), D)
    device.update(on_device, grad_1XD.to(DEVICE), 0.3)
    host.update(on_host, grad_1XD, 0.3)
    np.testing.assert_allclose(device.row_VD, host.row_VD, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(device.sum_V, host.sum_V, rtol=1e-5)


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> list[Device]:
    """Pre-trainings decide as they do on a GPU with Triton; where the CPU is their device, the tables are there.

    Returns what they asked.
    """
    asked: list[Device] = []

    def runs_kernels(name: Device) -> bool:
        asked.append(name)
        return True

    monkeypatch.setattr(masked_trainer, "runs_kernels", runs_kernels)
    return asked


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that the interpreter is through with in a moment."""
    monkeypatch.setattr(masked_trainer, "BATCH", 8)
    monkeypatch.setattr(masked_trainer, "SAMPLES", 16)


def trainer_of(mixing: str, impl: Impl | None) -> MaskedTrainer:
    """A fresh trainer, whose tables are on the CPU without `impl`."""
    device: Device = "cuda" if impl is not None and DEVICE.type == "cuda" else "cpu"
    config = PretrainConfig(objective="masked", mixing=mixing, dim=8, device=device)
    corpus = Corpus.of(rows(8 * STEPS - 2), 64)
    with reproducible(0):
        trainer = MaskedTrainer(corpus, Vocabulary.of(corpus, 100), config, 2)
    for table in (trainer.embedding.table, trainer.words):
        assert isinstance(table, EmbeddingTable if impl is None else DeviceTable)
        if isinstance(table, DeviceTable) and impl is not None:
            table.impl = impl
    return trainer


def learned(trainer: MaskedTrainer) -> list[NDArray[Any]]:
    """Rows, accumulators and dense weights."""
    tables = [array for table in (trainer.embedding.table, trainer.words) for array in (table.row_VD, table.sum_V)]
    return tables + [weight.detach().cpu().numpy() for weight in trainer.dense.params]


@every_impl
@every_mixing
@pytest.mark.usefixtures("small_steps")
def test_some_steps_go_where_those_with_tables_on_the_cpu_go(
    mixing: str, impl: Impl, request: pytest.FixtureRequest
) -> None:
    host = trainer_of(mixing, None)
    request.getfixturevalue("on_device")
    device = trainer_of(mixing, impl)
    with count_launches() as launches:
        for number in (1, 2):
            for trainer in (host, device):
                trainer.train_epoch(number, NOBODY, Stop())
    assert host.tokens == device.tokens
    for ours, theirs in zip(learned(device), learned(host), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    assert launches["adagrad_kernel"] == (0 if impl == "reference" else 2 * 2 * STEPS)  # tables, epochs, steps


def steps(trainer: MaskedTrainer) -> None:
    rng = np.random.default_rng(1)
    for text_B in epoch_batches(trainer.corpus.lengths(), masked_trainer.BATCH, rng):
        trainer._step(text_B, rng)


@needs_triton
@pytest.mark.skipif(DEVICE.type == "cuda", reason="on a GPU nothing of a step waits for it, see below")
@every_mixing
@pytest.mark.usefixtures("small_steps", "on_device")
def test_a_step_asks_the_device_for_no_value(mixing: str) -> None:
    trainer = trainer_of(mixing, "triton")
    with unwaiting():
        steps(trainer)


@pytest.mark.skipif(DEVICE.type == "cpu", reason="needs a GPU")
@every_mixing
def test_on_a_gpu_nothing_of_a_step_waits_for_it(mixing: str) -> None:
    trainer = trainer_of(mixing, "auto")
    trainer.losses_at_once = 1000
    trainer.train_epoch(1, NOBODY, Stop())  # compiles the kernels
    torch.cuda.set_sync_debug_mode("error")
    try:
        steps(trainer)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_whole_pre_training_with_its_tables_on_the_device_gives_alike_vectors(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    texts = PretrainingTexts.of(UnlabelledTexts.sample(map(UnlabelledText, rows(300)), 1000, ()))
    config = PretrainConfig(objective="masked", mixing="gmlp", dim=8, epochs=3, device="cpu")
    found, reports = [], []
    for name in ("host", "device"):
        asked = request.getfixturevalue("on_device") if name == "device" else []
        report = pretrain(texts, tmp_path / name, config)
        assert bool(asked) == (name == "device")
        assert isinstance(report, MaskedReport)
        assert report.held_out is not None
        found.append(load(tmp_path / name))
        reports.append(report.held_out)
    assert found[0].words == found[1].words
    most = np.abs(found[0].row_VD).max()
    np.testing.assert_allclose(found[1].row_VD, found[0].row_VD, atol=1.01 * most / 127)  # numbers of 8 bits
    assert reports[1].perplexity == pytest.approx(reports[0].perplexity, rel=1e-5)
    assert [guess.tokens for guess in reports[1].guesses] == [guess.tokens for guess in reports[0].guesses]
