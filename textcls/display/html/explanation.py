"""An answer and its explanation as a fragment."""

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.display.html.fragments import bar, fragment, isolated, name, shown
from textcls.display.passages import CUT, passages
from textcls.display.remarks import (
    change_line,
    column_change_lines,
    completeness_line,
    passages_line,
    search_line,
    token_remarks,
)
from textcls.display.text import named, percent, signed, visible
from textcls.display.token_table import SubTokenTable, TokenRow, TokenTable, sub_token_table, tints, token_table
from textcls.explain.counterfactual import Search
from textcls.explain.stability import with_spread
from textcls.model.explanation import Attribution, Explanation
from textcls.model.prediction import Prediction
from textcls.model.sub_token_attribution import SubTokenAttribution

# Rows of the table of tokens, bars of scores.
SHOWN_TOKENS: Final = 20
SHOWN_LABELS: Final = 8
# With several labels per text, this many are explained one after the other.
SHOWN_ANSWERS: Final = 3
# The most titles: beyond these, a page of a long text would take megabytes.
MOST_TITLES: Final = 2_000
MOST_UNREAD: Final = 2_000
LEVELS: Final = 9


def prediction_fragment(
    prediction: Prediction,
    *,
    label: str | None = None,
    against: str | None = None,
    top: int = SHOWN_TOKENS,
    sub_tokens: Sequence[SubTokenAttribution] | None = None,
    change: Search | None = None,
    others: Sequence[Prediction] = (),
    more: Sequence[str] = (),
) -> str:
    """Return an answer, with its explanation if it has one. The arguments are those of `explanation_fragment`.

    `others` are the answers of further models of the same rows, explained by tokens (`textcls.explain.stability`),
    `more` parts that follow. With several labels per text, each assigned one is explained, at most three, if none is
    named.
    """
    found = [_scores(prediction.label_names, prediction.probabilities, prediction.thresholds)]
    found += [f'<p class="remark">{shown(remark)}</p>' for remark in prediction.remarks]
    if prediction.explanation is not None:
        answers = prediction.assigned if prediction.several else (prediction.label,)
        # The requested one, or else the answer; if nothing is assigned, the most probable.
        for which in [label] if label is not None else answers[:SHOWN_ANSWERS] or [prediction.label]:
            why = "Why" if which in answers or not prediction.several or against is not None else "Why not"
            attribution = prediction.explanation.attribution(which, against)
            attribution = with_spread(attribution, prediction, others, prediction.explanation.unit)
            found.append(_explanation(prediction.explanation, attribution, top, sub_tokens, why))
        if label is None and len(answers) > SHOWN_ANSWERS:
            rest = len(answers) - SHOWN_ANSWERS
            found.append(f'<p class="note">{rest:,} more assigned; name a label to see why it is.</p>')
    if change is not None:
        found.append(_change(change))
    return fragment([*found, *more])


def explanation_fragment(
    explanation: Explanation,
    *,
    label: str | None = None,
    against: str | None = None,
    top: int = SHOWN_TOKENS,
    sub_tokens: Sequence[SubTokenAttribution] | None = None,
) -> str:
    """Return an explanation.

    Args:
        explanation: the explanation to show.
        label: the label explained; by default the most probable.
        against: the label that it is compared with; by default all others.
        top: rows of the table of tokens, and of that of sub-token attributions.
        sub_tokens: the result of `Classifier.parts` for the text, to be shown folded away.

    Raises:
        ConfigError: there is no such label, both are the same, or `top` is negative.
    """
    scores = _scores(explanation.labels, explanation.probability_values)
    return fragment([scores, _explanation(explanation, explanation.attribution(label, against), top, sub_tokens)])


# Scores


def _scores(
    labels: Sequence[str], probabilities: NDArray[np.float32], thresholds: NDArray[np.float32] | None = None
) -> str:
    """Return the scores of all labels as bars; if each has a threshold, also whether it is reached."""
    order = np.argsort(-probabilities, kind="stable").tolist()
    scores = probabilities.tolist()
    answers = {order[0]} if thresholds is None else set(np.flatnonzero(probabilities >= thresholds).tolist())
    rows = [
        f'<tr{" class=first" if i in answers else ""}><th scope="row">{name(labels[i])}</th>'
        f'<td class="track"><i style="width:{percent(scores[i])}"></i></td><td>{percent(scores[i])}</td>'
        f"{_limit(thresholds, i, i in answers)}</tr>"
        for i in order
    ]
    shown = f'<table class="scores">{"".join(rows[:SHOWN_LABELS])}</table>'
    if len(rows) <= SHOWN_LABELS:
        return shown
    rest = f'<table class="scores">{"".join(rows[SHOWN_LABELS:])}</table>'
    return f"{shown}<details><summary>{len(rows) - SHOWN_LABELS:,} more labels</summary>{rest}</details>"


