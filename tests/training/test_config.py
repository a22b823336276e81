"""The rules that decide what a training run is not told."""

import math
from typing import Any

import pytest
import torch

from textcls.errors import ConfigError
from textcls.features import FeatureConfig
from textcls_training import config
from textcls_training.config import OptimConfig, TrainConfig, resolve
from textcls_training.model import ModelConfig


@pytest.mark.parametrize(
    ("rows", "labels", "epochs"), [(6, 2, 40), (300, 6, 22), (10_000, 77, 14), (120_000, 4, 1), (10**7, 2, 1)]
)
def test_few_rows_a_label_get_many_epochs(rows: int, labels: int, epochs: int) -> None:
    assert config.default_epochs(rows, labels) == epochs


def test_many_labels_get_a_wider_model() -> None:
    assert [config.default_dim(labels) for labels in (2, 32, 33)] == [32, 32, 64]


def test_small_data_get_small_batches() -> None:
    assert [config.default_batch_size(rows) for rows in (300, 7999, 8000)] == [16, 16, 32]


def optim_of(rows: int, tokens: int, **told: int) -> OptimConfig:
    return resolve(TrainConfig(**told), ["text"] * rows, tokens, 2).optim  # type: ignore[arg-type]


def test_tables_of_longer_texts_start_from_a_smaller_accumulator() -> None:
    starts = [optim_of(4, 4 * tokens).table_accumulator for tokens in (0, 1, 10, 30, 100, 300, 10_000)]
    assert starts == sorted(starts, reverse=True)
    assert len(set(starts)) > 3
    assert 0 < starts[-1] < starts[0] < 1


def test_the_accumulator_follows_from_the_mean_length_of_the_texts() -> None:
    assert optim_of(2, 400).table_accumulator == optim_of(20, 4000).table_accumulator


def test_few_passes_shrink_the_head_as_much_in_all_however_many_rows_there_are() -> None:
    one, two = (optim_of(rows, rows, epochs=1).head_decay * rows for rows in (100_000, 200_000))
    assert one == pytest.approx(two)
    assert optim_of(300, 300, epochs=20).head_decay == OptimConfig().head_decay


@pytest.mark.parametrize(
    ("texts", "shorter"),
    [
        (["my card", "\u6771\u4eac"], False),
        (["\uc571\uc774 \uacc4\uc18d", "ok"], True),
        (["\uc571", "abc"], False),
        (["", "123"], False),
    ],
    ids=["Latin and Han", "mostly Hangul", "a little Hangul", "no letters"],
)
def test_ngrams_are_shorter_where_letters_are_hangul_syllables(texts: list[str], shorter: bool) -> None:
    usual, found = config.default_ngrams(["abc"]), config.default_ngrams(texts)
    assert sum(found) < sum(usual) if shorter else found == usual


def test_what_is_told_is_kept() -> None:
    told = TrainConfig(
        ngram_sizes=(4,),
        bigrams=False,
        model=ModelConfig(dim=5, metric=False),
        optim=OptimConfig(batch_size=7, table_accumulator=0.5),
        epochs=9,
        max_tokens=11,
        class_weight="balanced",
        size="tiny",
        seed=13,
        device="cpu",
    )
    plan = resolve(told, ["text"], 1, 2)
    assert plan.features == FeatureConfig(bigrams=False, ngram_sizes=(4,))
    assert (plan.model, plan.optim, plan.epochs) == (told.model, told.optim, 9)
    assert (plan.max_tokens, plan.class_weight, plan.size) == (11, "balanced", "tiny")
    assert (plan.seed, plan.device) == (13, "cpu")


def test_no_ngrams_is_not_the_same_as_not_told() -> None:
    assert resolve(TrainConfig(ngram_sizes=()), ["text"], 1, 2).features.ngram_sizes == ()
    assert resolve(TrainConfig(), ["text"], 1, 2).features.ngram_sizes == config.default_ngrams(["text"])


def test_by_default_a_model_has_no_mixing_and_the_default_size() -> None:
    plan = resolve(TrainConfig(), ["text"], 1, 2)
    assert (plan.model.mixing, plan.size) == ("none", "default")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epochs": 0}, r"epochs must be at least 1, not 0\."),
        ({"max_tokens": 0}, r"max_tokens must be at least 1, not 0\."),
        ({"mixing_rate": 0.0}, r"mixing_rate must be a finite number above 0, not 0\.0\."),
        ({"mixing_rate": math.nan}, r"mixing_rate must be a finite number above 0, not nan\."),
        ({"mixing_rate": math.inf}, r"mixing_rate must be a finite number above 0, not inf\."),
        ({"seed": -1}, r"seed must be 0 to 9223372036854775807, not -1\."),
        ({"seed": 2**63}, r"seed must be 0 to 9223372036854775807, not 9223372036854775808\."),
    ],
    ids=str,
)
def test_a_bad_value_is_named_in_the_error(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}$"):
        TrainConfig(**fields)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["table_rate", "rate", "mixing_rate", "bits_rate"])
def test_a_rate_is_finite_and_above_zero(name: str, rate: float) -> None:
    with pytest.raises(ConfigError, match=rf"^{name} must be a finite number above 0, not {rate}\.$"):
        OptimConfig(**{name: rate})  # type: ignore[arg-type]


def test_a_step_needs_a_text() -> None:
    with pytest.raises(ConfigError, match=r"^batch_size must be at least 1, not 0\.$"):
        OptimConfig(batch_size=0)


def test_metric_scores_are_for_a_gpu_unless_told() -> None:
    def metric(model: ModelConfig | None) -> bool | None:
        return resolve(TrainConfig(model=model, device="cpu"), ["text"], 1, 2).model.metric

    assert metric(None) is False
    assert metric(ModelConfig(metric=True)) is True


def test_metric_scores_are_the_default_on_a_gpu_with_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(config, "find_spec", lambda _: None)
    assert resolve(TrainConfig(), ["text"], 1, 2).model.metric is False
    monkeypatch.setattr(config, "find_spec", lambda name: name == "triton" or None)
    for attention, expected in (("norm", True), ("softmax", True), ("cosine", False)):
        plan = resolve(TrainConfig(model=ModelConfig(attention=attention)), ["text"], 1, 2)  # type: ignore[arg-type]
        assert plan.model.metric is expected
    assert resolve(TrainConfig(model=ModelConfig(metric=False)), ["text"], 1, 2).model.metric is False


def test_the_table_learns_more_slowly_from_few_rows() -> None:
    rates = [config.default_optim(rows, 20, 5).table_rate for rows in (100, 1000, 4000, 10**6)]
    assert rates == sorted(rates)
    assert rates[0] < rates[1] < rates[2] == rates[3]
