"""What may be wrong with labelled rows: each finding in one sentence, with its first rows and what to do."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, groupby
from typing import Any, Final

import numpy as np

from textcls.data_quality import duplicates
from textcls.data_quality.survey import Survey
from textcls.features import MAX_TOKENS

# How many rows a finding names.
NAMED: Final = 5
# Texts of which so many are numbers or keys, nearly all different, are hardly texts; few rows say nothing.
CODES: Final = 0.9
FEW: Final = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that may be wrong.

    Attributes:
        kind: a short name, for programs.
        message: what it is and what to do, in a sentence.
        count: how many rows or labels it concerns.
        rows: where the first of them stand.
    """

    kind: str
    message: str
    count: int
    rows: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.message} {_lines(self.rows)}." if self.rows else self.message

    def as_json(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return asdict(self)


def _lines(rows: Sequence[str]) -> str:
    """Name the rows in few words: the file once for all that stand in it."""
    found = []
    for place, group in groupby((row.rpartition(" ") for row in rows), key=lambda parts: parts[0]):
        numbers = [number for _, _, number in group]
        found.append(f"{place}{'s' * (len(numbers) > 1)} {', '.join(numbers)}")
    return "See " + "; ".join(found)


def find(survey: Survey, valid: Survey | None = None) -> list[Finding]:
    """Return what may be wrong with the rows of `survey`, and with those of `valid` beside them."""
    checks: tuple[Callable[[Survey], Iterator[Finding]], ...] = (
        _suspicious_columns,
        _untrainable,
        _blank,
        _long,
        _conflicts,
        _copies,
        _alike_labels,
        _rare_labels,
    )
    found = [finding for check in checks for finding in check(survey)]
    return [*found, *_beside(survey, valid)] if valid is not None else found


def _places(survey: Survey, rows: Iterable[int]) -> tuple[str, ...]:
    return tuple(survey.places[int(i)] for _, i in zip(range(NAMED), rows, strict=False))


def _plural(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _suspicious_columns(survey: Survey) -> Iterator[Finding]:
    different = len(np.unique(survey.exact))
    if survey.rows > 1 and different == 1:
        yield Finding("constant-text", "All texts are the same; is the text column the right one?", survey.rows)
    elif survey.rows >= FEW and survey.codes >= CODES * survey.rows and different >= CODES * survey.rows:
        message = (
            f"{_plural(survey.codes, 'text is', 'texts are')} a number or a key; is the text column the right one?"
        )
        yield Finding("codes-as-texts", message, survey.codes, _places(survey, range(survey.rows)))
    if survey.rows >= FEW and 2 * len(survey.labels) > survey.rows:
        message = f"{survey.rows:,} rows have {len(survey.labels):,} labels; is the label column the right one?"
        yield Finding("many-labels", message, len(survey.labels))


def _untrainable(survey: Survey) -> Iterator[Finding]:
    if len(survey.labels) == 1:
        (name,) = survey.labels
        message = f"All rows have the label {name!r}; train needs at least two labels."
        yield Finding("one-label", message, survey.rows)
    if len(survey.blank) == survey.rows:
        message = "No text holds a single word or sign, so train will refuse them; is the text column the right one?"
        yield Finding("no-words", message, survey.rows)


def _long(survey: Survey) -> Iterator[Finding]:
    long = np.flatnonzero(survey.tokens > MAX_TOKENS)
    if len(long):
        message = (
            f"{_plural(len(long), 'text is', 'texts are')} longer than the {MAX_TOKENS:,} tokens that a model reads by "
            "default; the rest is cut: split them, or train with more --max-tokens."
        )
        yield Finding("long-texts", message, len(long), _places(survey, long.tolist()))


def _blank(survey: Survey) -> Iterator[Finding]:
    if survey.blank:
        count = len(survey.blank)
        message = f"{_plural(count, 'text is', 'texts are')} empty; fill or remove the row{'s' * (count > 1)}."
        yield Finding("empty-text", message, count, _places(survey, survey.blank))


def _conflicts(survey: Survey) -> Iterator[Finding]:
    label = survey.label
    blank = set(survey.blank)
    odd = [g for g in duplicates.groups(survey.exact) if len(set(label[g].tolist())) > 1 and int(g[0]) not in blank]
    if odd:
        names = sorted(survey.names[i] for i in set(label[odd[0]].tolist()))
        message = (
            f"{_plural(len(odd), 'text stands', 'texts stand')} there more than once with different labels, "
            f"the first with {' and '.join(map(repr, names[:2]))}; decide on one label for each."
        )
        yield Finding("conflicting-copies", message, len(odd), _places(survey, chain.from_iterable(odd)))


def _copies(survey: Survey) -> Iterator[Finding]:
    blank = set(survey.blank)
    same = [int(i) for group in duplicates.groups(survey.exact) for i in group[1:] if int(i) not in blank]
    if same:
        message = (
            f"{_plural(len(same), 'row is a copy', 'rows are copies')} of an earlier text; "
            "remove what was not said twice, since copies count double."
        )
        yield Finding("copies", message, len(same), _places(survey, sorted(same)))
    known = {*same, *blank}
    nearly = [int(i) for group in duplicates.groups(survey.near) for i in group[1:] if int(i) not in known]
    if nearly:
        message = (
            f"{_plural(len(nearly), 'row is a near copy', 'rows are near copies')} of an earlier text, "
            f"{duplicates.DEFINITION}; remove what was not said twice."
        )
        yield Finding("near-copies", message, len(nearly), _places(survey, sorted(nearly)))


def _alike_labels(survey: Survey) -> Iterator[Finding]:
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in survey.labels:
        alike["".join(name.casefold().split())].append(name)
    for names in alike.values():
        if len(names) > 1:
            shown = " and ".join(f"{name!r} ({survey.labels[name]:,})" for name in names)
            first = (_first_row(survey, name) for name in names)
            message = f"The labels {shown} differ only by case or space; write them alike if they are one."
            yield Finding("alike-labels", message, len(names), _places(survey, first))


def _first_row(survey: Survey, name: str) -> int:
    return int(np.argmax(survey.label == survey.names.index(name)))


def _rare_labels(survey: Survey) -> Iterator[Finding]:
    rare = [name for name, rows in survey.labels.items() if rows == 1]
    if rare:
        shown = ", ".join(map(repr, rare[:NAMED])) + (", ..." if len(rare) > NAMED else "")
        message = (
            f"{_plural(len(rare), 'label has', 'labels have')} a single row: {shown}; "
            "add examples, or merge it into another."
        )
        yield Finding("single-example", message, len(rare), _places(survey, (_first_row(survey, n) for n in rare)))


def _beside(survey: Survey, valid: Survey) -> Iterator[Finding]:
    unseen: Sequence[str] = [name for name in valid.labels if name not in survey.labels]
    if unseen:
        shown = ", ".join(map(repr, unseen[:NAMED])) + (", ..." if len(unseen) > NAMED else "")
        message = (
            f"No training row has what validation rows have as a label: {shown}; add examples or correct the label."
        )
        yield Finding("unseen-label", message, len(unseen), _places(valid, (_first_row(valid, n) for n in unseen)))
    for kind, what, ours, theirs in (
        ("valid-copies", "stand among the training rows, too", survey.exact, valid.exact),
        ("valid-near-copies", f"stand there, too, {duplicates.DEFINITION}", survey.near, valid.near),
    ):
        shared = np.flatnonzero(np.isin(theirs, ours))
        if kind == "valid-near-copies":
            shared = shared[~np.isin(valid.exact[shared], survey.exact)]
        if len(shared):
            message = (
                f"{len(shared):,} of {valid.rows:,} validation texts {what}; remove them on one side: they flatter."
            )
            yield Finding(kind, message, len(shared), _places(valid, shared.tolist()))
