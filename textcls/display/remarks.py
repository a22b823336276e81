"""The sentences beside explanations, in the terminal and on pages alike."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from textcls.display.passages import passages
from textcls.display.text import MISSING, MOST_NAMED, listed, named, one_line, percent, plural, signed
from textcls.explain.clusters.agreement import Agreement
from textcls.explain.clusters.survey import Cluster, ClusterSurvey
from textcls.explain.column_changes import ColumnChange
from textcls.explain.counterfactual import MOST_CHANGES, Counterfactual, Search
from textcls.explain.exchanges import ExchangeReport
from textcls.explain.global_explanation.groups import GroupComparison, LabelDifference
from textcls.explain.global_explanation.summary import GlobalExplanation, LabelExplanation
from textcls.explain.shortcuts.audit import LEAST_TEXTS, Shortcut, ShortcutAudit
from textcls.explain.similar_rows import SimilarRows
from textcls.model.explanation import Attribution, Explanation, Spread
from textcls.model.prediction import Prediction, explanation_of
from textcls.model.prototypes import SupportWeight

# This many of the labels of a text are explained without being requested.
MOST_EXPLAINED: Final = 3
SHORTCUTS: Final = "Shortcuts: what gives a label away and is not part of what is said"
POSSIBLE: Final = "May be shortcuts, or part of what is said"
# Why something may not be a shortcut.
DOUBTS: Final = {
    "belongs": "fits its sentences",
    "alike": "texts of one subject",
    "few": "in few texts",
    "others": "other labels have it",
    "length": "lengths may belong",
}


def explained_labels(
    prediction: Prediction, label: str | None, against: str | None
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the labels whose explanation is shown, and the other assigned ones.

    This is the requested label, or else the answer, or the answer without the label or node it is compared with; with
    several labels per text, each assigned one, and if there are none, the most probable.
    """
    if label is not None:
        return [label], ()
    if not prediction.several:
        explanation = explanation_of(prediction)
        others = None if against is None else explanation.most_probable_outside(explanation.below(against))
        return [others or prediction.label], ()
    assigned = [name for name in prediction.assigned if name != against]
    return assigned[:MOST_EXPLAINED] or [prediction.label], assigned[MOST_EXPLAINED:]


def left_out_line(labels: Sequence[str]) -> str:
    """Return in one line which assigned labels are not explained."""
    return f"Assigned as well, and explained on request: {', '.join(map(named, labels))}."


def completeness_line(explanation: Explanation) -> str:
    """Return in one line that the contributions add up, and how exactly."""
    error = explanation.completeness_error
    columns = " + columns" if explanation.cells else ""
    return f"bias + {explanation.unit}s{columns} = logit, " + (f"to {error:.0e}" if error else "exactly")


def token_remarks(explanation: Explanation, attribution: Attribution, shown: int) -> list[str]:
    """Return the remarks under a table of the `shown` strongest tokens: what it covers, what is unknown."""
    found = []
    if shown < len(attribution.values):
        share = attribution.share(attribution.strongest(shown))
        carry = "carries" if shown == 1 else "carry"
        found.append(f"The {plural(shown, explanation.unit)} shown {carry} {percent(share)} of the evidence.")
    if nearest := explanation.nearest(attribution.label):
        found.append(f"Nearest to {named(attribution.label)}: {'; '.join(map(support_phrase, nearest))}.")
    if attribution.spread is not None:
        found.append(spread_line(attribution.label, attribution.spread))
    unknown = explanation.unknown
    if unknown:
        names = list(dict.fromkeys(named(token.text) for token in unknown))
        listed = ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED:,} more" * (len(names) > MOST_NAMED))
        evidence = f"{percent(attribution.share(~explanation.known))} of the evidence"
        if not attribution.values.any():
            evidence = "which add nothing"
        found.append(
            f"Unknown to the model: {listed} ({len(unknown):,} of {len(attribution.values):,} {explanation.unit}s, "
            f"{evidence})."
        )
    return found


