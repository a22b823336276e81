"""How textcls and its peers learn from few rows, and what accuracy costs in megabytes and microseconds.

    pip install -r benchmarks/requirements.txt
    python benchmarks/curves.py DATA/sst2 DATA/trec6

DATA is as for compare.py. Learning curves: nested, stratified subsets of the training rows, each written to a file and
trained on by the default command. Frontier: `textcls train --size SIZE` on all rows, beside the peers. Written are
.json, .md, _learning.svg and _frontier.svg. A second run goes on where the first one stopped.
"""

import sys
from pathlib import Path
from statistics import mean

import click

from cell import measure
from common import FOLDERS, OURS, ROOT, about, count_rows, data_sets, headline
from measure import Figures
from peers import PEERS
from runner import markdown_table, mean_and_spread
from state import RESTART, Cell, State, resume

SIZES = (100, 300, 1_000, 3_000)
SUBSETS = 3
# From here on one subset: there is little left to chance.
MANY_ROWS = 3_000

Curve = dict[int, list[float]]
FRONTIER = ("set", "model", "accuracy", "MB", "us alone", "us in 64", "seconds")
NOTES = """\
Accuracy on the whole test set in percent; below 3,000 rows the mean over three subsets, ± their standard deviation. MB:
the saved model. us: microseconds a text, one thread, asked alone (textcls with label and attributions, the peers with
the label) and in batches of 64 (labels only). Seconds: of textcls the whole command, of the peers fitting and saving.
"""


def sized(size: str) -> str:
    """Return the name of textcls in one of its sizes, which is also its command."""
    return f"{OURS} --size {size}"


def learning_cells(name: str, rows: int) -> list[Cell]:
    """Return the cells of the learning curves on the set `name` with that many training `rows`."""
    sizes = [size for size in SIZES if size < rows]
    subsets = [(size, seed) for size in sizes for seed in range(SUBSETS if size < MANY_ROWS else 1)]
    return [Cell(name, model, seed, size) for size, seed in [*subsets, (None, 0)] for model in (OURS, *PEERS)]


def curves(state: State) -> dict[str, dict[str, Curve]]:
    """Return the accuracies by data set, model and number of rows, a list over the subsets."""
    found: dict[str, dict[str, Curve]] = {}
    for cell, figures in state.measured():
        if cell.model == OURS or not cell.ours:
            curve = found.setdefault(cell.set, {}).setdefault(cell.model, {})
            curve.setdefault(int(figures["train_rows"]), []).append(figures["accuracy"])
    return found


def frontier(state: State) -> dict[str, dict[str, Figures]]:
    """Return the figures of all models trained on all rows, by data set and model; of textcls in its sizes.

    Where no size was measured, textcls stands there as it is by default.
    """
    in_sizes = {cell.set for cell in state.figures if cell.ours and cell.model != OURS}
    found: dict[str, dict[str, Figures]] = {}
    for cell, figures in state.measured():
        if cell.rows is None and not (cell.model == OURS and cell.set in in_sizes):
            found.setdefault(cell.set, {})[cell.model] = figures
    return found


def learning_table(results: dict[str, dict[str, Curve]]) -> list[str]:
    """Return the lines of the table: a column a number of rows, and a last line a set with the lead of textcls."""
    rows = []
    for name, models in results.items():
        last = max(size for curve in models.values() for size in curve)
        columns = [size if size < last else 0 for size in SIZES] + [last]  # 0: the set is too small for it
        for model, curve in models.items():
            rows.append([name, model, *(mean_and_spread(curve[size]) if size in curve else "-" for size in columns)])
        rows.append([name, "textcls to the best peer", *(lead(models, size) for size in columns)])
    return markdown_table(("set", "model", *(f"{size:,} rows" for size in SIZES), "all"), rows)


def lead(models: dict[str, Curve], size: int) -> str:
    """Return by how much textcls leads the best peer at `size` rows, or a dash where one of them is missing."""
    theirs = [mean(curve[size]) for model, curve in models.items() if model != OURS and size in curve]
    ours = models.get(OURS, {}).get(size)
    return f"{mean(ours) - max(theirs):+.2f}" if ours and theirs else "-"


def frontier_table(results: dict[str, dict[str, Figures]]) -> list[str]:
    """Return the lines of the table: accuracy, size and times."""
    rows = [
        (
            name, model, f"{row['accuracy']:.2f}", f"{row['mb']:.2f}", f"{row['alone_us']:.0f}",
            f"{row['batch_us']:.0f}", f"{row['train_s']:.2f}",
        )
        for name, models in results.items() for model, row in models.items()
    ]  # fmt: skip
    return markdown_table(FRONTIER, rows)


def report(state: State) -> str:
    """Return the Markdown: where and when, both tables, what failed."""
    learning = ["## Learning curves", "", *learning_table(curves(state))]
    costs = ["", "## Accuracy, size and time", "", *frontier_table(frontier(state))]
    return "\n".join([headline(state.about), "", *learning, *costs, *state.failures(), "", NOTES])


@click.command()
@FOLDERS
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "curves",
    type=click.Path(path_type=Path),
    help="Without suffix.  [default: benchmarks/curves]",
)
@click.option(
    "--sizes", default="tiny,small,default", show_default=True, help="Values of `textcls train --size`; may be empty."
)
@RESTART
def main(data: tuple[Path, ...], output: Path, sizes: str, restart: bool) -> None:
    """Measure learning curves, and accuracy against cost, on the data sets in DATA."""
    import plots  # now: that matplotlib is missing is better known before the work than after it

    sets, saved = data_sets(data), output.with_name(output.name + ".json")
    state = resume(saved, about(), restart)
    cells = []
    for name, folder in sets.items():
        cells += learning_cells(name, count_rows(folder / "train.csv"))
        cells += [Cell(name, sized(size.strip())) for size in sizes.split(",") if size.strip()]
    state.run(cells, lambda cell: measure(sets[cell.set], cell), saved)
    markdown = report(state)
    output.with_name(output.name + ".md").write_text(markdown, encoding="utf-8")
    if state.figures:
        plots.draw_curves(curves(state), output.with_name(output.name + "_learning.svg"))
        plots.draw_frontier(frontier(state), output.with_name(output.name + "_frontier.svg"))
    click.echo(markdown)
    sys.exit(1 if state.errors else 0)


if __name__ == "__main__":
    main()
