"""An answer and its explanation as a fragment."""

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.explanation import Explanation, View
from textcls.page.fragments import bar, fragment, name, shown
from textcls.page.tables import PartTable, check_line, notes, part_table
from textcls.page.text import named, visible
from textcls.parts import Part
from textcls.results import Prediction

# Rows of the table of tokens, bars of scores, tokens shown before the rest is folded away.
SHOWN_TOKENS: Final = 20
SHOWN_LABELS: Final = 8
UNFOLDED: Final = 300
# Beyond these a page of a long text would take megabytes.
MOST_TITLES: Final = 2_000
MOST_UNREAD: Final = 2_000
LEVELS: Final = 9


def prediction_fragment(
    prediction: Prediction,
    *,
    label: str | None = None,
    against: str | None = None,
    top: int = SHOWN_TOKENS,
    parts: Sequence[Part] | None = None,
) -> str:
    """Return an answer, with its explanation if it has one. The arguments are those of `explanation_fragment`."""
    found = [_scores(prediction.label_names, prediction.probabilities)]
    found += [f'<p class="remark">{shown(remark)}</p>' for remark in prediction.remarks]
    if prediction.explanation is not None:
        found.append(_explanation(prediction.explanation, label, against, top, parts))
    return fragment(found)


def explanation_fragment(
    explanation: Explanation,
    *,
    label: str | None = None,
    against: str | None = None,
    top: int = SHOWN_TOKENS,
    parts: Sequence[Part] | None = None,
) -> str:
    """Return an explanation.

    Args:
        explanation: what to show.
        label: the label spoken for; by default the most probable.
        against: the one label it is held against; by default all others.
        top: rows of the table of tokens, and of that of parts.
        parts: what `Classifier.parts` says of the text, to be shown folded away.

    Raises:
        ConfigError: there is no such label, both are the same, or `top` is negative.
    """
    scores = _scores(explanation.labels, explanation.probability_values)
    return fragment([scores, _explanation(explanation, label, against, top, parts)])


# Scores


def _scores(labels: Sequence[str], probabilities: NDArray[np.float32]) -> str:
    order = np.argsort(-probabilities, kind="stable").tolist()
    scores = probabilities.tolist()
    rows = [
        f'<tr{" class=first" if place == 0 else ""}><th scope="row">{name(labels[i])}</th>'
        f'<td class="track"><i style="width:{100 * scores[i]:.1f}%"></i></td><td>{scores[i]:.1%}</td></tr>'
        for place, i in enumerate(order)
    ]
    shown = f'<table class="scores">{"".join(rows[:SHOWN_LABELS])}</table>'
    if len(rows) <= SHOWN_LABELS:
        return shown
    rest = f'<table class="scores">{"".join(rows[SHOWN_LABELS:])}</table>'
    return f"{shown}<details><summary>{len(rows) - SHOWN_LABELS:,} more labels</summary>{rest}</details>"


# The text and its tokens


def _explanation(
    explanation: Explanation, label: str | None, against: str | None, top: int, parts: Sequence[Part] | None
) -> str:
    view = explanation.view(label, against)
    rest = f" and not {name(against)}" if against else ""
    found = [
        f"<h3>Why {name(view.label)}{rest}</h3>",
        _tinted(explanation, view),
        _legend(explanation, view),
        _tables(explanation, view, top),
    ]
    if parts is not None:
        found.append(_parts(part_table(explanation, view, parts, top), view))
    if remarks := notes(explanation, view, top):
        found.append('<p class="note">' + "<br>".join(map(shown, remarks)) + "</p>")
    checked = "" if explanation.completeness_error < 1e-3 else " The parts do not add up: do not trust this split."
    found.append(
        f'<p class="note">Checked: {check_line(explanation)}.{checked} '
        "This is exact accounting of this model's answer, not a claim about causes.</p>"
    )
    return "\n".join(found)


def _levels(view: View) -> list[int]:
    """How strongly each token is tinted: 0, not at all, to LEVELS, signed."""
    strongest = float(np.abs(view.values).max(initial=0.0)) or 1.0
    shares = (view.values.astype(np.float64) / strongest).tolist()
    return [0 if abs(s) < 0.04 else ceil(abs(s) * LEVELS) * (1 if s > 0 else -1) for s in shares]


def _tinted(explanation: Explanation, view: View) -> str:
    text, spans = visible(explanation.text), explanation.spans
    marks = _marks(explanation, view)
    pieces, place = [], 0
    for (start, end), mark in zip(spans, marks, strict=True):
        token = escape(text[start:end])
        pieces.append(escape(text[place:start]) + (f"<span{mark}>{token}</span>" if mark else token))
        place = end
    head, rest = "".join(pieces[:UNFOLDED]), "".join(pieces[UNFOLDED:])
    found = f'<div class="text" dir="auto">{head}{"" if rest else _unread(text[place:])}</div>'
    if not rest:
        return found
    share = view.share(np.arange(UNFOLDED, len(spans)))
    summary = f"{len(spans) - UNFOLDED:,} more tokens, {share:.1%} of the evidence"
    return (
        f"{found}<details><summary>{summary}</summary>"
        f'<div class="text" dir="auto">{rest}{_unread(text[place:])}</div></details>'
    )


