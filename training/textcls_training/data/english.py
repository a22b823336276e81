"""The vectors of English words that come with the package, and the rule by which rows get them without being asked for.

Measured (docs/few-labels.md): the fewer English rows, the more they help, and the more tokens, the longer the training
takes. They know 88 % or more of the tokens of English rows, punctuation and misspellings included, up to 63 % of French
ones, and less of others.
"""

from functools import cache
from pathlib import Path
from typing import Final

from textcls_training import vectors
from textcls_training.config.resolve import MANY_LABELS
from textcls_training.data.corpus import Corpus
from textcls_training.data.vector_space import VectorSpace
from textcls_training.vectors.file import load
from textcls_training.vectors.word_vectors import WordVectors

PATH: Final = Path(vectors.__file__).parent / "english" / "english.vectors"
# Beyond these limits, training takes several times as long, or the file grows by tens of megabytes: each word has a
# value for each label. Measured: training/README.md.
MOST_TOKENS: Final = 500_000
MOST_CELLS: Final = 20_000_000
LEAST_KNOWN: Final = 0.8


@cache
def english() -> WordVectors:
    """Return the vectors, which all trainings of a process share.

    Raises:
        InputError: their file is damaged, or is not where the package installed it.
    """
    return load(PATH)


def english_unasked(corpus: Corpus, labels: int) -> WordVectors | None:
    """Return the vectors if they may suit texts with `labels` labels, else None: nearly all tokens must be known, and
    there must not be too many tokens or labels.

    Validation rows then decide (`ResolvedConfig.vectors_on_trial`).

    Raises:
        InputError: as `english`.
    """
    tokens = len(corpus.token)
    few = tokens <= MOST_TOKENS and tokens * labels <= MOST_CELLS and labels < MANY_LABELS
    return english_if_known(corpus) if few else None


def english_if_known(corpus: Corpus) -> WordVectors | None:
    """Return the vectors if they know nearly all tokens of `corpus`, else None.

    Raises:
        InputError: as `english`.
    """
    found = english()
    return found if VectorSpace.of(found).encode(corpus).known_share() >= LEAST_KNOWN else None
