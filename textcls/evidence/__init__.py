"""What a model goes by, over many texts: the words and pairs of words for and against each label, and shortcuts.

Texts are read one at a time and forgotten; what is kept is a row of sums for each word and each pair of neighbours,
`CELLS` numbers at the most. Words are compared in lower case.

    counter.py     explanations in, a report out
    sums.py        evidence by word and by pair
    decisions.py   which words alone decide answers
    excerpts.py    where a word stood
    report.py      what was found
"""

from textcls.evidence.counter import SHORTCUT_ANSWERS, SHORTCUT_SHARE, EvidenceCounter
from textcls.evidence.excerpts import AROUND, Example, marked
from textcls.evidence.report import EvidenceReport, Finding, LabelEvidence, Shortcut
from textcls.evidence.sums import CELLS, EXAMPLES, KEYS

__all__ = [
    "AROUND",
    "CELLS",
    "EXAMPLES",
    "KEYS",
    "SHORTCUT_ANSWERS",
    "SHORTCUT_SHARE",
    "EvidenceCounter",
    "EvidenceReport",
    "Example",
    "Finding",
    "LabelEvidence",
    "Shortcut",
    "marked",
]
