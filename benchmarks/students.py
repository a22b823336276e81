"""What a student gains by other weights, other answers, or a mixing layer: on training rows that it has not seen.

    pip install 'textcls[teacher]'
    python benchmarks/students.py DATA/trec6 DATA/sst2 --teacher all-MiniLM-L6-v2

DATA is as for compare.py. Of the training rows some are drawn as labelled ones, 1,000 others are kept to score on, and
of the rest --unlabelled-rows lose their labels. Each variant is one training on labelled rows and the teacher's
answers; its ensemble weights and temperature are fitted on the rows it is scored on, as those of all others are. The
test rows are not read. Written are .json and .md. A second run goes on where the first one stopped.
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import mean
from typing import Final, NamedTuple

import click
import numpy as np

from common import FOLDERS, ROOT, about, data_sets, headline, read
from few_labels import PACKAGES
from measure import Figures
from runner import markdown_table, mean_and_spread
from state import RESTART, Cell, State, resume
from textcls_training.config.resolve import ResolvedConfig, resolve
from textcls_training.config.settings import from_options
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.split import hashes_of
from textcls_training.distillation.distil import Pool
from textcls_training.distillation.teachers import EncoderTeacher
from textcls_training.fit import calibration
from textcls_training.fit.cross_fit import fit
from textcls_training.fit.threads import reproducible
from textcls_training.vectors.sentence_encoder import SentenceEncoder

SCORED: Final = 1000
NOTES = """\
Accuracy in percent on training rows that nobody has learned from, the mean over the draws, ± their standard deviation;
cross-entropy in nats; gate of the mixing layer; seconds of processor time of one training. Differences are those of the
same draws to the first line.
"""


class Setting(NamedTuple):
    """Labelled, unlabelled and scored texts, what the teacher says of the second ones, and how training goes."""

    pool: Pool
    texts: list[str]
    answer_UC: Float32
    scored: Int64
    right_S: Int64

    def config(self, mixing: str = "none") -> ResolvedConfig:
        """Return the configuration of a student."""
        learned = np.concatenate([self.pool.labelled, self.pool.unlabelled])
        tokens = int(self.pool.corpus.lengths()[learned].sum())
        config = from_options({"device": "cpu", "mixing": mixing})
        return resolve(config, [self.texts[i] for i in learned], tokens, self.pool.classes)

    def lesson(self, weight: float = 1, sure: float = 0) -> Dataset:
        """Return labelled texts and the share of unlabelled ones of which the teacher is surest, of so much weight."""
        surest_U = self.answer_UC.max(1)
        kept_U = surest_U >= np.quantile(surest_U, sure)
        pool = replace(self.pool, unlabelled=self.pool.unlabelled[kept_U])
        return pool.lesson(pool.labelled, self.answer_UC[kept_U], weight)


class Variant(NamedTuple):
    """What a student learns from, and how."""

    lesson: Callable[[Setting], Dataset] = Setting.lesson
    mixing: str = "none"
    passes: float = 1


VARIANTS: Final[Mapping[str, Variant]] = {
    "student": Variant(),
    "weight 0.3": Variant(lambda setting: setting.lesson(weight=0.3)),
    "weight 3": Variant(lambda setting: setting.lesson(weight=3)),
    "surest 80 %": Variant(lambda setting: setting.lesson(sure=0.2)),
    "surest 50 %": Variant(lambda setting: setting.lesson(sure=0.5)),
    "half the passes": Variant(passes=0.5),
    "gmlp": Variant(mixing="gmlp"),
    "lambda": Variant(mixing="lambda"),
    "mixer": Variant(mixing="mixer"),
}


@lru_cache(maxsize=1)
def prepare(folder: Path, rows: int, seed: int, place: str, unlabelled: int) -> Setting:
    """Draw the rows and ask the teacher."""
    given = read(folder / "train.csv")
    hashes = hashes_of(given.texts)
    # Copies of a text count once: they must not be learned from and scored on.
    order = np.random.default_rng(seed).permutation(np.unique(hashes, return_index=True)[1])
    chosen = order[: rows + SCORED + unlabelled]
    labelled, scored, others = np.split(np.arange(len(chosen)), [rows, rows + SCORED])
    texts = [given.texts[i] for i in chosen]
    names = sorted({given.labels[i] for i in chosen[:rows]})
    number = {name: i for i, name in enumerate(names)}
    label = np.array([number.get(given.labels[i], -1) for i in chosen], np.int64)
    encoder = SentenceEncoder(place)
    teacher = EncoderTeacher(encoder.name, encoder.encode(texts), hashes[chosen], len(names))
    corpus = Corpus.of(texts, from_options({}).max_tokens)
    known = Dataset(corpus.select(labelled), label[labelled])
    answers = teacher.answers(labelled, known, others)
    pool = Pool(corpus, known, labelled, others, (), len(names))
    return Setting(pool, texts, answers, scored, label[scored])


def measure(setting: Setting, variant: Variant) -> Figures:
    """Train a student once, and score it."""
    config = setting.config(variant.mixing)
    config = replace(config, epochs=max(1, round(config.epochs * variant.passes)))
    start = time.process_time()
    with reproducible(config.seed):
        trainer = fit(variant.lesson(setting), setting.pool.classes, config, config.epochs)
        seconds = time.process_time() - start
        logits_VSC = trainer.predict(trainer.encode(setting.pool.corpus.select(setting.scored)))
    # Of a label that no labelled row has, an answer is wrong, and has no cross-entropy.
    known_S = setting.right_S >= 0
    found = calibration.fit(logits_VSC[:, known_S], setting.right_S[known_S])
    logits_SC = found.combine(logits_VSC)
    return {
        "accuracy": 100 * float((logits_SC.argmax(1) == setting.right_S).mean()),
        "cross_entropy": calibration.log_loss(logits_SC[known_S], setting.right_S[known_S], found.temperature),
        "gate": trainer.trained_model(found.ensemble_weights).gate,
        "seconds": seconds,
    }


def table(state: State) -> list[str]:
    """Return the lines of the table: a line a set, number of rows and variant."""
    draws: dict[tuple[str, int], dict[str, dict[int, Figures]]] = {}
    for cell, figures in state.figures.items():
        draws.setdefault((cell.set, cell.rows or 0), {}).setdefault(cell.model, {})[cell.seed] = figures
    rows = []
    for (name, size), found in draws.items():
        (_, first), *_ = found.items()
        for variant, figures in found.items():
            gains = [one["accuracy"] - first[seed]["accuracy"] for seed, one in figures.items() if seed in first]
            ours = list(figures.values())
            gates = [one["gate"] for one in ours if one["gate"] is not None]
            cells = [
                mean_and_spread([one["accuracy"] for one in ours]),
                mean_and_spread(gains) if figures is not first and gains else "",
                f"{mean(one['cross_entropy'] for one in ours):.3f}",
                f"{mean(gates):.2f}" if gates else "",
                f"{mean(one['seconds'] for one in ours):.1f}",
            ]
            rows.append([name, f"{size:,}", variant, *cells])
    return markdown_table(("set", "labelled rows", "", "accuracy", "difference", "cross-entropy", "gate", "s"), rows)


@click.command()
@FOLDERS
@click.option("--teacher", "place", required=True, help="Folder or name of a sentence-transformers model.")
@click.option("--rows", default="300", show_default=True, help="Numbers of labelled rows.")
@click.option("--draws", type=click.IntRange(1), default=3, show_default=True)
@click.option("--variants", default=",".join(VARIANTS), show_default=True, help="What is compared with the first.")
@click.option("--unlabelled-rows", "most", type=click.IntRange(1), default=4000, show_default=True)
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "students",
    type=click.Path(path_type=Path),
    help="Without suffix.  [default: benchmarks/students]",
)
@RESTART
def main(
    data: tuple[Path, ...],
    place: str,
    rows: str,
    draws: int,
    variants: str,
    most: int,
    output: Path,
    restart: bool,
) -> None:
    """Measure variants of a student on the data sets in DATA."""
    names = variants.split(",")
    if odd := next((name for name in names if name not in VARIANTS), None):
        raise click.UsageError(f"There is no variant {odd!r}; choose from {', '.join(VARIANTS)}.")
    sets, saved = data_sets(data), output.with_name(output.name + ".json")
    state = resume(saved, about(packages=PACKAGES), restart)
    cells = [
        Cell(name, variant, seed, int(size))
        for size in rows.split(",")
        for name in sets
        for seed in range(draws)
        for variant in names
    ]

    def one(cell: Cell) -> Figures:
        return measure(prepare(sets[cell.set], cell.rows or 0, cell.seed, place, most), VARIANTS[cell.model])

    state.run(cells, one, saved)
    markdown = "\n".join([headline(state.about), "", *table(state), *state.failures(), "", NOTES])
    output.with_name(output.name + ".md").write_text(markdown, encoding="utf-8")
    click.echo(markdown)
    sys.exit(1 if state.errors else 0)


if __name__ == "__main__":
    main()
