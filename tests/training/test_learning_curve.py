"""`textcls curve`: models of growing shares of the rows, judged by rows that they leave out."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from tests.command_line import fail, run, succeed, write_rows
from textcls.display.terminal.console import stderr_console
from textcls.display.terminal.progress import progress_on
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.learning_curve.run import EIGHTHS, _share, learning_curve
from textcls_training.pipeline.trials import judging_folds


def rows_of(number: int) -> list[tuple[str, str]]:
    """Rows of which each word says the label by itself, so that more of them know more words."""
    return [(f"word{i % 40}{name} and filler{i}", name) for i in range(number // 2) for name in ("left", "right")]


def test_more_rows_are_better_where_each_row_teaches_another_word() -> None:
    texts, labels = zip(*rows_of(240), strict=True)
    given, config = LabelledTexts(texts=texts, labels=labels), TrainConfig(epochs=4, vectors="none")
    with progress_on(stderr_console(quiet=True), "trainings") as progress:
        found = learning_curve(given, config, progress)
    assert found.held_out == 240
    assert [round(rows / found.rows[0]) for rows in found.rows] == [1, 2, 4, 8]
    accuracy = found.figures()["accuracy"]
    assert accuracy[-1].after > accuracy[0].after
    assert accuracy[0].difference == 0
    assert [one.before for one in accuracy[1:]] == [one.after for one in accuracy[:-1]]


@drawn(st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc")), min_size=70, max_size=150))
@settings(max_examples=20, deadline=None)
def test_a_share_holds_each_smaller_one_and_no_text_that_judges(rows: list[tuple[int, str]]) -> None:
    texts = LabelledTexts(texts=[f"text {i}" for i, _ in rows], labels=[label for _, label in rows])
    for fold in judging_folds(texts):
        shares = [_share(texts, fold, count) for count in EIGHTHS]
        for smaller, larger in pairwise(shares):
            assert set(smaller.train.tolist()) <= set(larger.train.tolist())
        assert np.array_equal(np.sort(shares[-1].train), np.sort(fold.train))
        assert all(np.array_equal(share.held_out, fold.held_out) for share in shares)


def test_the_command_shows_what_more_rows_bring_and_draws_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write_rows(tmp_path / "rows.csv", [("text", "label"), *rows_of(70)])
    shown = succeed("curve", tmp_path / "rows.csv", "--plot", tmp_path / "curve.svg", "--quiet")
    assert "Judged by 70 rows that the models leave out." in shown
    assert "last doubling of the rows brought" in shown
    assert "rows learned from" in (tmp_path / "curve.svg").read_text(encoding="utf-8")
    found = json.loads(succeed("curve", tmp_path / "rows.csv", "--json", "--quiet"))
    assert [sorted(point) for point in found["points"]] == [["accuracy", "macro_f1", "rows"]] * 2


def test_several_labels_are_judged_by_micro_f1(tmp_path: Path) -> None:
    rows = [{"text": text, "labels": [label, "both"]} for text, label in rows_of(80)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    found = json.loads(succeed("curve", tmp_path / "rows.jsonl", "--json", "--quiet"))
    assert sorted(found["points"][0]) == ["accuracy", "macro_f1", "micro_f1", "rows"]


def test_rows_that_are_too_few_and_an_unknown_format_are_told_before_anything_is_trained(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", [("text", "label"), *rows_of(20)])
    assert "20 rows are too few to learn from half of them" in fail(3, "curve", tmp_path / "rows.csv")
    assert run("curve", tmp_path / "rows.csv", "--plot", tmp_path / "curve.doc").exit_code == 2