def passages_line(explanation: Explanation, attribution: Attribution) -> str:
    """Return in one line what is shown first of a long text; nothing if all of it is shown."""
    parts = passages(explanation, attribution)
    if not parts:
        return ""
    tokens = np.concatenate([np.arange(first, behind) for first, behind in parts])
    return (
        f"The sentences that decide: {len(tokens):,} of {len(attribution.values):,} {explanation.unit}s, "
        f"{percent(attribution.share(tokens))} of the evidence."
    )


def spread_line(label: str, spread: Spread) -> str:
    """Return in one line how stable answer and signs are over several models of the same rows."""
    unsure = int((~spread.sure).sum())
    signs = (
        f"{unsure:,} of {len(spread.low):,} intervals contain zero, marked ?" if unsure else "no interval contains zero"
    )
    return (
        f"Over {spread.models} models: {spread.agreed} answer alike, {named(label)} "
        f"{percent(spread.lowest_score)} to {percent(spread.highest_score)}. A number lies between low and high in 95 "
        f"of 100 further ones; {signs}."
    )


def support_phrase(support: SupportWeight) -> str:
    """Return what a support row is, and its share in the prototype."""
    row = support.row
    what = f"{'example' if row.taught else 'training row'} {row.row:,}"
    what += f" and {row.rows - 1:,} like it" if row.rows > 1 else ""
    what += "" if row.text is None else f", {named(row.text)}"
    return f"{what} ({percent(support.weight)})"


def summary_line(report: GlobalExplanation) -> str:
    """Return in one line how many texts a global explanation is based on."""
    line = f"{plural(report.texts, 'text')}, {plural(report.tokens, 'token')}"
    if report.labelled:
        line += f", {percent(report.right / report.labelled, 2)} answered right"
        line += "" if report.labelled == report.texts else f" of {report.labelled:,} labelled"
    dropped = f" {report.dropped:,} rare words and pairs were dropped to bound memory." if report.dropped else ""
    return f"{line}.{dropped}"


def groups_lines(found: GroupComparison, first: str, second: str) -> list[str]:
    """Return which two groups are compared, and what is listed about them."""
    dropped = f" {found.dropped:,} rare words were dropped to bound memory." if found.dropped else ""
    groups = ((one_line(first), found.first), (one_line(second), found.second))
    one, other = (f"{name}, {plural(texts, 'text')}." for name, texts in groups)
    return [
        f"First: {one} Second: {other}",
        f"What a word adds to a text of the first in the mean, less what it adds to one of the second, of "
        f"{plural(found.words, 'word')} that stand in enough texts; what chance would give is left out.{dropped}",
    ]


def group_line(label: LabelDifference) -> str:
    """Return in one line the differences for a label."""
    return (
        f"answered in {percent(label.answered_first)} of the first and {percent(label.answered_second)} of the second; "
        f"all words together: {signed(label.difference)}"
    )


def groups_shown(found: GroupComparison) -> Sequence[LabelDifference]:
    """Return the labels with something of their own to show: of two labels the second mirrors the first."""
    return found.labels[:1] if found.mirrored else found.labels


def nothing_decides_line(report: GlobalExplanation) -> str:
    """Return the remark for the case that no word decides many answers."""
    share = percent(report.deciding_share, None)
    return f"No word alone decides more than {share} of a label's answers."


def shortcut_lines(audit: ShortcutAudit | None) -> list[str]:
    """Return what an audit could have found, preceded by that it found nothing if so; or why there is no audit."""
    if audit is None:
        return ["Shortcuts were not looked for."]
    if audit.texts < LEAST_TEXTS:
        are = "is" if audit.texts == 1 else "are"
        return [f"Shortcuts were not looked for: {plural(audit.texts, 'text')} {are} too few to find any."]
    if not audit.could_find:
        return ["Shortcuts were not looked for: all texts carry the same label, so that nothing can tell it."]
    of_all = "" if audit.texts == audit.of_texts else f", a sample of {audit.of_texts:,}"
    answers = "" if audit.labels_from == "file" else ", by the model's answers as most carry no label that it knows"
    which = "without a label that it knows" if audit.labels_from == "file" else "with labels that it knows"
    left_out = f", leaving out {audit.left_out:,} {which}" if audit.left_out else ""
    length = ", and at the length of texts" if audit.lengths else ""
    looked = (
        f"Examined {audit.terms:,} words, pairs and phrases of {audit.texts:,} texts{of_all}{answers}{left_out}"
        f"{length}; numbers count as themselves and as any number. A shortcut is found if it occurs in at least "
        f"{audit.least_texts:,} texts of a label and hardly in others, if nothing around it calls "
        "for it, as with signatures, names, tags and marks, and if it moves the model's answers. "
        "What is rarer, less typical of one label, misspelt in other ways than by two swapped letters, or part of what "
        "the texts say is not found."
    )
    first = reliance_line(audit.shortcuts[0]) if audit.shortcuts else "No shortcuts found."
    return [first, looked, _trial_line(audit)]


