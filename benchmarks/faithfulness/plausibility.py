"""Do people mark the same words? Scores of tokens against human rationales, by ERASER's and HateXplain's measures.

As in HateXplain's evaluation (Mathew et al. 2021): the truth is the union of the annotators' rationales, soft
predictions are the scores of all tokens, every post with a rationale counts whatever the model answers, and posts
without one (there: of the majority label normal) are left out. The hard prediction is as many tokens of the highest
score as rationales of these data are long in the mean, as a share of the text (ERASER: DeYoung et al. 2020);
HateXplain takes 5 whatever the length.

People's tokens are not the model's. They are aligned by characters, and the score of a person's token is the sum of the
scores of the model's tokens that share a character with it, of contributions and of attention alike: both are parts of
a whole. What the model does not read has score 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

import numpy as np

from faithfulness.faithfulness import order
from textcls.explain.intervention import Span
from textcls.model.units import Unit, unit_spans
from textcls_training.data.arrays import Bools, Float64, Int64

IOU: Final = 0.5
# A row is dropped if a smaller share of its tokens' characters is found in the text.
LEAST_ALIGNED: Final = 0.7


@dataclass(frozen=True, eq=False)
class Rationale:
    """What people marked in a text.

    Attributes:
        tokens: their tokens.
        gold: whether each is part of the reason.
        label: the class that it is a reason for; None for whatever the model answers.
    """

    tokens: tuple[str, ...]
    gold: tuple[bool, ...]
    label: str | None = None


@dataclass(frozen=True, eq=False)
class Aligned:
    """A rationale whose tokens have been found in the text.

    Attributes:
        gold: whether each person's token [P] that was found is part of the reason.
        overlaps: whether it shares a character with each of the model's tokens [P, T].
        lengths: of each person's token in characters [P].
        exact: whether the text is the tokens with single spaces between them.
    """

    gold: Bools
    overlaps: Bools
    lengths: Int64
    exact: bool

    def scores(self, scores: Float64) -> Float64:
        """Return the score of each person's token [P], from those of the model's tokens [T]."""
        return np.asarray(self.overlaps.astype(np.float64) @ scores)


def align(rationale: Rationale, text: str, spans: Sequence[Span]) -> Aligned | None:
    """Find the tokens of people in `text`; None if too little is found, or no token that is a reason.

    Characters are compared in lower case, white space left out; the longest common pieces are matched first. A token of
    which nothing is found (a full stop that the text has lost) is left out.
    """
    place = [i for i, sign in enumerate(text) if not sign.isspace()]
    owner = [i for i, token in enumerate(rationale.tokens) for sign in token if not sign.isspace()]
    theirs = "".join(_lower(sign) for token in rationale.tokens for sign in token if not sign.isspace())
    ours = "".join(_lower(text[i]) for i in place)
    token_at = np.full(len(text), -1)
    for number, (start, end) in enumerate(spans):
        token_at[start:end] = number
    overlaps = np.zeros((len(rationale.tokens), len(spans)), np.bool_)
    found, matched = np.zeros(len(rationale.tokens), np.bool_), 0
    for block in SequenceMatcher(None, theirs, ours, autojunk=False).get_matching_blocks():
        for i in range(block.size):
            token, at = owner[block.a + i], token_at[place[block.b + i]]
            found[token] = True
            matched += 1
            if at >= 0:
                overlaps[token, at] = True
    gold = np.array(rationale.gold, np.bool_)[found]
    if matched < LEAST_ALIGNED * len(theirs) or not gold.any():
        return None
    lengths = np.array([len(token) for token in rationale.tokens], np.int64)[found]
    return Aligned(gold, overlaps[found], lengths, " ".join(rationale.tokens) == text)


def _lower(sign: str) -> str:
    """One character for one, so that places stay."""
    lowered = sign.lower()
    return lowered if len(lowered) == 1 else sign


def auprc(scores: Float64, gold: Bools) -> float:
    """Return the area under the precision-recall curve of one text, by scikit-learn as ERASER and HateXplain do."""
    from sklearn.metrics import auc, precision_recall_curve

    precision, recall, _ = precision_recall_curve(gold, scores)
    return float(auc(recall, precision))


def mean_share(rationales: Sequence[Aligned]) -> float:
    """Return how long rationales are in the mean, as a share of their texts; 0 for none."""
    return float(np.mean([aligned.gold.mean() for aligned in rationales])) if rationales else 0.0


def top_tokens(scores: Float64, top: int) -> Bools:
    """Return the hard prediction: the `top` tokens of the highest score."""
    chosen = np.zeros(len(scores), np.bool_)
    chosen[order(scores)[:top]] = True
    return chosen


def token_f1(chosen: Bools, gold: Bools) -> float:
    """Return F1 of the chosen tokens of one text; ERASER's macro figure is its mean over texts."""
    both = int((chosen & gold).sum())
    return 2 * both / (int(chosen.sum()) + int(gold.sum())) if both else 0.0


