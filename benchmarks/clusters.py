"""How well clusters agree with labels that nobody has seen, beside what others find.

    pip install 'textcls[teacher]'
    python benchmarks/clusters.py DATA/ag_news DATA/banking77 --encoder all-MiniLM-L6-v2

DATA is as for compare.py. Of each set as many clusters are asked for as there are labels, of some training rows without
these; then test rows are put into them, and compared with their labels. Written are .json and .md. A second run goes on
where the first one stopped.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, Final

import click
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import LatentDirichletAllocation, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from common import FOLDERS, OURS, ROOT, about, data_sets, headline, read, subset, write
from measure import Figures
from runner import CommandError, last_words, markdown_table, mean_and_spread
from state import RESTART, Cell, State, resume
from textcls import Classifier
from textcls.data import Labelled
from textcls.explain.clusters.agreement import agreement
from textcls_training.vectors.sentence_encoder import SentenceEncoder

KMEANS, LSA, LDA, ENCODER = "TF-IDF + k-means", "TF-IDF + LSA + k-means", "LDA", "sentence vectors + k-means"
MODELS: Final = (OURS, KMEANS, LSA, LDA, ENCODER)
BEGINNINGS: Final = 5
PACKAGES: Final = ("textcls", "torch", "sentence-transformers", "onnxruntime", "scikit-learn", "numpy")
NOTES: Final = """\
In percent, on test rows, fitted on {all:,} texts; the mean over the seeds, ± their standard deviation. Accuracy: share
of the rows whose cluster is matched with their label, each cluster with one label, as is best. Clusters: as many as
labels. Seconds: fitting and answering, by the clock; of textcls in a process of its own. TF-IDF and LDA read words
without scikit-learn's stop words, that are in 5 texts and at most half of them (its example of clustering texts), of
Chinese characters and pairs of them; LSA keeps 100 singular vectors; k-means begins 5 times. Sentence vectors: of
{encoder}, fitted on {rows:,} texts; seconds without encoding where its vectors were at hand.
"""

# Fits on texts, and puts others into clusters.
Fit = Callable[[Sequence[str], Sequence[str], int, int], Sequence[Any]]


def ours(train: Sequence[str], test: Sequence[str], clusters: int, seed: int) -> list[str]:
    """Run `textcls pretrain` in a process of its own.

    Raises:
        CommandError: it failed.
    """
    command = [sys.executable, "-m", "textcls", "pretrain"]
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder) / "texts.csv", Path(folder) / "model.onnx"
        write(data, Labelled(list(train), [""] * len(train)))
        options = ["--objective", "mutual-information", "--clusters", str(clusters), "--seed", str(seed), "--quiet"]
        done = subprocess.run([*command, data, "-o", model, *options], capture_output=True, text=True)
        if done.returncode:
            raise CommandError(last_words(done.stderr, done.returncode))
        return [answer.label for answer in Classifier.load(model).predict(list(test))]


def features(train: Sequence[str]) -> dict[str, Any]:
    """Return what the vectorizers of scikit-learn are given: words, or characters where few spaces are."""
    text = "".join(train[:1000])
    if text.count(" ") < 0.05 * len(text):
        return {"analyzer": "char", "ngram_range": (1, 2), "min_df": 5, "max_df": 0.5}
    return {"stop_words": "english", "min_df": 5, "max_df": 0.5}


def k_means(clusters: int, seed: int) -> KMeans:
    """Return scikit-learn's k-means."""
    return KMeans(clusters, n_init=BEGINNINGS, random_state=seed)


def tf_idf(train: Sequence[str], test: Sequence[str], clusters: int, seed: int) -> Sequence[Any]:
    """Put texts into clusters by k-means of their TF-IDF."""
    fitted = make_pipeline(TfidfVectorizer(**features(train)), k_means(clusters, seed)).fit(train)
    return fitted.predict(test).tolist()


def lsa(train: Sequence[str], test: Sequence[str], clusters: int, seed: int) -> Sequence[Any]:
    """Put texts into clusters by k-means of the singular vectors of their TF-IDF."""
    steps = TfidfVectorizer(**features(train)), TruncatedSVD(100, random_state=seed), Normalizer()
    return make_pipeline(*steps, k_means(clusters, seed)).fit(train).predict(test).tolist()


