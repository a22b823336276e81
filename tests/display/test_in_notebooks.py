"""What notebooks show of results is what the commands print, and nothing of a text is markup there."""

import pytest

import textcls
from textcls import Classifier
from textcls.display.notebook import page_of

Rows = list[tuple[str, str]]


@pytest.fixture(scope="module")
def rows(tickets: list[tuple[str, str]]) -> Rows:
    return [*tickets[:60], ("<script>alert(1)</script> my card", "billing")]


def test_a_model_shows_what_inspect_prints_and_names_itself_in_short(classifier: Classifier) -> None:
    page = classifier._repr_html_()
    assert "single-label" in page
    assert "technical" in page
    assert repr(classifier) == f"Classifier({str(classifier.path)!r}, 7 labels)"


def test_figures_of_one_label_and_of_several_are_tables(
    classifier: Classifier, several_labels: Classifier, rows: Rows
) -> None:
    page = textcls.evaluate(classifier, rows)._repr_html_()
    assert "macro-F1" in page
    assert "right \\ answered" in page
    sets = [(text, list(several_labels.labels[:1])) for text, _ in rows[:9]]
    assert "micro-F1" in textcls.evaluate(several_labels, sets)._repr_html_()


def test_a_comparison_a_report_and_what_a_model_goes_by_are_shown(classifier: Classifier, rows: Rows) -> None:
    assert "They answer every row alike." in textcls.compare(classifier, classifier, rows)._repr_html_()
    for page in (textcls.report(classifier, rows), textcls.explain_globally(classifier, rows)):
        shown = page._repr_html_()
        assert "Exact accounting of this model" in shown
        assert "<script" not in shown


def test_nothing_else_is_shown() -> None:
    with pytest.raises(TypeError, match="notebooks show no int"):
        page_of(3)
