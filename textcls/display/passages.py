"""Choose what is shown first of a long text: the deciding sentences. `passages` in `units.mjs` does the same."""

from itertools import pairwise
from typing import Final

import numpy as np

from textcls.model.explanation import Attribution, Explanation
from textcls.model.units import unit_spans

# A text of more tokens, or other units, is long.
LONG: Final = 150
# The most tokens that are shown of one sentence.
LONGEST: Final = 60
# The least and most sentences, and the share of the evidence at which they suffice.
LEAST, MOST, SHARE = 3, 8, 0.5
# Marks that the text continues.
CUT: Final = "…"


def passages(explanation: Explanation, attribution: Attribution) -> list[tuple[int, int]]:
    """Return what is shown first of a long text, as (first token, token behind the last) in reading order.

    These are the sentences with the largest sums, and that with the strongest token. An empty list stands for all of a
    text that is not long. In an explanation by words, phrases or sentences, these are counted instead of tokens.
    """
    values = attribution.values.astype(np.float64)
    if len(values) <= LONG or not values.any():
        return []
    pieces = _pieces(explanation)
    sums = [abs(float(values[first:behind].sum())) for first, behind in pieces]
    strongest = int(np.abs(values).argmax())
    order = sorted(range(len(pieces)), key=lambda i: (not pieces[i][0] <= strongest < pieces[i][1], -sums[i], i))
    chosen: list[tuple[int, int]] = []
    total, carried = float(np.abs(values).sum()), 0.0
    for i in order[:MOST]:
        if len(chosen) >= LEAST and carried >= SHARE * total:
            break
        chosen.append(pieces[i])
        carried += float(np.abs(values[slice(*pieces[i])]).sum())
    found = _joined(sorted(chosen))
    return [] if found == [(0, len(values))] else found


def _pieces(explanation: Explanation) -> list[tuple[int, int]]:
    if explanation.unit not in ("token", "word"):
        return [(i, i + 1) for i in range(len(explanation.spans))]
    sentences = unit_spans(explanation.text, explanation.spans, "sentence")
    return [piece for first, behind in sentences for piece in pairwise([*range(first, behind, LONGEST), behind])]


def _joined(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pieces with adjacent ones joined."""
    found: list[tuple[int, int]] = []
    for first, behind in pieces:
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], behind)
        else:
            found.append((first, behind))
    return found
