"""How many test rows are answered right by models that were told the names of the labels, and no row of them.

    pip install 'textcls[teacher]'
    python benchmarks/label_names.py DATA/ag_news DATA/trec6 DATA/banking77 --encoder all-MiniLM-L6-v2

DATA is as for compare.py. Some training rows without their labels are the texts. Names are those of the data, and where
`WORDS` has some, words that describe them. Written are .json and .md; a second run goes on where the first one stopped.
"""

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import numpy as np

from common import FOLDERS, ROOT, about, data_sets, headline, read, subset
from measure import Figures
from runner import markdown_table, mean_and_spread
from state import RESTART, Cell, State, resume
from textcls import Classifier
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.data.arrays import Float32
from textcls_training.data.corpus import Corpus
from textcls_training.data.english import english
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.pretraining.label_names.descriptions import read_descriptions
from textcls_training.pretraining.label_names.nearest import similarities
from textcls_training.pretraining.mean_vectors import mean_vectors
from textcls_training.pretraining.run import pretrain
from textcls_training.pretraining.texts import PretrainingTexts
from textcls_training.vectors.sentence_encoder import SentenceEncoder

WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "ag_news": {
        "World": "world politics",
        "Sports": "sports",
        "Business": "business",
        "Sci/Tech": "science technology",
    },
    "trec6": {
        "abbreviation": "abbreviation",
        "description": "description",
        "entity": "entity",
        "human": "human person",
        "location": "location place",
        "number": "number quantity",
    },
}
NAMES, DESCRIPTIONS = "names", "descriptions"
VECTORS, ENCODER = "English vectors", "encoder"
PACKAGES: Final = ("textcls", "sentence-transformers", "onnxruntime", "numpy")
NOTES: Final = """\
Accuracy on test rows in percent; no label of any row was seen. Nearest: the label whose name has the highest cosine
with the row, both less the mean of the texts. Model: `textcls pretrain --objective label-names` on {rows:,} texts,
answering the same rows; mean over draws of the texts, ± their standard deviation, and of the encoder one draw. Names as
in the data; descriptions as in the script. Encoder: {encoder}.
"""


def vectors_of(texts: Sequence[str], encoder: SentenceEncoder | None) -> Float32:
    """Return the vector of each text."""
    if encoder is not None:
        return encoder.encode(texts).astype(np.float32)
    return mean_vectors(Corpus.of(texts, PretrainConfig().max_tokens), english())


def measure(folder: Path, cell: Cell, test_rows: int, place: str | None) -> Figures:
    """Name the test rows of a set directly, and by a model."""
    train, test = (
        subset(read(folder / "train.csv"), cell.rows or 0, cell.seed),
        subset(read(folder / "test.csv"), test_rows, 0),
    )
    by, which = cell.model.split(", ")
    teacher = place if by == ENCODER else None
    with tempfile.TemporaryDirectory() as temporary:
        names, model = (
            Path(temporary) / f"names.{'json' if which == DESCRIPTIONS else 'txt'}",
            Path(temporary) / "m.onnx",
        )
        told = json.dumps(WORDS[cell.set]) if which == DESCRIPTIONS else "\n".join(sorted(set(train.labels)))
        names.write_text(told, "utf-8")
        descriptions = read_descriptions(names)
        found = UnlabelledTexts.sample(map(UnlabelledText, train.texts), len(train.texts), ())
        config = PretrainConfig(objective="label-names", names=names, teacher=teacher, seed=cell.seed)
        report = pretrain(PretrainingTexts.of(found), model, config)
        answers = [answer.label for answer in Classifier.load(model).predict(list(test.texts))]
    encoder = SentenceEncoder(teacher) if teacher else None
    text_RE = vectors_of([*train.texts, *test.texts], encoder)
    cosine_RC = similarities(text_RE, vectors_of([*descriptions.values()], encoder))[len(train.texts) :]
    nearest = [list(descriptions)[i] for i in cosine_RC.argmax(1)]
    return {
        "nearest": 100 * float(np.mean([a == b for a, b in zip(nearest, test.labels, strict=True)])),
        "model": 100 * float(np.mean([a == b for a, b in zip(answers, test.labels, strict=True)])),
        "agreement": 100 * report.agreement,
    }


def table(state: State) -> list[str]:
    """Return the lines of the table: one a set, what knows the words, and what the labels are called."""
    lines: dict[tuple[str, str], list[Figures]] = {}
    for cell, figures in state.measured():
        lines.setdefault((cell.set, cell.model), []).append(figures)
    rows = [
        [name, model, *(mean_and_spread([one[which] for one in found]) for which in ("nearest", "model"))]
        for (name, model), found in sorted(lines.items())
    ]
    return markdown_table(("set", "by", "nearest", "model"), rows)


@click.command()
@FOLDERS
@click.option("--encoder", "place", help="Folder or name of a sentence-transformers model, to measure it, too.")
@click.option("--rows", type=click.IntRange(40), default=3000, show_default=True, help="Texts to learn from.")
@click.option("--test-rows", type=click.IntRange(1), default=1000, show_default=True, help="Rows to answer.")
@click.option("--draws", type=click.IntRange(1), default=3, show_default=True, help="Of texts; the encoder has one.")
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "label_names",
    type=click.Path(path_type=Path),
    help="Without suffix.  [default: benchmarks/label_names]",
)
@RESTART
def main(
    data: tuple[Path, ...], place: str | None, rows: int, test_rows: int, draws: int, output: Path, restart: bool
) -> None:
    """Measure how far names alone go on the data sets in DATA."""
    sets, saved = data_sets(data), output.with_name(output.name + ".json")
    state = resume(saved, about(packages=PACKAGES), restart)
    cells = [
        Cell(name, f"{by}, {which}", draw, rows)
        for draw in range(draws)
        for name in sets
        for by in (VECTORS, *([ENCODER] if place and not draw else []))
        for which in (NAMES, *([DESCRIPTIONS] if name in WORDS else []))
    ]
    state.run(cells, lambda cell: measure(sets[cell.set], cell, test_rows, place), saved)
    notes = NOTES.format(rows=rows, encoder=Path(place).name if place else "none")
    markdown = "\n".join([headline(state.about), "", *table(state), *state.failures(), "", notes])
    output.with_name(output.name + ".md").write_text(markdown, encoding="utf-8")
    click.echo(markdown)
    sys.exit(1 if state.errors else 0)


if __name__ == "__main__":
    main()
