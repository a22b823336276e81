"""What is told under and beside an explanation, as data: the terminal and the page show the same."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from textcls.explanation import Explanation, View
from textcls.page.text import MOST_NAMED, named
from textcls.parts import Part

_KINDS: Final = {"word": "word", "pair": "pair", "ngram": "piece"}


def check_line(explanation: Explanation) -> str:
    """Return the sum check in one line."""
    error = explanation.completeness_error
    return "bias + tokens = logit, " + (f"to {error:.0e}" if error else "exactly")


def notes(explanation: Explanation, view: View, shown: int) -> list[str]:
    """Return what is to be said under a table of the `shown` strongest tokens: what it covers, what is unknown."""
    found = []
    if shown < len(view.values):
        share = view.share(view.strongest(shown))
        found.append(f"The {shown:,} tokens shown carry {share:.1%} of the evidence.")
    unknown = explanation.unknown
    if unknown:
        names = list(dict.fromkeys(named(token.text) for token in unknown))
        listed = ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED:,} more" * (len(names) > MOST_NAMED))
        found.append(
            f"Unknown to the model: {listed} ({len(unknown):,} of {len(view.values):,} tokens, "
            f"{view.share(~explanation.known):.1%} of the evidence)."
        )
    return found


class PartRow(NamedTuple):
    """A part as it is listed."""

    name: str
    kind: str
    value: float


class PartTable(NamedTuple):
    """What the parts of a text say in a view.

    Attributes:
        rows: the strongest, strongest first.
        others: how many more there are.
        rest: what those say.
        total: what all say, which is what all tokens say.
        check: that they do, in one line.
    """

    rows: list[PartRow]
    others: int
    rest: float
    total: float
    check: str


def part_table(explanation: Explanation, view: View, parts: Sequence[Part], top: int) -> PartTable:
    """Return the `top` strongest parts of an explained text, and the sums."""
    rows = [[part.contributions[label] for label in explanation.labels] for part in parts]
    added = np.array(rows, np.float64).reshape(-1, len(explanation.labels))
    values = added @ view.direction
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    shown = [
        PartRow(part_name(parts[i], explanation.text), _KINDS[parts[i].kind], float(values[i])) for i in order[:top]
    ]
    error = float(np.abs(added.sum(0) - explanation.contributions.sum(0, dtype=np.float64)).max())
    check = "parts = tokens, " + (f"to {error:.0e}" if error else "exactly")
    rest = float(values[order[top:]].sum())
    return PartTable(shown, len(order[top:]), rest, float(values.sum()), check)


def part_name(part: Part, text: str) -> str:
    """Return how a part of `text` is named in a table; a pair with the edge of the text shows the edge."""
    name = named(text[part.start : part.end])
    if part.edge is None:
        return name
    return f"\u27e8start\u27e9 {name}" if part.edge == "start" else f"{name} \u27e8end\u27e9"
