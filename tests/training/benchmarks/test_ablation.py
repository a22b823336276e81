"""The ablation: its cells, its state, its table; little is trained here."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

import ablate
from ablation import cells, measure, report, tasks
from ablation.cells import AblationState, Cell, CellSettings
from runner import Figures
from textcls.data import Labelled
from textcls.errors import ConfigError, InputError, TextclsError
from textcls.jobs import Engine
from textcls_training.config.resolve import resolve
from textcls_training.data.dataset import Dataset, Split
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.cross_fit import ValidatedFit
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.threads import reproducible


def figures(accuracy: float = 90.0, **more: Any) -> Figures:
    return {
        "accuracy": accuracy, "macro_f1": 80.0, "cross_entropy": 0.7, "perplexity": 2.0, "gate": None,
        "parameters": 12345, "mixing_parameters": 0, "bytes": 50_000, "train_s": 3.0, "train_cpu_s": 2.5,
        "alone_us": 60.0, "length_us": {"16": 40.0, "2048": 900.0},
        "comprehensiveness": 0.4, "sufficiency": 0.1, "loo_tau": 0.5, **more,
    }  # fmt: skip


@pytest.fixture
def state() -> AblationState:
    about = {
        "date": "2026-01-02", "data": "trees.csv", "train_rows": 80, "test_rows": 20, "settings": "default",
        "machine": "2 cores", "versions": {"numpy": "2.4.0"},
    }  # fmt: skip
    return AblationState(
        about,
        {
            Cell("none"): figures(90.0),
            Cell("none", seed=1): figures(92.0),
            Cell("metric:heads"): figures(91.0, gate=0.25, loo_tau=None),
        },
        {Cell("sha", values="mixed"): "out | of luck"},
    )


# Cells


def test_every_combination_is_a_cell_once_a_seed_after_the_other() -> None:
    choices = {"mixing": ["none", "gmlp"], "attention": ["norm", "kernel"], "embedding": ["rows"], "values": ["token"]}
    found = cells.make_cells(choices, range(2))
    assert len(found) == len(set(found)) == 8
    assert [cell.seed for cell in found] == [0] * 4 + [1] * 4
    assert found[0] == Cell("none")


def test_none_has_no_mixed_values_beside_those_of_tokens() -> None:
    choices = {"mixing": ["none", "gmlp"], "attention": ["norm"], "embedding": ["rows"], "values": ["token", "mixed"]}
    assert [(cell.mixing, cell.values) for cell in cells.make_cells(choices, [0])] == [
        ("none", "token"), ("gmlp", "token"), ("gmlp", "mixed"),
    ]  # fmt: skip


def test_a_cell_is_named_by_what_is_not_the_default() -> None:
    assert str(Cell("gmlp:full", "kernel", "bits", "mixed", 3)) == "gmlp:full kernel bits mixed, seed 3"
    assert Cell().name == "none"


def test_all_names_every_choice_and_an_unknown_one_is_told() -> None:
    assert cells.choose("mixing", "all") == list(cells.choices_of("mixing"))
    assert cells.choose("attention", "norm, kernel,norm") == ["norm", "kernel"]
    with pytest.raises(ConfigError, match="There is no mixing 'gmpl'"):
        cells.choose("mixing", "none,gmpl")


def test_the_settings_of_a_cell_reach_its_training() -> None:
    settings = CellSettings(epochs=3, mixing_rate=0.01, bigrams=False, ngram_sizes=(3,))
    config = settings.config(Cell("gmlp", "cosine", "rows", "mixed", 7))
    assert (config.mixing, config.attention, config.values) == ("gmlp", "cosine", "mixed")
    assert (config.dim, config.seed, config.epochs, config.mixing_rate) == (None, 7, 3, 0.01)
    assert (config.bigrams, config.ngrams) == (False, (3,))
    assert settings.config(Cell(embedding="bits")).ngrams is None


# Dataset


def test_a_held_out_fifth_is_the_same_in_every_order_of_rows_and_keeps_copies_together() -> None:
    rows = Labelled([f"text {i % 90} of it" for i in range(100)], ["ab"[i % 90 % 2] for i in range(100)])
    train, test = tasks.hold_out(rows)
    assert len(train.texts) + len(test.texts) == 100
    assert 15 <= len(test.texts) <= 25
    assert not set(train.texts) & set(test.texts)
    backwards = tasks.hold_out(Labelled(rows.texts[::-1], rows.labels[::-1]))
    assert sorted(backwards[1].texts) == sorted(test.texts)


def test_texts_of_the_order_task_have_the_same_words_under_both_labels() -> None:
    rows = tasks.order_task(400, seed=1)
    assert {len(text.split()) for text in rows.texts} == {12}
    for text, label in zip(rows.texts, rows.labels, strict=True):
        words = text.split()
        assert (words.count("red"), words.count("blue")) == (1, 1)
        assert label == min(("red", "blue"), key=words.index)
    assert 150 < rows.labels.count("red") < 250
    assert rows == tasks.order_task(400, seed=1) != tasks.order_task(400, seed=2)


def order_accuracy(mixing: str, train: Labelled, test: Labelled) -> float:
    settings = CellSettings(epochs=12, mixing_rate=0.01, bigrams=False, ngram_sizes=())
    names = list(tasks.FIRST)
    learn, unseen = (Dataset.of(LabelledTexts(texts=p.texts, labels=p.labels), names, 20) for p in (train, test))
    config = resolve(settings.config(Cell(mixing)), train.texts, len(learn.corpus.token), 2)
    with reproducible(0):
        fit = ValidatedFit(Split(learn, unseen), 2, config, Stop())
        fit.run("order")
    return float((fit.logits[-1][0].argmax(1) == unseen.labels).mean())


def test_the_order_task_is_a_guess_without_mixing_and_gmlp_solves_it() -> None:
    train, test = tasks.order_task(1500, 1), tasks.order_task(400, 2)
    assert 0.4 < order_accuracy("none", train, test) < 0.6
    assert order_accuracy("gmlp", train, test) > 0.9


# Measuring


QUICK = CellSettings(epochs=1, ngram_sizes=())


def parts(sample: LabelledTexts) -> tuple[Labelled, Labelled]:
    texts, labels = list(sample.texts), list(sample.labels)
    return Labelled(texts[:60], labels[:60]), Labelled(texts[60:70], labels[60:70])


def test_a_cell_is_trained_and_measured(sample: LabelledTexts) -> None:
    found = measure.Measuring.of(*parts(sample), QUICK).ready()(Cell())
    assert set(found) == set(figures())
    assert 0 <= found["accuracy"] <= 100
    assert found["gate"] is None
    assert 0 == found["mixing_parameters"] < found["parameters"]
    assert list(found["length_us"]) == ["16", "32", "64", "128", "256", "512", "1024", "2048"]


def test_a_cell_that_cannot_be_trained_fails_with_its_reason() -> None:
    rows = Labelled(["one", "two"], ["same", "same"])
    with pytest.raises(InputError, match="only the label 'same'"):
        measure.Measuring.of(rows, rows, CellSettings()).ready()(Cell())


def test_several_workers_find_what_one_does(sample: LabelledTexts, tmp_path: Path) -> None:
    cells_, work = [Cell(), Cell(seed=1)], measure.Measuring.of(*parts(sample), QUICK)
    found = []
    for workers in (1, 2):
        of = AblationState({"versions": {}})
        of.run_by(Engine("local", workers), work, cells_, tmp_path / "state.json", Console(quiet=True))
        found.append({cell: untimed(figures) for cell, figures in of.figures.items()})
    assert set(found[0]) == set(cells_)
    assert found[0] == found[1]


def untimed(of: Figures) -> Figures:
    return {name: value for name, value in of.items() if not name.endswith(("_s", "_us"))}


# Table


def test_the_table_has_means_over_the_seeds_and_the_errors(state: AblationState) -> None:
    lines = report.markdown(state).splitlines()
    assert "trees.csv, 80 rows to train on, 20 held out" in lines[0]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("| ")]
    assert len({len(row) for row in rows}) == 1
    none, metric, failed = rows[2:]
    assert none[:4] == ["none", "91.00 ± 1.41", "80.00 ± 0.00", "2.00"]
    assert metric[:2] == ["metric:heads", "91.00"]
    assert (metric[4], metric[-1]) == ("0.25", "-")
    assert failed[:2] == ["sha mixed, seed 0", r"out \| of luck"]


# The command


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """The cells that the command has measured; `sha` fails."""
    found: list[Cell] = []

    def stand_in(cell: Cell) -> Figures:
        found.append(cell)
        if cell.mixing == "sha":
            raise ConfigError("no luck")
        return figures()

    monkeypatch.setattr(measure.Measuring, "ready", lambda _: stand_in)
    return found


def run_command(*arguments: object) -> Result:
    return CliRunner().invoke(ablate.ablate, [str(argument) for argument in arguments])


def test_a_second_run_measures_what_failed_and_what_is_new(
    measured: list[Cell], sample_path: Path, tmp_path: Path
) -> None:
    options = sample_path, "--seeds", 2, "--output", tmp_path / "out"
    first = run_command(*options, "--mixing", "none,sha")
    assert first.exit_code == 1
    assert "no luck" in first.stdout
    assert [str(cell) for cell in measured] == ["none, seed 0", "sha, seed 0", "none, seed 1", "sha, seed 1"]
    saved = json.loads((tmp_path / "out.json").read_text())
    assert [cell.get("error") for cell in saved["cells"]] == [None, None, "no luck", "no luck"]

    measured.clear()
    second = run_command(*options, "--mixing", "none,gmlp,sha")
    assert [str(cell) for cell in measured] == ["gmlp, seed 0", "sha, seed 0", "gmlp, seed 1", "sha, seed 1"]
    assert "| gmlp |" in second.stdout
    assert second.stdout.strip() == (tmp_path / "out.md").read_text().strip()


def test_a_run_with_other_settings_is_refused_and_restarted_on_request(
    measured: list[Cell], sample_path: Path, tmp_path: Path
) -> None:
    options = sample_path, "--seeds", 1, "--mixing", "none", "--output", tmp_path / "out"
    assert run_command(*options).exit_code == 0
    refusal = run_command(*options, "--epochs", 2)
    assert isinstance(refusal.exception, ConfigError)
    assert "settings default (now epochs 2)" in str(refusal.exception)
    assert run_command(*options, "--epochs", 2, "--restart").exit_code == 0
    assert len(measured) == 2


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "Give either a table"),
        (["DATA", "--task", "order"], "Give either a table"),
        (["--task", "order", "--test", "DATA"], "brings its own test rows"),
        (["DATA", "--attention", "none"], "There is no attention 'none'"),
    ],
)
def test_a_mistaken_command_is_told_before_anything_is_measured(
    arguments: list[str], error: str, measured: list[Cell], sample_path: Path, tmp_path: Path
) -> None:
    given = [str(sample_path) if argument == "DATA" else argument for argument in arguments]
    result = run_command(*given, "--output", tmp_path / "out")
    assert isinstance(result.exception, TextclsError)
    assert error in str(result.exception)
    assert not measured


def test_rows_that_no_variant_can_learn_from_are_refused_at_once_and_nothing_is_written(
    measured: list[Cell], tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\n" + "".join(f"text {i},same\n" for i in range(20)), encoding="utf-8")
    result = run_command(rows, "--output", tmp_path / "out")
    assert isinstance(result.exception, InputError)
    assert "only the label 'same'" in str(result.exception)
    assert (measured, list(tmp_path.glob("out*"))) == ([], [])