def _trial_line(audit: ShortcutAudit) -> str:
    """Return in one line how many made-up shortcuts would be found in these texts."""
    if not any(trial.found for trial in audit.trials):
        return (
            "Made-up names, pairs and numbers put into a copy of these texts, in up to a fifth of a label's, would not "
            "be found: the texts are too few or too similar."
        )
    found: dict[float, list[bool]] = {}
    for trial in audit.trials:
        found.setdefault(trial.share, []).append(trial.found)
    shares = [f"{sum(each):,} of {len(each):,} in {percent(share, None)}" for share, each in found.items()]
    return (
        "Of made-up names, pairs and numbers put into a copy of these texts it would find "
        f"{listed(shares)} of a label's texts."
    )


def possible_line(audit: ShortcutAudit | None) -> str:
    """Return in one line what may be a shortcut; nothing if there is none."""
    if audit is None or not audit.possible:
        return ""
    found = "; ".join(f"{named(one.text)} ({named(one.label)})" for one in audit.possible)
    return f"{POSSIBLE}, the likeliest first: {found}."


def reliance_line(found: Shortcut) -> str:
    """Return in a sentence what a shortcut does to answers, and what can be done about it."""
    label, words = named(found.label), f'"{named(found.text)}"'
    cases = f"are answered {label} in {found.put_in_changed:,} of {found.put_in:,} cases"
    if found.kind == "length":
        return f"Texts of other labels, made that long, {cases}. Will future texts have these lengths, too?"
    done = f"Texts of other labels, with {words} put in, {cases}"
    if found.taken_out:
        changed = f"{found.taken_out_changed:,} of {found.taken_out:,}"
        done += f"; its own, with {words} taken out, get another answer in {changed}"
    return f"{done}. Unless future texts have it, too, remove it from the training rows, and train again."


def reliance_phrase(found: Shortcut) -> str:
    """Return in a few words what a shortcut does to answers."""
    phrase = f"put into others {found.put_in_changed:,} of {found.put_in:,}"
    return phrase if not found.taken_out else f"{phrase}, taken out {found.taken_out_changed:,} of {found.taken_out:,}"


def change_line(search: Search) -> str:
    """Return in one line what would change the answer."""
    if search.found is None:
        away = "changes the answer" if search.node is None else f"takes it out of {named(search.node)}"
        does = away if search.against is None else f"would make it {named(search.against)}"
        return f"No small change of the text {does}."
    found = search.found
    would = _would(found, search)
    if search.unit == "sentence" or len(found.changes) > MOST_CHANGES:
        # Their places are shown below it.
        return f"Without {plural(len(found.changes), search.unit)}, {would}."
    left_out = [named(change.text) for change in found.changes if change.by is None]
    exchanged = [f"{named(c.by)} for {named(c.text)}" for c in found.changes if c.by is not None]
    ways = (("without", left_out), ("with", exchanged))
    how = " and ".join(f"{way} {listed(words)}" for way, words in ways if words)
    return f"{how[0].upper()}{how[1:]}, {would}."


def column_change_lines(search: Search) -> list[str]:
    """Return a line for each column whose other value would change the answer."""
    return [
        f"With {named(one.column)} = {named(one.by)}, not {named(one.value or MISSING)}, {_would(one, search)}."
        for one in search.columns
    ]