def lda(train: Sequence[str], test: Sequence[str], clusters: int, seed: int) -> Sequence[Any]:
    """Put texts into the topics of a latent Dirichlet allocation."""
    topics = LatentDirichletAllocation(clusters, learning_method="online", max_iter=10, random_state=seed)
    fitted = make_pipeline(CountVectorizer(**features(train)), topics).fit(train)
    return fitted.transform(test).argmax(1).tolist()


def encoded(encoder: SentenceEncoder, most: int) -> Fit:
    """Return what puts texts into clusters by k-means of their sentence vectors, fitted on the first `most` texts."""

    def fit(train: Sequence[str], test: Sequence[str], clusters: int, seed: int) -> Sequence[Any]:
        fitted = k_means(clusters, seed).fit(encoder.encode(train[:most]).astype(np.float32))
        return fitted.predict(encoder.encode(test).astype(np.float32)).tolist()

    return fit


def measure(folder: Path, cell: Cell, test_rows: int, fits: Mapping[str, Fit]) -> Figures:
    """Fit on texts of one set, and compare the clusters of test rows with their labels."""
    train, test = subset(read(folder / "train.csv"), cell.rows or 0, 0), subset(read(folder / "test.csv"), test_rows, 0)
    start = time.perf_counter()
    clusters = fits[cell.model](train.texts, test.texts, len(set(train.labels)), cell.seed)
    seconds = time.perf_counter() - start
    found = agreement(clusters, test.labels)
    return {"accuracy": 100 * found.accuracy, "nmi": 100 * found.nmi, "ari": 100 * found.ari, "seconds": seconds}


def table(state: State) -> list[str]:
    """Return the lines of the table: one a set and model."""
    lines: dict[tuple[str, str], list[Figures]] = {}
    for cell, figures in state.measured():
        lines.setdefault((cell.set, cell.model), []).append(figures)
    rows = []
    for (name, model), found in lines.items():
        scores = [mean_and_spread([one[measure] for one in found]) for measure in ("accuracy", "nmi", "ari")]
        rows.append([name, model, *scores, f"{mean(one['seconds'] for one in found):.0f}"])
    return markdown_table(("set", "by", "accuracy", "NMI", "ARI", "seconds"), rows)


@click.command()
@FOLDERS
@click.option("--encoder", "place", help="Folder or name of a sentence-transformers model, to measure it, too.")
@click.option("--rows", type=click.IntRange(1), default=6000, show_default=True, help="Texts to fit on.")
@click.option("--encoder-rows", type=click.IntRange(1), help="Of them the encoder encodes so many.  [default: all]")
@click.option("--test-rows", type=click.IntRange(1), default=1000, show_default=True, help="Rows to compare.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True)
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "clusters",
    type=click.Path(path_type=Path),
    help="Without suffix.  [default: benchmarks/clusters]",
)
@RESTART
def main(
    data: tuple[Path, ...],
    place: str | None,
    rows: int,
    encoder_rows: int | None,
    test_rows: int,
    seeds: int,
    output: Path,
    restart: bool,
) -> None:
    """Measure how clusters agree with the labels of the data sets in DATA."""
    fits: dict[str, Fit] = {OURS: ours, KMEANS: tf_idf, LSA: lsa, LDA: lda}
    if place is not None:
        fits[ENCODER] = encoded(SentenceEncoder(place), encoder_rows or rows)
    sets, saved = data_sets(data), output.with_name(output.name + ".json")
    state = resume(saved, about(packages=PACKAGES), restart)
    cells = [Cell(name, model, seed, rows) for seed in range(seeds) for name in sets for model in fits]
    state.run(cells, lambda cell: measure(sets[cell.set], cell, test_rows, fits), saved)
    notes = NOTES.format(encoder=Path(place).name if place else "none", rows=encoder_rows or rows, all=rows)
    markdown = "\n".join([headline(state.about), "", *table(state), *state.failures(), "", notes])
    output.with_name(output.name + ".md").write_text(markdown, encoding="utf-8")
    click.echo(markdown)
    sys.exit(1 if state.errors else 0)


if __name__ == "__main__":
    main()
