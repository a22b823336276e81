"""Steps in shards: the same bytes whoever computes them, and within rounding those of whole batches."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command_line import succeed
from tests.training.fit.compiled.test_compiled import CASES, configuration
from textcls.errors import ConfigError, MissingExtraError
from textcls_training.config.resolve import chosen_impl, default_optim
from textcls_training.config.settings import SHARDS, TrainConfig, from_options
from textcls_training.data.arrays import Int64
from textcls_training.fit.compiled.arrays import Dense, Gradient, Scratch, Table
from textcls_training.fit.compiled.shards import Read, Threads, add_up
from textcls_training.fit.compiled.trainer import CompiledTrainer
from textcls_training.fit.shards import dealt, shards_of
from textcls_training.pipeline.training import train
from textcls_training.state.identity import identity

BATCHES: Sequence[Int64] = [np.array([5, 0, 2, 1, 6, 3, 4]), np.array([6, 5]), np.array([2, 1, 0, 4, 3])]
KINDS = ("hard targets", "two seeds", "soft targets and weights", "several labels", "vectors of words")


def trainer_of(case: str, **told: Any) -> CompiledTrainer:
    data, more = CASES[case]
    return CompiledTrainer(data, 3, replace(configuration(data, **more), **told))


def trained(case: str, epochs: int = 3, **told: Any) -> dict[str, bytes]:
    trainer = trainer_of(case, epochs=epochs, **told)
    trainer.train(epochs)
    return {name: array.tobytes() for name, array in trainer.arrays().items()}


@pytest.mark.parametrize("case", KINDS)
def test_one_two_and_four_workers_take_the_same_steps_to_the_last_bit(case: str) -> None:
    one, two, four = (trained(case, shards=4, workers=workers) for workers in (1, 2, 4))
    assert one == two == four
    assert one != trained(case)


@pytest.mark.parametrize("case", KINDS)
def test_steps_in_one_shard_are_those_of_whole_batches_to_the_last_bit(case: str) -> None:
    whole, apart = trainer_of(case), trainer_of(case)
    factor_K = np.array([0.5, 1.0, 0.7], np.float32)
    flat = np.concatenate(BATCHES), np.cumsum([0, *map(len, BATCHES)])
    for view in range(whole.views):
        learner, other = whole.learners[view], apart.learners[view]
        wanted = learner.train(whole._encoded[view], whole._targets, whole._scratch[view], flat, factor_K)
        workers = Threads(read_of(apart, view), 1)
        found = other.train_in_shards(workers, 1, apart._scratch[view], BATCHES, factor_K)
        np.testing.assert_array_equal(found, wanted)
        for name, array in learner.arrays().items():
            np.testing.assert_array_equal(other.arrays()[name], array, err_msg=name)
        assert not other.table.number_V.any()


def read_of(trainer: CompiledTrainer, view: int) -> Read:
    learner = trainer.learners[view]
    norm = learner.config.attention == "norm"
    texts = trainer._encoded[view].texts
    return Read(texts, learner.table, learner.weights, trainer._targets, norm, trainer._scratch[view])


@pytest.mark.parametrize("case", KINDS)
def test_shards_change_a_step_by_no_more_than_rounding(case: str) -> None:
    whole, apart = trainer_of(case), trainer_of(case, shards=3, workers=2)
    with apart.at_work():
        assert apart._train(BATCHES) == pytest.approx(whole._train(BATCHES), rel=1e-5)
    for name, array in whole.arrays().items():
        np.testing.assert_allclose(apart.arrays()[name], array, rtol=1e-3, atol=1e-4, err_msg=name)


def test_a_training_that_goes_on_with_other_workers_ends_in_the_same_bytes() -> None:
    first = trainer_of("hard targets", epochs=3, shards=4, workers=1)
    first.train(2)
    state = {name: array.copy() for name, array in first.state().arrays.items()}
    second = trainer_of("hard targets", epochs=3, shards=4, workers=3)
    second.resume(state)
    second.train(3)
    assert {name: array.tobytes() for name, array in second.arrays().items()} == trained(
        "hard targets", shards=4, workers=2
    )


def test_a_trainer_is_not_at_work_by_itself() -> None:
    with pytest.raises(ValueError, match="zip"):
        trainer_of("hard targets", shards=2)._train(BATCHES)


@given(texts=st.integers(0, 40), shards=st.integers(1, 12), workers=st.integers(1, 12))
def test_shards_and_workers_have_all_texts_in_their_order(texts: int, shards: int, workers: int) -> None:
    found = shards_of(np.arange(texts), shards)
    assert len(found) == shards
    blocks = dealt(found, workers)
    assert len(blocks) == workers
    each = [part for block in blocks for part in block]
    assert [part.tolist() for part in each] == [part.tolist() for part in found]
    assert np.concatenate(each).tolist() == list(range(texts))
    assert max(map(len, found)) - min(map(len, found)) <= 1


@given(data=st.data(), rows=st.integers(2, 12), shards=st.integers(1, 6))
def test_gradients_are_added_in_the_order_of_the_shards(data: st.DataObject, rows: int, shards: int) -> None:
    """As if the tables were dense: numbers of very different sizes, whose sum hangs on the order."""
    rng, width = np.random.default_rng(data.draw(st.integers(0, 2**32))), 2
    dense = Dense.zeros(1, width, 2, plain=True)
    table = Table(np.zeros((rows, width), np.float32), *(np.ones(rows, np.float32),) * 2, np.zeros(rows, np.int32))
    gradients, wanted_VD, wanted = [], np.zeros((rows, width), np.float32), np.zeros_like(dense.flat)
    for _ in range(shards):
        used = data.draw(st.lists(st.integers(1, rows - 1), unique=True))
        row_P = np.array(used, np.int32)
        grad_PD, flat = (
            (rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 8, shape)).astype(np.float32)
            for shape in ((len(used), width), (len(dense.flat),))
        )
        gradients.append(Gradient(1.5, row_P, grad_PD, flat))
        wanted_VD[row_P] += grad_PD
        wanted += flat
    scratch = room(rows, width)
    loss, distinct = add_up(gradients, table, scratch, dense)
    row_P = scratch.row_P[1 : distinct + 1]
    assert sorted(row_P.tolist()) == sorted({row for each in gradients for row in each.row_P.tolist()})
    np.testing.assert_array_equal(scratch.grad_PD[1 : distinct + 1], wanted_VD[row_P])
    np.testing.assert_array_equal(dense.flat, wanted)
    assert loss == 1.5 * shards
    assert table.number_V[row_P].tolist() == list(range(1, distinct + 1))


def room(rows: int, width: int) -> Scratch:
    """Room for gradients of rows alone."""
    flat, whole, table = np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros((0, width), np.float32)
    grad_PD = np.full((rows, width), np.nan, np.float32)
    return Scratch(whole, np.zeros(0, np.int64), table, table, flat, table, np.zeros(rows, np.int32), grad_PD)


# The command, and its options


def test_the_command_writes_the_same_file_with_any_number_of_workers(sample_path: Path, tmp_path: Path) -> None:
    for name, more in (("one", ()), ("two", ("--workers", 2)), ("four", ("--workers", 4))):
        told = ("--epochs", 1, "--dim", 8, "--vectors", "none", "--shards", 4, *more)
        succeed("train", sample_path, "--output", tmp_path / name, "--quiet", *told)
    one, two, four = ((tmp_path / name).read_bytes() for name in ("one", "two", "four"))
    assert one == two == four
    assert b'"shards": 4' in one


def test_shards_are_one_unless_there_are_workers_and_then_the_same_for_any_number() -> None:
    assert TrainConfig().step_shards == 1
    assert [TrainConfig(workers=workers).step_shards for workers in (1, 2, 4)] == [SHARDS] * 3
    assert TrainConfig(engine="ray").step_shards == SHARDS
    assert TrainConfig(workers=2, shards=3).step_shards == 3
    with pytest.raises(ConfigError, match=r"^9 workers need as many shards to share; add shards 9\.$"):
        TrainConfig(workers=9)


def test_workers_are_refused_where_the_reference_trains_and_shards_are_not() -> None:
    for told, what in (({"mixing": "gmlp"}, "mixing 'gmlp'"), ({"impl": "reference"}, "impl reference")):
        assert chosen_impl(from_options({"shards": 2, **told})) == "reference"
        for workers in ({"workers": 1}, {"engine": "ray"}):
            with pytest.raises(ConfigError, match=f"^Workers are for the compiled trainer, which {what} is not for"):
                chosen_impl(from_options({**workers, **told}))


def test_larger_steps_have_larger_rates_and_batch_size_is_no_second_word_on_rates() -> None:
    usual, larger = (default_optim(10_000, 20, 3, batch_size=size) for size in (None, 128))
    assert (usual.batch_size, larger.batch_size) == (32, 128)
    assert (larger.rate, larger.table_rate) == pytest.approx((2 * usual.rate, 2 * usual.table_rate))
    with pytest.raises(ConfigError, match="Both all rates and batch_size are given"):
        TrainConfig(batch_size=64, optim=usual)


def test_a_state_knows_shards_and_does_not_care_for_workers() -> None:
    data, _ = CASES["hard targets"]
    given: Any = type(
        "Rows", (), {"sha256": lambda self: "", "rationales": None, "text_columns": (), "label_column": ""}
    )()

    def of(**told: Any) -> dict[str, Any]:
        config = TrainConfig(**told)
        return identity(given, None, None, config, replace(configuration(data), shards=config.step_shards), {})

    assert of(workers=1) == of(workers=4) == of(engine="ray")
    assert of() != of(workers=1)


def test_without_ray_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    rows: Any = None
    with pytest.raises(MissingExtraError, match=r"pip install 'textcls\[ray\]'"):
        train(rows, tmp_path / "m.onnx", TrainConfig(engine="ray"))
