"""Explanations as HTML: a fragment for notebooks, a page of its own for files, and the page of `textcls serve` and
`textcls web`.

In fragments nothing runs and nothing is fetched: no script, no font, no picture. Texts are escaped, and what would be
invisible or would reorder what stands around it is made visible, one character for one. The sign of a token is told by
the colour and by the kind of its underline. The same explanation gives the same bytes.
"""

from textcls.page.evidence import evidence_fragment, mirror_line, no_shortcut_line, summary_line, told_labels
from textcls.page.explained import (
    MOST_TITLES,
    SHOWN_LABELS,
    SHOWN_TOKENS,
    UNFOLDED,
    explanation_fragment,
    prediction_fragment,
)
from textcls.page.fragments import document
from textcls.page.tables import PartRow, PartTable, check_line, notes, part_name, part_table
from textcls.page.text import named, one_line, visible

__all__ = [
    "MOST_TITLES",
    "SHOWN_LABELS",
    "SHOWN_TOKENS",
    "UNFOLDED",
    "PartRow",
    "PartTable",
    "check_line",
    "document",
    "evidence_fragment",
    "explanation_fragment",
    "mirror_line",
    "named",
    "no_shortcut_line",
    "notes",
    "one_line",
    "part_name",
    "part_table",
    "prediction_fragment",
    "summary_line",
    "told_labels",
    "visible",
]
