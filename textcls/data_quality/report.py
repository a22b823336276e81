"""Counts, lengths, scripts and findings together: what `textcls check` calls."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from textcls.data.labelled import LabelledRow
from textcls.data_quality import duplicates, scripts
from textcls.data_quality.findings import Finding, find
from textcls.data_quality.survey import Survey

QUANTILES: Final = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class DataQualityReport:
    """What is known of labelled rows.

    Attributes:
        rows: how many there are.
        labels: how many have each label, the most frequent first.
        tokens: quantiles of the number of tokens of a text, by their share.
        scripts: the share of the letters that each script has, the largest first.
        findings: what may be wrong.
    """

    rows: int
    labels: dict[str, int]
    tokens: dict[float, int]
    scripts: dict[str, float]
    findings: list[Finding]

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "rows": self.rows,
            "labels": self.labels,
            "tokens": {f"{share:g}": number for share, number in self.tokens.items()},
            "scripts": {name: round(share, 6) for name, share in self.scripts.items()},
            "near_copies_are": duplicates.DEFINITION,
            "findings": [finding.as_json() for finding in self.findings],
        }


def check(rows: Iterable[LabelledRow[str]], valid: Iterable[LabelledRow[str]] | None = None) -> DataQualityReport:
    """Return what labelled `rows` are like, and what may be wrong with them and with validation rows beside them."""
    survey = Survey().extend(rows)
    return report(survey, None if valid is None else Survey().extend(valid))


def report(survey: Survey, valid: Survey | None = None) -> DataQualityReport:
    """Return all that is known of `survey`, and what `valid` shares with it."""
    tokens = np.quantile(survey.tokens, QUANTILES, method="nearest").tolist() if survey.rows else [0] * len(QUANTILES)
    return DataQualityReport(
        rows=survey.rows,
        labels=dict(survey.labels.most_common()),
        tokens=dict(zip(QUANTILES, map(int, tokens), strict=True)),
        scripts=scripts.shares(survey.characters),
        findings=find(survey, valid),
    )
