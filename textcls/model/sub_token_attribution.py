"""Sub-token attribution: which parts of a token earned its contribution: its word, pairs, triples, and n-grams.

A contribution is linear in the rows of its token, so it splits exactly over them. Only files whose rows are values of
labels return the logits of each row (`textcls.model.artifact.ROW_OUTPUTS`), as those of `textcls train` do by default.

Shapes: K kinds of rows, T tokens, U out-of-vocabulary tokens, N n-grams of a token, G groups (a view, and a seed in
it), C labels; X = C + 2: a logit for each label, an attention score, and the squared feature norm.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from textcls.model.features import FeatureConfig

Float32 = NDArray[np.float32]
Span = tuple[int, int]
Kind = Literal["word", "pair", "triple", "ngram"]
Edge = Literal["start", "end"]


@dataclass(frozen=True, slots=True)
class SubTokenAttribution:
    """What one row of the model added, and its place in the text.

    Attributes:
        kind: a word; a pair of neighbouring words, or of the first or last word and the edge of the text; a triple
            likewise; or a run of characters inside a word that is unknown to the model.
        start: the start of the span in the text.
        end: the end of the span in the text.
        tokens: the numbers of the tokens that it is credited to.
        contributions: the contributions to the logit of each label.
        edge: the edge of the text in a pair of one word or a triple of two, the start if both; None for other parts.
    """

    kind: Kind
    start: int
    end: int
    tokens: tuple[int, ...]
    contributions: Mapping[str, float]
    edge: Edge | None = None

    def as_json(self, text: str) -> dict[str, Any]:
        """The attribution as plain data, with its piece of `text`."""
        return {
            "kind": self.kind,
            "text": text[self.start : self.end],
            "start": self.start,
            "end": self.end,
            "edge": self.edge,
            "tokens": list(self.tokens),
            "contributions": dict(self.contributions),
        }


@dataclass(frozen=True, slots=True)
class RowOutputs:
    """The outputs of the graph for the rows of one text.

    Attributes:
        rows_KTGX: the rows of each token: its word, its left and its right pair, and its triples from the left.
        ngrams_UNGX: n-grams of the unknown tokens, for the last groups; None if the model has none.
        weights_TG: what values are multiplied by.
        known_T: which tokens are words that the file knows.
    """

    rows_KTGX: Float32
    ngrams_UNGX: Float32 | None
    weights_TG: Float32
    known_T: NDArray[np.bool_]


def split(
    found: RowOutputs, spans: tuple[Span, ...], labels: tuple[str, ...], config: FeatureConfig, *, norm: bool
) -> list[SubTokenAttribution]:
    """Return what each row added; the sum over rows is that of the contributions, label by label.

    Args:
        found: the outputs of the graph.
        spans: the spans of the tokens.
        labels: the labels, in the order of the values.
        config: which rows a token owns.
        norm: whether the attention is `norm`, in which tokens also weaken each other.
    """
    credit = _Credit(found, len(labels), norm)
    added_KTC = credit.of(found.rows_KTGX, found.weights_TG)
    parts = [_part("word", span, (t,), added_KTC[0, t], labels) for t, span in enumerate(spans)]
    kinds: dict[int, Kind] = {2: "pair", 3: "triple"}
    first = 1
    for order in config.orders:
        parts += _sequences(kinds[order], added_KTC[first : first + order], spans, labels)
        first += order
    if found.ngrams_UNGX is not None:
        unknown = np.flatnonzero(~found.known_T)
        ngram_UNC = credit.of(found.ngrams_UNGX, found.weights_TG[unknown, None, -found.ngrams_UNGX.shape[2] :])
        for token, ngram_NC in zip(unknown.tolist(), ngram_UNC, strict=True):
            parts += _ngrams(ngram_NC, token, spans[token], labels, config)
    return [part for part in parts if any(part.contributions.values())]


def added_by_tokens(found: RowOutputs, labels: int, *, norm: bool) -> Float32:
    """Return the sum of what the rows of each token add [T, C]: the contributions of the graph, up to rounding."""
    credit = _Credit(found, labels, norm)
    added_TC: Float32 = credit.of(found.rows_KTGX, found.weights_TG).sum(0)
    if found.ngrams_UNGX is not None:
        weights_UG = found.weights_TG[~found.known_T, None, -found.ngrams_UNGX.shape[2] :]
        added_TC[~found.known_T] += credit.of(found.ngrams_UNGX, weights_UG).sum(1)
    return added_TC


class _Credit:
    """The formula of a contribution (`norm_attributions` of `textcls_torch.models.ops`), for some of the rows."""

    def __init__(self, found: RowOutputs, labels: int, norm: bool) -> None:
        self.labels, self.norm = labels, norm
        token_logit_TGC = found.weights_TG[..., None] * found.rows_KTGX[..., :labels].sum(0)
        if found.ngrams_UNGX is not None:
            groups = found.ngrams_UNGX.shape[2]
            weights_UG = found.weights_TG[~found.known_T, -groups:]
            token_logit_TGC[~found.known_T, -groups:] += weights_UG[..., None] * found.ngrams_UNGX[..., :labels].sum(1)
        self.sum_GC = token_logit_TGC.sum(0)

    def of(self, rows: Float32, weights: Float32) -> Float32:
        """Return what rows [..., G, X] with weights [..., G] add [..., C]; if G is smaller, it is the last groups."""
        added: Float32 = (weights[..., None] * rows[..., : self.labels]).sum(-2)
        if self.norm:
            norm_share = weights**2 * rows[..., -1]
            added = 1.5 * added - 0.5 * norm_share @ self.sum_GC[-rows.shape[-2] :]
        return added


def _sequences(
    kind: Kind, added_ITC: Float32, spans: tuple[Span, ...], labels: tuple[str, ...]
) -> Iterator[SubTokenAttribution]:
    """Yield the attributions of sequences, whose rows its tokens share: a token's number i ends i tokens after it.

    A sequence that includes an edge of the text has one token less.
    """
    order, tokens = len(added_ITC), len(spans)
    for end in range(order - 2, tokens + 1):
        owners = range(max(0, end - order + 1), min(end + 1, tokens))
        if owners:
            added_C = np.sum([added_ITC[end - t, t] for t in owners], axis=0)
            edge: Edge | None = "start" if end < order - 1 else "end" if end == tokens else None
            span = spans[owners[0]][0], spans[owners[-1]][1]
            yield _part(kind, span, tuple(owners), added_C, labels, edge)


def _ngrams(
    ngram_NC: Float32, token: int, span: Span, labels: tuple[str, ...], config: FeatureConfig
) -> Iterator[SubTokenAttribution]:
    start, end = span
    for (first, behind), added_C in zip(_ngram_places(config), ngram_NC, strict=True):
        yield _part("ngram", (start + max(0, first), min(end, start + behind)), (token,), added_C, labels)


def _ngram_places(config: FeatureConfig) -> Iterator[Span]:
    """Yield where each n-gram starts and ends in its token, in the order of `features.ngram_hashes`.

    The mark before the first character is at -1.
    """
    for n in config.ngram_sizes:
        for first in range(config.max_chars + 3 - n):
            yield first - 1, first - 1 + n


def _part(
    kind: Kind,
    span: Span,
    tokens: tuple[int, ...],
    added_C: Float32,
    labels: tuple[str, ...],
    edge: Edge | None = None,
) -> SubTokenAttribution:
    return SubTokenAttribution(kind, *span, tokens, dict(zip(labels, added_C.tolist(), strict=True)), edge)
