"""What `textcls train` prints about a training."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from textcls.display.terminal import label_set_evaluation
from textcls.display.terminal.console import table_of
from textcls.display.terminal.data_quality import label_count
from textcls.display.terminal.evaluation import label_table, score_line, top_k_line
from textcls.display.text import in_a_shell, listed, percent, plural
from textcls.evaluation.label_set_metrics import LabelSetReport
from textcls.evaluation.label_thresholds import Goal, resting_sentence
from textcls.evaluation.metrics import ClassificationReport
from textcls.evaluation.unknown_labels import names_of
from textcls.model.classifier import Classifier
from textcls_training.data.unlabelled import UnlabelledTexts
from textcls_training.distillation.report import DistillationReport
from textcls_training.fit.calibration import MIN_ROWS
from textcls_training.fit.columns.gains import LEAST_ROWS, ColumnGain
from textcls_training.pipeline.training_report import TrainReport

# How many texts are predicted to measure the time.
_TIMED: Final = 200
# The share of the labels' entropy that is left if a model has learned next to nothing.
NEXT_TO_NOTHING: Final = 0.98


def summarise(console: Console, report: TrainReport, output: Path) -> None:
    """Print what training found out, and the next command."""
    held = report.held_out
    labels = label_count([one.label for one in held.labels])
    counts = (plural(report.rows, "row"), labels, plural(report.epochs, "epoch"))
    machines = " One linear support vector machine per label." if report.trainer == "one-vs-rest" else ""
    console.print(f"Trained on {', '.join(counts)}.{machines}")
    if report.distillation is not None:
        _distilled(console, report.distillation)
    if held.rows:
        how = "Held out: " if report.folds == 1 else f"Cross-fitted in {report.folds} parts: "
        scores, tables = _shown(held)
        console.print(Text.assemble(how, scores, f" (before calibration {report.ece_before:.3f})"))
        console.print(*tables, sep="\n")
        if drawn := resting_sentence(report.threshold_rows or {}):
            console.print(drawn, soft_wrap=True, markup=False, highlight=False)
        for caution in [*_cautions(held), *_below(held, report.goal)]:
            console.print(caution, style="yellow", soft_wrap=True, markup=False, highlight=False)
    for line in _of_columns(report.columns, report.held_out_rows):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    if report.vectors is not None:
        console.print(
            f"{report.vectors.sentence()} To train without them: --vectors none.",
            soft_wrap=True,
            markup=False,
            highlight=False,
        )
    if report.gate is not None:
        console.print(f"The gate of the mixing layer ended at {report.gate:.2f}.")
    if not report.calibrated:
        rows = plural(report.held_out_rows, "validation row")
        console.print(
            f"Not calibrated: there were {rows}, and {MIN_ROWS} are needed. Until then scores say which answer is "
            "surer than another, not how often it is right.",
            style="yellow",
            soft_wrap=True,
        )
    if report.cannot_go_on is not None:
        why = f"No training can continue from the state of this one: {report.cannot_go_on}."
        console.print(why, style="yellow", soft_wrap=True, markup=False, highlight=False)
    size = f"{report.file_bytes / 1e6:.2f} MB"
    console.print(
        Text.assemble((str(output), "bold"), f', {size}. Next: textcls explain {in_a_shell(output)} "a text of yours"'),
        soft_wrap=True,
    )


def cost_line(given: UnlabelledTexts, classifier: Classifier) -> str:
    """Return a line with the cost of a thousand texts for the teacher, and for the student."""
    texts, costs = given.texts[:_TIMED], given.costs
    begun = perf_counter()
    for text in texts:
        classifier.predict(text)
    ours = 1000 * (perf_counter() - begun) / len(texts)
    took = [f"{1000 * costs.tokens / costs.answers:,.0f} tokens"]
    took += [f"{1000 * costs.seconds / costs.answers:,.0f} seconds"] if costs.seconds else []
    took += [f"${1000 * costs.dollars / costs.answers:,.2f}"] if costs.dollars else []
    return f"A thousand texts took {listed(took)} to answer, and take this model {ours:.2g} seconds here."


def _shown(held: ClassificationReport | LabelSetReport) -> tuple[Text, list[Table | Text]]:
    """Return a line of scores, and the tables of the labels."""
    if isinstance(held, LabelSetReport):
        return label_set_evaluation.score_line(held), list(label_set_evaluation.label_table(held))
    return score_line(held), [*top_k_line(held), *label_table(held)]


def _cautions(held: ClassificationReport | LabelSetReport) -> Iterator[str]:
    """Yield what held-out rows cannot show, and a caution if the model has learned little."""
    if said := _says_little(held):
        yield said
    if missing := [row.label for row in held.labels if not row.rows]:
        yield f"No validation row has {names_of(missing)}, so how well the model does there is unknown."


def _below(held: ClassificationReport | LabelSetReport, goal: Goal | None) -> Iterator[str]:
    """Yield which labels do not reach the goal of their thresholds."""
    if goal is None or not isinstance(held, LabelSetReport):
        return
    reached = {row.label: row.precision if goal.measure == "precision" else row.recall for row in held.labels}
    below = [row.label for row in held.labels if (row.rows or row.assigned) and reached[row.label] < goal.share]
    if below:
        does = "does" if len(below) == 1 else "do"
        yield (
            f"On held-out rows {names_of(below)} {does} not reach a {goal.measure} of {percent(goal.share, None)}: "
            "there are too few rows, or they say too little."
        )


def _says_little(held: ClassificationReport | LabelSetReport) -> str | None:
    """Return a sentence that a model has learned next to nothing: neither its answers nor its probabilities are better
    than the shares of the labels; None if they are.
    """
    if isinstance(held, LabelSetReport) or held.cross_entropy is None or held.rows < MIN_ROWS:
        return None
    most = max(held.labels, key=lambda label: label.rows)
    shares = [label.rows / held.rows for label in held.labels if label.rows]
    entropy = -sum(share * math.log(share) for share in shares)
    share = most.rows / held.rows
    by_chance = math.sqrt(share * (1 - share) / held.rows)
    if held.accuracy > share + by_chance or held.cross_entropy < NEXT_TO_NOTHING * entropy or len(shares) < 2:
        return None
    return (
        f"These answers are no better than {most.label!r} for every text, which is right in {percent(share)} of the "
        "rows: the texts say little about the labels, or more rows are needed."
    )


def _of_columns(gains: Sequence[ColumnGain], held_out_rows: int) -> Iterator[str]:
    """Yield which columns besides the text are read, and which bring nothing."""
    if gains and held_out_rows < LEAST_ROWS:
        yield f"Columns left out, because what they bring cannot be judged by {plural(held_out_rows, 'held-out row')}."
        return
    kept = [f"{gain.name} ({gain.nats:.3f})" for gain in gains if gain.kept]
    if kept:
        yield (
            f"Columns read beside the text, with what each takes off the cross-entropy of held-out rows: "
            f"{', '.join(kept)}."
        )
    if left_out := [gain.name for gain in gains if not gain.kept]:
        yield f"Columns left out, since held-out rows are answered as well without them: {', '.join(left_out)}."


def _distilled(console: Console, found: DistillationReport) -> None:
    """Print how many unlabelled texts the teacher answered, and the results on held-out rows."""
    copies = f", {found.copies:,} left out as duplicates of labelled ones" if found.copies else ""
    console.print(
        Text(f"Unlabelled: {plural(found.given, 'text')}{copies}; {found.used:,} labelled by {found.teacher}.")
    )
    if found.scores:
        table = table_of(["on held-out rows"], ["accuracy", "95% interval", "cross-entropy"])
        for score in found.scores:
            interval = f"{percent(score.low, 1)} to {percent(score.high, 1)}"
            table.add_row(score.name, percent(score.accuracy, 2), interval, f"{score.cross_entropy:.3f}")
        console.print(table)
    console.print(found.conclusion(), style="" if found.weight else "yellow")
