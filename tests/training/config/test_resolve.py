"""The rules that decide what a training run is not told."""

import numpy as np
import pytest

from textcls.errors import ConfigError
from textcls.evaluation.label_thresholds import Goal
from textcls.model.features import FeatureConfig
from textcls_training.config import resolve as rules
from textcls_training.config.resolve import resolve
from textcls_training.config.settings import ModelConfig, OptimConfig, TrainConfig, from_options
from textcls_training.fit.label_weights import class_weights
from textcls_training.vectors.word_vectors import WordVectors


@pytest.mark.parametrize(
    ("rows", "labels", "epochs"), [(6, 2, 40), (300, 6, 22), (10_000, 77, 14), (120_000, 4, 1), (10**7, 2, 1)]
)
def test_few_rows_a_label_get_many_epochs(rows: int, labels: int, epochs: int) -> None:
    assert rules.default_epochs(rows, labels) == epochs


def test_many_labels_of_many_rows_get_half_the_passes_at_twice_the_rate_of_the_head() -> None:
    assert [rules.default_epochs(8000, labels) for labels in (255, 256)] == [28, 14]
    assert [rules.default_epochs(rows, 400) for rows in (7999, 8000)] == [35, 17]
    rates = [resolve(TrainConfig(), ["text"] * 8000, 8000, labels).optim.rate for labels in (255, 256)]
    assert rates[1] == 2 * rates[0]


def test_of_many_rows_or_many_rows_times_labels_the_model_that_was_judged_is_kept() -> None:
    some = [(499_999, 2), (500_000, 2), (199_999, 5000), (200_000, 5000)]
    refits = [resolve(TrainConfig(), ["text"] * rows, rows, labels).refit for rows, labels in some]
    assert refits == [True, False, True, False]


def test_many_labels_get_a_wider_model() -> None:
    assert [rules.default_dim(labels) for labels in (2, 32, 33)] == [32, 32, 64]


def test_small_data_get_small_batches() -> None:
    assert [rules.default_batch_size(rows) for rows in (300, 7999, 8000)] == [16, 16, 32]


def optim_of(rows: int, tokens: int, **told: int) -> OptimConfig:
    return resolve(TrainConfig(**told), ["text"] * rows, tokens, 2).optim  # type: ignore[arg-type]


def test_rates_do_not_grow_for_a_step_that_no_rows_fill() -> None:
    assert optim_of(100, 2000, batch_size=10**8) == optim_of(100, 2000, batch_size=100)


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
    ("texts", "sizes"),
    [
        (["my card", "\u6771\u4eac"], (3, 5)),
        (["\uc571\uc774 \uacc4\uc18d", "ok"], (2, 3)),
        (["\uc571", "abc"], (2, 3, 5)),
        (["\uc571", 50 * "abc"], (3, 5)),
        (["", "123"], (3, 5)),
    ],
    ids=["Latin and Han", "mostly Hangul", "some Hangul", "a little Hangul", "no letters"],
)
def test_ngrams_are_shorter_where_letters_are_hangul_syllables(texts: list[str], sizes: tuple[int, ...]) -> None:
    assert rules.default_ngrams(texts) == sizes


