"""What may be wrong with the labels of rows: their names, their number of rows, and which occur together."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import chain
from typing import Final

import numpy as np

from textcls.data.renaming import spelt_alike
from textcls.evaluation.data_quality import duplicates
from textcls.evaluation.data_quality.duplicates import Int64
from textcls.evaluation.data_quality.finding import Finding, first_of, places, plural
from textcls.evaluation.data_quality.joint_labels import JSON, joint_labels
from textcls.evaluation.data_quality.survey import NOTHING, Survey
from textcls.model.label_paths import LabelPaths, Path
from textcls.model.labels import BETWEEN_LEVELS, as_seen, plain_name

# Labels with fewer rows can hardly be learned or measured.
ENOUGH: Final = 5
# Labels are unbalanced at this ratio of rows.
UNBALANCED: Final = 99
# How many of the labels that occur together are named.
NAMED_TOGETHER: Final = 3
# A label is taken for a misspelling of another one that has this many times its rows and is this similar, as measured
# by `difflib`; with more labels than this, which are compared in pairs, none is.
FREQUENT: Final = 20
LIKENESS: Final = 0.85
MOST_COMPARED: Final = 300
# At most this many letters are wrong, missing or added; two swapped letters count as two.
MOST_SLIPPED: Final = 2
# What programs write if there is no label; "none" and "null" may be real labels.
NO_LABEL: Final = (NOTHING - {"none", "null"}) | {"#null!", "#div/0!", "#value!", "#ref!", "#name?", "#num!"}


def several_in_a_cell(survey: Survey) -> Iterator[Finding]:
    """Find labels that look like several in one."""
    joint = joint_labels(survey.labels)
    if joint is None:
        return
    cells = len(survey.labels)
    if survey.several:
        message = (
            f"Some labels look like several in one, separated by {joint.separator!r} ({cells:,} different ones, "
            f"{joint.labels:,} parts): is --label-separator {joint.separator!r} meant?"
        )
    elif joint.separator == JSON:
        message = (
            f"The label column looks like it holds lists of labels ({cells:,} different cells, {joint.labels:,} "
            "labels): use --label-separator json."
        )
    else:
        message = (
            f"The label column looks like it holds several labels per cell, separated by {joint.separator!r} "
            f"({cells:,} different cells, {joint.labels:,} labels): use --label-separator {joint.separator!r}."
        )
    yield Finding("several-in-a-cell", message, cells)


def conflicts(survey: Survey) -> Iterator[Finding]:
    """Find texts that occur more than once with different labels."""
    label = survey.label
    blank = set(survey.blank)
    odd = [g for g in duplicates.groups(survey.exact) if len(set(label[g].tolist())) > 1 and int(g[0]) not in blank]
    if odd:
        sets = sorted(survey.sets[i] for i in set(label[odd[0]].tolist()))
        a_row_each = all(len(names) <= 1 for names in survey.sets)
        more = " If each label of a text has its own row, use --merge-rows." if a_row_each else ""
        message = (
            f"{plural(len(odd), 'text stands', 'texts stand')} more than once with different labels, the first "
            f"with {' and '.join(_shown(names, survey.several) for names in sets[:2])}; decide on "
            f"{'the labels of' if survey.several else 'one label for'} each. As they are, nobody who sees only "
            f"{survey.seen} is right on more than {_at_most(1 - _beyond_reach(label, odd) / survey.rows)} of all "
            f"rows.{more}"
        )
        yield Finding("conflicting-copies", message, len(odd), places(survey, chain.from_iterable(odd)))


def _at_most(share: float) -> str:
    """Format a share that is below 1, so that it is never shown as 100 %."""
    return f"{share:.1%}" if share < 0.9995 else f"{min(share, 0.9999):.2%}"


def _beyond_reach(label: Int64, groups: Sequence[Int64]) -> int:
    """Return how many rows in groups with the same text have another label than the commonest of their group."""
    return sum(len(rows) - int(np.unique(label[rows], return_counts=True)[1].max()) for rows in groups)


def _shown(names: Sequence[str], several: bool) -> str:
    return f"[{first_of(list(map(repr, names)))}]" if several else repr(names[0])


def alike(survey: Survey) -> Iterator[Finding]:
    """Find labels that are written in different ways."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in survey.labels:
        found[plain_name(name)].append(name)
    for names in found.values():
        if len(names) > 1:
            same = len({*map(as_seen, names)}) == 1
            by = "signs that nobody sees" if same else "case, space, _, -, umlauts, leading zeros or .0"
            shown = " and ".join(f"{(ascii if same else repr)(name)} ({survey.labels[name]:,})" for name in names)
            # Does not apply to names that differ in _ and -, which may be two things.
            how = ", as --merge-labels does" if len(spelt_alike(names)) == len(names) - 1 else ""
            message = f"The labels {shown} differ only by {by}; write them the same way if they mean the same{how}."
            yield Finding("alike-labels", message, len(names), places(survey, _first_rows(survey, names)))
    yield from _alike_levels(survey)


