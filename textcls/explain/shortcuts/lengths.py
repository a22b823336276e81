"""Does the length of a text tell its label?"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from textcls.explain.shortcuts.corpus import Corpus
from textcls.explain.shortcuts.reliance import Reliance, asked, others
from textcls.model import tokenizer
from textcls.model.classifier import Classifier

GROUPS: Final = 10
# A group of lengths tells a label if its share is this much of the way from that of all texts to all of them.
TELLING: Final = 0.45
LEAST_TEXTS: Final = 100


@dataclass(frozen=True, slots=True)
class LengthCue:
    """A range of lengths whose texts carry one label.

    Attributes:
        label: number of the label.
        shortest: in tokens; 0 for any.
        longest: in tokens; None for any.
        texts: so long.
        of_label: how many of them carry the label.
        share: of all texts that carry it.
        reliance: what becomes of texts of other labels that are cut to such a length, or repeated up to it.
    """

    label: int
    shortest: int
    longest: int | None
    texts: int
    of_label: int
    share: float
    reliance: Reliance


def length_cue(classifier: Classifier, corpus: Corpus) -> LengthCue | None:
    """Return the range of lengths that tells a label best, if one does.

    Texts are sorted into ten groups of rising length, as equal as lengths allow; neighbouring groups of one label make
    the range.
    """
    if len(corpus.texts) < GROUPS * LEAST_TEXTS:
        return None
    length_N = corpus.lengths
    edges = np.unique(np.quantile(length_N, np.arange(1, GROUPS) / GROUPS))
    group_N = np.searchsorted(edges, length_N, "right")
    count_GC = np.zeros((len(edges) + 1, corpus.labels), np.int64)
    np.add.at(count_GC, (group_N, corpus.label_N), 1)
    text_G = count_GC.sum(1)
    share_GC = count_GC / np.maximum(1, text_G)[:, None]
    telling_GC = np.where(text_G[:, None] >= LEAST_TEXTS, (share_GC - corpus.priors) / (1 - corpus.priors + 1e-9), 0)
    group, label = (int(i) for i in np.unravel_index(int(telling_GC.argmax()), telling_GC.shape))
    if telling_GC[group, label] < TELLING:
        return None
    first = last = group
    while first > 0 and telling_GC[first - 1, label] >= TELLING:
        first -= 1
    while last + 1 < len(text_G) and telling_GC[last + 1, label] >= TELLING:
        last += 1
    within = (group_N >= first) & (group_N <= last)
    shortest = 0 if first == 0 else int(length_N[within].min())
    longest = None if last + 1 == len(text_G) else int(length_N[within].max())
    size = int(np.median(length_N[within & (corpus.label_N == label)]))

    def change(text: str) -> str:
        spans = list(tokenizer.token_spans(text, classifier.info.max_tokens))
        if not spans:
            return text
        times = -(-size // len(spans))
        return " ".join([text] * times) if times > 1 else text[: spans[max(0, size - 1)][1]]

    reliance = asked(classifier, corpus, others(corpus, label), label, change)
    of_label = int(count_GC[first : last + 1, label].sum())
    return LengthCue(label, shortest, longest, int(within.sum()), of_label, float(corpus.priors[label]), reliance)