def test_what_is_told_is_kept() -> None:
    told = TrainConfig(
        ngrams=(4,),
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
    found = resolve(told, ["text"], 1, 2)
    assert found.features == FeatureConfig(bigrams=False, ngram_sizes=(4,))
    assert (found.model, found.optim, found.epochs) == (told.model, told.optim, 9)
    assert (found.max_tokens, found.class_weight, found.size) == (11, "balanced", "tiny")
    assert (found.seed, found.device) == (13, "cpu")


def test_no_ngrams_is_not_the_same_as_not_told() -> None:
    assert resolve(TrainConfig(ngrams=()), ["text"], 1, 2).features.ngram_sizes == ()
    assert resolve(TrainConfig(), ["text"], 1, 2).features.ngram_sizes == rules.default_ngrams(["text"])


def test_the_options_of_the_model_make_the_model_and_the_labels_its_width() -> None:
    config = TrainConfig(mixing="gmlp", attention="cosine", embedding="rows", values="mixed")
    for labels, dim in ((2, 32), (50, 64)):
        model = resolve(config, ["text"], 1, labels).model
        assert (model.mixing, model.attention, model.embedding, model.values) == ("gmlp", "cosine", "rows", "mixed")
        assert model.dim == dim
    assert resolve(TrainConfig(dim=5), ["text"], 1, 50).model.dim == 5


def test_a_mixing_rate_takes_the_place_of_that_of_the_optimizers() -> None:
    assert resolve(TrainConfig(mixing_rate=0.5), ["text"], 1, 2).optim.mixing_rate == 0.5
    assert resolve(TrainConfig(), ["text"], 1, 2).optim.mixing_rate == OptimConfig().mixing_rate


def test_learning_rates_that_are_told_take_the_place_of_those_by_the_rows() -> None:
    found = resolve(TrainConfig(table_rate=0.5, head_rate=0.25), ["text"], 1, 2).optim
    assert (found.table_rate, found.rate) == (0.5, 0.25)
    usual = resolve(TrainConfig(), ["text"], 1, 2).optim
    assert (usual.table_rate, usual.rate) == (0.03, 0.009)


def test_by_default_a_model_has_no_mixing_and_the_default_size() -> None:
    found = resolve(TrainConfig(), ["text"], 1, 2)
    assert (found.model.mixing, found.size) == ("none", "default")


def test_the_table_learns_more_slowly_from_few_rows() -> None:
    rates = [rules.default_optim(rows, 20, 5).table_rate for rows in (100, 1000, 4000, 10**6)]
    assert rates == sorted(rates)
    assert rates[0] < rates[1] < rates[2] == rates[3]


def few_and_many(config: TrainConfig, vectors: WordVectors | None = None) -> list[rules.ResolvedConfig]:
    """What is resolved just below the bound of few rows, and at it."""
    return [
        resolve(config, ["text"] * rows, 20 * rows, 2, vectors=vectors) for rows in (rules.FEW_ROWS - 1, rules.FEW_ROWS)
    ]


def test_of_several_labels_attention_begins_even_however_many_rows_there_are() -> None:
    rows = 2 * rules.FEW_ROWS
    one, several = (
        resolve(TrainConfig(), ["text"] * rows, 20 * rows, 2, label_rows=told, impl="compiled") for told in (None, 1.5)
    )
    assert (one.even_attention, several.even_attention) == (False, True)
    assert several.optim.rate < rules.EVEN_ATTENTION_RATE


def test_of_few_rows_attention_begins_even_and_learns_faster_and_held_out_rows_meet_few_collisions() -> None:
    few, many = few_and_many(TrainConfig())
    assert (few.even_attention, many.even_attention) == (True, False)
    assert few.optim.rate > many.optim.rate == OptimConfig().rate
    assert few.least_buckets > many.least_buckets == rules.LEAST_BUCKETS
    assert few.model == many.model


@pytest.mark.parametrize(
    "model",
    [
        ModelConfig(attention="softmax"),
        ModelConfig(attention="cosine"),
        ModelConfig(mixing="gmlp"),
        ModelConfig(embedding="bits"),
        ModelConfig(seeds=2),
    ],
    ids=["softmax", "cosine", "mixing", "bits", "two seeds"],
)
def test_other_models_than_the_default_begin_alike_on_few_rows_and_on_many(model: ModelConfig) -> None:
    for found in few_and_many(TrainConfig(model=model)):
        assert (found.even_attention, found.optim.rate) == (False, OptimConfig().rate)


def test_rates_that_are_told_are_kept_on_few_rows() -> None:
    for found in few_and_many(TrainConfig(optim=OptimConfig(rate=0.5))):
        assert found.optim.rate == 0.5


def test_the_view_by_vectors_keeps_its_rate_where_the_others_learn_faster() -> None:
    vectors = WordVectors(["card"], np.ones((1, 2), np.float32), {}, "")
    few, many = few_and_many(TrainConfig(), vectors)
    assert (few.even_attention, many.even_attention) == (True, False)
    assert few.optim.rate > many.optim.rate
    assert few.vectors_rate == many.vectors_rate == many.optim.rate


def test_weights_of_labels_stand_in_the_order_of_the_labels_and_are_1_where_none_is_given() -> None:
    assert rules.label_weights("balanced", ["a", "b"], several=False) == "balanced"
    assert rules.label_weights({"b": 2.0}, ["a", "b"], several=False) == (1.0, 2.0)
    with pytest.raises(ConfigError, match="class_weight has a weight for 'z', which no training row has"):
        rules.label_weights({"z": 2.0}, ["a", "b"], several=False)
    with pytest.raises(ConfigError, match="All weights of class_weight are 0"):
        rules.label_weights({"a": 0, "b": 0}, ["a", "b"], several=False)


def test_rare_labels_weigh_more_unless_a_text_has_several() -> None:
    def weights(labels: int, label_rows: float | None = None, **options: str) -> object:
        config = TrainConfig(**options)  # type: ignore[arg-type]
        return resolve(config, ["text"], 1, labels, label_rows=label_rows, names=[*"ab"]).class_weight

    assert weights(2) == "tempered"
    assert weights(2, label_rows=1.0) == weights(2, class_weight="none") == "none"
    mass_C = np.array([1.0, 4.0, 4.0])
    np.testing.assert_allclose(class_weights(mass_C, "balanced"), [3.0, 0.75, 0.75])
    assert (class_weights(mass_C, "none") == 1).all()


def test_few_rows_weigh_more_and_thousands_alike_and_a_row_weighs_1_in_the_mean() -> None:
    mass_C = np.array([10.0, 1000.0, 100_000.0])
    weight_C = class_weights(mass_C, "tempered")
    np.testing.assert_allclose(weight_C / weight_C[1], np.sqrt([101 / 2, 1, 1.01 / 2]), rtol=1e-6)
    assert (weight_C * mass_C).sum() == pytest.approx(mass_C.sum(), rel=1e-6)
    assert (class_weights(np.full(3, 1234.0), "tempered") == 1).all()


def test_thresholds_are_chosen_for_several_labels_alone() -> None:
    several = resolve(TrainConfig(target_recall=0.9), ["text"], 1, 2, label_rows=1.0)
    assert several.goal == Goal("recall", 0.9)
    assert resolve(TrainConfig(), ["text"], 1, 2, label_rows=1.0).goal is None
    with pytest.raises(ConfigError, match="A target precision needs rows with several labels"):
        resolve(TrainConfig(target_precision=0.9), ["text"], 1, 2)


def on_gpu(rows: int, tokens: int = 20, epochs: int = 1, **more: bool) -> OptimConfig:
    """What is resolved for a GPU."""
    return rules.default_optim(rows, tokens, epochs, on_gpu=True, **more)


@pytest.mark.parametrize(
    ("several", "least"),
    [(False, rules.LEAST_GPU_STEPS), (True, rules.LEAST_GPU_STEPS_OF_SEVERAL)],
    ids=["one label", "several labels"],
)
@pytest.mark.parametrize(("rows", "epochs"), [(2000, 10), (10_000, 3), (30_000, 2), (100_000, 1)])
def test_batches_of_a_gpu_are_the_largest_power_of_two_that_leaves_enough_steps(
    rows: int, epochs: int, several: bool, least: int
) -> None:
    size = on_gpu(rows, epochs=epochs, several=several).batch_size
    assert size & (size - 1) == 0
    assert epochs * rows / (2 * size) < least <= epochs * rows / size


def test_batches_of_a_gpu_are_never_below_the_usual_ones_and_bounded_in_texts_and_tokens() -> None:
    for rows, several in ((100, False), (100, True), (10_000, False)):
        few = rules.default_optim(rows, 20, 1, several=several)
        assert on_gpu(rows, several=several).batch_size >= few.batch_size
    assert on_gpu(100) == rules.default_optim(100, 20, 1)
    assert on_gpu(10**8).batch_size == rules.MOST_GPU_BATCH
    assert on_gpu(10**8, tokens=1000).batch_size * 1000 <= rules.MOST_GPU_TOKENS
    assert on_gpu(10**8, tokens=10**6).batch_size == rules.default_batch_size(10**8)


@pytest.mark.parametrize("several", [False, True])
def test_in_the_larger_batches_of_a_gpu_the_head_learns_faster_and_the_table_hardly(several: bool) -> None:
    usual, larger = rules.default_optim(10**6, 20, 1, several=several), on_gpu(10**6, several=several)
    growth = larger.batch_size / usual.batch_size
    assert growth > 1
    assert larger.rate == pytest.approx(growth**0.5 * usual.rate)
    assert usual.table_rate < larger.table_rate < growth**0.25 * usual.table_rate
    assert larger.warmup > usual.warmup


def test_few_passes_shrink_the_head_as_much_in_the_larger_batches_of_a_gpu() -> None:
    usual, larger = rules.default_optim(10**5, 20, 1), on_gpu(10**5)
    assert larger.batch_size > usual.batch_size
    shrinking = [one.head_decay * one.rate / one.batch_size for one in (usual, larger)]
    assert shrinking[0] == pytest.approx(shrinking[1])


def test_a_batch_that_is_told_is_kept_on_a_gpu_and_has_its_rates() -> None:
    usual = rules.default_optim(10_000, 20, 3)
    larger, smaller = (rules.default_optim(10_000, 20, 3, batch_size=size, on_gpu=True) for size in (512, 8))
    assert larger == rules.with_large_batch(usual, 512)
    assert smaller == rules.default_optim(10_000, 20, 3, batch_size=8)


@pytest.mark.parametrize("told", [{"mixing": "lambda"}, {"embedding": "bits"}], ids=["mixing", "bits"])
def test_models_whose_large_batches_were_not_shown_to_bring_as_much_keep_the_usual_ones(told: dict[str, str]) -> None:
    cpu, gpu = (
        resolve(from_options(told), ["text"] * 10_000, 200_000, 2, on_gpu=where).optim for where in (False, True)
    )
    assert cpu == gpu


def test_a_gpu_has_larger_batches_and_no_other_device_and_rates_that_are_told_are_kept_there() -> None:
    texts, told = ["text"] * 10_000, OptimConfig(rate=0.5)
    cpu, gpu = (resolve(TrainConfig(), texts, 200_000, 2, on_gpu=where).optim for where in (False, True))
    assert cpu == rules.default_optim(10_000, 20, 2)
    assert gpu.batch_size > cpu.batch_size
    assert resolve(TrainConfig(optim=told), texts, 200_000, 2, on_gpu=True).optim == told


def test_larger_steps_have_larger_rates_and_batch_size_is_no_second_word_on_rates() -> None:
    usual, larger = (rules.default_optim(10_000, 20, 3, batch_size=size) for size in (None, 128))
    assert (usual.batch_size, larger.batch_size) == (32, 128)
    assert (larger.rate, larger.table_rate) == pytest.approx((2 * usual.rate, 2 * usual.table_rate))
    with pytest.raises(ConfigError, match="Both all rates and batch_size are given"):
        TrainConfig(batch_size=64, optim=usual)