def _unread(text: str) -> str:
    """What stands behind the last token that was read: white space, or what was cut."""
    if not text.strip():
        return escape(text)
    cut = f"\u2026 ({len(text) - MOST_UNREAD:,} more characters)" if len(text) > MOST_UNREAD else ""
    return f'<span class="unread" title="not read by the model">{escape(text[:MOST_UNREAD])}{cut}</span>'


def _marks(explanation: Explanation, view: View) -> list[str]:
    """The attributes of each token: its tint, and its numbers as a title."""
    columns = explanation.columns(view)
    names = [named(explanation.labels[i]) for i in columns]
    told = set(view.strongest(MOST_TITLES).tolist())
    rows = zip(
        _levels(view),
        view.values.tolist(),
        explanation.contributions[:, columns].tolist(),
        explanation.attention.tolist(),
        explanation.known.tolist(),
        strict=True,
    )
    marks = []
    for i, (level, value, added, attention, known) in enumerate(rows):
        kinds = [f"{'p' if level > 0 else 'n'}{abs(level)}"] * bool(level) + ["unknown"] * (not known)
        mark = f' class="{" ".join(kinds)}"' if kinds else ""
        if i in told:
            numbers = "; ".join(f"{name} {part:+.3f}" for name, part in zip(names, added, strict=True))
            title = f"{view.kind} {value:+.3f}; {numbers}; attention {attention:.3f}"
            mark += f' title="{escape(title + ("" if known else "; unknown to the model"))}"'
        marks.append(mark)
    return marks


def _legend(explanation: Explanation, view: View) -> str:
    against = f"for {name(view.against)}" if view.against else "against it"
    unknown = '<span><b class="unknown">word</b> unknown to the model</span>' if explanation.unknown else ""
    return (
        f'<p class="legend"><span><b class="p7">word</b> speaks for {name(view.label)}</span>'
        f'<span><b class="n7">word</b> speaks {against}</span>{unknown}</p>'
    )


def _tables(explanation: Explanation, view: View, top: int) -> str:
    count = len(view.values)
    order = view.strongest(top).tolist()
    found = _table(explanation, view, order)
    if len(order) == count:
        return found
    # A page of a long text would take megabytes otherwise; the strongest tell nearly all.
    every = sorted(view.strongest(MOST_TITLES).tolist())
    what = f"All {count:,} tokens" if len(every) == count else f"The {len(every):,} strongest of {count:,} tokens"
    return f"{found}<details><summary>{what} in reading order</summary>{_table(explanation, view, every)}</details>"


def _table(explanation: Explanation, view: View, order: list[int]) -> str:
    columns = explanation.columns(view)
    strongest = float(np.abs(view.values).max(initial=0.0)) or 1.0
    heads = "".join(f'<th scope="col">{name(explanation.labels[i])}</th>' for i in columns)
    rows = [
        f'<tr><th scope="col">token</th><th scope="col" colspan="2">{view.kind}</th>{heads}'
        '<th scope="col">attention</th></tr>'
    ]
    added, text = explanation.contributions[:, columns], explanation.text
    for i in order:
        start, end = explanation.spans[i]
        value = float(view.values[i])
        known = bool(explanation.known[i])
        token = name(text[start:end]) if known else f'<span class="unknown">{name(text[start:end])}</span>'
        rows.append(
            f'<tr><th scope="row">{token}</th>{bar(value / strongest)}{_cells([value, *added[i].tolist()])}'
            f"<td>{float(explanation.attention[i]):.3f}</td></tr>"
        )
    rest = np.ones(len(view.values), bool)
    rest[order] = False
    if rest.any():
        sums = [float(view.values[rest].sum()), *added[rest].sum(0).tolist()]
        rows.append(_sum_row(f"{int(rest.sum()):,} others", sums))
    rows.append(_sum_row("bias", [view.bias, *explanation.bias_values[columns].tolist()]))
    rows.append(_sum_row("= logit", [view.total, *explanation.logit_values[columns].tolist()], ' class="total"'))
    return f'<div class="wide"><table class="tokens">{"".join(rows)}</table></div>'


def _parts(table: PartTable, view: View) -> str:
    strongest = max((abs(row.value) for row in table.rows), default=0.0) or 1.0
    rows = [f'<tr><th scope="col">part</th><th scope="col" colspan="2">{view.kind}</th><th scope="col">kind</th></tr>']
    rows += [
        f'<tr><th scope="row"><bdi>{escape(row.name)}</bdi></th>{bar(row.value / strongest)}{_cells([row.value])}'
        f"<td>{row.kind}</td></tr>"
        for row in table.rows
    ]
    if table.others:
        rows.append(_sum_row(f"{table.others:,} others", [table.rest]))
    rows.append(_sum_row("= tokens", [table.total], ' class="total"'))
    return (
        "<details><summary>Words, pairs of words, and pieces of unknown words</summary>"
        f'<div class="wide"><table class="tokens">{"".join(rows)}</table></div>'
        f'<p class="note">Checked: {table.check}.</p></details>'
    )


def _cells(values: Iterable[float]) -> str:
    return "".join(f"<td>{value:+.3f}</td>" for value in values)


def _sum_row(name: str, values: Iterable[float], kind: str = ' class="sum"') -> str:
    return f'<tr{kind}><th scope="row">{name}</th><td></td>{_cells(values)}<td></td></tr>'
