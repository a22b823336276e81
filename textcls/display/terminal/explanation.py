"""An answer and its explanation for the terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from rich.table import Table
from rich.text import Text

from textcls.display.passages import CUT, passages
from textcls.display.remarks import completeness_line, passages_line, token_remarks
from textcls.display.terminal.console import AGAINST, FOR, coloured, table_of
from textcls.display.text import named, percent, visible
from textcls.display.token_table import SubTokenTable, TokenRow, TokenTable, sub_token_table, tints, token_table
from textcls.model.explanation import Attribution, Explanation
from textcls.model.prediction import Prediction, explanation_of
from textcls.model.sub_token_attribution import SubTokenAttribution

SHOWN_TOKENS: Final = 50
SHOWN_LABELS: Final = 3
# The number of characters of a drawn range.
WHISKER: Final = 21


def explanation_report(
    prediction: Prediction,
    explanation: Explanation,
    attribution: Attribution,
    top: int,
    sub_tokens: Sequence[SubTokenAttribution] | None = None,
) -> Iterator[Table | Text]:
    """Yield a prediction, its text in colours, and what its `top` strongest tokens contribute."""
    yield from _text(explanation, attribution)
    yield Text()
    yield from _scores(prediction, attribution)
    for remark in prediction.remarks:
        yield Text(remark, style="yellow")
    yield Text()
    yield from _tables(explanation, attribution, top, sub_tokens)


def label_set_explanation_report(
    prediction: Prediction,
    explanation: Explanation,
    attributions: Sequence[Attribution],
    top: int,
    sub_tokens: Sequence[SubTokenAttribution] | None = None,
) -> Iterator[Table | Text]:
    """Yield a prediction of several labels, and for each attribution the text in colours and its strongest tokens."""
    yield from _label_scores(prediction)
    for remark in prediction.remarks:
        yield Text(remark, style="yellow")
    for attribution in attributions:
        yield Text()
        against = "" if attribution.against is None else f" and not {named(attribution.against)}"
        why = "why" if against or attribution.label in prediction.assigned else "why not"
        yield Text(f"{why} {named(attribution.label)}{against}:", style="bold")
        yield from _text(explanation, attribution)
        yield from _tables(explanation, attribution, top, sub_tokens)


def _label_scores(prediction: Prediction) -> Iterator[Text]:
    """Yield the labels that are assigned, and the most probable of the others, each with its threshold."""
    assert prediction.thresholds is not None
    thresholds = dict(zip(prediction.label_names, prediction.thresholds.tolist(), strict=True))
    scores = {scored.label: scored.score for scored in prediction.top()}
    assigned = prediction.assigned
    others = [name for name in scores if name not in assigned][:SHOWN_LABELS]
    for names, style in ((assigned, "bold"), (others, "dim")):
        if names:
            shown = (f"{named(name)} {percent(scores[name])} (from {percent(thresholds[name])} on)" for name in names)
            yield Text("   ".join(shown), style=style)


def _tables(
    explanation: Explanation, attribution: Attribution, top: int, sub_tokens: Sequence[SubTokenAttribution] | None
) -> Iterator[Table | Text]:
    listed = sorted(attribution.strongest(top).tolist())
    yield rich_token_table(token_table(explanation, attribution, listed))
    yield Text()
    checks = [completeness_line(explanation)]
    if sub_tokens is not None:
        table = sub_token_table(explanation, attribution, sub_tokens, top)
        yield rich_sub_token_table(table, attribution.kind)
        yield Text()
        checks.append(table.check)
    for remark in (*token_remarks(explanation, attribution, top), f"Checked: {'; '.join(checks)}."):
        yield Text(remark, style="dim")


def _scores(prediction: Prediction, attribution: Attribution) -> Iterator[Text]:
    first, *others = [f"{named(s.label)} {percent(s.score)}" for s in prediction.top(SHOWN_LABELS)]
    yield Text.assemble((first, "bold"), "   ", "   ".join(others))
    label = named(attribution.label)
    if attribution.against is not None:
        yield Text(f"why {label} and not {named(attribution.against)}:")
    elif attribution.label != prediction.label:
        yield Text(f"{label}, {percent(explanation_of(prediction).score(attribution.label))}, against all others:")


def _text(explanation: Explanation, attribution: Attribution) -> Iterator[Text]:
    """Yield the text in colours; for a long one the deciding sentences."""
    text = coloured_text(explanation, attribution)
    shown_first = passages(explanation, attribution)
    if not shown_first:
        yield text
        return
    for first, behind in shown_first:
        shown = text[explanation.spans[first][0] : explanation.spans[behind - 1][1]]
        yield Text.assemble(CUT * (first > 0), shown, CUT * (behind < len(explanation.spans)))
    small = explanation.unit in ("token", "word")
    advice = " --html FILE shows all of it, --unit sentence adds up each." if small else ""
    yield Text(passages_line(explanation, attribution) + advice, style="dim")


def coloured_text(explanation: Explanation, attribution: Attribution) -> Text:
    """Return the text with each token tinted by its value: the stronger, the more intense.

    Words that are unknown to the model are underlined.
    """
    text = Text(visible(explanation.text))
    for (start, end), value in zip(explanation.spans, tints(attribution), strict=True):
        strength = abs(value)
        if strength >= 0.1:
            colour = FOR if value > 0 else AGAINST
            text.stylize(f"bold {colour}" if strength >= 0.5 else colour, start, end)
    for i in np.flatnonzero(~explanation.known).tolist():
        text.stylize("underline", *explanation.spans[i])
    return text


def rich_token_table(tokens: TokenTable) -> Table:
    """Return a table of tokens with the sums that make it add up."""
    table = Table(tokens.unit, box=None, pad_edge=False)
    by_token = tokens.unit == "token"
    about = ("attention",) if by_token else ("tokens", "a token")
    ranges = ("low", "high", "95%") if tokens.models > 1 else ()
    for name in (*about, tokens.kind, *ranges, *map(named, tokens.labels)):
        table.add_column(Text(name), justify="center" if name == "95%" else "right")
    for row in tokens.rows:
        token = Text(row.name)
        if not row.known:
            token.append(" (unknown)", style="dim")
        facts = (f"{row.attention:.3f}",) if by_token else (f"{row.tokens:,}", coloured(row.mean))
        of_models = (coloured(row.low), coloured(row.high), whisker(row, tokens.strongest)) if ranges else ()
        value = coloured(row.value) if row.sure or not ranges else Text.assemble(("? ", "dim"), coloured(row.value))
        table.add_row(token, *facts, value, *of_models, *map(coloured, row.contributions))
    table.add_section()

    def add_sums(name: str, style: str, values: Sequence[float]) -> None:
        first, *others = map(coloured, values)
        table.add_row(Text(name, style=style), *[""] * len(about), first, *[""] * len(ranges), *others)

    if tokens.others:
        add_sums(f"({tokens.others:,} others)", "dim", tokens.rest)
    for name, added in tokens.cells:
        add_sums(name, "", added)
    add_sums("(bias)", "dim", tokens.bias)
    add_sums("= logit", "bold", tokens.total)
    return table


def whisker(row: TokenRow, strongest: float) -> Text:
    """Return the interval of a value as a line between two ends, around the middle, which is 0."""
    half = WHISKER // 2
    low, at, high = (half + round(half * value / strongest) for value in (row.low, row.value, row.high))
    signs = [" "] * (2 * half + 1)
    signs[half] = "\u2502"
    signs[low : high + 1] = "\u2500" * (high + 1 - low)
    signs[at] = "\u25cf"
    style = "dim" if not row.sure else FOR if row.value > 0 else AGAINST
    return Text("".join(signs), style=style)


def rich_sub_token_table(sub_tokens: SubTokenTable, kind: str) -> Table:
    """Return a table of words, sequences of words and pieces of unknown words, strongest first; `kind` is its head."""
    table = table_of(["part", "kind"], [kind])
    for row in sub_tokens.rows:
        table.add_row(Text(row.name), Text(row.kind, style="dim"), coloured(row.value))
    table.add_section()
    if sub_tokens.others:
        table.add_row(Text(f"({sub_tokens.others:,} others)", style="dim"), "", coloured(sub_tokens.rest))
    table.add_row(Text("= tokens", style="bold"), "", coloured(sub_tokens.total))
    return table
