"""What has changed since a training, for the terminal."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from textcls.display.report_lines import interval
from textcls.display.terminal.console import table_of
from textcls.display.terminal.evaluation import learned_warning
from textcls.display.text import named, percent, plural
from textcls.evaluation.drift.distance import MUCH, SLIGHT
from textcls.evaluation.drift.drift import LABELS_TO_TELL, Drift
from textcls.evaluation.drift.expected_accuracy import LEAST_HELD_OUT
from textcls.evaluation.drift.summary import LEAST_OF_SET, MOST_LABELS
from textcls.evaluation.drift.tally import LABELS as OF_LABELS
from textcls.evaluation.intervals import CHANCE
from textcls.evaluation.unknown_labels import never_assigned_sentence, unknown_labels_sentence

LABELS, WORDS = 10, 15


def drift_report(found: Drift) -> Iterator[Table | Text]:
    """Yield the accuracy to expect, the distances, and what labels and words have changed."""
    yield from _label_sets(found) if found.several else _accuracy(found)
    yield from learned_warning(found.learned)
    yield Text()
    yield _distances(found)
    compared = OF_LABELS in found.distances
    if found.several and found.held_out.accuracy is None:
        yield Text(
            "Labels are not compared: their thresholds were changed after the training, and held-out rows do not say "
            "what these assign."
        )
    elif found.several and not compared:
        yield Text(
            "Label sets cannot be compared: none was assigned to as many as "
            f"{plural(LEAST_OF_SET, 'held-out row')} of the training; see the shares of the labels."
        )
    if not found.several and not compared:
        yield Text(f"Labels cannot be compared: of more than {MOST_LABELS} the model file keeps no counts.")
    yield _verdict(found)
    yield from _labels(found)
    if found.columns:
        yield from _columns(found)
    yield from _words(found)


def _accuracy(found: Drift) -> Iterator[Text]:
    held_out = (
        f"{percent(found.held_out.accuracy or 0)} on {plural(found.held_out.rows, 'held-out row')} of the training"
    )
    if found.expected_accuracy is None:
        yield Text(
            f"{plural(found.rows, 'row')}   The accuracy to expect is unknown: the training held out "
            f"{plural(found.held_out.rows, 'row')}, and {LEAST_HELD_OUT} are needed."
        )
    else:
        yield Text.assemble(
            f"{plural(found.rows, 'row')}   expected accuracy ",
            (percent(found.expected_accuracy.value), "bold"),
            f" ({interval(found.expected_accuracy)}), after {held_out}",
        )
    if found.accuracy is not None:
        yield Text.assemble(
            f"{plural(found.labelled, 'row')} with a label: real accuracy ",
            (percent(found.accuracy.value), "bold"),
            f" ({interval(found.accuracy)})",
        )
        if found.unknown_labels:
            known = [one.label for one in found.labels]
            yield Text(unknown_labels_sentence(found.unknown_labels, known), style="yellow")
    elif found.expected_accuracy is not None:
        yield Text(
            "It is estimated from scores: only labels can show that the same words have come to mean another label.",
            style="dim",
        )
    if found.is_of_another_kind and found.expected_accuracy is not None and found.accuracy is None:
        yield Text(
            "The texts are of another kind than those of the training, and scores say little about such texts, so the "
            f"interval is wide. The labels of {LABELS_TO_TELL} rows drawn at random (textcls suggest --at-random) "
            "would give the accuracy to within 5 points."
        )


def _label_sets(found: Drift) -> Iterator[Text]:
    then, now = found.labels_a_text
    after = "" if then is None else f", after {then:.2f}"
    if found.held_out.accuracy is not None:
        after += f" on {plural(found.held_out.rows, 'held-out row')} of the training, of which "
        after += f"{percent(found.held_out.accuracy)} were assigned all their labels and no other"
    yield Text.assemble(f"{plural(found.rows, 'row')}   labels a row ", (f"{now:.2f}", "bold"), after)
    if found.accuracy is None:
        yield Text(
            "Without labels, it is unknown how good the answers are if a text may have several: probabilities of "
            "labels do not say which occur together.",
            style="dim",
        )
        return
    yield Text.assemble(
        f"{plural(found.labelled, 'row')} with labels: ",
        (percent(found.accuracy.value), "bold"),
        f" are assigned all of them and no other ({interval(found.accuracy)}); textcls report says more about them",
    )
    if found.unknown_labels:
        known = [one.label for one in found.labels]
        yield Text(never_assigned_sentence(found.unknown_labels, known), style="yellow")


def _distances(found: Drift) -> Table:
    table = table_of(["distance (PSI)"], ["now", "by chance up to", "rows then", "rows now"])
    for name, one in found.distances.items():
        figure = Text(f"{one.psi:.3f}", style="bold" if one.is_sure else "")
        table.add_row(name, figure, f"{one.by_chance:.3f}", f"{one.before:,}", f"{one.now:,}")
    return table


def _verdict(found: Drift) -> Text:
    changed = [f"{name}{' much' * (one.psi >= MUCH)}" for name, one in found.distances.items() if one.is_sure]
    changed += [f"column {named(one.name)}{' much' * (one.lost >= MUCH)}" for one in found.columns if one.lost > SLIGHT]
    verdict = Text()
    if changed:
        verdict.append(f"Changed: {', '.join(changed)}.", style="bold")
    else:
        verdict.append(f"No distance is beyond both chance and {SLIGHT:g}, below which changes are slight.")
        if beyond := [name for name, one in found.distances.items() if one.p_value < CHANCE]:
            verdict.append(f" Beyond chance alone: {', '.join(beyond)}.")
    if found.unknown is not None:
        now, before = percent(found.unknown.now), percent(found.unknown.before)
        style = "bold" if found.unknown.is_sure else ""
        verdict.append(f" {now} of the tokens are unknown to the model; {before} were to be expected.", style=style)
    return verdict


def _labels(found: Drift) -> Iterator[Table | Text]:
    yield Text()
    table = table_of(["answers"], ["then", "now"])
    for label in found.labels[:LABELS]:
        then = "" if label.before is None else percent(label.before)
        table.add_row(Text(named(label.label)), then, percent(label.now))
    yield table
    if len(found.labels) > LABELS:
        what = "are the most frequent" if found.held_out.labels is None else "changed most"
        yield Text(f"Of {len(found.labels):,} labels these {what}; --json has all.", style="dim")


def _columns(found: Drift) -> Iterator[Table | Text]:
    yield Text()
    table = table_of(["columns"], ["missing then", "now", "new or out of range"])
    for column in found.columns:
        shares = (column.missing_before, column.missing, column.strange)
        table.add_row(Text(named(column.name)), *map(percent, shares))
    yield table


def _words(found: Drift) -> Iterator[Table | Text]:
    yield Text()
    if not found.words:
        more = (
            "No word is more frequent than by chance." if found.against_texts else "No unknown word occurs in two rows."
        )
        yield Text(more)
        return
    head = "words more frequent than before" if found.against_texts else "unknown words"
    table = table_of([head], ["rows", "now", *(("then", "") if found.against_texts else ())])
    for word in found.words[:WORDS]:
        then = () if word.before is None else (percent(word.before), "" if word.known else "unknown")
        table.add_row(Text(named(word.word)), f"{word.texts:,}", percent(word.share), *then)
    yield table
    if not found.against_texts:
        yield Text("--before with rows of the training also shows which known words are more frequent.", style="dim")
