"""A step in one piece on the device: what is rounded up and what is recorded changes nothing of what is learned.

By the twin on any machine, by the kernels in Triton's interpreter or on the GPU where there is one.
"""

import gc
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

pytest.importorskip("numba", reason="training needs its packages: pip install 'textcls[train]'")

from tests.kernels.tape import recorder, taped
from textcls_kernels.impl import Impl
from textcls_kernels.testing import count_launches
from textcls_torch.fit import view_learner
from textcls_torch.fit.device_step import DeviceStep, rounded_up
from textcls_torch.fit.recorded import AFTER, MOST, Recorded
from textcls_torch.fit.trainer import Trainer
from textcls_torch.models.device_table import BatchShape
from textcls_torch.models.fused_readout import fuses
from textcls_torch.models.mixing import MIXERS
from textcls_torch.pretraining.clusters.trainer import ClusterTrainer
from textcls_training.config.resolve import resolve
from textcls_training.config.settings import Device, ModelConfig, TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.fit.threads import reproducible
from textcls_training.models.ensemble import VECTORS as VECTORS_VIEW
from textcls_training.vectors.word_vectors import WordVectors

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs triton: pip install 'textcls[kernels]'")
every_impl = pytest.mark.parametrize("impl", ["reference", pytest.param("triton", marks=needs_triton)])

TEXTS = ("my card, my card!", "", "Card lost \u6771\u4eac", "aaaaaa refund", "  ", "my", "refund refund refund my card")
CORPUS = Corpus.of(TEXTS, 64)
LABELS = np.array([0, 1, 1, 0, 1, 1, 0])
SETS = LabelMatrix.of([{"a": 1.0}, {}, {"b": 1.0}, {"a": 1.0, "b": 0.5}, {}, {"b": 1.0}, {"a": 1.0}], ["a", "b"])
DATASETS = {
    "one label": Dataset(CORPUS, LABELS),
    "weights": Dataset(CORPUS, LABELS, weight_R=np.linspace(0.5, 2, 7, dtype=np.float32)),
    "soft targets": Dataset(CORPUS, LABELS, probability_RC=np.full((7, 2), 0.5, np.float32)),
    "several labels": Dataset(CORPUS, SETS.rarest(), sets=SETS),
}
# Of 1 to 42 tokens: batches of several shapes.
LONGER_CORPUS = Corpus.of([f"{text} x " * (1 + 3 * i) for i, text in enumerate(TEXTS)], 64)
LONGER = {kind: dataset._replace(corpus=LONGER_CORPUS) for kind, dataset in DATASETS.items()}
MODELS = {
    "plain": ModelConfig(dim=8),
    "two seeds": ModelConfig(dim=8, seeds=2),
    "metric scores": ModelConfig(dim=8, metric=True),
    "softmax": ModelConfig(dim=8, attention="softmax"),
    "scores mixed": ModelConfig(dim=8, mixing="lambda"),
    "values mixed": ModelConfig(dim=8, mixing="gmlp", values="mixed"),
}


