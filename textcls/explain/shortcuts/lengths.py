"""Does the length of a text predict its label?"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from textcls.explain.shortcuts.corpus import Corpus
from textcls.explain.shortcuts.reliance import Reliance, asked, others
from textcls.model import tokenizer
from textcls.model.classifier import Classifier

# The ends of the groups of rising length: tenths of all texts, and finer ones for the few longest and shortest.
QUANTILES: Final = (0.02, 0.05, *(i / 10 for i in range(1, 10)), 0.95, 0.98)
# A group of lengths predicts a label if its share is this far along the way from that in all texts to 1; undoubtedly
# at the second value.
TELLING: Final = 0.45
SURE: Final = 0.65
LEAST_TEXTS: Final = 100
LEAST_OF_ALL: Final = 1_000


@dataclass(frozen=True, slots=True)
class LengthCue:
    """A range of lengths whose texts carry one label.

    Attributes:
        label: number of the label.
        shortest: in tokens; 0 for any.
        longest: in tokens; None for any.
        texts: the number of texts of such a length.
        of_label: how many of them have the label.
        share: the share of all texts that have it.
        telling: how far the group's share is along the way from `share` to 1.
        reliance: the effect on texts of other labels of cutting them to such a length, or repeating them up to it.
    """

    label: int
    shortest: int
    longest: int | None
    texts: int
    of_label: int
    share: float
    telling: float
    reliance: Reliance

    @property
    def sure(self) -> bool:
        """Whether nearly all of these texts have the label, whether or not the model can use it."""
        return self.telling >= SURE


def length_cue(classifier: Classifier, corpus: Corpus) -> LengthCue | None:
    """Return the range of lengths that predicts a label best, if one does.

    Texts are sorted into groups of rising length; neighbouring groups of one label form the range.
    """
    if len(corpus.texts) < LEAST_OF_ALL:
        return None
    length_N = corpus.lengths
    edges = np.unique(np.quantile(length_N, QUANTILES))
    group_N = np.searchsorted(edges, length_N, "right")
    count_GC = np.zeros((len(edges) + 1, corpus.labels), np.int64)
    np.add.at(count_GC, (group_N[corpus.owner_L], corpus.label_L), 1)
    text_G = np.bincount(group_N, minlength=len(count_GC))
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
    size = int(np.median(length_N[within & corpus.of_label(label)]))

    def change(text: str) -> str:
        spans = list(tokenizer.token_spans(text, classifier.info.max_tokens))
        if not spans:
            return text
        times = -(-size // len(spans))
        return " ".join([text] * times) if times > 1 else text[: spans[max(0, size - 1)][1]]

    reliance = asked(classifier, corpus, others(corpus, label), label, change)
    of_label = int(count_GC[first : last + 1, label].sum())
    prior, texts = float(corpus.priors[label]), int(within.sum())
    telling = (of_label / texts - prior) / (1 - prior + 1e-9)
    return LengthCue(label, shortest, longest, texts, of_label, prior, telling, reliance)
