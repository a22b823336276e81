"""The tables under an explanation, as data: the terminal and the page lay out the same numbers."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from textcls.display.text import named
from textcls.model.columns import named_cell
from textcls.model.explanation import Attribution, Explanation
from textcls.model.sub_token_attribution import SubTokenAttribution

_KINDS: Final = {"word": "word", "pair": "pair", "triple": "triple", "ngram": "piece"}


class TokenRow(NamedTuple):
    """A token or unit as listed: its name, and what it added to the labels of the table.

    For a unit, `tokens` is how many it has, and `mean` the value per token. `low` and `high` are the range of the value
    over several models; the value itself if there is only one model.
    """

    name: str
    known: bool
    attention: float
    value: float
    contributions: list[float]
    tokens: int
    mean: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return self.low > 0 or self.high < 0


class TokenTable(NamedTuple):
    """Tokens of a text, and the sums that make them add up to the logits.

    Attributes:
        unit: the unit that is listed: token, phrase or sentence.
        kind: the name of the values of the attribution.
        labels: the labels whose contributions are listed beside the value.
        rows: the tokens listed.
        strongest: the largest |value| of all tokens, or end of its range; 1 if all are zero.
        models: the number of models that the ranges of values are taken over; 1 if there are none.
        others: how many tokens are not listed.
        rest: what those add: the value, then the contribution to each label, as in the following sums.
        cells: what cells of columns beside the text add, with their names and values; empty without such columns.
        bias: what the bias adds.
        total: the logits, the sum of everything.
    """

    unit: str
    kind: str
    labels: tuple[str, ...]
    rows: list[TokenRow]
    strongest: float
    models: int
    others: int
    rest: list[float]
    cells: list[tuple[str, list[float]]]
    bias: list[float]
    total: list[float]


def token_table(explanation: Explanation, attribution: Attribution, tokens: Sequence[int]) -> TokenTable:
    """Return the table of an explained text that lists the `tokens` of these numbers, in this order."""
    columns = explanation.columns(attribution)
    added, values = explanation.contributions[:, columns], attribution.values
    rest = np.ones(len(values), bool)
    rest[list(tokens)] = False
    spread = attribution.spread
    lows, highs = (values, values) if spread is None else (spread.low, spread.high)
    rows = [
        TokenRow(
            named(explanation.text[slice(*explanation.spans[i])]),
            bool(explanation.known[i]),
            float(explanation.attention[i]),
            float(values[i]),
            added[i].tolist(),
            int(attribution.sizes[i]),
            float(attribution.means[i]),
            float(lows[i]),
            float(highs[i]),
        )
        for i in tokens
    ]
    return TokenTable(
        unit=explanation.unit,
        kind=attribution.kind,
        labels=tuple(explanation.labels[i] for i in columns),
        rows=rows,
        strongest=strongest(attribution),
        models=1 if spread is None else spread.models,
        others=int(rest.sum()),
        rest=[float(values[rest].sum()), *added[rest].sum(0).tolist()],
        cells=[
            (
                named_cell(named(cell.name), named(cell.value) if cell.value else ""),
                [added, *cell.contributions[columns].tolist()],
            )
            for cell, (_, _, added) in zip(explanation.cells, attribution.cells, strict=True)
        ],
        bias=[attribution.bias, *explanation.bias_values[columns].tolist()],
        total=[attribution.total, *explanation.logit_values[columns].tolist()],
    )


def strongest(attribution: Attribution) -> float:
    """Return the largest |value| of the tokens, or end of a range, which scales the bars; 1 if all are zero."""
    spread = attribution.spread
    ends = [attribution.values] if spread is None else [spread.low, spread.high]
    return float(np.abs(np.stack(ends)).max(initial=0.0)) or 1.0


def tints(attribution: Attribution) -> list[float]:
    """Return how strongly each token is tinted, -1 to 1: by its value; a unit by its mean, whatever its length."""
    means = attribution.means
    return (means / (float(np.abs(means).max(initial=0.0)) or 1.0)).tolist()  # type: ignore[no-any-return]


class SubTokenRow(NamedTuple):
    """A word, sequence or piece as listed."""

    name: str
    kind: str
    value: float


class SubTokenTable(NamedTuple):
    """What the words, sequences and pieces of a text contribute to an attribution.

    Attributes:
        rows: the strongest, strongest first.
        others: how many more there are.
        rest: the sum of those.
        total: the sum of all, which equals that of all tokens.
        check: the confirmation of that, in one line.
    """

    rows: list[SubTokenRow]
    others: int
    rest: float
    total: float
    check: str


def sub_token_table(
    explanation: Explanation, attribution: Attribution, sub_tokens: Sequence[SubTokenAttribution], top: int
) -> SubTokenTable:
    """Return the `top` strongest of the sub-token attributions of an explained text, and the sums."""
    listed = [[part.contributions[label] for label in explanation.labels] for part in sub_tokens]
    added = np.array(listed, np.float64).reshape(-1, len(explanation.labels))
    values = added @ attribution.contrast
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    rows = [
        SubTokenRow(sub_token_name(sub_tokens[i], explanation.text), _KINDS[sub_tokens[i].kind], float(values[i]))
        for i in order[:top]
    ]
    error = float(np.abs(added.sum(0) - explanation.contributions.sum(0, dtype=np.float64)).max())
    check = "parts = tokens, " + (f"to {error:.0e}" if error else "exactly")
    rest = float(values[order[top:]].sum())
    return SubTokenTable(rows, len(order[top:]), rest, float(values.sum()), check)


def sub_token_name(part: SubTokenAttribution, text: str) -> str:
    """Return the name of a piece of `text` in a table; a pair or triple with an edge of the text shows the edge."""
    name = named(text[part.start : part.end])
    both = part.kind == "triple" and len(part.tokens) == 1
    name = f"\u27e8start\u27e9 {name}" if both or part.edge == "start" else name
    return f"{name} \u27e8end\u27e9" if both or part.edge == "end" else name
