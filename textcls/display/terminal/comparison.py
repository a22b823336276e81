"""A comparison of two classifiers for the terminal."""

from collections.abc import Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from textcls.display.terminal.console import coloured, table_of
from textcls.display.terminal.evaluation import learned_warning
from textcls.display.text import named, percent, plural, short
from textcls.evaluation.comparison.compare import Comparison, SideReport
from textcls.evaluation.comparison.paired import Difference
from textcls.evaluation.comparison.sides import Labels
from textcls.evaluation.intervals import CONFIDENCE
from textcls.evaluation.unknown_labels import never_assigned_sentence, unknown_labels_sentence

LABELS, FLIPS, WORDS, CHARACTERS = 10, 10, 10, 100
# The least change of a word, in logits; if models differ only in a column, words have not changed.
LEAST_CHANGE: Final = 0.05
_MEGABYTE: Final = 1e6
# A smaller p-value says nothing more.
_LEAST_P: Final = 1e-10


def comparison_report(found: Comparison) -> Iterator[Table | Text]:
    """Yield the verdict, both sides, their labels, and the texts and words that changed."""
    yield _figures(found)
    yield _verdict(found)
    for side in found.sides:
        yield from learned_warning(side.learned, side.name)
    yield from _unknown(found)
    yield from _labels(found)
    yield from _flips(found)
    yield from _words(found)


def _heads(found: Comparison) -> list[str]:
    return [*(side.name for side in found.sides), "difference", f"{percent(CONFIDENCE, 0)} interval"]


def _figures(found: Comparison) -> Table:
    table = table_of([plural(found.rows, "row")], _heads(found), overflow="fold")
    for name, figure in _rows(found):
        table.add_row(name, percent(figure.before, 2), percent(figure.after, 2), _points(figure), _interval(figure))
    first, second = found.sides
    for name, before, after in (
        ("ECE", _number(first.ece), _number(second.ece)),
        ("cross-entropy", _number(first.cross_entropy), _number(second.cross_entropy)),
        ("microseconds a text", _time(first), _time(second)),
        ("megabytes", _size(first), _size(second)),
    ):
        if before or after:
            table.add_row(name, before or "unknown", after or "unknown", "", "")
    return table


def _rows(found: Comparison) -> list[tuple[str, Difference]]:
    if found.micro_f1 is None:
        return [("accuracy", found.accuracy), ("macro-F1", found.macro_f1)]
    return [("micro-F1", found.micro_f1), ("macro-F1", found.macro_f1), ("all labels right", found.accuracy)]


def _points(figure: Difference) -> Text:
    return Text(f"{100 * figure.difference:+.2f}", style="bold" if figure.is_sure else "")


def _interval(figure: Difference) -> str:
    return f"{100 * figure.low:+.2f} to {100 * figure.high:+.2f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _time(side: SideReport) -> str:
    return "" if side.microseconds is None else f"{side.microseconds:,.0f}"


def _size(side: SideReport) -> str:
    return "" if side.bytes is None else f"{side.bytes / _MEGABYTE:.2f}"


def _verdict(found: Comparison) -> Text:
    split = found.agreement
    first, second = (side.name for side in found.sides)
    if first == second:
        first, second = "the first", "the second"
    both, neither, alone, better = "are right", "both wrong", "alone is right", "is better"
    if found.micro_f1 is not None:
        both, neither, alone, better = "have all labels right", "neither", "alone", "has all labels right more often"
    counts = (
        f"Both {both} on {split.both:,} rows and {neither} on {split.neither:,}; {first} {alone} on "
        f"{split.first:,}, {second} alone on {split.second:,}."
    )
    p = f"= {found.p_value:.2g}" if found.p_value >= _LEAST_P else f"< {_LEAST_P:g}"
    test = f" (McNemar's test: p {p})."
    if found.better is None:
        return Text.assemble(counts, (f" Neither {better} by more than chance", "bold"), test)
    return Text.assemble(counts, (f" {found.better.name} {better}", "bold"), test)


def _unknown(found: Comparison) -> Iterator[Text]:
    sentence = unknown_labels_sentence if found.micro_f1 is None else never_assigned_sentence
    for side in dict.fromkeys((side.name, side.unknown_labels) for side in found.sides if side.unknown_labels):
        name, unknown = side
        known = [label for label in found.labels if label not in unknown]
        yield Text(sentence(unknown, known, name), style="yellow")


def _labels(found: Comparison) -> Iterator[Table | Text]:
    """Yield the labels whose F1 changed most."""
    items = sorted(found.labels.items(), key=lambda item: -abs(item[1][0].difference))
    table = table_of(["F1 by label"], [*_heads(found), "rows"], overflow="fold")
    for name, (figure, rows) in items[:LABELS]:
        f1 = percent(figure.before, 2), percent(figure.after, 2)
        table.add_row(Text(named(name)), *f1, _points(figure), _interval(figure), f"{rows:,}")
    yield Text()
    yield table
    if len(items) > LABELS:
        yield Text(f"Of {len(items):,} labels these changed most; --json has all.", style="dim")


def _flips(found: Comparison) -> Iterator[Table | Text]:
    yield Text()
    if not found.flips:
        yield Text("They answer every row alike.")
        return
    kinds = [flip.kind for flip in found.flips]
    yield Text(
        f"{plural(len(kinds), 'answer')} changed: {kinds.count('mended'):,} mended, {kinds.count('broken'):,} broken, "
        f"{kinds.count('other'):,} wrong before and after."
    )
    # What got worse needs attention first.
    order = sorted(found.flips, key=lambda flip: ("broken", "mended", "other").index(flip.kind))
    table = Table("", "right", "answers", "because of", "text", box=None, pad_edge=False)
    for flip in order[:FLIPS]:
        words = " -> ".join(", ".join(words) or "(no word)" for words in flip.reasons) if any(flip.reasons) else ""
        answers = f"{_shown(flip.first)} -> {_shown(flip.second)}"
        table.add_row(flip.kind, *map(Text, (_shown(flip.right), answers, words, short(flip.text, CHARACTERS))))
    yield table


def _shown(labels: Labels) -> str:
    if isinstance(labels, str):
        return named(labels)
    return ", ".join(map(named, labels)) or "none"


def _words(found: Comparison) -> Iterator[Table | Text]:
    changed = [word for word in found.words if abs(word.after - word.before) >= LEAST_CHANGE]
    if not changed:
        return
    yield Text()
    heads = ["texts", *(side.name for side in found.sides)]
    table = table_of(["words behind the changes"], heads, overflow="fold")
    for word in changed[:WORDS]:
        table.add_row(Text(named(word.word)), f"{word.texts:,}", coloured(word.before, 1), coloured(word.after, 1))
    yield table
    line = "What each word adds to the second answer over the first, in logits, summed over texts."
    if found.micro_f1 is not None:
        line = "What each word adds to labels of the second alone, less those of the first alone, in logits, summed."
    yield Text(line, style="dim")