def _alike_levels(survey: Survey) -> Iterator[Finding]:
    """Find levels above labels that are written in different ways, under the same parent."""
    labels = list(survey.labels)
    tree = None if survey.several else LabelPaths.of(labels, "")
    if tree is None:
        return
    found: defaultdict[tuple[Path, str], list[str]] = defaultdict(list)
    for node in dict.fromkeys(node for level in range(1, tree.depth + 1) for node in tree.nodes(level)):
        found[node[:-1], plain_name(node[-1])].append(tree.name(node))
    for nodes in found.values():
        # If all of them are labels, that has already been reported.
        if len(nodes) > 1 and not all(node in survey.labels for node in nodes):
            below = {node: [labels[i] for i in tree.below(node)] for node in nodes}
            rows = [f"{node!r} ({sum(survey.labels[one] for one in ones):,})" for node, ones in below.items()]
            message = f"The levels {' and '.join(rows)} look like spellings of one; write them the same way if so."
            first = _first_rows(survey, [ones[0] for ones in below.values()])
            yield Finding("alike-labels", message, len(nodes), places(survey, first))


def misspelt(survey: Survey) -> Iterator[Finding]:
    """Find rare labels that look like a typing error in another one."""
    if len(survey.labels) > MOST_COMPARED:
        return
    slips = {}
    for name, rows in survey.labels.items():
        likely = [one for one, others in survey.labels.items() if others >= FREQUENT * max(rows, 1)]
        meant = get_close_matches(name, likely, 1, LIKENESS)
        if meant and _is_slip(name, meant[0]):
            slips[name] = meant[0]
    if slips:
        pairs = [
            f"{name!r} ({survey.labels[name]:,}) like {one!r} ({survey.labels[one]:,})" for name, one in slips.items()
        ]
        message = f"Labels that look misspelt: {first_of(pairs)}; correct them, or name them in a --label-map."
        yield Finding("misspelt-labels", message, len(slips), places(survey, _first_rows(survey, list(slips))))


def _is_slip(name: str, meant: str) -> bool:
    """Return whether a name differs from another by a typing error, and not by a number, a prefix or case."""
    if re.search(r"\d", name + meant) or name in meant or meant in name or plain_name(name) == plain_name(meant):
        return False
    steps = SequenceMatcher(None, name, meant).get_opcodes()
    return sum(max(b - a, d - c) for kind, a, b, c, d in steps if kind != "equal") <= MOST_SLIPPED


def placeholders(survey: Survey) -> Iterator[Finding]:
    """Find labels that programs write if there is none."""
    names = [
        name for name in survey.labels if any(part.lower() in NO_LABEL for part in (name, *name.split(BETWEEN_LEVELS)))
    ]
    if names:
        shown = first_of([f"{name!r} ({survey.labels[name]:,})" for name in names])
        message = f"{shown}: what programs write where there is no label; fill in or remove these rows."
        yield Finding("no-label", message, len(names), places(survey, _first_rows(survey, names)))


