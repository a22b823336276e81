"""Two groups of texts compared, for the terminal."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from textcls.display.remarks import group_line, groups_lines, groups_shown
from textcls.display.terminal.console import coloured
from textcls.display.terminal.examples import example_table
from textcls.display.terminal.overview import overview_table
from textcls.display.text import named, percent
from textcls.explain.global_explanation.groups import GroupComparison, LabelDifference

_SIDES = ("adds more in the first", "adds more in the second")


def groups_report(
    found: GroupComparison, names: tuple[str, str], width: int, *, compact: bool
) -> Iterator[Table | Text]:
    """Yield the differences between two groups, in lines of `width`.

    Args:
        found: the comparison.
        names: the names of the groups.
        width: the width of a line.
        compact: whether each label has one line; otherwise a table with numbers and examples.
    """
    for line in groups_lines(found, *names):
        yield Text(line)
    yield Text()
    if compact:
        rows = [
            (
                label.label,
                (percent(label.answered_first), percent(label.answered_second)),
                [term.text for term in label.more],
                [term.text for term in label.less],
            )
            for label in groups_shown(found)
        ]
        yield overview_table(rows, ("of first", "of second"), width, _SIDES)
        yield Text("With --top 10: differences, shares of texts and examples of ten each.", style="dim")
        return
    for label in groups_shown(found):
        yield Text.assemble((named(label.label), "bold"), f"   {group_line(label)}")
        yield _table(label, width)
        yield Text()


def _table(label: LabelDifference, width: int) -> Table:
    rows = [
        (
            Text("" if i else side, style="dim"),
            Text(named(term.text)),
            coloured(term.difference),
            Text(f"{term.error:.3f}"),
            Text(percent(term.in_first)),
            Text(percent(term.in_second)),
            term.example,
        )
        for side, terms in zip(_SIDES, (label.more, label.less), strict=True)
        for i, term in enumerate(terms)
    ]
    return example_table(("", "word", "difference", "+-", "in first", "in second"), rows, 2, width)
