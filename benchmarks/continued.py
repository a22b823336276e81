"""How good and how fast training is that goes on with new rows, beside training anew on all rows.

    python benchmarks/continued.py DATA/trec6 DATA/sst2 DATA/banking77 DATA/ag_news

DATA is as for compare.py. The training rows come in five parts, one after the other: `textcls train part1.csv --state
1.state`, then `textcls train part2.csv --from 1.state --state 2.state`, and so on. In the second order one label in
ten, at least one, has no row before part 3. Written are .json and .md; a second run goes on where the first one
stopped.
"""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import numpy as np

from common import FOLDERS, ROOT, about, data_sets, headline, read
from measure import Figures
from runner import markdown_table
from state import RESTART, Cell, State, resume
from textcls import Classifier
from textcls.data import Labelled
from textcls_training.config.settings import OPTIONS, TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline import training as pipeline
from textcls_training.state.rehearsal import Rehearsal

PARTS: Final = 5
RANDOM, LATE = "random parts", "late labels"
# Rows that a state keeps: the default, so few that most are gone, none.
KEPT: Final = (OPTIONS["rehearsal_rows"].default, 2_000, 0)
ANEW, SAMPLE = "anew", "sample alone"
NOTES: Final = """\
Accuracy on the whole test set in percent. Anew: the default training on all rows. The others: after the fifth part, the
difference to anew, paired by draw of the parts, ± its standard error; draws: {draws}. Behind the comma, of late
labels, the accuracy on their rows alone less that of anew. A state keeps 20,000 rows by default; where these are all
rows, all are trained on anew, to the same bytes. Sample alone: anew on 2,000 rows of the first four parts and on the
fifth, so without what was learned of the others. Seconds: of the last training, without imports and reading, median
over draws.
"""


def parts_of(labels: Sequence[str], order: str, draw: int) -> tuple[list[list[int]], set[str]]:
    """Return the rows of each part, and the labels that come late."""
    rng = np.random.default_rng(draw)
    parts = [part.tolist() for part in np.array_split(rng.permutation(len(labels)), PARTS)]
    names = sorted(set(labels))
    late = set(rng.permutation(names)[: max(1, len(names) // 10)].tolist()) if order == LATE else set()
    moved = [i for part in parts[:2] for i in part if labels[i] in late]
    parts = [[i for i in part if k > 1 or labels[i] not in late] for k, part in enumerate(parts)]
    for k, i in enumerate(moved):
        parts[2 + k % 3].append(i)
    return parts, late


def given(rows: Labelled, which: Sequence[int]) -> LabelledTexts:
    return LabelledTexts(texts=[rows.texts[i] for i in which], labels=[rows.labels[i] for i in which])


def measure(folder: Path, cell: Cell) -> Figures:
    """Train in five parts, with each number of rows that are kept, and anew."""
    train, test = read(folder / "train.csv"), read(folder / "test.csv")
    parts, late = parts_of(train.labels, cell.model, cell.seed)
    everything = [i for part in parts for i in part]
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        found = {ANEW: trained(given(train, everything), test, late, work)}
        for kept in KEPT:
            config = TrainConfig(rehearsal_rows=kept)
            for k, part in enumerate(parts):
                before = {} if k == 0 else {"from_state": work / f"{kept}-{k - 1}"}
                state = work / f"{kept}-{k}"
                figures = trained(given(train, part), test, late, work, config, state=state, **before)
            found[f"{kept:,} rows kept"] = figures
        earlier = given(train, [i for part in parts[:-1] for i in part])
        number = {name: i for i, name in enumerate(sorted(set(earlier.labels)))}
        labels = np.array([number[label] for label in earlier.labels], np.int64)
        sample = Rehearsal.of(earlier, labels, np.zeros(len(labels), np.int64), KEPT[1]).rows
        last = given(train, parts[-1])
        joined = LabelledTexts(texts=[*sample.texts, *last.texts], labels=[*sample.labels, *last.labels])
        found[SAMPLE] = trained(joined, test, late, work)
    return {f"{name}, {what}": value for name, figures in found.items() for what, value in figures.items()}


def trained(
    rows: LabelledTexts, test: Labelled, late: set[str], work: Path, config: TrainConfig | None = None, **states: Path
) -> Mapping[str, float]:
    """Train, and return accuracy, that on late labels, and seconds."""
    began = time.perf_counter()
    pipeline.train(rows, work / "model.onnx", config, **states)
    seconds = time.perf_counter() - began
    answers = Classifier.load(work / "model.onnx").predict(list(test.texts))
    right = np.array([answer.label == label for answer, label in zip(answers, test.labels, strict=True)])
    of_late = np.isin(test.labels, list(late))
    on_late = {"late": 100 * float(right[of_late].mean())} if late else {}
    return {"accuracy": 100 * float(right.mean()), **on_late, "seconds": seconds}


def table(state: State) -> list[str]:
    """Return the lines of the table: one a set and order."""
    lines: dict[tuple[str, str], list[Figures]] = {}
    for cell, figures in state.measured():
        lines.setdefault((cell.set, cell.model), []).append(figures)
    ways = [*(f"{kept:,} rows kept" for kept in KEPT), SAMPLE]
    rows = []
    for (name, order), found in lines.items():
        anew = f"{np.mean([one[f'{ANEW}, accuracy'] for one in found]):.2f} ({seconds(found, ANEW)})"
        rows.append([name, order, anew, *(f"{difference(found, way)} ({seconds(found, way)})" for way in ways)])
    return markdown_table(("set", "order", "anew (s)", *(f"{way} (s)" for way in ways)), rows)


def difference(found: Sequence[Figures], way: str) -> str:
    """Return by how much a way differs from training anew; behind a comma that on late labels."""
    shown = []
    for what in ("accuracy", "late"):
        if f"{ANEW}, {what}" in found[0]:
            gap = np.array([one[f"{way}, {what}"] - one[f"{ANEW}, {what}"] for one in found])
            error = f" ± {gap.std(ddof=1) / len(gap) ** 0.5:.2f}" if len(gap) > 1 and what == "accuracy" else ""
            shown.append(f"{gap.mean():+.2f}{error}")
    return ", ".join(shown)


def seconds(found: Sequence[Figures], way: str) -> str:
    return f"{np.median([one[f'{way}, seconds'] for one in found]):.1f}"


@click.command()
@FOLDERS
@click.option("--draws", type=click.IntRange(1), default=3, show_default=True, help="Of the parts.")
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "continued",
    type=click.Path(path_type=Path),
    help="Without suffix.  [default: benchmarks/continued]",
)
@RESTART
def main(data: tuple[Path, ...], draws: int, output: Path, restart: bool) -> None:
    """Measure training that goes on, part by part, on the data sets in DATA."""
    sets, saved = data_sets(data), output.with_name(output.name + ".json")
    state = resume(saved, about(), restart)
    # Of two labels none can come late: one alone is nothing to learn from.
    orders = {
        name: (RANDOM, LATE) if len(set(read(folder / "train.csv").labels)) > 2 else (RANDOM,)
        for name, folder in sets.items()
    }
    cells = [Cell(name, order, draw) for draw in range(draws) for name in sets for order in orders[name]]
    state.run(cells, lambda cell: measure(sets[cell.set], cell), saved)
    markdown = "\n".join([headline(state.about), "", *table(state), *state.failures(), "", NOTES.format(draws=draws)])
    output.with_name(output.name + ".md").write_text(markdown, encoding="utf-8")
    click.echo(markdown)
    sys.exit(1 if state.errors else 0)


if __name__ == "__main__":
    main()