def rare(survey: Survey) -> Iterator[Finding]:
    """Find labels with hardly any rows."""
    none = [repr(name) for name, rows in survey.labels.items() if rows == 0]
    if none:
        have, them = plural(len(none), "label has", "labels have"), "it" if len(none) == 1 else "them"
        yield Finding("no-example", f"{have} no row: {first_of(none)}; add examples, or leave {them} out.", len(none))
    single = [name for name, rows in survey.labels.items() if rows == 1]
    if single:
        them = "it" if len(single) == 1 else "them"
        message = (
            f"{plural(len(single), 'label has', 'labels have')} a single row: {first_of(list(map(repr, single)))}; "
            f"add examples, or merge {them} into another."
        )
        yield Finding("single-example", message, len(single), places(survey, _first_rows(survey, single)))
    few = [name for name, rows in survey.labels.items() if 1 < rows < ENOUGH]
    if few:
        shown = [f"{name!r} ({survey.labels[name]})" for name in few]
        message = (
            f"{plural(len(few), 'label has', 'labels have')} under {ENOUGH} rows: {first_of(shown)}; add "
            "examples: so few rows teach little and cannot be measured."
        )
        yield Finding("few-examples", message, len(few), places(survey, _first_rows(survey, few)))


def _first_rows(survey: Survey, names: Sequence[str]) -> Iterator[int]:
    return (int(rows[0]) for name in names if len(rows := survey.rows_of(name)))


def unbalanced(survey: Survey) -> Iterator[Finding]:
    """Find labels that have nearly all rows, or nearly none, other than those with hardly any rows."""
    counts = {name: rows for name, rows in survey.labels.items() if rows >= ENOUGH}
    if not survey.several:
        most, least = (choose(counts, key=counts.__getitem__, default="") for choose in (max, min))
        if counts and counts[most] >= UNBALANCED * counts[least]:
            message = (
                f"{most!r} has {counts[most]:,} rows and {least!r} {counts[least]:,}, {UNBALANCED} to 1 or more; "
                "if the rare label matters, look at its own results, and try --class-weight balanced."
            )
            yield Finding("unbalanced-labels", message, 2)
        return
    common = [name for name, rows in counts.items() if rows >= UNBALANCED * (survey.rows - rows)]
    if common:
        shown = first_of([f"{name!r} ({counts[name]:,} of {survey.rows:,})" for name in common])
        message = f"{plural(len(common), 'label is', 'labels are')} on nearly every row, and so says little: {shown}."
        yield Finding("unbalanced-labels", message, len(common))
    scarce = [name for name, rows in counts.items() if survey.rows - rows >= UNBALANCED * rows]
    if scarce:
        shown = first_of([f"{name!r} ({counts[name]:,})" for name in sorted(scarce, key=counts.__getitem__)])
        message = (
            f"{len(scarce):,} of {plural(len(survey.labels), 'label', 'labels')} "
            f"{'is' if len(scarce) == 1 else 'are'} on one row of {UNBALANCED + 1} or fewer: {shown}; if they "
            "matter, look at their own results: weights rank rare labels worse where a row may have several."
        )
        yield Finding("unbalanced-labels", message, len(scarce))


def together(survey: Survey) -> Iterator[Finding]:
    """Find pairs of labels that never occur without each other."""
    if not survey.several:
        return
    where: defaultdict[str, list[int]] = defaultdict(list)
    for i, names in enumerate(survey.sets):
        for name in names:
            where[name].append(i)
    same: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, sets in where.items():
        if survey.labels[name] >= ENOUGH:
            same[tuple(sets)].append(name)
    groups = [names for names in same.values() if len(names) > 1]
    if groups:
        first = groups[0]
        shown = f"{' and '.join(map(repr, first[:NAMED_TOGETHER]))} ({survey.labels[first[0]]:,} rows)"
        others = f", and so do {plural(len(groups) - 1, 'other group', 'other groups')}" if len(groups) > 1 else ""
        message = f"The labels {shown} always occur together{others}; merge them if they mean the same."
        yield Finding("labels-together", message, len(groups), places(survey, survey.rows_of(first[0]).tolist()))


def weights(survey: Survey) -> Iterator[Finding]:
    """Find weights that have no effect."""
    if survey.lightest != survey.heaviest or survey.heaviest == 1:
        return
    if survey.heaviest == 0:
        message = "All weights are 0, so no row counts; is this the right weight column?"
    else:
        message = f"All weights are {survey.heaviest:g}, which has no effect; is this the right weight column?"
    yield Finding("equal-weights", message, survey.rows)
