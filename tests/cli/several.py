"""Rows with several labels, made of those of the bundled table as the frozen model's were."""

from collections.abc import Sequence

Rows = list[tuple[str, list[str]]]


def several_rows(rows: Sequence[dict[str, str]]) -> Rows:
    """Sixty rows with one label, thirty texts joined in twos, and ten without any."""
    pairs = [(row["text"], row["label"]) for row in rows[-120:]]
    found = [(text, [label]) for text, label in pairs[:60]]
    found += [(f"{a} {b}", sorted({x, y})) for (a, x), (b, y) in zip(pairs[60:90], pairs[90:], strict=True)]
    return found + [(f"Hello team, all is well here {i}", []) for i in range(10)]
