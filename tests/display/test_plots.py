"""Plots: what stands in them adds up, whatever texts and labels are called, and a file is one or none."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import textcls
from tests.command_line import fail, run, succeed, write_rows
from textcls import Classifier, ConfigError, SurroundingsError
from textcls.display.plots import figures
from textcls.display.plots.columns import SHOWN_LABELS, SHOWN_VALUES, plot_columns
from textcls.display.plots.evaluation import MATRIX
from textcls.display.plots.explanation import plot_attribution
from textcls.evaluation import metrics
from textcls.evaluation.evaluation import Evaluation
from textcls.explain.columns import column_effects
from textcls.model.explanation import Spread

pytest.importorskip("matplotlib", reason="plots need Matplotlib: pip install 'textcls[plots]'")
TEXT = "my card was charged twice for one parcel, $5 of it to account $x, please say why that happened to me"


def bars(figure: object) -> list[tuple[float, float]]:
    """Where each bar of a plot begins and ends, from the top."""
    (axes,) = figure.axes  # type: ignore[attr-defined]
    found = sorted(axes.patches, key=lambda bar: bar.get_y())
    return [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in found]


@pytest.mark.parametrize("unit", ["token", "sentence"])
@pytest.mark.parametrize("top", [0, 3, 100])
@pytest.mark.parametrize("against", [None, "shipping"])
def test_each_bar_begins_where_the_last_ended_and_the_last_but_one_ends_at_the_logit(
    classifier: Classifier, unit: str, top: int, against: str | None
) -> None:
    explanation = classifier.explain([f"{TEXT}. And where is it? No idea."])[0].grouped(unit)  # type: ignore[arg-type]
    attribution = explanation.attribution("billing", against)
    *steps, logit = bars(textcls.plot_explanation(explanation, "billing", against, top=top))
    assert steps[0] == pytest.approx((0, attribution.bias), abs=1e-5)
    assert [start for start, _ in steps[1:]] == pytest.approx([end for _, end in steps[:-1]], abs=1e-5)
    assert steps[-1][1] == pytest.approx(attribution.total, abs=1e-5)
    assert logit == pytest.approx((0, attribution.total), abs=1e-5)
    assert len(steps) == 1 + min(top, len(explanation.spans)) + (top < len(explanation.spans))


def test_a_plot_names_tokens_in_reading_order_and_shows_signs_as_they_are(classifier: Classifier) -> None:
    explanation = classifier.explain([TEXT])[0]
    svg = figures.content(textcls.plot_explanation(explanation, top=100), "svg").decode()
    shown = re.findall(r"<text [^>]*>([^<]+)</text>", svg)
    names = [TEXT[slice(*span)] for span in explanation.spans]
    assert [re.sub(r" \(unknown\)$", "", text) for text in shown if text.split(" (")[0] in names][: len(names)] == names
    assert any("$5 of it to account $x" in text for text in shown)


def test_a_plot_of_columns_has_each_curve_and_table_as_the_model_has_it(with_columns: Classifier) -> None:
    effects = column_effects(with_columns)
    figure = plot_columns(effects, with_columns.labels)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [effect.name for effect in effects]
    for axes, effect in zip(figure.axes, effects, strict=True):
        values = effect.strongest_values(SHOWN_VALUES)[: -1 if effect.kind == "curve" else None]
        lines = {line.get_label(): line for line in axes.lines if not str(line.get_label()).startswith("_")}
        assert set(lines) == {with_columns.labels[label] for label in effect.strongest_labels(SHOWN_LABELS)}
        for label, line in lines.items():
            added = line.get_ydata() if effect.kind == "curve" else line.get_xdata()
            expected = effect.added[values, with_columns.labels.index(str(label))]
            assert list(map(float, added)) == pytest.approx(expected.tolist())  # type: ignore[arg-type]


def test_the_command_draws_columns_or_says_that_there_are_none(
    with_columns_path: Path, model_path: Path, tmp_path: Path
) -> None:
    plot = tmp_path / "columns.svg"
    assert succeed("inspect", with_columns_path, "--plot", plot) == f"3 columns -> {plot}\n"
    assert "opened (weekday)" in plot.read_text(encoding="utf-8")
    said = fail(2, "inspect", model_path, "--plot", tmp_path / "none.svg")
    assert "reads no columns beside the text" in said
    assert not (tmp_path / "none.svg").exists()
    assert "cannot be combined" in fail(2, "inspect", with_columns_path, "--plot", plot, "--words")


def test_the_same_plot_has_the_same_bytes(classifier: Classifier) -> None:
    explanation = classifier.explain([TEXT])[0]
    for form in figures.FORMATS:
        first, again = (figures.content(textcls.plot_explanation(explanation), form) for _ in range(2))
        assert first == again


def test_a_picture_without_the_signs_of_a_text_is_refused_and_as_text_it_has_them(classifier: Classifier) -> None:
    # An unassigned code point, which no font has.
    with pytest.raises(ConfigError, match="An explanation is needed, not Prediction: that of an answer"):
        textcls.plot_explanation(classifier.predict("parcel"))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"A Prediction cannot be drawn: pass what textcls\.evaluate returns"):
        textcls.plot_evaluation(classifier.predict("parcel"))  # type: ignore[arg-type]
    figure = textcls.plot_explanation(classifier.explain(["parcel \U000e1234"])[0])
    with pytest.raises(SurroundingsError, match=r"No font of this machine has the characters .*U\+E1234.*an \.svg"):
        figures.content(figure, "png")
    assert "\U000e1234" in figures.content(figure, "svg").decode()


def report_of(labels: int, names: list[str] | None = None) -> Evaluation:
    """Rows of so many labels, of which each tenth is answered by the next label."""
    right = np.arange(200) % labels
    answered = np.where(np.arange(200) % 10, right, (right + 1) % labels)
    probability = np.full((200, labels), 0.4 / labels)
    probability[np.arange(200), answered] = 0.7
    return Evaluation(metrics.report(probability, right, names or [f"label {i}" for i in range(labels)]))


@pytest.mark.parametrize("labels", [2, MATRIX, MATRIX + 1, 100])
def test_an_evaluation_of_however_many_labels_has_three_plots(labels: int) -> None:
    found = textcls.plot_evaluation(report_of(labels))
    assert set(found) == {"confusions", "calibration", "labels"}
    texts = {name: figures.content(figure, "svg").decode() for name, figure in found.items()}
    assert "90.0% of 200 rows are right" in texts["confusions"] or "\u2192" in texts["confusions"]
    assert all("label 1" in texts[name] for name in ("confusions", "labels"))


def test_labels_of_any_characters_are_shown() -> None:
    names = ["$a_{b}$", "", "\ud83d", "two\nlines", "<b>&amp;", "x" * 500]
    for figure in textcls.plot_evaluation(report_of(len(names), names)).values():
        svg = figures.content(figure, "svg").decode()
        assert "Calibration" in svg or "$a_{b}$" in svg


def test_of_no_rows_and_of_no_confusion_there_are_plots() -> None:
    for rows, labels in ((0, 30), (40, 30), (40, 3)):
        right = np.arange(rows) % labels
        found = metrics.report(np.eye(labels)[right].reshape(rows, labels), right, [str(i) for i in range(labels)])
        for figure in textcls.plot_evaluation(Evaluation(found)).values():
            assert figures.content(figure, "png")


def test_several_labels_have_plots(several_labels: Classifier) -> None:
    rows = [("my card was charged twice", ["shipping"]), ("where is my parcel", ["billing"])]
    found = textcls.plot_evaluation(textcls.evaluate(several_labels, rows))
    assert "was assigned" in figures.content(found["confusions"], "svg").decode()


def test_explain_writes_a_plot_and_says_where(model_path: Path, tmp_path: Path) -> None:
    for form, start in (("svg", b"<?xml"), ("PNG", b"\x89PNG"), ("pdf", b"%PDF")):
        path = tmp_path / f"why.{form}"
        assert succeed("explain", model_path, TEXT, "--plot", path).endswith(f" -> {path}\n")
        assert path.read_bytes().startswith(start)
    both = succeed("explain", model_path, TEXT, "--plot", tmp_path / "a.svg", "--html", tmp_path / "a.html")
    assert f"-> {tmp_path / 'a.html'} and {tmp_path / 'a.svg'}" in both


def test_what_a_plot_has_no_place_for_is_shown_beside_it(model_path: Path, tmp_path: Path) -> None:
    plot = tmp_path / "a.svg"
    for more, shown in (("--parts", "= tokens"), ("--counterfactual", "Without ")):
        said = succeed("explain", model_path, "my creditcard was charged twice", "--plot", plot, more)
        assert shown in said
        assert said.endswith(f" -> {plot}\n")
        said = succeed("explain", model_path, TEXT, "--plot", plot, "--html", tmp_path / "a.html", more)
        assert said.count("\n") == 1


def test_what_explain_cannot_plot_is_told_in_a_sentence(
    model_path: Path, several_labels_path: Path, tmp_path: Path
) -> None:
    assert "end it in .svg, .png or .pdf" in fail(2, "explain", model_path, TEXT, "--plot", tmp_path / "a.gif")
    assert "does not exist" in fail(6, "explain", model_path, TEXT, "--plot", tmp_path / "no" / "a.svg")
    call = ("explain", several_labels_path, TEXT, "--threshold", "0.01", "--plot", tmp_path / "a.svg")
    assert "choose one by --label" in fail(2, *call)
    succeed(*call, "--label", "billing")
    assert (tmp_path / "a.svg").is_file()


def test_evaluate_writes_plots_into_a_new_folder_and_answers_as_without(model_path: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), (TEXT, "billing"), ("parcel", "shipping")])
    found = run("evaluate", model_path, data, "--plots", tmp_path / "new" / "plots")
    assert found.stdout == succeed("evaluate", model_path, data)
    assert found.stderr == f"Note: Plots -> {tmp_path / 'new' / 'plots'}\n"
    written = sorted(path.name for path in (tmp_path / "new" / "plots").iterdir())
    assert written == [f"{name}.{form}" for name in ("calibration", "confusions", "labels") for form in ("png", "svg")]
    assert "is a file; name a folder for the plots" in fail(6, "evaluate", model_path, data, "--plots", data)


def test_evaluate_without_the_characters_of_a_label_writes_what_it_can_and_stores(tmp_path: Path) -> None:
    # A hieroglyph, which none of the fonts asked has.
    rows = [(f"my card was charged {i} times", "billing") for i in range(9)]
    rows += [(f"parcel {i} is late", "\U00013000") for i in range(9)]
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), *rows])
    model, plots = tmp_path / "model.onnx", tmp_path / "plots"
    texts, labels = zip(*rows, strict=True)
    textcls.train(texts, labels, model, epochs=1)
    plots.mkdir()
    (plots / "labels.png").write_bytes(b"of another run")
    found = run("evaluate", model, data, "--plots", plots, "--threshold", "0.01", "--store")
    assert found.exit_code == 0, found.stderr
    assert "Saved in" in found.stdout
    assert "labels.png is left out. No font of this machine has the characters" in found.stderr
    assert "\U00013000" in (plots / "labels.svg").read_text(encoding="utf-8")
    assert not (plots / "labels.png").exists()
    assert (plots / "calibration.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("labels", [3, 40])
def test_names_are_cut_each_by_itself_and_leave_the_plot_its_room(labels: int) -> None:
    names = [f"{i} of a long path of labels > that goes on > and on > to its end {i}" for i in range(labels)]
    for name, figure in textcls.plot_evaluation(report_of(labels, names)).items():
        figure.draw_without_rendering()
        (axes,) = figure.axes
        assert axes.get_window_extent().width > 150, name
        if name == "labels":
            assert all(text.get_text().endswith(")") for text in axes.get_yticklabels())
        if name == "confusions" and labels == 40:
            assert all("\u2192 " in text.get_text() for text in axes.get_yticklabels())


def test_two_labels_held_against_each_other_are_named_as_a_difference(classifier: Classifier) -> None:
    (axes,) = textcls.plot_explanation(classifier.explain([TEXT])[0], "billing", "shipping").axes
    assert axes.get_title(loc="left").startswith("billing and not shipping\n")
    assert axes.get_yticklabels()[-1].get_text() == "difference"


def test_over_several_models_whiskers_show_the_range_of_each_value(classifier: Classifier) -> None:
    explanation = classifier.explain([TEXT])[0]
    attribution = explanation.attribution()
    spread = Spread(attribution.values - 0.5, attribution.values + 0.25, 6, 6, 0.4, 0.6)
    (axes,) = plot_attribution(explanation, replace(attribution, spread=spread), 4).axes
    lengths = [np.ptp(np.asarray(line.get_xdata(), float)) for line in axes.lines if line.get_marker() == "|"]
    assert lengths == pytest.approx([0.75] * 4)
    assert "mean and 95% intervals of 6 models" in axes.get_xlabel()


def test_a_label_that_is_none_is_refused(classifier: Classifier) -> None:
    with pytest.raises(ConfigError, match="no-such"):
        textcls.plot_explanation(classifier.explain([TEXT])[0], "no-such")
    with pytest.raises(ConfigError, match="top must be 0 or more"):
        textcls.plot_explanation(classifier.explain([TEXT])[0], top=-1)