@pytest.fixture(autouse=True)
def on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings decide as they do on a GPU with Triton; where the CPU is their device, the table is there."""
    monkeypatch.setattr(view_learner, "runs_kernels", lambda name: True)


# Of two words of the texts, and of one that is in none.
VECTORS = WordVectors(["card", "refund", "parcel"], np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 0, 1]], np.float32), {}, "")


def trainer_of(
    dataset: Dataset, model: ModelConfig, impl: Impl, batch_size: int = 3, vectors: WordVectors | None = None
) -> tuple[Trainer, DeviceStep]:
    place: Device = "cuda" if DEVICE.type == "cuda" else "cpu"
    settings = TrainConfig(model=model, epochs=2, impl="reference", device=place)
    resolved = resolve(settings, TEXTS, len(CORPUS.token), 2)
    optim = replace(resolved.optim, batch_size=batch_size, table_std=0.5, table_rate=0.03, warmup=0.5)
    with reproducible(0):
        trainer = Trainer(dataset, 2, replace(resolved, optim=optim, vectors=vectors))
    step = trainer.device_step = trainer.whole_step()
    assert step is not None
    step.table.impl = impl
    return trainer, step


def learned(trainer: Trainer) -> list[Tensor]:
    """All that steps change, the tensors themselves."""
    assert trainer.device_step is not None
    table = trainer.device_step.table
    dense = [tensor for group in trainer.dense for tensor in group.tensors().values()]
    return [table.row_VD, table.sum_V, *dense]


def losses(trainer: Trainer, steps: int) -> list[float]:
    """Those of some steps."""
    for learner in trainer.learners:
        learner.classifier.train()
    batches = [text_B for number in (1, 2) for text_B in trainer.batches(number)][:steps]
    with reproducible(0):
        return [float(trainer._step(text_B)) for text_B in batches]


def by_views(trainer: Trainer) -> Trainer:
    """Take steps view by view."""
    trainer.device_step = None
    return trainer


# By the kernels, which targets and models do not meet in, each once.
ONCE = [(kind, "plain") for kind in DATASETS] + [("one label", model) for model in list(MODELS)[1:]]
EACH = [(kind, model) for kind in DATASETS for model in MODELS]


@pytest.mark.parametrize(
    ("kind", "model", "impl"),
    [(*case, "reference") for case in EACH] + [pytest.param(*case, "triton", marks=needs_triton) for case in ONCE],
)
def test_steps_in_one_piece_go_where_steps_view_by_view_go(kind: str, model: str, impl: Impl) -> None:
    whole, _ = trainer_of(DATASETS[kind], MODELS[model], impl)
    apart = by_views(trainer_of(DATASETS[kind], MODELS[model], impl)[0])
    np.testing.assert_allclose(losses(whole, 5), losses(apart, 5), rtol=1e-5)
    for ours, theirs in zip(whole.arrays().values(), apart.arrays().values(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-5)


@needs_triton
@pytest.mark.skipif(DEVICE.type == "cuda", reason="on a GPU there are graphs")
@pytest.mark.parametrize(("kind", "model"), ONCE)
def test_a_step_that_is_recorded_and_replayed_with_other_texts_and_rates_learns_the_same(kind: str, model: str) -> None:
    """The tape does what a CUDA graph does: whatever came from the host would be that of another step."""
    plain, _ = trainer_of(DATASETS[kind], MODELS[model], "triton")
    taped_one, step = trainer_of(DATASETS[kind], MODELS[model], "triton")
    step.recorded = recorded_at_once(recorder(learned(taped_one)))
    assert losses(taped_one, 5) == losses(plain, 5)
    for ours, theirs in zip(learned(taped_one), learned(plain), strict=True):
        assert torch.equal(ours, theirs)


@needs_triton
@pytest.mark.parametrize("model", MODELS)
def test_a_step_of_all_views_is_six_launches_of_kernels(model: str) -> None:
    trainer, _ = trainer_of(DATASETS["one label"], MODELS[model], "triton")
    with count_launches() as launches:
        losses(trainer, 1)
    rows = {"uses_kernel": 1, "gather_kernel": 1, "adagrad_kernel": 1, "adagrad_pieces_kernel": 1}
    assert launches == {**rows, "readout_forward_kernel": 1, "readout_backward_kernel": 1}


@needs_triton
def test_models_that_the_fused_readout_does_not_know_are_read_out_by_their_classifiers() -> None:
    known, scaled, wide = (
        trainer_of(DATASETS["one label"], replace(MODELS["plain"], **told), "reference")[0].learners
        for told in ({}, {"attention": "cosine"}, {"dim": 256})
    )
    for learners, fused in ((known, True), (scaled, False), (wide, False)):
        classifiers = [learner.classifier for learner in learners]
        assert fuses(classifiers, DEVICE, "triton") == fused
        assert not fuses(classifiers, DEVICE, "reference")


WAITING: dict[str, Callable[[Tensor], object]] = {
    "a number": lambda x: int(x.sum()),
    "a list": lambda x: x.tolist(),
    "an array": lambda x: x.numpy(),
    "a copy on the host": lambda x: x.cpu(),
    "a tensor of a number": lambda x: torch.tensor(2.0),
    "places": lambda x: x.nonzero(),
    "different ones": lambda x: x.unique(),  # type: ignore[no-untyped-call]
    "counts": lambda x: x.bincount(),
    "those of a mask": lambda x: x[x > 1],
    "those of a mask, exchanged": lambda x: x.index_put_([x > 1], torch.zeros((), dtype=torch.int64)),
    "a comparison": lambda x: torch.equal(x, x),
    "repetitions": lambda x: x.repeat_interleave(x),
}


@pytest.mark.skipif(DEVICE.type == "cuda", reason="the tape is for the CPU")
@pytest.mark.parametrize("asked", WAITING)
def test_the_tape_refuses_what_waits_for_the_device(asked: str) -> None:
    numbers = torch.arange(3)
    with pytest.raises(AssertionError, match="waits for the device"), taped():
        WAITING[asked](numbers)


@pytest.mark.skipif(DEVICE.type == "cuda", reason="the tape is for the CPU")
def test_the_tape_does_again_what_was_done_with_what_is_there_then() -> None:
    numbers = torch.arange(3)
    with taped() as tape:
        doubled = numbers * 2
    numbers += 5
    tape.replay()
    assert doubled.tolist() == [10, 12, 14]


@pytest.mark.parametrize("left_out", [False, True], ids=["there", "left out"])
def test_a_view_by_vectors_reads_on_the_device_what_it_reads_elsewhere(left_out: bool) -> None:
    given = DATASETS["several labels"], MODELS["plain"], "reference", 3, VECTORS
    whole, apart = (trainer_of(*given)[0] for _ in range(2))  # type: ignore[arg-type]
    by_views(apart)
    if left_out:
        whole.leave_out(VECTORS_VIEW)
        apart.leave_out(VECTORS_VIEW)
        whole.device_step = whole.whole_step()
    np.testing.assert_allclose(losses(whole, 5), losses(apart, 5), rtol=1e-5)
    for ours, theirs in zip(whole.arrays().values(), apart.arrays().values(), strict=True):
        # Where a gradient is zero but for rounding, AdamW makes a step of that.
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-3)
    assert len(whole.learners) == 3 - left_out


@needs_triton
@pytest.mark.skipif(DEVICE.type == "cuda", reason="on a GPU there are graphs")
def test_a_step_with_a_view_by_vectors_can_be_recorded() -> None:
    given = DATASETS["one label"], MODELS["plain"], "triton", 3, VECTORS
    (plain, _), (taped_one, step) = (trainer_of(*given) for _ in range(2))  # type: ignore[arg-type]
    step.recorded = recorded_at_once(recorder(learned(taped_one)))
    assert losses(taped_one, 4) == losses(plain, 4)


@every_impl
def test_a_batch_in_a_larger_shape_reads_and_moves_the_same(impl: Impl) -> None:
    found = []
    for more in (0, 5):
        _, step = trainer_of(DATASETS["one label"], MODELS["plain"], impl)
        text_B = np.array([3, 1, 0])
        shape = step._texts.shape(text_B)
        larger = BatchShape(shape.texts, shape.tokens + more, shape.uses + 3 * more)
        batch = step.table.batch(step._texts, torch.from_numpy(text_B).to(DEVICE), larger)
        x_GBTD, squared_norm_GBT1 = step.table.read(batch)
        assert x_GBTD.shape == (2, 3, larger.tokens, 8)
        assert not x_GBTD[:, ~batch.mask_BT].any()
        assert not squared_norm_GBT1[:, ~batch.mask_BT].any()
        step.table.update(batch, x_GBTD.cos(), torch.tensor(0.3, device=DEVICE))
        found.append([x_GBTD[:, :, : shape.tokens], squared_norm_GBT1[:, :, : shape.tokens], step.table.row_VD])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def test_tables_that_are_joined_stay_those_of_their_views() -> None:
    trainer, step = trainer_of(DATASETS["one label"], MODELS["plain"], "reference")
    tables = [array for learner in trainer.learners for array in learner.embedding.arrays().values()]
    step.table.row_VD[step.table.first_G[1] + 1] = 7.0
    step.table.sum_V[1] = 3.0
    (_, sums), (rows, _) = ([*learner.embedding.arrays().values()] for learner in trainer.learners)
    assert (rows[1] == 7.0).all()
    assert sums[1] == 3.0
    assert sum(len(array) for array in tables[::2]) == len(step.table.row_VD)


def test_a_view_that_is_left_out_is_not_read_any_more() -> None:
    trainer, _ = trainer_of(DATASETS["one label"], MODELS["plain"], "reference")
    kept_VD = trainer.learners[1].embedding.arrays()["row"].copy()
    trainer.leave_out(0)
    step = trainer.device_step = trainer.whole_step()
    assert step is not None
    np.testing.assert_array_equal(step.table.row_VD.cpu().numpy(), kept_VD)
    losses(trainer, 1)
    assert (trainer.learners[0].embedding.arrays()["row"] != kept_VD).any()


def test_steps_are_in_one_piece_while_epochs_run_and_leave_their_memory_then() -> None:
    trainer, _ = trainer_of(DATASETS["one label"], MODELS["plain"], "reference")
    trainer.device_step = None
    with trainer.at_work():
        assert trainer.device_step is not None
        step = weakref.ref(trainer.device_step)
        trainer.train_epoch(1)
        assert "encoded" not in vars(trainer)
    assert trainer.device_step is None
    assert step() is None


def test_trainings_that_look_into_the_middle_of_a_step_take_it_view_by_view() -> None:
    settings = TrainConfig(model=MODELS["plain"], epochs=2, impl="reference", device="cpu")
    resolved = resolve(settings, TEXTS, len(CORPUS.token), 2)
    rationale = np.zeros(len(CORPUS.token), np.bool_)
    assert Trainer(Dataset(CORPUS, LABELS, rationale), 2, resolved).whole_step() is None
    assert ClusterTrainer(DATASETS["one label"], 2, resolved, 1).whole_step() is None


@given(st.integers(0, 10_000), st.integers(0, 10_000_000))
def test_shapes_are_rounded_up_by_a_quarter_and_a_half_at_most(tokens: int, uses: int) -> None:
    shape = rounded_up(BatchShape(32, tokens, uses))
    assert shape.texts == 32
    assert max(tokens, 8) <= shape.tokens <= max(8, 1.25 * tokens + 1)
    assert max(uses, 256) <= shape.uses <= max(256, 1.5 * uses + 1)
    assert rounded_up(shape) == shape


def test_between_a_power_of_two_and_the_next_there_are_four_sizes_of_tokens_and_two_of_uses() -> None:
    shapes = [rounded_up(BatchShape(1, size, size)) for size in range(513, 1025)]
    assert sorted({shape.tokens for shape in shapes}) == [640, 768, 896, 1024]
    assert sorted({shape.uses for shape in shapes}) == [768, 1024]


def recorded_at_once(record: Callable[[Callable[[], Tensor]], Callable[[], Tensor]]) -> Recorded[Any]:
    """Work that is recorded the second time in a shape."""
    recorded: Recorded[Any] = Recorded(torch.device("cpu"), record)
    recorded.after = 1
    return recorded


class Notes:
    """Records by keeping the work, and says what was done."""

    def __init__(self) -> None:
        self.recordings = 0

    def __call__(self, work: Callable[[], Tensor]) -> Callable[[], Tensor]:
        self.recordings += 1
        return work


def doubled(shape: int, given: Sequence[Tensor]) -> Tensor:
    assert given[0].shape == (shape,)
    return 2 * given[0]


def test_work_that_comes_often_in_a_shape_is_recorded_and_replayed_with_what_it_is_given_then() -> None:
    notes = Notes()
    recorded = recorded_at_once(notes)
    seen: list[tuple[int, Any]] = []
    for array in ([1], [2], [3, 4], [5], [6], [7, 8]):
        seen.append((notes.recordings, recorded(doubled, len(array), [np.array(array)])))
    assert [(count, result.tolist()) for count, result in seen] == [
        (0, [2]),
        (0, [4]),
        (1, [6, 8]),
        (1, [10]),
        (1, [12]),
        (1, [14, 16]),
    ]
    assert notes.recordings == 2


def test_what_comes_of_a_replay_outlasts_the_next_one() -> None:
    given: list[NDArray[np.int64]] = [np.array([n]) for n in range(4)]
    result = torch.zeros(1, dtype=torch.int64)

    def record(work: Callable[[], Tensor]) -> Callable[[], Tensor]:
        return lambda: result.copy_(work())

    recorded = recorded_at_once(record)
    assert [int(found) for found in [recorded(doubled, 1, [array]) for array in given]] == [0, 2, 4, 6]


def test_of_very_many_shapes_the_later_ones_are_not_recorded() -> None:
    notes = Notes()
    recorded = recorded_at_once(notes)
    for _ in range(3):
        for size in range(1, MOST + 5):
            assert recorded(doubled, size, [np.ones(size)])[0] == 2
    assert notes.recordings == MOST


def test_the_arrays_that_work_is_given_stay_as_they_were() -> None:
    recorded = recorded_at_once(Notes())
    first, second = np.array([1]), np.array([2])
    for array in (first, first, second):
        recorded(doubled, 1, [array])
    assert (first[0], second[0]) == (1, 2)


def test_no_gradients_and_no_nodes_of_autograd_are_left_of_a_step_without_the_garbage_collector() -> None:
    """What is left belongs to the stream of that step, and a recording on another one would meet it."""
    trainer, step = trainer_of(DATASETS["one label"], MODELS["scores mixed"], "reference")
    losses(trainer, 1)  # of what is imported for the first time something may stay
    gc.collect()
    weights = [weight for group in trainer.dense for weight in group.params]
    original, marked = step._loss_of, list[Any]()

    def loss_of(*given: Any) -> Tensor:
        found = original(*given)
        marked.extend(_node(weight) for weight in weights)
        for node in marked:
            node.metadata["of the step"] = True
        return found

    step._loss_of = loss_of  # type: ignore[method-assign, assignment]
    gc.disable()
    try:
        losses(trainer, 1)
        marked.clear()
        assert not any("of the step" in _node(weight).metadata for weight in weights)
        assert all(weight.grad is None for weight in weights)
    finally:
        gc.enable()
        del step._loss_of


def _node(weight: Tensor) -> Any:
    """What adds up the gradient of a weight."""
    made: Any = weight.expand_as(weight).grad_fn
    return made.next_functions[0][0]


def test_what_seldom_comes_is_not_recorded() -> None:
    notes = Notes()
    recorded: Recorded[int] = Recorded(torch.device("cpu"), notes)
    for _ in range(AFTER):
        recorded(doubled, 1, [np.ones(1)])
    assert notes.recordings == 0
    recorded(doubled, 1, [np.ones(1)])
    assert notes.recordings == 1


def test_where_there_is_no_room_for_a_recording_work_is_done_as_it_comes() -> None:
    trainer, step = trainer_of(DATASETS["one label"], MODELS["plain"], "reference")
    plain, _ = trainer_of(DATASETS["one label"], MODELS["plain"], "reference")

    def record(work: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """What a recording that fails leaves: nothing is done, but there are gradients."""
        for group in trainer.dense:
            for weight in group.params:
                weight.grad = torch.ones_like(weight)
        raise torch.OutOfMemoryError("no room")

    step.recorded = recorded_at_once(record)
    assert losses(trainer, 5) == losses(plain, 5)
    assert step.recorded.most == 0
    for ours, theirs in zip(learned(trainer), learned(plain), strict=True):
        assert torch.equal(ours, theirs)


GPU_MODELS = MODELS | {
    "dropout": ModelConfig(dim=8, seeds=2, dropout=0.2, seed_dropout=0.2),
    **{name: ModelConfig(dim=8, mixing=name) for name in MIXERS if name not in ("none", "lambda")},
}


@pytest.mark.skipif(DEVICE.type == "cpu", reason="needs a GPU")
@pytest.mark.parametrize(("kind", "model"), [*ONCE, *(("one label", model) for model in GPU_MODELS)])
def test_on_a_gpu_graphs_learn_what_steps_learn_that_come_one_by_one(kind: str, model: str) -> None:
    """Graphs of several shapes in turn, with predictions between them."""
    found = []
    for most in (MOST, 0):
        trainer, step = trainer_of(LONGER[kind], GPU_MODELS[model], "triton", vectors=VECTORS)
        step.recorded.after, step.recorded.most = 1, most
        told = []
        for _ in range(4):
            told += losses(trainer, 5)
            told.append(float(trainer.predict(trainer.encode(CORPUS)).sum()))
        assert bool(step.recorded.recordings) == bool(most)
        found.append((told, learned(trainer)))
    assert found[0][0] == found[1][0]
    for ours, theirs in zip(found[0][1], found[1][1], strict=True):
        assert torch.equal(ours, theirs)
