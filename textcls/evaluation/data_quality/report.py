"""Counts, lengths, scripts and findings together, which `textcls check` reports."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from textcls.data.labelled import LabelledRow
from textcls.data.rows import BadRows
from textcls.data.targets import Target
from textcls.evaluation.data_quality import duplicates, scripts
from textcls.evaluation.data_quality.finding import Finding
from textcls.evaluation.data_quality.findings import find
from textcls.evaluation.data_quality.survey import Survey

QUANTILES: Final = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class DataQualityReport:
    """The properties of labelled rows.

    Attributes:
        rows: number of rows.
        labels: number of rows with each label, the most frequent first.
        without_label: number of rows without a label; None if the way they were read gives each row one.
        tokens: quantiles of the number of tokens per text, keyed by their share.
        scripts: the share of the letters in each script, the largest first.
        findings: what may be wrong.
    """

    rows: int
    labels: dict[str, int]
    tokens: dict[float, int]
    scripts: dict[str, float]
    findings: list[Finding]
    without_label: int | None = None

    @property
    def labels_a_row(self) -> float:
        """The mean number of labels per row."""
        return sum(self.labels.values()) / self.rows if self.rows else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        several = {"labels_a_row": round(self.labels_a_row, 6), "rows_without_label": self.without_label}
        return {
            "rows": self.rows,
            "labels": self.labels,
            **(several if self.without_label is not None else {}),
            "tokens": {f"{share:g}": number for share, number in self.tokens.items()},
            "scripts": {name: round(share, 6) for name, share in self.scripts.items()},
            "near_copies_are": duplicates.DEFINITION,
            "findings": [finding.as_json() for finding in self.findings],
        }


def check(
    rows: Iterable[LabelledRow[Target]],
    valid: Iterable[LabelledRow[Target]] | None = None,
    *,
    expected: Sequence[str] = (),
    bad: BadRows | None = None,
    columns: Sequence[str] = (),
    answers: bool = False,
) -> DataQualityReport:
    """Return the properties of labelled `rows`, and what may be wrong with them and with validation rows.

    Args:
        rows: the rows.
        valid: the validation rows.
        expected: labels that rows should have, such as those with a column of their own.
        bad: records the rows that cannot be used, while the others are read.
        columns: columns beside the text; rows that differ there are not copies.
        answers: whether labels are answers of `textcls annotate`.
    """
    survey = Survey(labels=Counter(dict.fromkeys(expected, 0)), columns=columns, answers=answers).extend(rows)
    return report(survey, None if valid is None else Survey(columns=columns).extend(valid), bad)


def report(survey: Survey, valid: Survey | None = None, bad: BadRows | None = None) -> DataQualityReport:
    """Return all that is known of `survey`, what `valid` has in common with it, and which rows are `bad`."""
    tokens = np.quantile(survey.tokens, QUANTILES, method="nearest").tolist() if survey.rows else [0] * len(QUANTILES)
    return DataQualityReport(
        rows=survey.rows,
        labels=dict(survey.labels.most_common()),
        tokens=dict(zip(QUANTILES, map(int, tokens), strict=True)),
        scripts=scripts.shares(survey.characters),
        findings=find(survey, valid, bad),
        without_label=survey.without if survey.several else None,
    )
