"""Train textcls and its peers on data sets, in one run, and write the comparison.

    pip install -r benchmarks/requirements.txt
    python benchmarks/compare.py DATA/sst2 DATA/trec6
    python benchmarks/compare.py DATA --output results --check benchmarks/results.json

DATA is a folder with train.csv and test.csv (columns text, label), or a folder of such folders. textcls runs as a
person runs it: the default command, in a process of its own, import and export counted. Each peer has a process of its
own, too; its seconds are those of fitting and saving. A second run goes on where the first one stopped.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import click

from cell import measure
from common import FOLDERS, OURS, ROOT, about, count_rows, data_sets, headline
from measure import Figures
from peers import PEERS
from runner import markdown_table, mean_and_spread
from state import RESTART, Cell, State, resume

# From here on one seed: a training takes minutes, and the test set is large enough to tell.
MANY_ROWS = 20_000
SUMMARY = (
    "set", "rows", "labels", "textcls", "best peer", "its accuracy", "difference", "macro-F1", "ECE / floor",
    "at 90 %", "seconds (ratio)", "MB",
)  # fmt: skip
FULL = (
    "set", "model", "accuracy", "macro-F1", "ECE / floor", "at 90 %", "seconds", "peak MB", "us alone", "us in 64",
    "MB",
)  # fmt: skip
NOTES = """\
Accuracy, macro-F1 and the accuracy on the 90 % of the test rows that a model is surest of are in percent. textcls: mean
over its seeds, ± their standard deviation. ECE: expected calibration error in 15 bins, where a model gives
probabilities; floor: what a perfectly calibrated model with the same confidences would show on as many rows. Seconds:
of textcls the whole command, of the peers fitting and saving; ratio: to the best peer's. Peak MB: largest resident
memory of the training process. us: microseconds a text, one thread, asked alone (textcls with label and attributions,
the peers with the label) and in batches of 64 (labels only). MB: the saved model.
"""


def cells(sets: dict[str, Path], seeds: int) -> list[Cell]:
    """Return what is to be measured; `seeds` trainings of textcls on small sets, and one of each peer."""
    found = []
    for name, folder in sets.items():
        ours = range(seeds if count_rows(folder / "train.csv") < MANY_ROWS else 1)
        found += [Cell(name, OURS, seed) for seed in ours] + [Cell(name, peer) for peer in PEERS]
    return found


def by_set(state: State) -> dict[str, dict[str, list[Figures]]]:
    """Return the figures by data set and model, a list over the seeds."""
    found: dict[str, dict[str, list[Figures]]] = {}
    for cell, figures in state.measured():
        found.setdefault(cell.set, {}).setdefault(cell.model, []).append(figures)
    return found


def average(runs: Sequence[Figures]) -> Figures:
    """Return the mean of each figure over the seeds."""
    return {name: mean(run[name] for run in runs) for name in runs[0]}


def calibration(row: Figures) -> str:
    """Return calibration error and floor, or a dash for a model without probabilities."""
    return f"{row['ece']:.3f} / {row['ece_floor']:.3f}" if "ece" in row else "-"


def summary(results: dict[str, dict[str, list[Figures]]]) -> list[str]:
    """Return the lines of the table of textcls against the best peer of each set, and of the mean difference."""
    rows, differences = [], []
    for name, models in results.items():
        peers = {model: average(runs) for model, runs in models.items() if model != OURS}
        if OURS not in models or not peers:
            continue
        ours, best = average(models[OURS]), max(peers, key=lambda model: peers[model]["accuracy"])
        theirs = peers[best]
        differences.append(ours["accuracy"] - theirs["accuracy"])
        rows.append((
            name, f"{ours['train_rows']:,.0f}", f"{ours['labels']:.0f}",
            mean_and_spread([run["accuracy"] for run in models[OURS]]), best, f"{theirs['accuracy']:.2f}",
            f"{differences[-1]:+.2f}", f"{ours['macro_f1']:.2f}", calibration(ours), f"{ours['accuracy_90']:.2f}",
            f"{ours['train_s']:.1f} ({ours['train_s'] / theirs['train_s']:.1f})", f"{ours['mb']:.1f}",
        ))  # fmt: skip
    if not rows:
        return ["No set has both textcls and a peer."]
    reached = sum(round(difference, 6) >= 0 for difference in differences)  # a mean of seeds is exact to 1e-14 or so
    last = (
        f"Mean difference to the best peer {mean(differences):+.2f}; at or above it on {reached} of {len(rows)} sets."
    )
    return [*markdown_table(SUMMARY, rows), "", last]


def full(results: dict[str, dict[str, list[Figures]]]) -> list[str]:
    """Return the lines of the table of every model."""
    rows = []
    for name, models in results.items():
        for model, runs in models.items():
            row = average(runs)
            accuracy = mean_and_spread([run["accuracy"] for run in runs])
            numbers = (row["train_s"], row["peak_mb"], row["alone_us"], row["batch_us"], row["mb"])
            shown = [format(number, f",.{digits}f") for number, digits in zip(numbers, (2, 0, 0, 0, 1), strict=True)]
            rows.append(
                (name, model, accuracy, f"{row['macro_f1']:.2f}", calibration(row), f"{row['accuracy_90']:.2f}", *shown)
            )
    return markdown_table(FULL, rows)


def report(state: State) -> str:
    """Return the Markdown: where and when, the summary, every figure, what failed."""
    results = by_set(state)
    lines = [headline(state.about), "", *summary(results), "", *full(results), *state.failures()]
    return "\n".join([*lines, "", NOTES])


def compare_accuracies(now: State, earlier: State) -> tuple[bool, str]:
    """Return whether all trainings of textcls that both runs hold have exactly the same accuracy, and a verdict."""
    shared = [cell for cell in now.figures if cell.ours and cell in earlier.figures]
    commit = earlier.about["commit"]
    pairs = {cell: (earlier.figures[cell]["accuracy"], now.figures[cell]["accuracy"]) for cell in shared}
    changed = [f"- {cell}: {was} then, {is_} now" for cell, (was, is_) in pairs.items() if was != is_]
    if not shared:
        return False, f"No training of textcls is in both this run and that of commit {commit}."
    if not changed:
        return True, f"The accuracies of all {len(shared)} trainings of textcls equal those of commit {commit} exactly."
    verdict = f"{len(changed)} of {len(shared)} accuracies of textcls differ from those of commit {commit}:"
    return False, "\n".join([verdict, *changed])


@click.command()
@FOLDERS
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "results",
    type=click.Path(path_type=Path),
    help="Without suffix; .json and .md are written.  [default: benchmarks/results]",
)
@click.option(
    "--seeds", default=3, show_default=True, type=click.IntRange(1), help=f"Trainings below {MANY_ROWS:,} rows."
)
@RESTART
@click.option(
    "--check",
    "previous",
    metavar="PREVIOUS.json",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Say whether the accuracies of textcls equal those of an earlier run; exit 1 if not.",
)
def main(data: tuple[Path, ...], output: Path, seeds: int, restart: bool, previous: Path | None) -> None:
    """Compare textcls with its peers on the data sets in DATA."""
    earlier = State.load(previous) if previous else None
    sets, saved = data_sets(data), output.with_name(output.name + ".json")
    state = resume(saved, about(), restart)
    state.run(cells(sets, seeds), lambda cell: measure(sets[cell.set], cell), saved)
    markdown = report(state)
    output.with_name(output.name + ".md").write_text(markdown, encoding="utf-8")
    click.echo(markdown)
    same = True
    if earlier:
        same, verdict = compare_accuracies(state, earlier)
        click.echo(verdict)
    sys.exit(0 if same and not state.errors else 1)


if __name__ == "__main__":
    main()
