"""The benchmarks' arithmetic, tables and resuming; nothing large is trained here."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
ABOUT = {"date": "2026-01-02", "commit": "abc1234", "machine": "2 cores", "versions": {"numpy": "2.4.0"}}
FIGURES = {
    "accuracy": 90.0, "macro_f1": 89.0, "accuracy_90": 95.0, "ece": 0.03, "ece_floor": 0.02, "train_rows": 1000,
    "test_rows": 100, "labels": 2, "train_s": 12.0, "peak_mb": 500.0, "alone_us": 70.0, "batch_us": 20.0, "mb": 2.0,
}  # fmt: skip


@pytest.fixture
def module(benchmark_module: Any) -> Any:
    return benchmark_module


# Figures


def test_the_calibration_floor_of_one_bin_is_the_mean_deviation_of_a_binomial(module: Any) -> None:
    # 4 rows of confidence 0.5 in one bin: |rights - 2| / 4 is 0, 1/4 or 1/2 with chances 6, 8 and 2 of 16; mean 3/16.
    floor = module("measure").calibration_floor(np.full(4, 0.5), draws=4000)
    assert floor == pytest.approx(3 / 16, abs=0.01)


def test_a_model_that_is_always_sure_has_no_calibration_floor(module: Any) -> None:
    assert module("measure").calibration_floor(np.ones(10)) == 0


def test_the_calibration_floor_falls_with_the_rows_and_is_repeatable(module: Any) -> None:
    floor = module("measure").calibration_floor
    few, many = (floor(np.full(rows, 0.8)) for rows in (100, 10_000))
    assert many < few / 5
    assert floor(np.full(100, 0.8)) == few


def test_accuracy_at_coverage_leaves_the_least_sure_rows_out(module: Any) -> None:
    confidence = np.array([0.9, 0.2, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6])
    right = np.array([True, False, True, False, True, True, True, True, True, True])
    accuracy = module("measure").coverage_accuracy
    assert accuracy(confidence, right) == pytest.approx(8 / 9)
    assert accuracy(confidence, right, coverage=0.2) == 1
    assert accuracy(confidence, right, coverage=1.0) == pytest.approx(0.8)


@pytest.mark.parametrize("labels", [["yes", "no"], ["yes", "no", "perhaps"]], ids=["two labels", "three labels"])
@pytest.mark.parametrize(
    "name", ["TF-IDF words + SVM", "TF-IDF words + LR", "fastText bigrams"], ids=["margin", "probability", "fastText"]
)
def test_peers_answer_alike_with_and_without_confidence(module: Any, name: str, labels: list[str]) -> None:
    if name.startswith("fastText"):
        pytest.importorskip("fasttext", reason="this peer needs fasttext-numpy2-wheel")
    texts = [f"{label} it is, said number {i}" for i in range(10) for label in labels]
    peer = module("peers").PEERS[name](texts, labels * 10)
    answers, confidence = peer.score(texts)
    assert answers == peer.predict(texts)
    assert confidence.shape == (len(texts),)
    assert confidence.min() >= 0
    assert not peer.probabilities or confidence.max() <= 1


# Subsets


def test_subsets_are_nested_stratified_and_have_every_label(module: Any) -> None:
    labels = ["common"] * 600 + ["usual"] * 390 + ["rare"] * 10
    order = module("common").nested_order(labels, seed=1)
    assert sorted(order) == list(range(1000))
    assert Counter(labels[i] for i in order[:3]) == {"common": 1, "usual": 1, "rare": 1}
    for size in (50, 100, 500):
        counts = Counter(labels[i] for i in order[:size])
        assert counts["common"] == pytest.approx(0.6 * size, abs=2)
        assert counts["rare"] == pytest.approx(0.01 * size, abs=1)
    assert order != module("common").nested_order(labels, seed=2)


# Resuming


def test_a_second_run_measures_what_is_missing_or_failed(module: Any, tmp_path: Path) -> None:
    state, path = module("state"), tmp_path / "run.json"
    cells = [state.Cell("a", "textcls"), state.Cell("a", "bad"), state.Cell("b", "textcls", 1, 100)]
    asked = []

    def measure(cell: Any) -> dict[str, float]:
        asked.append(cell)
        if cell.model == "bad" and len(asked) <= 3:
            raise module("common").CommandError("out of luck")
        return {"accuracy": float(len(asked))}

    first = state.resume(path, ABOUT, restart=False)
    first.run(cells, measure, path)
    assert asked == cells
    assert first.failures()[-1] == "- a, bad, seed 0: out of luck"
    second = state.resume(path, {**ABOUT, "date": "2026-01-03"}, restart=False)
    assert second == first
    second.run(cells, measure, path)
    assert asked[3:] == [cells[1]]
    assert second.failures() == []
    assert state.State.load(path).figures == {cells[0]: {"accuracy": 1}, cells[2]: {"accuracy": 3},
                                              cells[1]: {"accuracy": 4}}  # fmt: skip


def test_an_interrupted_run_keeps_what_it_measured(module: Any, tmp_path: Path) -> None:
    state, path = module("state"), tmp_path / "run.json"
    cells = [state.Cell("a", "textcls", seed) for seed in range(3)]

    def measure(cell: Any) -> dict[str, float]:
        if cell.seed == 2:
            raise KeyboardInterrupt("at the third")
        return {"accuracy": 1.0}

    with pytest.raises(KeyboardInterrupt, match="at the third"):
        state.State(ABOUT).run(cells, measure, path)
    assert list(state.State.load(path).figures) == cells[:2]
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_a_run_of_another_commit_is_not_gone_on_with(module: Any, tmp_path: Path) -> None:
    state, path = module("state"), tmp_path / "run.json"
    state.State(ABOUT, {state.Cell("a", "textcls"): FIGURES}).save(path)
    now = {**ABOUT, "commit": "def5678"}
    refused = f"{path} was measured with commit abc1234 (now def5678): go on there, or give --restart."
    with pytest.raises(click.UsageError, match=f"^{re.escape(refused)}$"):
        state.resume(path, now, restart=False)
    assert state.resume(path, now, restart=True) == state.State(now)


@pytest.mark.parametrize("content", ["", "[]", json.dumps({"about": {}})])
def test_a_file_that_is_no_run_is_refused(module: Any, tmp_path: Path, content: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(click.UsageError, match="is not the JSON file of a run"):
        module("state").resume(path, ABOUT, restart=False)


# Reports


def comparison(module: Any) -> Any:
    """A state of two sets: textcls ahead by 1 on the one, behind by 2 on the other."""
    state = module("state")
    peer = {name: value for name, value in FIGURES.items() if not name.startswith("ece")} | {"train_s": 4.0}
    return state.State(
        ABOUT,
        {
            state.Cell("trees", "textcls", 0): FIGURES,
            state.Cell("trees", "TF-IDF words + SVM"): {**peer, "accuracy": 90.0},
            state.Cell("trees", "fastText bigrams"): {**peer, "accuracy": 80.0},
            state.Cell("trees", "textcls", 1): {**FIGURES, "accuracy": 92.0},
            state.Cell("stones", "textcls", 0): FIGURES,
            state.Cell("stones", "fastText bigrams"): {**peer, "accuracy": 92.0},
        },
        {state.Cell("stones", "TF-IDF words + SVM"): "MemoryError"},
    )


def test_the_comparison_has_a_line_a_set_and_a_line_a_model(module: Any) -> None:
    lines = module("compare").report(comparison(module)).splitlines()
    assert lines[0] == "2026-01-02, commit abc1234, 2 cores; numpy 2.4.0."
    assert lines[4:8] == [
        "| trees | 1,000 | 2 | 91.00 ± 1.41 | TF-IDF words + SVM | 90.00 | +1.00 | 89.00 | 0.030 / 0.020 | 95.00 "
        "| 12.0 (3.0) | 2.0 |",
        "| stones | 1,000 | 2 | 90.00 | fastText bigrams | 92.00 | -2.00 | 89.00 | 0.030 / 0.020 | 95.00 "
        "| 12.0 (3.0) | 2.0 |",
        "",
        "Mean difference to the best peer -0.50; at or above it on 1 of 2 sets.",
    ]
    assert (
        lines[11] == "| trees | textcls | 91.00 ± 1.41 | 89.00 | 0.030 / 0.020 | 95.00 | 12.00 | 500 | 70 | 20 | 2.0 |"
    )
    assert lines[12] == "| trees | TF-IDF words + SVM | 90.00 | 89.00 | - | 95.00 | 4.00 | 500 | 70 | 20 | 2.0 |"
    assert "- stones, TF-IDF words + SVM, seed 0: MemoryError" in lines


def test_the_check_tells_a_changed_accuracy_from_equal_ones(module: Any) -> None:
    compare, now, earlier = module("compare"), comparison(module), comparison(module)
    assert compare.compare_accuracies(now, earlier) == (
        True,
        "The accuracies of all 3 trainings of textcls equal those of commit abc1234 exactly.",
    )
    cell = module("state").Cell("trees", "textcls", 1)
    now.figures[cell] = {**FIGURES, "accuracy": 92.00000000000001}
    same, verdict = compare.compare_accuracies(now, earlier)
    assert not same
    assert verdict.splitlines()[1:] == ["- trees, textcls, seed 1: 92.0 then, 92.00000000000001 now"]


def curve_state(module: Any) -> Any:
    """A state with all cells of the learning curves of a set of 900 rows, and two sizes."""
    curves, state = module("curves"), module("state")
    cells = curves.learning_cells("trees", 900) + [state.Cell("trees", curves.sized(size)) for size in ("tiny", "all")]
    figures = {
        cell: {**FIGURES, "train_rows": cell.rows or 900, "accuracy": 80.0 + cell.seed + cell.ours} for cell in cells
    }
    return state.State(ABOUT, figures)


def test_the_learning_curves_have_a_column_a_size(module: Any) -> None:
    lines = module("curves").report(curve_state(module)).splitlines()
    assert "| trees | textcls | 82.00 ± 1.00 | 82.00 ± 1.00 | - | - | 81.00 |" in lines
    assert "| trees | textcls to the best peer | +1.00 | +1.00 | - | - | +1.00 |" in lines
    assert "| trees | textcls --size tiny | 81.00 | 2.00 | 70 | 20 | 12.00 |" in lines


def test_the_plots_are_written_and_repeatable(module: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plots need matplotlib")
    curves, plots, state = module("curves"), module("plots"), curve_state(module)
    paths = [tmp_path / f"{name}.svg" for name in ("first", "second", "frontier")]
    for path in paths[:2]:
        plots.draw_curves(curves.curves(state), path)
    plots.draw_frontier(curves.frontier(state), paths[2])
    first, second, frontier = (path.read_text(encoding="utf-8") for path in paths)
    assert first == second
    assert "training rows" in first
    assert "saved model (MB)" in frontier


def test_labels_are_moved_apart_and_keep_their_order(module: Any) -> None:
    pytest.importorskip("matplotlib", reason="the plots need matplotlib")
    moved = module("plots").spread([0.5, 0.5, 0.1, 0.55], 0.1)
    assert moved == pytest.approx([0.41667, 0.51667, 0.1, 0.61667], abs=1e-4)


# Few labels


def test_a_draw_parts_the_rows_and_forgets_the_labels_of_the_others(module: Any, tmp_path: Path) -> None:
    for name, rows in (("train", 40), ("test", 5)):
        lines = [f"text {name} {i},{'xy'[i % 2]}" for i in range(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    few = module("few_labels")
    one, again, other = (few.draw(tmp_path, 10, seed) for seed in (0, 0, 1))
    assert one == again
    assert one.labelled != other.labelled
    assert sorted([*one.labelled.texts, *one.unlabelled]) == sorted(f"text train {i}" for i in range(40))
    assert (len(one.labelled.texts), len(one.test.texts)) == (10, 5)
    assert few.draw(tmp_path, 10, 0, tmp_path).unlabelled == [f"text train {i}" for i in range(40)]


def test_the_table_of_few_labels_has_a_line_a_number_of_rows(module: Any) -> None:
    few, state = module("few_labels"), module("state")
    models = {few.ALONE: 60.0, few.ITSELF: 61.0, few.TEACHER: 70.0, few.STUDENT: 72.0}
    figures = {
        state.Cell("trees", model, seed, 100): {"accuracy": value + seed, "seconds": 9.0, "weight": float(seed)}
        for model, value in models.items()
        for seed in (0, 1)
    }
    lines = few.table(state.State(ABOUT, figures))
    assert lines[0] == "| set | labelled rows | labels alone | self-training | teacher | student | used | s |"
    shown = " | ".join(f"{value + 0.5:.2f} ± 0.71" for value in models.values())
    assert lines[2] == f"| trees | 100 | {shown} | 1, 1 | 9 |"
    assert lines[3] == "| mean | 100 | 60.50 | +1.00 | +10.00 | +12.00 |  |  |"


def test_the_table_of_few_labels_compares_means_of_the_same_sets_and_draws(module: Any) -> None:
    few, state = module("few_labels"), module("state")
    figures = {
        state.Cell(name, model, seed, rows): {"accuracy": value, "seconds": 9.0, "weight": 1.0}
        for name, rows, seeds in (("trees", 100, 2), ("birds", 100, 2), ("birds", 300, 1))
        for seed in range(seeds)
        for model, value in ((few.ALONE, 50.0 + rows / 100), (few.VECTORS, 60.0), (few.BOTH, 70.0))
        if (name, model, seed) != ("birds", few.BOTH, 1)
    }
    lines = few.table(state.State(ABOUT, figures))
    assert lines[0] == "| set | labelled rows | labels alone | vectors | vectors and student | used | s |"
    assert lines[-2:] == [
        "| mean | 100 | 51.00 | +9.00 | +19.00 |  |  |",
        "| mean | 300 | 53.00 | +7.00 | +17.00 |  |  |",
    ]


def test_vectors_and_teacher_go_to_the_trainings_that_are_named_after_them(module: Any) -> None:
    few = module("few_labels")
    given = few.Given("some/model", Path("en.vectors"), None, 500)
    told = {model: given.options(model) for model in few.HEADINGS}
    assert {model for model, options in told.items() if options["teacher"]} == {few.STUDENT, few.BOTH, few.TOGETHER}
    by_name = {model for model, options in told.items() if options["vectors"] == Path("en.vectors")}
    assert by_name == {few.VECTORS, few.BOTH}
    assert {model for model, options in told.items() if options["vectors"] is None} == {few.DEFAULT, few.TOGETHER}
    assert {options["unlabelled_rows"] for options in told.values()} == {500}


def test_earlier_runs_stand_beside_this_one_in_the_table_where_it_has_measured_nothing(module: Any) -> None:
    few, state = module("few_labels"), module("state")

    def run(accuracy: float, *models: str) -> Any:
        cells = [state.Cell("trees", model, 0, 100) for model in models]
        return state.State(ABOUT, {cell: {"accuracy": accuracy, "seconds": 9.0, "weight": 1.0} for cell in cells})

    lines = few.table(few.joined([run(70.0, few.FITTED, few.ITSELF), run(60.0, few.ALONE, few.ITSELF)]))
    assert lines[0] == "| set | labelled rows | labels alone | self-training | vectors + texts | used | s |"
    assert lines[2] == "| trees | 100 | 60.00 | 70.00 | 70.00 | 1 | - |"


# Variants of students


def test_variants_of_a_student_are_compared_on_the_same_draws(module: Any) -> None:
    students, state = module("students"), module("state")
    figures = {
        state.Cell("trees", variant, seed, 100): {
            "accuracy": value + 2 * seed,
            "cross_entropy": 0.5,
            "gate": gate,
            "seconds": 3.0,
        }
        for variant, value, gate in (("student", 60.0, None), ("gmlp", 61.5, 0.125))
        for seed in (0, 1)
    }
    assert students.table(state.State(ABOUT, figures))[2:] == [
        "| trees | 100 | student | 61.00 ± 1.41 |  | 0.500 |  | 3.0 |",
        "| trees | 100 | gmlp | 62.50 ± 1.41 | 1.50 ± 0.00 | 0.500 | 0.12 | 3.0 |",
    ]


def test_a_lesson_of_a_variant_has_the_surest_answers(module: Any) -> None:
    import numpy as np

    from textcls_training.data.corpus import Corpus
    from textcls_training.data.dataset import Dataset
    from textcls_training.distillation.distil import Pool

    students = module("students")
    texts = [f"text {i}" for i in range(6)]
    corpus = Corpus.of(texts, 100)
    known = Dataset(corpus.select(np.arange(2)), np.array([0, 1]))
    pool = Pool(corpus, known, np.arange(2), np.arange(2, 6), (), 2)
    answer_UC = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.6, 0.4]], np.float32)
    setting = students.Setting(pool, texts, answer_UC, np.arange(0), np.arange(0))
    lesson = students.VARIANTS["surest 50 %"].lesson(setting)
    assert lesson.probability_RC.tolist() == [[1, 0], [0, 1], *answer_UC[[0, 2]].tolist()]
    assert students.VARIANTS["weight 0.3"].lesson(setting).weight_R[1:3].tolist() == pytest.approx([1, 0.3])


# Rows in any number


def test_made_rows_are_short_pieces_of_real_ones_with_their_labels_and_the_same_by_the_same_seed(module: Any) -> None:
    made = module("scale_rows").made_rows
    texts, labels = [" ".join(f"{name}{i}" for i in range(40)) for name in "ab"], ["x", "y"]
    rows = list(made(texts, labels, 300, 7))
    assert rows == list(made(texts, labels, 300, 7)) != list(made(texts, labels, 300, 8))
    assert len(set(rows)) > 290
    assert all(1 <= len(text.split()) <= 16 for text, _ in rows)
    own = {"x": "a", "y": "b"}
    kept = [word.startswith(own[label]) for text, label in rows for word in text.split()]
    assert 0.98 < sum(kept) / len(kept) < 1  # but for misspelt first letters


def test_the_exponent_of_time_is_that_of_the_power_law(module: Any) -> None:
    scale = module("scale")
    figures = {rows: {"processor_s": 3e-5 * rows**1.25} for rows in (100_000, 1_000_000, 10_000_000)}
    assert scale.exponent({10: {"processor_s": 1.0}, **figures}) == pytest.approx(1.25)
    assert np.isnan(scale.exponent({10: {"processor_s": 1.0}}))


# Orders of labelling


def test_labels_needed_for_an_accuracy_lie_on_the_line_between_two_points(module: Any) -> None:
    active = module("active")
    found = {"50": 40.0, "100": 60.0, "200": 80.0}
    assert active.labels_for(70.0, found) == 150
    assert active.labels_for(30.0, found) == 50
    assert active.labels_for(90.0, found) is None


def test_the_table_of_orders_compares_with_what_random_order_has_in_the_end(module: Any) -> None:
    active = module("active")
    sizes = [str(size) for size in active.SIZES]
    cells = [
        {"set": "a", "draw": draw, "method": method, "curve": {size: base + int(size) / 20 for size in sizes}}
        for draw in (0, 1)
        for method, base in (("random", 10.0), ("suggest", 20.0))
    ]
    lines = active.table({"about": ABOUT, "cells": cells}).splitlines()
    assert lines[-2].startswith("| a | 2 | random | 12.5 ± 0.0")
    assert lines[-2].endswith("| 1,000 |")
    assert lines[-1].startswith("| a | 2 | suggest | 22.5 ± 0.0")
    assert lines[-1].endswith("| 800 |")


def test_an_order_never_takes_a_row_twice_and_random_order_is_that_of_the_draw(module: Any) -> None:
    active = module("active")
    pool = active.Pool.of([f"text number {i}" for i in range(20)])
    order = list(range(19, -1, -1))
    assert active.chosen(pool, [19, 18], None, "random", 3, order) == [17, 16, 15]
    assert not {0, 1} & set(active.chosen(pool, [0, 1], None, "suggest", 18, order))


# Drift


def test_made_shifts_change_what_they_say_and_keep_every_label_with_its_text(module: Any, classifier: Any) -> None:
    drift = module("drift")
    rows = module("common").Labelled([f"{i} my card was charged" for i in range(80)], ["billing", "returns"] * 40)
    pairs = set(zip(rows.texts, rows.labels, strict=True))
    rng = np.random.default_rng(0)
    mixed = drift.mixed(rows, classifier, rng)
    assert set(zip(mixed.texts, mixed.labels, strict=True)) < pairs
    assert max(Counter(mixed.labels).values()) > 22
    typos = drift.mistyped(0.5)(rows, classifier, rng)
    assert typos.labels == rows.labels
    words = [
        pair for texts in zip(rows.texts, typos.texts, strict=True) for pair in zip(*map(str.split, texts), strict=True)
    ]
    assert 0.2 < np.mean([old != new for old, new in words]) < 0.5
    assert all(old[-1] == new[-1] for old, new in words)


def test_the_errors_of_drift_are_means_over_draws_in_points(module: Any) -> None:
    drift = module("drift")
    cell = {"set": "a", "rows": 100, "real": 0.8, "inside": True, "changed": False}
    estimates = ({"textcls drift": 0.79, "held-out accuracy": 0.84}, {"textcls drift": 0.83, "held-out accuracy": 0.84})
    cells = [{**cell, "shift": shift, "estimates": one} for shift in drift.SHIFTS for one in estimates]
    lines = drift.table({"about": ABOUT, "cells": cells}).splitlines()
    assert lines[4] == "| a | none | 100 | 80.0 | **2.0** | 4.0 | 3.2 | 2 of 2 | 0 of 2 |"
    assert lines[-1] == "| all | all but none | 100 | 80.0 | **2.0** | 4.0 | 3.2 | 8 of 8 | 0 of 8 |"
