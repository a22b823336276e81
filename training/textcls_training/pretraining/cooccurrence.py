"""The objective of co-occurrence: which words occur together more often than by chance, counted, not learned.

In each text every word distributes a count of one among the others. The positive pointwise mutual information of two
words, factored by a truncated SVD, gives a vector for each (Levy and Goldberg 2014; Levy, Goldberg and Dagan 2015, who
show that word2vec factors the same matrix implicitly):

    M_vw = max(0, log(C_vw / (r_v p_w))),  p_w = r_w^0.75 / sum r^0.75,  M ~ U S W^T,  vector of v: U_v S^power

Shapes: B texts, V words, D numbers of a vector.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from textcls_training.config.clock import Clock
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.data.arrays import Float32
from textcls_training.data.corpus import Corpus
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.pretraining.report import VectorsWritten
from textcls_training.pretraining.texts import PretrainingTexts
from textcls_training.pretraining.vectors import save_vectors
from textcls_training.pretraining.vocabulary import Vocabulary

SMOOTHING: Final = 0.75
POWER: Final = 0.5
ITERATIONS: Final = 4
# Pairs of words grow with the square of a text's length: in long texts only this many words are paired at a time.
WINDOW: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class CooccurrenceReport:
    """The result of counting: the vectors, from how many pairs of words they are made, and how long that took."""

    written: VectorsWritten
    tokens: int
    pairs: int
    seconds: float
    interrupted: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return everything."""
        counts = {"tokens": self.tokens, "pairs": self.pairs, "seconds": round(self.seconds, 2)}
        return {"objective": "cooccurrence", **self.written.to_json(), **counts, "interrupted": self.interrupted}

    def show(self, console: Console, output: Path) -> None:
        """Print the report, and the next command."""
        counted = f"{self.pairs:,} pairs of words in {self.tokens:,} tokens of {self.written.texts:,} texts"
        console.print(f"Counted {counted} in {self.seconds:.0f} s.", highlight=False)
        self.written.show(console, output)


def run(
    texts: PretrainingTexts, output: Path, config: PretrainConfig, callback: Callback, stop: Stop
) -> CooccurrenceReport:
    """Count vectors of words; see `textcls_training.pretraining.run.pretrain`. Stops are ignored: it takes seconds."""
    clock = Clock()
    # Nothing is measured on held-out texts, so they are counted with the others.
    texts = replace(texts, train=[*texts.held_out, *texts.train], held_out=[])
    corpus = Corpus.of(texts.train, config.max_tokens)
    vocabulary = Vocabulary.of(corpus, config.words)
    tokens = len(corpus.token)
    callback.phase("counting", tokens)
    matrix_VV = positive_information(together(corpus, vocabulary))
    callback.step(tokens, None)
    with threadpool_limits(1):  # Sums by several threads differ in their last bits.
        row_VD = factored(matrix_VV, config.dim, config.seed)
    how = f"positive pointwise mutual information of words in texts, {row_VD.shape[1]} dimensions of its SVD"
    written = save_vectors(output, vocabulary.words, row_VD, how, texts, config)
    clock.lap("all")
    return CooccurrenceReport(written=written, tokens=tokens, pairs=matrix_VV.nnz, seconds=clock.seconds["all"])


def together(corpus: Corpus, vocabulary: Vocabulary) -> sp.csr_matrix:
    """Return how often words occur together in texts [V, V], without the diagonal.

    A word in a text of n known words counts 1 / (n - 1) with each other one, so that it counts 1 in total.
    """
    number_N = vocabulary.number_of_type[corpus.token] - 1
    text_N = np.repeat(np.arange(len(corpus)), corpus.lengths())
    # Long texts are split into parts, each of which counts as a text.
    part_N = (np.arange(len(number_N)) - corpus.start[text_N]) // WINDOW
    known_N = number_N >= 0
    text_K, part_K = text_N[known_N], part_N[known_N]
    # A part begins where the text or the part changes.
    unit_K = np.cumsum((np.diff(text_K, prepend=-1) != 0) | (np.diff(part_K, prepend=0) != 0)) - 1
    units = int(unit_K.max(initial=-1)) + 1
    ones_K = np.ones(len(unit_K), np.float32)
    count_BV = sp.csr_matrix((ones_K, (unit_K, number_N[known_N])), (units, len(vocabulary)))
    share_BB = sp.diags(1 / np.maximum(np.asarray(count_BV.sum(1)).ravel() - 1, 1))
    found_VV = sp.csr_matrix(count_BV.T @ share_BB @ count_BV)
    found_VV.setdiag(0)
    found_VV.eliminate_zeros()
    return found_VV


def positive_information(count_VV: sp.csr_matrix) -> sp.csr_matrix:
    """Return the positive pointwise mutual information of each pair [V, V], with the smoothed chance p_w."""
    found = count_VV.tocoo()
    row_V = np.asarray(count_VV.sum(1)).ravel()
    chance_V = row_V**SMOOTHING / (row_V**SMOOTHING).sum()
    data = np.log(found.data / (row_V[found.row] * chance_V[found.col]))
    matrix_VV = sp.csr_matrix((np.maximum(data, 0).astype(np.float32), (found.row, found.col)), found.shape)
    matrix_VV.eliminate_zeros()
    return matrix_VV


def factored(matrix_VV: sp.csr_matrix, dims: int, seed: int) -> Float32:
    """Return the vectors of the rows of a matrix [V, D]: at most `dims` singular vectors, scaled by their values."""
    dims = min(dims, matrix_VV.shape[0] - 1)
    u_VD, value_D, _ = randomized_svd(matrix_VV, dims, n_iter=ITERATIONS, random_state=seed % 2**32)
    found_VD: Float32 = (u_VD * value_D**POWER).astype(np.float32)
    return found_VD
