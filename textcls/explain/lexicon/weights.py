"""The weights of terms by themselves: the values of their rows, before the norm of a text divides them.

Shapes: W terms, C labels, K kinds of rows, B texts, T tokens, U unknown tokens, N n-grams of a token, G groups,
X = C + 2, as in `textcls.model.sub_token_attribution`.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.explain.lexicon.terms import END, FIRST, LAST, SEQUENCES, START, Kind
from textcls.model.classifier import Classifier

Float32 = NDArray[np.float32]

# The number of terms asked about in one call.
ASKED: Final = 256
# A letter that hardly any text contains, so that a word with it is unknown, and is read by its pieces.
_RARE: Final = "\u01c1"


def weights(classifier: Classifier, kind: Kind, terms: Sequence[str]) -> Float32:
    """Return the weights of terms of a kind in a model with rows [W, C]; zeros if it has no row."""
    ask = {"word": _of_words, "piece": _of_pieces}.get(kind, _of_sequences)
    if kind in SEQUENCES and SEQUENCES[kind] not in classifier.info.features.orders:
        return np.zeros((len(terms), len(classifier.labels)), np.float32)
    return _in_parts(terms, len(classifier.labels), lambda some: ask(classifier, some))


def _in_parts(terms: Sequence[str], labels: int, ask: Callable[[Sequence[str]], Float32]) -> Float32:
    parts = [ask(terms[first : first + ASKED]) for first in range(0, len(terms), ASKED)]
    return np.concatenate([np.zeros((0, labels), np.float32), *parts])


def _rows(classifier: Classifier, texts: Sequence[str]) -> Float32:
    """Return the values of the rows of short texts [K, B, T, C], summed over groups."""
    found = classifier.graph.run([classifier.graph.read(text)[0] for text in texts], ["rows"])["rows"]
    rows_KBTC: Float32 = found[..., : len(classifier.labels)].sum(-2)
    return rows_KBTC


def _of_words(classifier: Classifier, words: Sequence[str]) -> Float32:
    return _rows(classifier, words)[0, :, 0]


def _of_sequences(classifier: Classifier, sequences: Sequence[str]) -> Float32:
    """Return the weights of sequences of one length: each word has an equal share; that of an edge belongs to none."""
    split = [sequence.split(" ") for sequence in sequences]
    texts = [" ".join(word for word in words if word not in (START, END)) for words in split]
    size = len(split[0])
    # The rows of a token: its word, then for each length the sequences that contain it, by how far after it they end.
    first = 1 + sum(order for order in classifier.info.features.orders if order < size)
    kind_B = np.array([first + size - 1 - (words[0] == START) for words in split])
    owners_B = np.array([size - (words[0] == START) - (words[-1] == END) for words in split], np.float32)
    rows_KBTC = _rows(classifier, texts)
    found_BC: Float32 = owners_B[:, None] * rows_KBTC[kind_B, np.arange(len(texts)), 0]
    return found_BC


def _of_pieces(classifier: Classifier, pieces: Sequence[str]) -> Float32:
    """Return the weights of pieces, each asked about within a word that the model does not know."""
    config, labels = classifier.info.features, len(classifier.labels)
    found_WC = np.zeros((len(pieces), labels), np.float32)
    carriers, places, which = [], [], []
    for i, piece in enumerate(pieces):
        letters = piece.removeprefix(FIRST).removesuffix(LAST)
        carrier = letters + _RARE if piece.startswith(FIRST) else _RARE + letters
        if len(carrier) <= config.max_chars and len(piece) in config.ngram_sizes:
            carriers.append(carrier)
            smaller = sum(config.max_chars + 3 - n for n in config.ngram_sizes if n < len(piece))
            places.append(smaller + (0 if piece.startswith(FIRST) else 2))
            which.append(i)
    if not carriers or not classifier.graph.has_pieces:
        return found_WC
    outputs = classifier.graph.run(carriers, ["ngram_rows", "known"])
    ngrams_UNC = outputs["ngram_rows"][..., :labels].sum(-2)
    unknown = np.flatnonzero(~outputs["known"][:, 0])
    found_WC[np.array(which)[unknown]] = ngrams_UNC[np.arange(len(unknown)), np.array(places)[unknown]]
    return found_WC
