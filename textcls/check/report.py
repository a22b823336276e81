"""Counts, lengths, scripts and findings together."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from textcls.check import copies, scripts
from textcls.check.findings import Finding, find
from textcls.check.survey import Survey

QUANTILES: Final = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class Report:
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

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "rows": self.rows,
            "labels": self.labels,
            "tokens": {f"{share:g}": number for share, number in self.tokens.items()},
            "scripts": {name: round(share, 6) for name, share in self.scripts.items()},
            "near_copies_are": copies.DEFINITION,
            "findings": [finding.to_json() for finding in self.findings],
        }


def report(survey: Survey, valid: Survey | None = None) -> Report:
    """Return all that is known of `survey`, and what `valid` shares with it."""
    tokens = np.quantile(survey.tokens, QUANTILES, method="nearest").tolist() if survey.rows else [0] * len(QUANTILES)
    return Report(
        rows=survey.rows,
        labels=dict(survey.labels.most_common()),
        tokens=dict(zip(QUANTILES, map(int, tokens), strict=True)),
        scripts=scripts.shares(survey.characters),
        findings=find(survey, valid),
    )
