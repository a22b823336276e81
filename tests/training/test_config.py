"""The rules that decide what a training run is not told."""

import pytest

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


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [
        (["my card", "\u6771\u4eac"], (3, 5)),
        (["\uc571\uc774 \uacc4\uc18d", "ok"], (2, 4)),
        (["\uc571", "abc"], (3, 5)),
        (["", "123"], (3, 5)),
    ],
    ids=["Latin and Han", "mostly Hangul", "a little Hangul", "no letters"],
)
def test_ngrams_are_shorter_where_letters_are_hangul_syllables(texts: list[str], sizes: tuple[int, ...]) -> None:
    assert config.default_ngrams(texts) == sizes


def test_what_is_told_is_kept() -> None:
    told = TrainConfig(
        ngram_sizes=(4,),
        bigrams=False,
        word_hashes=2,
        model=ModelConfig(dim=5),
        optim=OptimConfig(batch_size=7),
        epochs=9,
        max_tokens=11,
        class_weight="balanced",
        seed=13,
        device="cpu",
    )
    plan = resolve(told, ["text"], 2)
    assert plan.features == FeatureConfig(word_hashes=2, bigrams=False, ngram_sizes=(4,))
    assert (plan.model, plan.optim, plan.epochs) == (told.model, told.optim, 9)
    assert (plan.max_tokens, plan.class_weight, plan.seed, plan.device) == (11, "balanced", 13, "cpu")


def test_no_ngrams_is_not_the_same_as_not_told() -> None:
    assert resolve(TrainConfig(ngram_sizes=()), ["text"], 2).features.ngram_sizes == ()
    assert resolve(TrainConfig(), ["text"], 2).features.ngram_sizes == (3, 5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epochs": 0}, r"epochs must be at least 1, not 0\."),
        ({"max_tokens": 0}, r"max_tokens must be at least 1, not 0\."),
    ],
    ids=["epochs", "max_tokens"],
)
def test_a_bad_value_is_named_in_the_error(fields: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**fields)  # type: ignore[arg-type]
