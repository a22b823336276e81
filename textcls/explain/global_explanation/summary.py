"""A global explanation, the findings over many texts, as plain frozen objects."""

from dataclasses import asdict, dataclass
from typing import Any

from textcls._util.in_notebooks import InNotebooks
from textcls.explain.shortcuts.audit import ShortcutAudit
from textcls.model.excerpts import Excerpt


@dataclass(frozen=True, slots=True)
class TermAttribution:
    """What a term, a word or two neighbouring words together, contributed for a label over many texts.

    Attributes:
        text: the word or the pair, in lower case.
        evidence: the sum of its evidence for the label over all texts; negative evidence speaks against it.
        mean: the mean evidence of a single occurrence.
        count: number of occurrences.
        example: an occurrence that contributed much evidence of that sign.
    """

    text: str
    evidence: float
    mean: float
    count: int
    example: Excerpt


@dataclass(frozen=True, slots=True)
class DecidingWord:
    """A word that alone decides a large share of a label's answers.

    It decides an answer if the label would no longer be the most probable without all that the word contributed.

    Attributes:
        label: the label answered.
        text: the word, in lower case.
        share: `decided / answers`.
        decided: texts answered with the label that the word decides.
        holding: texts answered with the label that contain the word.
        answers: texts answered with the label.
        wrong: how many of the decided texts have another label; None if the texts have none.
        example: an occurrence that contributed much for the label.
    """

    label: str
    text: str
    share: float
    decided: int
    holding: int
    answers: int
    wrong: int | None
    example: Excerpt


@dataclass(frozen=True, slots=True)
class LabelExplanation:
    """What speaks for and against a label, strongest first, over all texts and not only over those answered with it."""

    label: str
    answers: int
    words_for: tuple[TermAttribution, ...]
    words_against: tuple[TermAttribution, ...]
    pairs_for: tuple[TermAttribution, ...]
    pairs_against: tuple[TermAttribution, ...]


@dataclass(frozen=True, slots=True)
class GlobalExplanation(InNotebooks):
    """What a model relied on over many texts.

    Attributes:
        texts: how many.
        tokens: the number of tokens in all texts.
        labelled: the number of texts with a label.
        right: how many of those were answered with it; with several labels per text, with exactly their labels.
        dropped: words and pairs that were forgotten because there were too many, the rarest first; one that recurred
            counts from there. Which words an answer contains, and which decide it, is bounded separately and not
            counted here; from then on `holding`, `decided` and `wrong` of a word are lower bounds.
        deciding: the words that alone decide a large share of a label's answers, the worst first.
        labels: what speaks for and against each label, or each requested one.
        deciding_share: a word that decides more than this share of a label's answers is reported as deciding.
        mirrored: whether these are the model's only two labels, so that what speaks for one speaks against the other.
        several: whether a text may have several labels: each is then answered, and explained, separately.
        audit: the shortcuts found, and those that could have been; None if none were looked for.
        told_by: a sentence for each column beside the text that determines the label by itself.

    Examples:
        >>> rows = [("where is my parcel", "shipping"), ("my card was charged twice", "billing")]
        >>> textcls.explain_globally(textcls.Classifier.load("tickets.onnx"), rows).texts
        2
    """

    texts: int
    tokens: int
    labelled: int
    right: int
    dropped: int
    deciding: tuple[DecidingWord, ...]
    labels: tuple[LabelExplanation, ...]
    deciding_share: float
    mirrored: bool
    several: bool = False
    audit: ShortcutAudit | None = None
    told_by: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as plain data."""
        silent = [name for name in ("several", "told_by") if not getattr(self, name)]
        return {name: value for name, value in asdict(self).items() if name not in silent}
