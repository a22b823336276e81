"""The model as a table: what each word, and each pair of words, says of each label by itself.

A model file holds hashes and not words, so the words come from texts: those of the training, or any others. What is
told of a word is then the model's alone: the values of its row, before the norm of a text divides them.

Shapes: W terms, C labels, K kinds of rows, T tokens, G groups, X = C + 2, as in `textcls.sub_token_attribution`.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from textcls import tokenizer
from textcls.classifier import Classifier
from textcls.errors import ConfigError

# Words, and pairs, that are counted at once, and that are asked about in one call.
MOST_TERMS: Final = 2_000_000
ASKED: Final = 256
_RIGHT_PAIR: Final = 2

Kind = Literal["word", "pair"]


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Words and pairs that the model knows, the weightiest first.

    Attributes:
        labels: of the model.
        kinds: `word` or `pair`, of each term.
        terms: as text, in lower case.
        counts: how often each stands in the texts.
        weights: what each says of each label [W, C], in logits before the norm.
        unknown: how many words and pairs of the texts the model has no row for.
        dropped: how many were left out because there were too many, the rarest first.
    """

    labels: tuple[str, ...]
    kinds: tuple[Kind, ...]
    terms: tuple[str, ...]
    counts: tuple[int, ...]
    weights: NDArray[np.float32]
    unknown: int
    dropped: int

    def as_csv(self) -> str:
        """Return the lexicon as CSV, a term a line, with a column for each label."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kind", "term", "count", *self.labels])
        for kind, term, count, weights in self._rows():
            writer.writerow([kind, term, count, *(f"{weight:.4f}" for weight in weights)])
        return file.getvalue()

    def as_json(self) -> str:
        """Return the lexicon as a JSON list of objects, one a term."""
        found = [
            {"kind": kind, "term": term, "count": count, "weights": dict(zip(self.labels, weights, strict=True))}
            for kind, term, count, weights in self._rows()
        ]
        return json.dumps(found, ensure_ascii=False, indent=0) + "\n"

    def _rows(self) -> Iterator[tuple[str, str, int, list[float]]]:
        yield from zip(self.kinds, self.terms, self.counts, self.weights.tolist(), strict=True)


def lexicon(classifier: Classifier, texts: Iterable[str], *, most: int = MOST_TERMS) -> Lexicon:
    """Return what the model says of the words and pairs of `texts`.

    Args:
        classifier: the model.
        texts: where words come from, such as the texts of the training; read once, and not kept.
        most: so many words, and pairs, are counted; beyond that the rarest are dropped.

    Raises:
        ConfigError: the model has no values for words: it mixes tokens, has many seeds, or its labels are prototypes.
    """
    if not classifier.graph.has_rows:
        raise ConfigError(
            f"{classifier.path} has no weights of words: tokens are mixed, or labels are prototypes, or seeds are many."
        )
    words, pairs, dropped = _counted(classifier, texts, most)
    kinds: list[Kind] = ["word" for _ in words]
    kinds += ["pair" for _ in pairs]
    terms: list[tuple[str, ...]] = [*((word,) for word in words), *pairs]
    weights_WC = np.concatenate([_weights(classifier, terms[: len(words)]), _weights(classifier, terms[len(words) :])])
    counts = [*words.values(), *pairs.values()]
    known_W = np.abs(weights_WC).max(1, initial=0.0) > 0
    order = np.argsort(-np.abs(weights_WC).max(1, initial=0.0), kind="stable")
    order = order[known_W[order]].tolist()
    return Lexicon(
        classifier.labels,
        tuple(kinds[i] for i in order),
        tuple(" ".join(terms[i]) for i in order),
        tuple(counts[i] for i in order),
        weights_WC[order],
        int((~known_W).sum()),
        dropped,
    )


def _counted(
    classifier: Classifier, texts: Iterable[str], most: int
) -> tuple[Counter[str], Counter[tuple[str, str]], int]:
    words: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    dropped = 0
    for text in texts:
        tokens = tokenizer.tokenize(text)[: classifier.info.max_tokens]
        words.update(tokens)
        if classifier.info.features.bigrams:
            pairs.update(pairwise(tokens))
        dropped += _forget(words, most) + _forget(pairs, most)
    return words, pairs, dropped


def _forget(counter: Counter[Any], most: int) -> int:
    """Keep the more frequent half of what is counted if it is too much; return how many are dropped."""
    if len(counter) <= most:
        return 0
    kept, size = dict(counter.most_common(most // 2)), len(counter)
    counter.clear()
    counter.update(kept)
    return size - len(kept)


def _weights(classifier: Classifier, terms: Sequence[tuple[str, ...]]) -> NDArray[np.float32]:
    """Return the values of the rows of words, or of pairs [W, C]; zeros where there is no row.

    Terms are asked about one behind another, as the words of one text. Half of a pair is owned by either word.
    """
    labels = len(classifier.labels)
    found = [np.zeros((0, labels), np.float32)]
    most = max(1, min(ASKED, classifier.info.max_tokens // 2))
    for first in range(0, len(terms), most):
        some = terms[first : first + most]
        tokens = [word for term in some for word in term]
        rows_KTGX = classifier.graph.rows(" ".join(tokens), len(tokens)).rows_KTGX
        pair = len(some[0]) == _RIGHT_PAIR
        kind_TC = (2 * rows_KTGX[_RIGHT_PAIR, ::2] if pair else rows_KTGX[0])[..., :labels].sum(-2)
        found.append(kind_TC.astype(np.float32))
    return np.concatenate(found)
