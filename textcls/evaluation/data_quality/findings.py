"""What may be wrong with labelled rows: each finding in one sentence, with its first rows and what to do."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from textcls.data.columns import PROBABILITY
from textcls.data.rows import BadRows
from textcls.evaluation.data_quality import duplicates, label_findings
from textcls.evaluation.data_quality.finding import Finding, first_of, places, plural
from textcls.evaluation.data_quality.survey import SURE, Survey
from textcls.model.features import MAX_TOKENS

# If this share of the texts are numbers or keys, nearly all different, they are hardly texts; few rows prove nothing.
CODES: Final = 0.9
FEW: Final = 10
# HTML is reported from this share of texts on.
MARKUP: Final = 0.01


def find(survey: Survey, valid: Survey | None = None, bad: BadRows | None = None) -> list[Finding]:
    """Return what may be wrong with the rows of `survey`, with the validation rows `valid`, and with `bad` rows."""
    joint = list(label_findings.several_in_a_cell(survey))
    # If names are several labels in one, their counts say nothing about the labels.
    numbers = () if joint else (_many_labels, label_findings.rare, label_findings.unbalanced)
    checks: tuple[Callable[[Survey], Iterator[Finding]], ...] = (
        _answered,
        _suspicious_columns,
        _untrainable,
        _blank,
        _nothing,
        _markup,
        _long,
        label_findings.conflicts,
        _copies,
        label_findings.alike,
        label_findings.misspelt,
        label_findings.placeholders,
        *numbers,
        label_findings.together,
        label_findings.weights,
    )
    unusable = () if bad is None else _unusable(bad)
    found = [*unusable, *joint, *(finding for check in checks for finding in check(survey))]
    return [*found, *_beside(survey, valid)] if valid is not None else found


def _unusable(bad: BadRows) -> Iterator[Finding]:
    if bad.count:
        message = f"{plural(bad.count, 'row', 'rows')} cannot be used: {bad.reasons()}."
        yield Finding("unusable", message, bad.count)


def _answered(survey: Survey) -> Iterator[Finding]:
    if survey.answered:
        rows, names = survey.answered.total(), first_of([*survey.answered])
        message = f"The labels of {plural(rows, 'row', 'rows')} are answers of {names}, and not of people"
        if doubtful := len(survey.unsure):
            message += (
                f"; {plural(doubtful, 'is', 'are')} less probable than {SURE:.0%}: textcls label --label-columns "
                f"'{PROBABILITY}*' asks for them first"
            )
        yield Finding("answered", f"{message}.", rows, places(survey, survey.unsure))


def _suspicious_columns(survey: Survey) -> Iterator[Finding]:
    different = len(np.unique(survey.exact))
    if survey.rows > 1 and different == 1:
        yield Finding("constant-text", "All texts are the same; is this the right text column?", survey.rows)
    elif survey.rows >= FEW and survey.codes >= CODES * survey.rows and different >= CODES * survey.rows:
        message = (
            f"{plural(survey.codes, 'text is', 'texts are')} only a number or a key; is this the right text column?"
        )
        yield Finding("codes-as-texts", message, survey.codes, places(survey, range(survey.rows)))


def _many_labels(survey: Survey) -> Iterator[Finding]:
    if survey.rows >= FEW and 2 * len(survey.labels) > survey.rows:
        message = f"{survey.rows:,} rows have {len(survey.labels):,} labels; is this the right label column?"
        yield Finding("many-labels", message, len(survey.labels))


def _untrainable(survey: Survey) -> Iterator[Finding]:
    if survey.several and survey.without == survey.rows:
        yield Finding("no-labels", "No row has a label; is this the right label column?", survey.rows)
    if len(survey.labels) == 1 and not survey.several:
        (name,) = survey.labels
        message = f"All rows have the label {name!r}; training needs at least two labels."
        yield Finding("one-label", message, survey.rows)
    if len(survey.blank) == survey.rows:
        message = "No text contains a word or symbol, so train will refuse them; is this the right text column?"
        yield Finding("no-words", message, survey.rows)


def _long(survey: Survey) -> Iterator[Finding]:
    long = np.flatnonzero(survey.tokens > MAX_TOKENS)
    if len(long):
        message = (
            f"{plural(len(long), 'text is', 'texts are')} longer than the {MAX_TOKENS:,} tokens a model reads by "
            "default; the rest is cut off. Split them, or raise --max-tokens."
        )
        yield Finding("long-texts", message, len(long), places(survey, long.tolist()))


def _blank(survey: Survey) -> Iterator[Finding]:
    if survey.blank:
        count = len(survey.blank)
        message = f"{plural(count, 'text is', 'texts are')} empty; fill in or remove the row{'s' * (count > 1)}."
        yield Finding("empty-text", message, count, places(survey, survey.blank))


def _nothing(survey: Survey) -> Iterator[Finding]:
    if survey.nothing:
        count = len(survey.nothing)
        message = (
            f"{plural(count, 'text is a placeholder', 'texts are placeholders')} for missing text, such as nan "
            f"or null; fill in or remove the row{'s' * (count > 1)}."
        )
        yield Finding("no-text", message, count, places(survey, survey.nothing))


def _markup(survey: Survey) -> Iterator[Finding]:
    count = len(survey.markup)
    if count >= MARKUP * survey.rows and count:
        message = (
            f"{plural(count, 'text holds', 'texts hold')} HTML, such as <br> or &amp;, which is read as words; "
            "strip it here and from future texts, unless it says something about the label."
        )
        yield Finding("markup", message, count, places(survey, survey.markup))


def _copies(survey: Survey) -> Iterator[Finding]:
    blank, what = set(survey.blank), "row" if survey.columns else "text"
    same = [int(i) for group in duplicates.groups(survey.exact) for i in group[1:] if int(i) not in blank]
    if same:
        message = (
            f"{plural(len(same), 'row is a copy', 'rows are copies')} of an earlier {what}; remove accidental "
            "ones, since each copy counts again."
        )
        yield Finding("copies", message, len(same), places(survey, sorted(same)))
    known = {*same, *blank}
    nearly = [int(i) for group in duplicates.groups(survey.near) for i in group[1:] if int(i) not in known]
    if nearly:
        message = (
            f"{plural(len(nearly), 'row is a near copy', 'rows are near copies')} of an earlier {what}, "
            f"{duplicates.DEFINITION}; remove accidental ones."
        )
        yield Finding("near-copies", message, len(nearly), places(survey, sorted(nearly)))


def _beside(survey: Survey, valid: Survey) -> Iterator[Finding]:
    unseen = [name for name, rows in valid.labels.items() if rows and not survey.labels[name]]
    if unseen:
        message = (
            f"Validation rows have labels that no training row has: {first_of(list(map(repr, unseen)))}; add "
            "examples or correct the label."
        )
        yield Finding("unseen-label", message, len(unseen), places(valid, (int(valid.rows_of(n)[0]) for n in unseen)))
    for kind, what, ours, theirs in (
        ("valid-copies", "also appear in the training rows", survey.exact, valid.exact),
        ("valid-near-copies", f"appear in the training rows as well, {duplicates.DEFINITION}", survey.near, valid.near),
    ):
        shared = np.flatnonzero(np.isin(theirs, ours))
        if kind == "valid-near-copies":
            shared = shared[~np.isin(valid.exact[shared], survey.exact)]
        if len(shared):
            rows = "rows" if survey.columns else "texts"
            message = (
                f"{len(shared):,} of {valid.rows:,} validation {rows} {what}; remove them from one side: they make "
                "results look better than they are."
            )
            yield Finding(kind, message, len(shared), places(valid, shared.tolist()))