def _limit(thresholds: NDArray[np.float32] | None, i: int, reached: bool) -> str:
    if thresholds is None:
        return ""
    return f'<td class="limit">{"&ge;" if reached else "&lt;"} {percent(float(thresholds[i]))}</td>'


# The text and its tokens


def _explanation(
    explanation: Explanation,
    attribution: Attribution,
    top: int,
    sub_tokens: Sequence[SubTokenAttribution] | None,
    why: str = "Why",
) -> str:
    rest = f" and not {name(attribution.against)}" if attribution.against else ""
    found = [
        f"<h3>{why} {name(attribution.label)}{rest}</h3>",
        _tinted(explanation, attribution),
        _legend(explanation, attribution),
        _tables(explanation, attribution, top),
    ]
    if sub_tokens is not None:
        found.append(_sub_tokens(sub_token_table(explanation, attribution, sub_tokens, top), attribution.kind))
    if remarks := token_remarks(explanation, attribution, top):
        found.append('<p class="note">' + "<br>".join(map(shown, remarks)) + "</p>")
    checked = "" if explanation.completeness_error < 1e-3 else " The parts do not add up: do not trust this split."
    found.append(
        f'<p class="note">Checked: {completeness_line(explanation)}.{checked} '
        "This is exact accounting of this model's answer, not a claim about causes.</p>"
    )
    return "\n".join(found)


def _change(search: Search) -> str:
    """Return what would change the answer: the text with what is left out struck through."""
    found, at = search.found, 0
    pieces: list[str] = []
    for change in found.changes if found is not None else ():
        by = "" if change.by is None else f" <ins>{shown(change.by)}</ins>"
        pieces += escape(visible(search.text[at : change.start])), f"<del>{shown(change.text)}</del>{by}"
        at = change.end
    text = f'<div class="text" dir="auto">{"".join(pieces)}{escape(visible(search.text[at:]))}</div>' if pieces else ""
    return (
        f"<h3>What would change it</h3><p>{shown(change_line(search))}</p>{text}"
        f"{''.join(f'<p>{shown(line)}</p>' for line in column_change_lines(search))}"
        f'<p class="note">{shown(search_line(search))}</p>'
    )


def _levels(attribution: Attribution) -> list[int]:
    """How strongly each token is tinted: 0, not at all, to LEVELS, signed."""
    return [0 if abs(s) < 0.04 else ceil(abs(s) * LEVELS) * (1 if s > 0 else -1) for s in tints(attribution)]


def _tinted(explanation: Explanation, attribution: Attribution) -> str:
    """Return the text with its tokens tinted; for a long one the deciding sentences, and the whole folded away."""
    text, spans = visible(explanation.text), explanation.spans
    marks = _marks(explanation, attribution)

    def part(first: int, behind: int) -> str:
        pieces = []
        for i in range(first, behind):
            start, end = spans[i]
            token = escape(text[start:end])
            if i > first or i == 0:
                pieces.append(escape(text[spans[i - 1][1] if i else 0 : start]))
            pieces.append(f"<span{marks[i]}>{token}</span>" if marks[i] else token)
        return "".join(pieces)

    whole = part(0, len(spans)) + _unread(text[spans[-1][1] if spans else 0 :])
    whole = f'<div class="text" dir="auto">{whole}</div>'
    shown_first = passages(explanation, attribution)
    if not shown_first:
        return whole
    parts = "".join(
        f'<p dir="auto">{CUT * (first > 0)}{part(first, behind)}{CUT * (behind < len(spans))}</p>'
        for first, behind in shown_first
    )
    return (
        f'<div class="text passages">{parts}</div><p class="note">{shown(passages_line(explanation, attribution))}</p>'
        f"<details><summary>The whole text</summary>{whole}</details>"
    )


def _unread(text: str) -> str:
    """Return what follows the last token that was read: white space, or what was cut."""
    if not text.strip():
        return escape(text)
    cut = f"\u2026 ({len(text) - MOST_UNREAD:,} more characters)" if len(text) > MOST_UNREAD else ""
    return f'<span class="unread" title="not read by the model">{escape(text[:MOST_UNREAD])}{cut}</span>'


def _marks(explanation: Explanation, attribution: Attribution) -> list[str]:
    """The attributes of each token: its tint, and its numbers as a title."""
    columns = explanation.columns(attribution)
    names = [named(explanation.labels[i]) for i in columns]
    titled = set(attribution.strongest(MOST_TITLES).tolist())
    rows = zip(
        _levels(attribution),
        attribution.values.tolist(),
        explanation.contributions[:, columns].tolist(),
        explanation.attention.tolist(),
        explanation.known.tolist(),
        strict=True,
    )
    marks = []
    for i, (level, value, added, attention, known) in enumerate(rows):
        kinds = [f"{'p' if level > 0 else 'n'}{abs(level)}"] * bool(level) + ["unknown"] * (not known)
        mark = f' class="{" ".join(kinds)}"' if kinds else ""
        if i in titled:
            numbers = "".join(f"; {name} {signed(part)}" for name, part in zip(names, added, strict=True))
            title = f"{attribution.kind} {signed(value)}{numbers}; attention {attention:.3f}"
            mark += f' title="{escape(title + ("" if known else "; unknown to the model"))}"'
        marks.append(mark)
    return marks


