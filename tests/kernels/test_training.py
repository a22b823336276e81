"""A step of training runs on the kernels: in Triton's interpreter, or on the GPU where there is one."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from textcls_kernels.impl import Impl
from textcls_kernels.testing import count_launches

pytest.importorskip("triton", reason="the kernels need triton: pip install 'textcls[kernels]'")
pytest.importorskip("numba", reason="training needs its packages: pip install 'textcls[train]'")

from textcls_torch.fit.trainer import Trainer
from textcls_torch.fit.view_learner import ViewLearner
from textcls_torch.models.classifier import SeedAttention
from textcls_torch.models.hashed_embedding import HashedEmbedding, RowTable
from textcls_torch.models.mixing.metric import MetricAttention
from textcls_training.config.resolve import resolve
from textcls_training.config.settings import Device, ModelConfig, TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.fit.threads import reproducible

DEVICE: Device = "cuda" if torch.cuda.is_available() else "cpu"
TEXTS = ["my card was charged twice", "where is it", "", "a refund, please: " * 18, "parcel", "is it my parcel or not"]
LABELS = np.array([0, 1, 1, 0, 1, 1])
STD = 0.5  # of fresh rows

MIXING = {"short_forward_kernel": 1, "short_backward_kernel": 1, "metric_gradient_kernel": 1}
SEEDS = {"prepare_metric_kernel": 2, "seed_forward_kernel": 1, "seed_backward_kernel": 1}
TABLE = ("gather_kernel", "adagrad_kernel", "adagrad_pieces_kernel")
CASES: dict[str, tuple[ModelConfig, list[dict[str, int]]]] = {
    "metric mixing": (ModelConfig(dim=8, mixing="metric", gate=1.0), [MIXING]),
    "metric scores": (ModelConfig(dim=32, metric=True), [SEEDS]),
    "metric attention": (ModelConfig(dim=24, attention="metric", seeds=3), [SEEDS]),
    "metric mixing of values and metric scores": (
        ModelConfig(dim=8, mixing="metric", values="mixed", metric=True, gate=1.0),
        [MIXING, SEEDS],
    ),
    "metric mixing of metric scores, which it adds to": (
        ModelConfig(dim=8, mixing="metric", metric=True, gate=1.0),
        [MIXING],
    ),
    "scalar products": (ModelConfig(dim=8), []),
}
every_case = pytest.mark.parametrize("case", CASES)


def table_of(learner: ViewLearner) -> RowTable:
    assert isinstance(learner.embedding, HashedEmbedding)
    return learner.embedding.table


def fresh(config: ModelConfig, impl: Impl) -> Trainer:
    """A trainer whose epoch is one step, with tokens that are large enough to differ."""
    dataset = Dataset(Corpus.of(TEXTS, 64), LABELS)
    settings = TrainConfig(model=config, epochs=1, ngrams=(), device=DEVICE)
    # Attention that begins even has no gradient of its scores' metric in the first step.
    resolved = replace(resolve(settings, TEXTS, len(dataset.corpus.token), 2), even_attention=False)
    trainer = Trainer(dataset, 2, replace(resolved, optim=replace(resolved.optim, table_std=STD)))
    for learner in trainer.learners:
        for module in learner.classifier.modules():
            if isinstance(module, SeedAttention | MetricAttention):
                module.impl = impl
    return trainer


def step(config: ModelConfig, impl: Impl) -> tuple[dict[str, torch.Tensor], NDArray[np.float32], Counter[str]]:
    """Gradients of one step and by how much it moved the table; the launches."""
    with reproducible(0):
        trainer = fresh(config, impl)
        (learner,) = trainer.learners
        trainer.dense = []  # whose step would forget the gradients
        before = table_of(learner).row_VD.copy()
        with count_launches() as launches:
            trainer.train_epoch(1)
    assert trainer.step_number == 1
    for kernel in TABLE:  # which a GPU launches too
        del launches[kernel]
    named = learner.classifier.named_parameters()
    gradients = {name: parameter.grad for name, parameter in named if parameter.grad is not None}
    return gradients, table_of(learner).row_VD - before, launches


def assert_near(ours: torch.Tensor, theirs: torch.Tensor, name: str) -> None:
    assert theirs.any(), name
    assert (ours - theirs).norm() <= 1e-4 * theirs.norm(), name


@every_case
def test_a_step_on_the_kernels_goes_where_a_step_in_pytorch_goes(case: str) -> None:
    config, expected = CASES[case]
    gradients, moved_VD, launches = step(config, "triton")
    wanted, wanted_VD, none = step(config, "reference")
    assert launches == sum(map(Counter, expected), Counter())
    assert not none
    assert list(gradients) == list(wanted)
    assert ("attention.metric_DD" in wanted) == config.metric_scores
    assert ("mixing.mixer.metric_HL" in wanted) == (config.mixing == "metric")
    for name, gradient in gradients.items():
        assert_near(gradient, wanted[name], name)
    assert_near(torch.from_numpy(moved_VD), torch.from_numpy(wanted_VD), "table")


@every_case
def test_what_was_trained_on_the_kernels_answers_as_the_saved_model_does(case: str) -> None:
    config, expected = CASES[case]
    with reproducible(0):
        trainer = fresh(config, "triton")
        with count_launches() as launches:
            (logits_BC,) = trainer.predict(trainer.encode(trainer.dataset.corpus))
        served_BC = fresh(config, "reference").predict(trainer.encode(trainer.dataset.corpus))[0]
    assert {name for name in launches if name.endswith("forward_kernel")} == {
        name for launched in expected for name in launched if name.endswith("forward_kernel")
    }
    np.testing.assert_allclose(logits_BC, served_BC, atol=1e-5)


@pytest.mark.skipif(DEVICE == "cuda", reason="on a GPU auto means the kernels")
def test_on_the_cpu_training_launches_nothing_unless_it_is_told_to() -> None:
    for config, _ in CASES.values():
        assert not step(config, "auto")[2]


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
def test_on_a_gpu_training_runs_on_the_kernels_by_itself() -> None:
    for config, expected in CASES.values():
        assert step(config, "auto")[2] == sum(map(Counter, expected), Counter())