def character_f1(chosen: Bools, gold: Bools, lengths: Int64) -> float:
    """Return F1 of the characters of the chosen tokens of one text, as spans of toxic posts are compared.

    SemEval-2021 task 5 (Pavlopoulos et al. 2021) takes its mean over posts, and counts white space within a span, too.
    """
    both = int(lengths[chosen & gold].sum())
    return 2 * both / (int(lengths[chosen].sum()) + int(lengths[gold].sum())) if both else 0.0


def by_unit(scores: Float64, text: str, spans: Sequence[Span], unit: Unit) -> Float64:
    """Return the scores [tokens] with each that of its unit: the mean over its tokens."""
    found = np.empty(len(scores))
    for first, behind in unit_spans(text, spans, unit):
        found[first:behind] = scores[first:behind].mean()
    return found


def runs(marked: Bools) -> Iterator[Span]:
    """Yield (start, end) of each run of consecutive true tokens."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def iou_precision_recall(chosen: Bools, gold: Bools, merge: bool = False) -> tuple[float, float]:
    """Return the share of predicted spans that match and that number by the number of true spans.

    A predicted span matches if it has an intersection over union of 0.5 or more with some run of true tokens. ERASER's
    macro figure is F1 of the means of both over texts (`partial_match_score`; two single tokens of a true span of two
    count twice there, so a recall may pass 1).

    Args:
        chosen: the hard prediction [P].
        gold: the truth [P].
        merge: whether neighbouring chosen tokens are one span, as in ERASER; HateXplain has each by itself.
    """
    truth = list(runs(gold))
    spans = list(runs(chosen)) if merge else [(int(i), int(i) + 1) for i in np.flatnonzero(chosen)]
    if not truth or not spans:
        return 0.0, 0.0
    matches = sum(max(_iou(span, other) for other in truth) >= IOU for span in spans)
    return matches / len(spans), matches / len(truth)


def _iou(one: Span, other: Span) -> float:
    shared = max(0, min(one[1], other[1]) - max(one[0], other[0]))
    return shared / (one[1] - one[0] + other[1] - other[0] - shared)


def measure(aligned: Aligned, scores: Float64, share: float) -> dict[str, tuple[float, ...]]:
    """Return the values of each measure of one text, from the scores of the model's tokens.

    Args:
        aligned: what people marked.
        scores: of the model's tokens [T].
        share: of the tokens of a text that are chosen; at least one is.
    """
    theirs = aligned.scores(scores)
    chosen = top_tokens(theirs, max(1, round(share * len(theirs))))
    return {
        "auprc": (auprc(theirs, aligned.gold),),
        "token_f1": (token_f1(chosen, aligned.gold),),
        "character_f1": (character_f1(chosen, aligned.gold, aligned.lengths),),
        "iou_f1": iou_precision_recall(chosen, aligned.gold),
        "iou_f1_merged": iou_precision_recall(chosen, aligned.gold, merge=True),
    }