def _legend(explanation: Explanation, attribution: Attribution) -> str:
    against = f"for {name(attribution.against)}" if attribution.against else "against it"
    word = "word" if explanation.unit == "token" else explanation.unit
    unknown = '<span><b class="unknown">word</b> unknown to the model</span>' if explanation.unknown else ""
    return (
        f'<p class="legend"><span><b class="p7">{word}</b> speaks for {name(attribution.label)}</span>'
        f'<span><b class="n7">{word}</b> speaks {against}</span>{unknown}</p>'
    )


def _tables(explanation: Explanation, attribution: Attribution, top: int) -> str:
    count = len(attribution.values)
    order = attribution.strongest(top).tolist()
    found = _table(token_table(explanation, attribution, order))
    if len(order) == count:
        return found
    # A page of a long text would take megabytes otherwise; the strongest tokens explain nearly everything.
    every = sorted(attribution.strongest(MOST_TITLES).tolist())
    units = f"{explanation.unit}s"
    what = f"All {count:,} {units}" if len(every) == count else f"The {len(every):,} strongest of {count:,} {units}"
    table = _table(token_table(explanation, attribution, every))
    return f"{found}<details><summary>{what} in reading order</summary>{table}</details>"


def _table(table: TokenTable) -> str:
    heads = "".join(f'<th scope="col">{name(label)}</th>' for label in table.labels)
    rows = [
        f'<tr><th scope="col">{table.unit}</th><th scope="col" colspan="2">{table.kind}</th>{heads}'
        f'<th scope="col">{"attention" if table.unit == "token" else "a token"}</th></tr>'
    ]
    for row in table.rows:
        token = isolated(row.name) if row.known else f'<span class="unknown">{isolated(row.name)}</span>'
        unsure = "" if row.sure or table.models == 1 else ' <span title="its interval contains zero">?</span>'
        rows.append(
            f'<tr><th scope="row">{token}{unsure}</th>{_bar(row, table)}'
            f"{_cells([row.value, *row.contributions])}{_cells([row.mean]) if table.unit != 'token' else ''}"
            f"{f'<td>{row.attention:.3f}</td>' if table.unit == 'token' else ''}</tr>"
        )
    if table.others:
        rows.append(_sum_row(f"{table.others:,} others", table.rest))
    rows += [_sum_row(isolated(name), added) for name, added in table.cells]
    rows.append(_sum_row("bias", table.bias))
    rows.append(_sum_row("= logit", table.total, ' class="total"'))
    wide = "" if table.unit == "token" else " units"
    return f'<div class="wide"><table class="tokens{wide}">{"".join(rows)}</table></div>'


def _bar(row: TokenRow, table: TokenTable) -> str:
    """Return the bar of a value, with a whisker over its interval if several models were asked."""
    found = bar(row.value / table.strongest)
    if table.models == 1:
        return found
    left, right = (50 + 50 * end / table.strongest for end in (row.low, row.high))
    title = f"{signed(row.low)} to {signed(row.high)} in 95 of 100 further models, by {table.models} models"
    whisker = f'<b title="{title}" style="left:{left:.1f}%;width:{right - left:.1f}%"></b>'
    return found.replace("</td>", f"{whisker}</td>")


def _sub_tokens(table: SubTokenTable, kind: str) -> str:
    largest = max((abs(row.value) for row in table.rows), default=0.0) or 1.0
    rows = [f'<tr><th scope="col">part</th><th scope="col" colspan="2">{kind}</th><th scope="col">kind</th></tr>']
    rows += [
        f'<tr><th scope="row">{isolated(row.name)}</th>{bar(row.value / largest)}{_cells([row.value])}'
        f"<td>{row.kind}</td></tr>"
        for row in table.rows
    ]
    if table.others:
        rows.append(_sum_row(f"{table.others:,} others", [table.rest]))
    rows.append(_sum_row("= tokens", [table.total], ' class="total"'))
    return (
        "<details><summary>Words, sequences of words, and pieces of unknown words</summary>"
        f'<div class="wide"><table class="tokens">{"".join(rows)}</table></div>'
        f'<p class="note">Checked: {table.check}.</p></details>'
    )


def _cells(values: Iterable[float]) -> str:
    return "".join(f"<td>{signed(value)}</td>" for value in values)


def _sum_row(head: str, values: Iterable[float], kind: str = ' class="sum"') -> str:
    return f'<tr{kind}><th scope="row" colspan="2">{head}</th>{_cells(values)}<td></td></tr>'
