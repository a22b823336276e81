"""Names of clusters: the words that are more frequent in their texts than in the others.

Shapes: R texts, C clusters, K terms.
"""

from typing import Final, NamedTuple

import numpy as np

from textcls.model import tokenizer
from textcls_training.data.arrays import Float64, Int64
from textcls_training.data.corpus import Corpus

WORDS: Final = 3
# A word that occurs in only one text is not a name.
LEAST_TEXTS: Final = 2


class Terms(NamedTuple):
    """Words that can be part of a name, and the texts in which they occur, each text once.

    Attributes:
        words: the terms.
        term: numbers of terms.
        text: numbers of the texts that contain them.
    """

    words: list[str]
    term: Int64
    text: Int64


def cluster_names(corpus: Corpus, cluster_R: Int64, clusters: int) -> list[str]:
    """Return a distinct name for each cluster: its words, the most characteristic first.

    Args:
        corpus: the texts.
        cluster_R: the cluster of each.
        clusters: how many there are.
    """
    terms = terms_of(corpus)
    score_CK = telling(terms, cluster_R, clusters)
    names: list[str] = []
    for number, score_K in enumerate(score_CK):
        best = [i for i in np.argsort(-score_K, kind="stable")[:WORDS] if score_K[i] > 0]
        words = [terms.words[i] for i in best]
        shown = "/".join(words) or f"cluster {number + 1}"
        names.append(shown if shown not in names else f"{shown}/{number + 1}")
    return names


def telling(terms: Terms, cluster_R: Int64, clusters: int) -> Float64:
    """Return how characteristic each term is of each cluster [C, K], below 0 if it is evidence against it.

    The logarithm of the ratio of its odds in the cluster's texts to those in the others, by its standard error (Monroe,
    Colaresi and Quinn 2008, "Fightin' Words", equation 22, with half a text in place of their prior), times its idf:
    words that occur everywhere name nothing, even if they are a little more frequent.
    """
    count_CK = np.zeros((clusters, len(terms.words)))
    np.add.at(count_CK, (cluster_R[terms.text], terms.term), 1)
    size_C1 = np.bincount(cluster_R, minlength=clusters)[:, None]
    others_CK = count_CK.sum(0) - count_CK
    with_CK, without_CK = count_CK + 0.5, size_C1 - count_CK + 0.5
    with_others_CK, without_others_CK = others_CK + 0.5, len(cluster_R) - size_C1 - others_CK + 0.5
    log_ratio_CK = np.log(with_CK / without_CK) - np.log(with_others_CK / without_others_CK)
    idf_K = np.log(len(cluster_R) / count_CK.sum(0))
    found_CK: Float64 = idf_K * log_ratio_CK / np.sqrt(1 / with_CK + 1 / with_others_CK)
    found_CK[:, count_CK.sum(0) < LEAST_TEXTS] = 0
    return found_CK


def terms_of(corpus: Corpus) -> Terms:
    """Return the words of texts; pairs of characters in scripts written without spaces, whose tokens are characters."""
    single = np.array([tokenizer.UNSPACED.match(word) is not None for word in corpus.types], bool)
    whole = np.array([_is_word(word) for word in corpus.types], bool) & ~single
    text = np.repeat(np.arange(len(corpus)), corpus.lengths())
    types, words = len(corpus.types), whole[corpus.token]
    first, second = corpus.token[:-1].astype(np.int64), corpus.token[1:].astype(np.int64)
    pairs = single[first] & single[second] & (text[:-1] == text[1:])
    key = np.concatenate([corpus.token[words].astype(np.int64), types + first[pairs] * types + second[pairs]])
    of_text = np.concatenate([text[words], text[:-1][pairs]])
    unique, term = np.unique(key, return_inverse=True)
    once = np.unique(np.stack([term, of_text]), axis=1)
    named = [_spelt(int(number), corpus.types) for number in unique]
    return Terms(named, once[0], once[1])


def _spelt(key: int, types: list[str]) -> str:
    if key < len(types):
        return types[key]
    first, second = divmod(key - len(types), len(types))
    return types[first] + types[second]


def _is_word(word: str) -> bool:
    return len(word) > 1 and any(character.isalpha() for character in word)