def _would(found: Counterfactual | ColumnChange, search: Search) -> str:
    before, score = f"{named(found.before)} would", percent(found.before_score)
    if not found.several:
        would = f"it would be {named(found.label)}, {percent(found.score)}"
        return would if search.node is None else f"{would}, and {before} get {score}"
    reached = f", and {named(found.label)} would, {percent(found.score)}"
    return f"{before} not be assigned, {score}{reached if found.label == search.against else ''}"


def search_line(search: Search) -> str:
    """Return in one line what was searched, and whether there is no smaller change."""
    smallest = search.found is not None and search.found.smallest
    end = "; there is no smaller one among them" if smallest else ""
    sentences = f", then {plural(search.sentences, 'whole sentence')}" if search.sentences else ""
    together = ", then the strongest together" if search.together else ""
    one_by_one = f", then {search.by}s one after another" if search.one_by_one else ""
    return (
        f"Tried: each of {plural(search.tokens, search.by)} by itself{together}{sentences}{one_by_one}, "
        f"{plural(search.asked, 'text')} in all{end}. "
        "It is what changes this model's answer, not what is true."
        + " It holds of the part that is read: the rest of the text does not move up."
        * search.cut
    )


def similar_line(found: SimilarRows) -> str:
    """Return in one line how many rows are like a text, and among how many they were found."""
    label = named(found.label)
    if not found.same and not found.other:
        return f"None of {plural(found.rows, 'row')} is like it."
    return (
        f"Of {plural(found.rows, 'row')} these are most like it by what their words add to {label}: "
        f"{len(found.same):,} of {label}, {len(found.other):,} of other labels."
    )


def exchange_line(report: ExchangeReport) -> str:
    """Return in one line what exchanged words do to answers."""
    if not report.exchanges:
        return f"None of the words to exchange occurs in {plural(report.texts, 'text')}."
    changed, asked = sum(one.changed for one in report.exchanges), sum(one.texts for one in report.exchanges)
    return f"Words exchanged: {changed:,} of {asked:,} answers change."


def absent_line(report: ExchangeReport) -> str:
    """Return in one line which words occur in no text."""
    names = [named(word) for word in report.absent]
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"In no text: {', '.join(names[:MOST_NAMED])}{more}."


def labels_shown(report: GlobalExplanation) -> Sequence[LabelExplanation]:
    """Return the labels with something of their own to show: what speaks for one of two speaks against the other."""
    return report.labels[:1] if report.mirrored else report.labels


def mirror_line(report: GlobalExplanation) -> str:
    """Return the remark on the second of two labels."""
    first, second = report.labels
    return (
        f"{named(second.label)}, {second.answers:,} answers: "
        f"what speaks for {named(first.label)} speaks against it, and the other way round."
    )


def cluster_summary_line(found: ClusterSurvey) -> str:
    """Return in one line how many texts are in how many clusters."""
    used = sum(cluster.texts > 0 for cluster in found.clusters)
    empty = len(found.clusters) - used
    line = f"{plural(found.texts, 'text')} in {plural(used, 'cluster')}"
    return (
        f"{line}; {empty:,} more of the model {'have' if empty > 1 else 'has'} none of them." if empty else f"{line}."
    )


def agreement_line(found: Agreement) -> str:
    """Return in one line how far clusters agree with labels."""
    return (
        f"Beside the {plural(found.labels, 'label')} of {plural(found.rows, 'row')}: accuracy "
        f"{percent(found.accuracy)} with each cluster matched to a label, NMI {found.nmi:.3f}, ARI {found.ari:.3f}."
    )


def telling_words(cluster: Cluster, most: int) -> list[str]:
    """Return what speaks for a cluster, the strongest first: its words, or pairs if words are single letters."""
    words = [term.text for term in cluster.words if len(term.text) > 1 and any(map(str.isalpha, term.text))]
    pairs = [term.text for term in cluster.pairs]
    spelt = [pair.replace(" ", "") for pair in pairs if all(len(word) == 1 and word.isalpha() for word in pair.split())]
    return (words if len(words) >= len(spelt) else spelt)[:most] or [term.text for term in cluster.words[:most]]
